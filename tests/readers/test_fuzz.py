"""Damaged files by the thousand: every reader gives sentences or typed errors.

They are made of the golden sentences of every format, which are small and full of what is special
about it. ``make campaign`` reads a million.
"""

from __future__ import annotations

import random
import time
from pathlib import Path
from typing import Any

import pytest

from spmrl_bench.errors import ReadError
from spmrl_bench.process.pools import peak_memory_bytes
from spmrl_bench.readers.formats import FORMATS
from spmrl_bench.storage.paths import data_dir
from spmrl_bench.trees.graph import Graph
from spmrl_bench.trees.tree import Tree
from tests.readers.cases import to_rooted_tree
from tests.reliability.extreme_files import OPTIONS
from tests.reliability.tally import Held, Tally

GOLDEN = 2_000  # files in the quick tests, of all formats together
MANY = 1_000_000
SECONDS = 1.0  # of the processor, far more than a piece needs
MEMORY = 1 << 30  # bytes that reading all of them may add to the process

SPECIAL = b"()<>&;#\t\n\r\"'\\|:=-_/.0123456789 \x00\x80\xe4\xff"


def damaged(data: bytes, choose: random.Random) -> bytes:
    """The bytes with up to eight places changed: cut, doubled, moved, or other bytes put in."""
    for _ in range(choose.randint(1, 8)):
        start = choose.randrange(len(data) + 1)
        end = min(len(data), start + choose.choice((0, 1, 1, 2, 8, 100)))
        piece = data[start:end]
        place = choose.randrange(len(data) + 1)
        new = choose.choice(
            (
                b"",
                piece * 2,
                bytes(choose.choices(SPECIAL, k=choose.randint(1, 4))),
                data[place : place + choose.choice((1, 10, 300))],
            )
        )
        data = data[:start] + new + data[end:]
    return data


def check_one(name: str, data: bytes, options: dict[str, Any], folder: Path, held: Held) -> None:
    """Read some bytes as a file of a format, to the first mistake and to the end."""
    path = folder / "damaged"
    path.write_bytes(data)
    errors: list[ReadError] = []
    before: list[Any] = []
    found: list[Any] = []
    read, first = FORMATS.get(name).read, ""
    held.add()
    begun = time.process_time()
    try:
        before.extend(read(path, **options))
    except ReadError as error:
        first = str(error)
    try:
        for sentence in read(path, on_error=errors.append, **options):
            check_whole(getattr(sentence, "tree", sentence))
            found.append(sentence)
    except ReadError as error:  # not of the encoding
        errors.append(error)
    assert time.process_time() - begun < SECONDS, data
    assert [*map(str, errors[:1])] == ([first] if first else []), data
    assert list(map(repr, found[: len(before)])) == list(map(repr, before)), data
    for error in errors:
        assert str(error).startswith(f"{path}:"), data
        assert error.line is not None, data


def check_whole(sentence: Any) -> None:
    """What a reader yields holds together, though it may not be what anybody meant."""
    if isinstance(sentence, Tree):
        Tree.build(sentence.words, sentence.tags, sentence.constituents())
    elif isinstance(sentence, Graph):
        assert len(sentence.extents()) == len(sentence.labels) == len(sentence.parents)
        assert len(sentence.words) == len(sentence.tags) == len(sentence.token_parents)
        assert len(to_rooted_tree(sentence)) == len(sentence.words)
    else:
        sentence.build(sentence.words, sentence.tags, sentence.heads, sentence.relations)


@pytest.mark.parametrize("number", [GOLDEN, pytest.param(MANY, marks=pytest.mark.campaign)])
@pytest.mark.parametrize("name", FORMATS.names())
def test_damaged_golden_sentences(name: str, number: int, tmp_path: Path, tally: Tally) -> None:
    """Now and then with those of another format among them."""
    before = peak_memory_bytes() or 0
    held = tally("R11", "damaged files")
    golden = data_dir("treebanks") / "golden"
    known = {form: (golden / f"{form}.txt").read_bytes() for form in FORMATS.names()}
    data, options = known[name], OPTIONS.get(name, {})
    choose = random.Random(f"golden {name} {number}")
    for _ in range(-(-number // len(known))):
        piece = damaged(data, choose)
        if choose.random() < 0.1:
            other = known[choose.choice(list(known))]
            place, start = choose.randrange(len(piece) + 1), choose.randrange(len(other))
            piece = piece[:place] + other[start : start + choose.choice((5, 50, 500))]
        check_one(name, piece, options, tmp_path, held)
    assert (peak_memory_bytes() or 0) - before < MEMORY
