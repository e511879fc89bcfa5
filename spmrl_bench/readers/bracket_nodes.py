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
from collections.abc import Iterable, Iterator
from os import PathLike
from typing import NoReturn

from spmrl_bench.errors import ReadError
from spmrl_bench.readers.bracket_text import shown, unclosed
from spmrl_bench.readers.building import TreeBuilder
from spmrl_bench.readers.text import OnError, Places
from spmrl_bench.trees.escapes import ASCII_SPACE
from spmrl_bench.trees.tree import Tree


def pieces_of(
    opening: str = "(", closing: str = ")", *, backslashed: bool = False
) -> re.Pattern[str]:
    """What matches the pieces of a text with these brackets.

    The number of the last group tells them apart: a node that begins, a leaf, the end of a node,
    other text. Nothing in the pattern can fail once it has begun, so that no text is scanned
    twice. With ``backslashed`` a backslash takes the character after it into the text, unless that
    is white space.
    """
    both = re.escape(opening + closing)
    atom, text = f"[^{both}{ASCII_SPACE}]", f"[^{both}]"
    if backslashed:
        escaped = r"\\\S?"
        atom, text = rf"(?:{escaped}|[^\\{both}{ASCII_SPACE}])", rf"(?:{escaped}|[^\\{both}])"
    opening, closing = re.escape(opening), re.escape(closing)
    return re.compile(
        # 2: start of a node, 3: a leaf
        rf"{opening}[{ASCII_SPACE}]*({atom}*)[{ASCII_SPACE}]*({text}*)({closing})?"
        rf"|({closing})"  # 4: end of a node
        rf"|({atom}{text}*)"  # 5: text
    )


_OPEN, _LEAF, _CLOSE = 2, 3, 4


class BracketReader:
    """Reads the trees of one text; to be derived from.

    Attributes:
        builder: takes the words of the tree that is being read.
        pieces: matches the pieces of the text, from :func:`pieces_of`.
        wrappers: labels of brackets that hold trees and are no part of them.
        dropped: labels of nodes that are left out with all below them.
        name: what errors call the sentence; its number in the file where that is None.
        one_name: whether the name is that of all trees of a region.
        limit: what follows a region, for messages ("the next entry").
    """

    pieces = pieces_of()
    wrappers: frozenset[str] = frozenset()
    dropped: frozenset[str] = frozenset()
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
        self._wrapping = 0  # how many of them are wrappers
        self._start = 0  # offset of the outermost bracket
        self._places = Places(text)

    def leaf(self, label: str, rest: str) -> str | None:
        """Add what a bracket without brackets in it stands for; what is wrong with it, or None.

        ``label`` is the first atom, perhaps "", and ``rest`` the text after the white space.
        """
        raise NotImplementedError

    def within(self, start: int, end: int) -> tuple[int, int]:
        """Between which offsets of a region its trees stand."""
        return start, end

    def beside(self, text: str) -> str | None:
        """Add text that stands beside brackets in a node; what is wrong with it, or None."""
        return f"found '{shown(text)}' beside brackets, expected brackets only or one word"

    def left_out(self, label: str, text: str) -> str | None:
        """Take note of a node that is dropped, with all its text; what is wrong, or None."""
        self.builder.skip()
        return None

    def whole(self) -> str | None:
        """What is wrong with the bracket that has just been closed, after its tree, or None."""
        return None

    def trees_of_regions(self, regions: Iterable[tuple[int, int]]) -> Iterator[Tree]:
        """The trees of the text; each region ends at the first mistake in it."""
        for start, end in regions:
            try:
                yield from self.trees(*self.within(start, end))
            except ReadError as error:
                self.leave_out(error)

    def leave_out(self, error: ReadError) -> None:
        """Hand on the error of the current sentence and be ready for the next."""
        self._on_error(error)
        self._opened.clear()
        self._wrapping = 0
        self.builder.clear()
        self._number += 1
        self.name = None

    def trees(self, start: int, end: int) -> Iterator[Tree]:
        """The trees between two offsets; a ReadError where something there is no tree."""
        builder, opened = self.builder, self._opened
        self._start = start
        some = False  # whether a tree came out of the outermost bracket
        pieces = self.pieces.finditer(self._text, start, end)
        leaf = self.leaf
        for piece in pieces:
            kind = piece.lastindex
            if not opened:
                self._start = piece.start()
            problem = None
            if kind == _OPEN:
                if piece[1] not in self.dropped:
                    self._open(piece, end)
                    continue
                problem = self.left_out(piece[1], self._below(piece, pieces, end))
            elif kind == _LEAF:
                problem = leaf(piece[1], piece[2])
            elif kind == _CLOSE:
                if not opened:
                    self.fail(piece.start(), f"found '{piece[0]}' but no bracket is open")
                self._close()
            elif len(opened) > self._wrapping:
                problem = self.beside(piece[5])
            else:
                where = "between brackets" if opened else "outside brackets"
                problem = f"found '{shown(piece[5])}' {where}, expected '('"
            if problem is not None:
                self.fail(piece.start(), problem)
            if len(opened) > self._wrapping:
                continue
            tree = builder.finish()
            some = some or tree is not None
            problem = self.whole() if some and not opened else None
            if problem is not None:
                self.fail(self._start, problem)
            if tree is not None:
                yield tree
                self._number += 1
            if not opened:
                some = False
                if not self.one_name:
                    self.name = None
        if opened:
            self._fail_open(end)

    def _open(self, piece: re.Match[str], end: int) -> None:
        label, rest = piece.group(1, 2)
        opened = self._opened
        if len(opened) == self._wrapping:
            if label in self.wrappers and not rest:
                opened.append(piece.start())
                self._wrapping += 1
                return
        elif not label and piece.end() < end:
            self.fail(piece.start(), "found a bracket without a label inside a tree")
        opened.append(piece.start())
        if rest and piece.end() == end:
            self._fail_open(end)
        if self.builder.in_tag:
            self.fail(piece.start(), f"found '({shown(label)}' beside a word, expected ')'")
        self.builder.open(label)
        if rest:
            problem = self.beside(rest)
            if problem is not None:
                self.fail(piece.start(), problem)

    def _close(self) -> None:
        place = self._opened.pop()
        if len(self._opened) < self._wrapping:
            self._wrapping -= 1
        elif not self.builder.close():
            node = self.pieces.match(self._text, place)
            label = shown(node[1]) if node else ""
            self.fail(place, f"found '({label})' without a word in it")

    def _below(self, piece: re.Match[str], pieces: Iterator[re.Match[str]], end: int) -> str:
        """The text of a node that has just begun, and of all below it; read up to its end."""
        found = [piece[2]]
        opened = [piece.start()]
        for inner in pieces:
            kind = inner.lastindex
            if kind == _OPEN:
                opened.append(inner.start())
            elif kind == _CLOSE:
                opened.pop()
            found += filter(None, inner.group(1, 2, 5))
            if not opened:
                return " ".join(found)
        self._opened += opened
        self._fail_open(end)

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
