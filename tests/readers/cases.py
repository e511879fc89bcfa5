"""What every format is to the tests: its entry in the list of formats, and files, good and bad.

Each test module of a format describes it once, by a :class:`TextFormat` (brackets, or like
brackets) or a :class:`SentenceFormat` (graphs and dependencies, in rows or elements).
``test_formats`` puts the same questions to all of them; what is true of one format only stays in
its own module.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from spmrl_bench.errors import ReadError
from spmrl_bench.readers.formats import FORMATS
from spmrl_bench.readers.text import OnError, fail
from spmrl_bench.trees import Tree
from spmrl_bench.trees.escapes import write_brackets
from spmrl_bench.trees.graph import (
    Graph,
    add_vroot,
    attach_loose_tokens,
    raise_crossing_branches,
    to_tree,
)

#: How deep a tree, and how long a row of mistakes, every reader must bear.
DEEP = 5_000

Read = Callable[..., Iterator[Any]]


@dataclass(frozen=True)
class Encoded:
    """A text of one sentence that is not ASCII; it is written in the first encoding."""

    text: str
    words: Mapping[str, tuple[str, ...]]  # by the encoding that it is read in
    error: str  # what reading it as UTF-8 says, without the file's name


@dataclass(frozen=True, kw_only=True)
class FormatCase:
    """A format by its name, and beginnings of files that look like it or do not."""

    name: str
    recognised: Sequence[str]
    others: Sequence[str]
    encoded: Encoded | None = None  # absent where files declare their encoding themselves

    @property
    def read(self) -> Read:
        """``read(path, *, on_error, **options)``, an iterator over the sentences of a file."""
        return FORMATS.get(self.name).read


@dataclass(frozen=True)
class Broken:
    """A text of which some trees are read and others left out."""

    text: str
    words: Sequence[tuple[str, ...]]  # of the trees that are read
    errors: Sequence[str]  # how the message for each of the others begins, without the file's name


@dataclass(frozen=True)
class Big:
    """A text of many nodes or many mistakes, and how many trees and errors it has."""

    text: str = field(repr=False)
    trees: int
    errors: int


@dataclass(frozen=True, kw_only=True)
class TextFormat(FormatCase):
    """A format of brackets, or like brackets."""

    sample: str  # a file without mistakes
    trees: Sequence[str]  # those of the sample as lines of brackets
    layouts: Sequence[tuple[str, Sequence[str]]]  # texts, and their trees as lines of brackets
    malformed: Sequence[tuple[str, str, str]]  # texts, place of the error and a word of it
    broken: Broken  # mistakes cost nothing but their own trees
    big: Sequence[Big]  # the time of reading must be linear in their length


#: A bad sentence, the line of the mistake (the sentence's first line is 1), a part of the problem.
Mistake = tuple[str, int, str]


@dataclass(frozen=True, kw_only=True)
class SentenceFormat(FormatCase):
    """A format of sentences in rows or elements, a group for each."""

    good: str  # a sentence without mistakes; it ends as sentences do within a file
    expected: Callable[[int], Any]  # what content gives of it where it is the n-th of a file
    content: Callable[[Any], Any] = lambda sentence: sentence  # what is compared
    ways: Mapping[str, bytes]  # other files that have the good sentence alone
    malformed: Mapping[str, Mistake]
    bad_name: str  # how errors name the second sentence of a file
    open_end: bool = False  # whether the last sentence may lack its end
    ending: tuple[str, str] | None = None  # a mistake after which nothing can be read, its place
    deep: tuple[str, Sequence[str]] | None = None  # nodes below each other, and their labels
    head: str = ""  # before the sentences of a file
    tail: str = ""  # behind them

    def file(self, *sentences: str) -> str:
        """A file of sentences."""
        return self.head + "".join(sentences) + self.tail

    def read_file(self, folder: Path, *sentences: str, on_error: OnError = fail) -> Iterator[Any]:
        """Write sentences into ``file`` of a folder, and read it."""
        path = folder / "file"
        path.write_bytes(self.file(*sentences).encode())
        return self.read(path, on_error=on_error)


def read_all(read: Read, source: str | bytes, **options: Any) -> tuple[list[Any], list[str]]:
    """The sentences of a text, and the errors of what was left out, without the file's name."""
    errors: list[ReadError] = []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "file"
        path.write_bytes(source.encode() if isinstance(source, str) else source)
        found = list(read(path, on_error=errors.append, **options))
    return found, [str(error).removeprefix(f"{path}:") for error in errors]


def brackets(read: Read, source: str | bytes, **options: Any) -> list[str]:
    """The trees of a text as lines of brackets; none may be left out."""
    trees, errors = read_all(read, source, **options)
    assert errors == []
    return [write_brackets(tree) for tree in trees]


def to_rooted_tree(graph: Graph) -> Tree:
    """The tree of a graph that may have several roots."""
    return to_tree(raise_crossing_branches(attach_loose_tokens(add_vroot(graph))))


def edits(good: str, changes: Mapping[str, tuple[str, str, int, str]]) -> dict[str, Mistake]:
    """Mistakes made by changing a good sentence: text of it, what stands instead, line, problem."""
    assert all(found in good for found, *_ in changes.values())
    return {
        name: (good.replace(found, changed, 1), line, problem)
        for name, (found, changed, line, problem) in changes.items()
    }


def ways_of_text(text: str) -> dict[str, bytes]:
    """A file of text as other systems write it."""
    bom, windows = b"\xef\xbb\xbf", text.replace("\n", "\r\n").encode()
    return {
        "unix": text.encode(),
        "windows": windows,
        "bom": bom + text.encode(),
        "bom, windows": bom + windows,
        "no final newline": text.removesuffix("\n").encode(),
    }


def ways_of_xml(text: str, declared: str) -> dict[str, bytes]:
    """A file of XML in several encodings, with ö for its character reference where possible."""

    def declaring(encoding: str) -> str:
        assert text.count(declared) == 1
        return text.replace(declared, encoding)

    return {
        "as it is": text.encode("ascii"),
        "windows": text.replace("\n", "\r\n").encode(),
        "mac": text.replace("\n", "\r").encode(),
        "final newline": text.encode() + b"\n",
        "bom": b"\xef\xbb\xbf" + declaring("UTF-8").encode(),
        "utf-8": declaring("UTF-8").replace("&#246;", "ö").encode(),
        "utf-16": declaring("UTF-16").encode("utf-16"),
        "latin-1": declaring("ISO-8859-1").replace("&#246;", "ö").encode("latin-1"),
    }
