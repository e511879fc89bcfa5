"""Thousands of damaged pieces of real treebanks: every reader gives sentences or typed errors.

``make campaign`` reads more of them.
"""

from __future__ import annotations

import random
import time
from pathlib import Path
from typing import Any

import pytest

from spmrl_bench.errors import ReadError
from spmrl_bench.readers.formats import FORMATS
from spmrl_bench.trees.graph import Graph
from spmrl_bench.trees.tree import Tree
from tests.conftest import shared_data

PIECE = 12_000  # bytes of a file
SECONDS = 5.0  # of the processor, far more than a piece needs

#: A file of each format, and the options that its treebank is read with.
FILES: dict[str, tuple[str, dict[str, Any]]] = {
    "brackets": ("wsj_sample_en/combined/wsj_0003.mrg", {"escapes": "ptb"}),
    "psd": ("icepahc_is/finished/1888.vordraumur.nar-fic.psd", {"lemmas": True}),
    "tbf": ("cess_es/cess_esp/a1-0.tbf", {"encoding": "latin-1"}),
    "visl": ("floresta_pt/Floresta_7.4.part1-1200.ptb", {"encoding": "latin-1"}),
    "bracketed-words": ("idn_id/Indonesian_Treebank_ID.bracket", {}),
    "sinica": ("sinica_zh/parsed", {}),
    "tiger-xml": ("smultron_sv_de_en/smultron_sv_banana.xml", {}),
    "alpino-xml": ("alpino_nl/alpino.first1200.xml", {}),
    "negra-export": ("alpino_nl/alpinosample.export", {}),
    "conll": ("ud_hungarian_szeged/hu_szeged-ud-dev.conllu", {}),
    "dp": ("wsj_sample_dep_en/dp/wsj_0003.dp", {}),
}
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


def check(name: str, number: int, folder: Path) -> None:
    file, options = FILES[name]
    data = shared_data(f"treebanks/{file}").read_bytes()
    choose = random.Random(f"{name} {number}")
    path = folder / "damaged"
    read = FORMATS[name].read
    for _ in range(number):
        start = choose.choice((0, 0, choose.randrange(max(1, len(data) - PIECE))))
        path.write_bytes(damaged(data[start : start + PIECE], choose))
        errors: list[ReadError] = []
        begun = time.process_time()
        try:
            for sentence in read(path, on_error=errors.append, **options):
                check_whole(getattr(sentence, "tree", sentence))
        except ReadError as error:  # not of the encoding
            errors.append(error)
        assert time.process_time() - begun < SECONDS
        assert all(str(error).startswith(f"{path}:") for error in errors)


def check_whole(sentence: Any) -> None:
    """What a reader yields holds together, though it may not be what anybody meant."""
    if isinstance(sentence, Tree):
        Tree.build(sentence.words, sentence.tags, sentence.constituents())
    elif isinstance(sentence, Graph):
        assert len(sentence.extents()) == len(sentence.labels) == len(sentence.parents)
        assert len(sentence.words) == len(sentence.tags) == len(sentence.token_parents)
    else:
        sentence.build(sentence.words, sentence.tags, sentence.heads, sentence.relations)


def test_every_format_has_a_file() -> None:
    assert set(FILES) == set(FORMATS)


@pytest.mark.parametrize("name", FILES)
def test_damaged_pieces(name: str, tmp_path: Path) -> None:
    check(name, 40, tmp_path)


@pytest.mark.campaign
@pytest.mark.parametrize("name", FILES)
def test_many_damaged_pieces(name: str, tmp_path: Path) -> None:
    check(name, 5_000, tmp_path)
