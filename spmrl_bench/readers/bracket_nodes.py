"""Nested brackets, whatever a format writes in the innermost ones.

Several formats agree on ``(LABEL part part)`` and differ in what a bracket without brackets in
it means: a word with its tag, a word with its lemma, a bare mark, an empty element, a number
that is no part of the sentence. A reader of such a format derives from :class:`BracketReader`
and says that in :meth:`~BracketReader.leaf`; the rest is here once. An explicit stack replaces
recursion. The text is read region by region (an entry, a line, or what starts with a bracket at
the beginning of a line), so that a lost bracket costs no more than its region, in linear time.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from os import PathLike
from typing import NoReturn

from spmrl_bench.errors import ReadError
from spmrl_bench.readers.bracket_text import shown, unclosed
from spmrl_bench.readers.building import TreeBuilder
from spmrl_bench.readers.text import OnError, Places
from spmrl_bench.trees.brackets import ASCII_SPACE
from spmrl_bench.trees.tree import Tree

_ATOM = rf"[^(){ASCII_SPACE}]"

# Nothing here can fail once it has begun, so that no text is scanned twice. The number of the
# last group tells the pieces apart.
_PIECE = re.compile(
    rf"\([{ASCII_SPACE}]*({_ATOM}*)[{ASCII_SPACE}]*([^()]*)(\))?"  # 2: start of a node, 3: a leaf
    r"|(\))"  # 4: end of a node
    rf"|({_ATOM}[^()]*)"  # 5: text where none may stand
)
_OPEN, _LEAF, _CLOSE = 2, 3, 4


class BracketReader:
    """Reads the trees of one text; to be derived from.

    Attributes:
        builder: takes the words of the tree that is being read.
        name: what errors call the sentence; its number in the file where that is None.
        one_name: whether the name is that of all trees of a region.
        limit: what follows a region, for messages ("the next entry").
    """

    limit = "the next bracket at the beginning of a line"
    one_name = False

    def __init__(self, text: str, path: str | PathLike[str], on_error: OnError) -> None:
        self.builder = TreeBuilder()
        self.name: str | None = None
        self._text = text
        self._path = path
        self._on_error = on_error
        self._number = 1
        self._opened: list[int] = []  # offsets of the open nodes
        self._start = 0  # offset of the tree
        self._places = Places(text)

    def leaf(self, label: str, rest: str) -> str | None:
        """Add what a bracket without brackets in it stands for; what is wrong with it, or None.

        ``label`` is the first atom, perhaps "", and ``rest`` the text after the white space.
        """
        raise NotImplementedError

    def begin(self, start: int, end: int) -> int:
        """Where the first tree of a region can stand."""
        return start

    def inner(self, label: str) -> str | None:
        """What is wrong with a label above other nodes, or None."""
        return None

    def whole(self) -> str | None:
        """What is wrong with the tree that has just been closed, or None."""
        return None

    def trees_of_regions(self, regions: Iterator[tuple[int, int]]) -> Iterator[Tree]:
        """The trees of the text; each region ends at the first mistake in it."""
        for start, end in regions:
            try:
                yield from self.trees(self.begin(start, end), end)
            except ReadError as error:
                self.leave_out(error)

    def leave_out(self, error: ReadError) -> None:
        """Hand on the error of the current sentence and be ready for the next."""
        self._on_error(error)
        self._opened.clear()
        self.builder.clear()
        self._number += 1
        self.name = None

    def trees(self, start: int, end: int) -> Iterator[Tree]:
        """The trees between two offsets; a ReadError where something there is no tree."""
        builder, opened = self.builder, self._opened
        self._start = start
        for piece in _PIECE.finditer(self._text, start, end):
            kind = piece.lastindex
            if kind == _OPEN:
                self._open(piece, end)
                continue
            if kind == _LEAF:
                if not opened:
                    self._start = piece.start()
                problem = self.leaf(piece[1], piece[2])
                if problem is not None:
                    self.fail(piece.start(), problem)
            elif kind == _CLOSE:
                if not opened:
                    self.fail(piece.start(), "found ')' but no bracket is open")
                place = opened.pop()
                if not builder.close():
                    node = _PIECE.match(self._text, place)
                    label = shown(node[1]) if node else ""
                    self.fail(place, f"found '({label})' without a word in it")
            else:
                where = "between brackets" if opened else "outside brackets"
                self.fail(piece.start(), f"found '{shown(piece[5])}' {where}, expected '('")
            if opened:
                continue
            problem = self.whole()
            if problem is not None:
                self.fail(self._start, problem)
            tree = builder.finish()
            if tree is not None:
                yield tree
                self._number += 1
            if not self.one_name:
                self.name = None
            self._start = piece.end()
        if opened:
            self._fail_open(end)

    def _open(self, piece: re.Match[str], end: int) -> None:
        label, rest = piece.group(1, 2)
        opened = self._opened
        if opened:
            if not label and piece.end() < end:
                self.fail(piece.start(), "found a bracket without a label inside a tree")
        else:
            self._start = piece.start()
        opened.append(piece.start())
        if rest:
            if piece.end() == end:
                self._fail_open(end)
            self.fail(
                piece.start(),
                f"found '{shown(rest)}' between '({shown(label)}' and another bracket, "
                "expected brackets only or one word",
            )
        problem = self.inner(label)
        if problem is not None:
            self.fail(piece.start(), problem)
        if self.builder.in_tag:
            self.fail(piece.start(), f"found '({shown(label)}' beside a word, expected ')'")
        self.builder.open(label)

    def _fail_open(self, end: int) -> NoReturn:
        where = "the end of the file" if end == len(self._text) else self.limit
        self.fail(self._opened[0], unclosed(self._opened, self._places, where))

    def fail(self, offset: int, problem: str) -> NoReturn:
        """Raise the error of the current sentence."""
        line, column = self._places.of(offset)
        raise ReadError(
            problem,
            path=self._path,
            line=line,
            column=column,
            sentence=self._number if self.name is None else self.name,
        )
