r"""What a parser reads of trees that are given to it, and how their words were spelt.

Whoever parses a file of trees anew wants to compare the two files, line by line and word by word.
So a word comes out as it went in, with whatever escapes its file has (``\/``, ``-LRB-``, ``[``),
while the parser reads the word that they stand for; and where every line closes the brackets that
it opens, a line without a tree is a sentence without words, as it is to the scorer. What the parser
has never seen as a word (traces), in tags (functions) or in words (a transliteration) it gets
through the transforms of the treebank that it was trained on.
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import repeat
from typing import Any, BinaryIO, NamedTuple

from spmrl_bench.errors import ReadError
from spmrl_bench.readers.brackets import one_tree_per_line, read_bracket_stream, read_brackets
from spmrl_bench.readers.text import stream_lines
from spmrl_bench.trees.escapes import escapes_named
from spmrl_bench.trees.transforms import strip_features, transform_named
from spmrl_bench.trees.tree import Tree

#: What is done where nobody knows what a parser was trained on: traces are words nowhere.
USUAL = ("drop-traces",)

#: Bytes at the beginning of a file that show its layout.
BLOCK = 1 << 20

_BLANK = Tree.build([], [], [])
_DECODE = escapes_named("ptb").decode_word


class ReadTree(NamedTuple):
    """The words and tags of a tree, and how the words stand in the file."""

    words: Sequence[str]
    tags: Sequence[str]
    spelt: Sequence[str]


@dataclass
class Layout:
    """What has been found out of the layout of a file of trees, so that its rest can be read alone.

    Attributes:
        by_line: whether every line so far closes the brackets that it opens, so that a blank one
            is a sentence; None where nothing has been read.
        blank: blank lines at the beginning, which count as soon as there is a tree.
    """

    by_line: bool | None = None
    blank: int = 0


def read_trees(
    stream: BinaryIO, path: str, layout: Layout | None = None, line: int = 1, sentence: int = 1
) -> Iterator[Tree]:
    """The trees of a UTF-8 stream, their words as they stand there; see above for blank lines.

    Which layout it is shows in what the stream has at first, a file at most a megabyte. A stream
    of blank lines has no trees.

    Args:
        stream: of a file, or of its rest from the beginning of a line between two trees.
        path: its name, for error messages.
        layout: what is known of it; more is known when all has been read.
        line, sentence: numbers of what the stream begins with.

    Raises:
        ReadError: as :func:`~spmrl_bench.readers.brackets.read_bracket_stream`.
    """
    layout = layout or Layout()
    if layout.by_line is None:
        begin = _available(stream, path)
        stream = io.BufferedReader(_Rejoined(begin, stream))
        seen = (begin.rpartition(b"\n")[0] or begin).decode(errors="replace")
        layout.by_line = one_tree_per_line(seen)
    if not layout.by_line:
        yield from read_bracket_stream(
            stream, path=path, escapes="none", line=line, sentence=sentence
        )
        return
    for number, found in stream_lines(stream, path, line):
        if not found.strip("() \t\r\n\v\f"):
            if sentence == 1:
                layout.blank += 1
                continue
            sentence += 1
            yield _BLANK
            continue
        if not one_tree_per_line(found):
            layout.by_line = False
            rest = io.BufferedReader(_Rejoined(found.encode(), stream))
            yield from read_bracket_stream(
                rest, path=path, escapes="none", line=number, sentence=sentence
            )
            return
        yield from repeat(_BLANK, layout.blank)
        sentence, layout.blank = sentence + layout.blank, 0
        for tree in read_brackets(found, path=path, escapes="none", line=number, sentence=sentence):
            sentence += 1
            yield tree


def _available(stream: BinaryIO, path: str) -> bytes:
    """What a stream has now, a block at most; of a pipe that is what was written so far."""
    read = stream.read1 if hasattr(stream, "read1") else stream.read
    try:
        return bytes(read(BLOCK))
    except OSError as error:
        raise ReadError(f"cannot be read on: {error.strerror}", path=path) from None


class _Rejoined(io.RawIOBase):
    """Bytes, and the stream that they were taken from."""

    def __init__(self, begin: bytes, stream: BinaryIO | io.BufferedReader) -> None:
        self._begin = memoryview(begin)
        self._read = stream.read1 if hasattr(stream, "read1") else stream.read

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        room = len(buffer)
        if not self._begin:
            self._begin = memoryview(self._read(room))
        taken, self._begin = self._begin[:room], self._begin[room:]
        buffer[: len(taken)] = taken
        return len(taken)


class TreeReader:
    """Takes from trees what a parser reads of them."""

    def __init__(self, transforms: Sequence[str] | None) -> None:
        """A reader.

        Args:
            transforms: names of those of the treebank that the parser was trained on; None if
                that is not known.
        """
        names = USUAL if transforms is None else transforms
        found = [transform_named(name) for name in names]
        of_trees = [each for each in found if each.stage == "tree"]
        self._steps = [each.apply for each in of_trees]
        self._structural = [each.apply for each in of_trees if not each.word]
        self._features = any(each.apply is strip_features for each in found)

    def read(self, tree: Tree) -> ReadTree:
        """The words and tags of a tree whose words stand as in its file."""
        tags = tuple(map(strip_features, tree.tags)) if self._features else tree.tags
        # The places of the words instead of the words themselves say which are left.
        places = _through(self._structural, replace(tree, words=_numbers(len(tree)), tags=tags))
        words = tuple(map(_DECODE, tree.words))
        left = _through(self._steps, replace(tree, words=words, tags=tags))
        if left is None or places is None:
            return ReadTree((), (), ())
        return ReadTree(left.words, left.tags, [tree.words[int(k)] for k in places.words])


def _numbers(count: int) -> tuple[str, ...]:
    return tuple(map(str, range(count)))


def _through(steps: Sequence[object], tree: Tree | None) -> Tree | None:
    """The tree after all transforms; None if no word is left."""
    for step in steps:
        if tree is None or not len(tree):
            return None
        tree = step(tree)  # type: ignore[operator]
    return tree if tree is not None and len(tree) else None
