"""What the tests of every bracket-like text format do: read a text, break it, time it."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from spmrl_bench.errors import ReadError
from spmrl_bench.trees import Tree
from spmrl_bench.trees.escapes import write_brackets
from tests.readers.described import DescribedFormat

Read = Callable[..., Iterator[Tree]]

DEEP = 20_000
"""How deep a tree, and how long a row of mistakes, every reader must bear."""


@dataclass(frozen=True)
class Broken:
    """A text of which some trees are read and others left out.

    Attributes:
        text: what is read.
        words: the words of the trees that are read.
        errors: how the message for each of the others begins, without the file's name.
    """

    text: str
    words: Sequence[tuple[str, ...]]
    errors: Sequence[str]


@dataclass(frozen=True)
class Big:
    """A text of many nodes or many mistakes, and how many trees and errors it has."""

    text: str = field(repr=False)
    trees: int
    errors: int


@dataclass(frozen=True, kw_only=True)
class TextFormat(DescribedFormat):
    """A format of brackets, or like brackets.

    Attributes:
        sample: a file without mistakes, its lines ended by ``\\n``.
        pieces: characters that mean something in the format.
        options: the options with which a broken ``sample`` is read.
        layouts: texts, and their trees as lines of brackets.
        malformed: texts, and the error that ends the reading, without the file's name.
        broken: a text in which mistakes cost nothing but their own trees.
        big: texts whose time of reading must be linear in their length.
    """

    sample: str
    pieces: str
    options: Sequence[Mapping[str, Any]] = ({},)
    layouts: Sequence[tuple[str, Sequence[str]]]
    malformed: Sequence[tuple[str, str]]
    broken: Broken
    big: Sequence[Big]


def read_all(read: Read, source: str | bytes, **options: Any) -> tuple[list[Tree], list[str]]:
    """The trees of a text, and the errors of what was left out, without the file's name."""
    errors: list[ReadError] = []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "file"
        path.write_bytes(source.encode() if isinstance(source, str) else source)
        trees = list(read(path, on_error=errors.append, **options))
    return trees, [str(error).removeprefix(f"{path}:") for error in errors]


def brackets(read: Read, source: str | bytes, **options: Any) -> list[str]:
    """The trees of a text as lines of brackets; none may be left out."""
    trees, errors = read_all(read, source, **options)
    assert errors == []
    return [write_brackets(tree) for tree in trees]


def error_of(read: Read, text: str, path: Path, **options: Any) -> str:
    """The error that stops the reading, without the file's name."""
    path.write_bytes(text.encode())
    try:
        list(read(path, **options))
    except ReadError as error:
        return str(error).removeprefix(f"{path}:")
    return "no error"


@st.composite
def mutations(draw: st.DrawFn, text: str, pieces: str) -> str:
    """The text with up to eight places cut out, doubled or replaced."""
    for _ in range(draw(st.integers(0, 8))):
        start = draw(st.integers(0, len(text)))
        end = min(len(text), start + draw(st.integers(0, 6)))
        insert = draw(st.one_of(st.text(pieces, max_size=4), st.just(text[start:end] * 2)))
        text = text[:start] + insert + text[end:]
    return text


def check_whole(trees: list[Tree]) -> None:
    """Every tree has words, and rows that a checked tree may have."""
    for tree in trees:
        assert len(tree) > 0
        assert Tree.build(tree.words, tree.tags, tree.constituents()) == tree


def seconds(read: Read, source: str) -> tuple[float, int, int]:
    """Processor time of reading, and the numbers of trees and of errors."""
    start = time.process_time()
    trees, errors = read_all(read, source)
    return time.process_time() - start, len(trees), len(errors)
