"""What the tests of graphs and of dependencies do: put sentences, good and bad, in files.

Such files are rows or elements, a group for each sentence, so that a bad sentence can stand
between good ones; an error names the file, the line and the sentence.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter
from pathlib import Path
from typing import Any

from spmrl_bench.readers.text import OnError, fail
from spmrl_bench.trees.graph import (
    Graph,
    add_vroot,
    attach_loose_tokens,
    raise_crossing_branches,
    to_tree,
)
from spmrl_bench.trees.tree import Tree
from tests.readers.described import DescribedFormat

Mistake = tuple[str, int, str]
"""A bad sentence, the line of the mistake (the sentence's first line is 1), the problem."""


@dataclass(frozen=True, kw_only=True)
class SentenceFormat(DescribedFormat):
    """A format of sentences in rows or elements.

    Attributes:
        good: a sentence without mistakes; it ends as sentences do within a file.
        expected: what ``content`` gives of that sentence where it is the n-th of a file.
        content: what of a sentence is compared.
        ways: other files that have ``good`` alone.
        malformed: sentences with a mistake.
        bad_name: how errors name the second sentence of a file.
        whole_problems: whether ``malformed`` has problems in full, or how they begin.
        open_end: whether the last sentence may lack its end.
        ending: a mistake after which nothing of the file can be read, its line and column.
        deep: a sentence with a row of nodes below each other, and their labels.
        head: what stands before the sentences of a file.
        tail: what stands behind them.
        damage: a file to damage; the default has two good sentences.
        to_tree: makes a tree of what is read.
    """

    good: str
    expected: Callable[[int], Any]
    content: Callable[[Any], Any] = lambda sentence: sentence
    ways: Mapping[str, bytes]
    malformed: Mapping[str, Mistake]
    bad_name: str
    whole_problems: bool = True
    open_end: bool = False
    ending: tuple[str, str] | None = None
    deep: tuple[str, Sequence[str]] | None = None
    head: str = ""
    tail: str = ""
    damage: str = ""
    to_tree: Callable[[Any], Any] = attrgetter("tree")

    def file(self, *sentences: str) -> str:
        """A file of sentences."""
        return self.head + "".join(sentences) + self.tail

    def read_file(self, folder: Path, *sentences: str, on_error: OnError = fail) -> Iterator[Any]:
        """Write sentences into ``file`` of a folder, and read it."""
        path = folder / "file"
        path.write_bytes(self.file(*sentences).encode())
        return self.read(path, on_error=on_error)


def to_rooted_tree(graph: Graph) -> Tree:
    """The tree of a graph that may have several roots."""
    return to_tree(raise_crossing_branches(attach_loose_tokens(add_vroot(graph))))


def edits(good: str, changes: Mapping[str, tuple[str, str, int, str]]) -> dict[str, Mistake]:
    """Mistakes made by changing a good sentence: text of it, what stands instead, line, problem."""
    for name, (found, *_) in changes.items():
        assert found in good, name
    return {
        name: (good.replace(found, changed, 1), line, problem)
        for name, (found, changed, line, problem) in changes.items()
    }


def ways_of_text(text: str) -> dict[str, bytes]:
    """A file of text as other systems write it."""
    return {
        "unix": text.encode(),
        "windows": text.replace("\n", "\r\n").encode(),
        "bom": b"\xef\xbb\xbf" + text.encode(),
        "bom, windows": b"\xef\xbb\xbf" + text.replace("\n", "\r\n").encode(),
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
