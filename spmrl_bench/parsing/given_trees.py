r"""What a parser reads of trees that are given to it, and how their words were spelt.

Who parses a file of trees anew compares the two files, line by line and word by word. So a word
comes out as it went in, with whatever escapes its file has (``\/``, ``-LRB-``, ``[``), while the
parser reads the word that they stand for; and where every line closes the brackets that it opens,
a line without a tree is a sentence without words, as it is to the scorer. The transforms of the
treebank that the parser was trained on take away what it has never seen, such as traces.
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import repeat
from typing import Any, BinaryIO, NamedTuple

from spmrl_bench.errors import ReadError
from spmrl_bench.readers.brackets import one_tree_per_line, read_bracket_stream, read_brackets
from spmrl_bench.readers.formats import guess_format
from spmrl_bench.readers.text import stream_lines
from spmrl_bench.trees.escapes import escapes_named
from spmrl_bench.trees.transforms import ROOTS, strip_features, transform_named
from spmrl_bench.trees.tree import Tree

#: What is done where nobody knows what a parser was trained on: traces are words nowhere.
USUAL = ("drop-traces",)

#: Bytes at the beginning of a stream that show its layout.
BLOCK = 1 << 20

_SHOWN = 1 << 16  # bytes that show the format
_COUNTED = ROOTS - {"TOP"}  # every parameter set leaves that one out
_BLANK = Tree.build([], [], [])
_DECODE = escapes_named("ptb").decode_word


def read_trees(stream: BinaryIO, path: str) -> Iterator[Tree]:
    """Yield the trees of a UTF-8 stream, their words as they stand there.

    What a stream has at first, a megabyte at most, shows its layout; as soon as a line leaves a
    bracket open, blank lines mean nothing. A stream of blank lines has no trees. Raise a ReadError
    as :func:`~spmrl_bench.readers.brackets.read_bracket_stream`.
    """
    try:  # a pipe has no more than was written so far
        begin = getattr(stream, "read1", stream.read)(BLOCK)
    except OSError as error:
        raise ReadError(f"cannot be read on: {error.strerror}", path=path) from None
    found = guess_format(begin[:_SHOWN].decode(errors="replace"))
    if found is not None and found.name != "brackets":
        raise ReadError(
            f"looks like {found.name} ({found.title}), whose brackets hold more than words; "
            "expected plain brackets. 'treebanks add' makes a treebank of such files, 'systems "
            "task' writes the words of a treebank's split",
            path=path,
        )
    rest: Any = _Rejoined(io.BytesIO(begin), stream)
    line = sentence = 1
    blank = 0  # lines at the beginning, which count as soon as there is a tree
    whole = begin.rpartition(b"\n")[0] or begin
    if one_tree_per_line(whole.decode(errors="replace")):
        lines = stream_lines(rest, path)
        for line, text in lines:
            if not text.strip("() \t\r\n\v\f"):
                if sentence == 1:
                    blank += 1
                else:
                    sentence += 1
                    yield _BLANK
                continue
            if not one_tree_per_line(text):
                if text.endswith("\r"):  # so do all lines, which have been taken from the stream
                    text += "".join(more for _, more in lines)
                rest = _Rejoined(io.BytesIO(text.encode()), rest)
                break
            yield from repeat(_BLANK, blank)
            sentence, blank = sentence + blank, 0
            for tree in read_brackets(
                text, path=path, escapes="none", line=line, sentence=sentence
            ):
                sentence += 1
                yield tree
        else:
            return
    yield from read_bracket_stream(rest, path=path, escapes="none", line=line, sentence=sentence)


class _Rejoined(NamedTuple):
    """The lines of bytes that were taken from a stream, and of what is left in it."""

    begin: io.BytesIO
    rest: Any

    def readline(self, most: int) -> bytes:
        line = self.begin.readline(most)
        return line if line.endswith(b"\n") else line + self.rest.readline(most - len(line))


class Spelling(NamedTuple):
    """How a tree was written in its file."""

    words: Sequence[str]
    root: str | None  # the label of a bracket around it that says nothing, but may be counted


class TreeReader:
    """Takes from trees what a parser reads of them, which was trained on a treebank with these
    transforms, or None if they are not known."""

    def __init__(self, transforms: Sequence[str] | None) -> None:
        found = [transform_named(name) for name in (USUAL if transforms is None else transforms)]
        of_trees = [each for each in found if each.stage == "tree"]
        self._steps = [each.apply for each in of_trees]
        self._structural = [each.apply for each in of_trees if not each.word]
        self._features = any(each.apply is strip_features for each in found)

    def read(self, tree: Tree) -> tuple[Sequence[str], Sequence[str], Spelling]:
        """Return words and tags of a tree as in its file, and how it was written there."""
        tags = tuple(map(strip_features, tree.tags)) if self._features else tree.tags
        # The places of the words instead of the words themselves say which are left.
        numbers = tuple(map(str, range(len(tree))))
        places = _through(self._structural, replace(tree, words=numbers, tags=tags))
        words = tuple(map(_DECODE, tree.words))
        left = _through(self._steps, replace(tree, words=words, tags=tags))
        if left is None or places is None:
            return (), (), Spelling((), None)
        root = tree.labels[0] if tree.labels and tree.labels[0] in _COUNTED else None
        return left.words, left.tags, Spelling([tree.words[int(k)] for k in places.words], root)


def _through(steps: Sequence[object], tree: Tree | None) -> Tree | None:
    """The tree after all transforms; None if no word is left."""
    for step in steps:
        tree = step(tree) if tree else None  # type: ignore[operator]
    return tree or None
