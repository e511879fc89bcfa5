"""Sinica Treebank lines: ``#1:1.[7] NP(property:A:大|Head:Nab:門)#、(PAUSECATEGORY)``.

A node is ``LABEL(child|child)`` and a leaf ``TAG:word``, each with its role before it
(``theme:NP(...)``, ``Head:Nab:門``). Each line holds one clause, and the punctuation mark that
follows it stands outside the tree. Numbers repeat within a file, so errors name the line.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from os import PathLike
from typing import NoReturn

from spmrl_bench.errors import ReadError
from spmrl_bench.readers.bracket_text import shown
from spmrl_bench.readers.building import TreeBuilder
from spmrl_bench.readers.text import OnError, fail, read_text
from spmrl_bench.trees.tree import Tree


def read_sinica(
    path: str | PathLike[str], *, encoding: str = "utf-8", on_error: OnError = fail
) -> Iterator[Tree]:
    """The trees of a file, in order; labels and tags keep their roles.

    The word of a leaf is what follows its last colon. The mark after the tree is no word of it.

    Raises:
        ReadError: the file cannot be read or decoded; or from ``on_error``, which goes on at the
            next line: one does not start with its numbers or end with ``#`` and a mark, brackets
            do not match, or a node lacks its label, a child, or tag and word.
    """
    lines = enumerate(read_text(path, encoding).split("\n"), start=1)
    filled = ((number, line.rstrip()) for number, line in lines if line.strip())
    for sentence, (number, line) in enumerate(filled, start=1):
        try:
            tree = _Line(line, path, number, sentence).tree()
        except ReadError as error:
            on_error(error)
            continue
        yield tree


_NUMBERS = re.compile(r"#\d+:[\d.]*\.\[\d+\][ \t]+")
_MARK = re.compile(r"\s*(?:\S{1,4}\([A-Z]+\))?")
_PIECE = re.compile(r"([^()|]*)\(|([^()|]+)|(\|)|(\))")
_OPEN, _LEAF, _NEXT = 1, 2, 3


def looks_like_sinica(text: str) -> bool:
    """Whether the beginning of a file is of this format, told by the numbers of its first line."""
    return _NUMBERS.match(text.lstrip("\ufeff \t\r\n")) is not None


class _Line:
    """Reads the tree of one line."""

    def __init__(self, text: str, path: str | PathLike[str], line: int, sentence: int) -> None:
        self._text = text
        self._path = path
        self._line = line
        self._sentence = sentence

    def tree(self) -> Tree:
        """The tree; a ReadError where the line holds none."""
        text = self._text
        numbers = _NUMBERS.match(text)
        if numbers is None:
            self._fail(0, f"found '{shown(text)}', expected '#1:1.[1] ' and a tree")
        end = text.rfind("#")
        if end < numbers.end():
            self._fail(len(text), "found the end of the line, expected '#' after the tree")
        if _MARK.fullmatch(text, end + 1) is None:
            self._fail(end + 1, f"found '{shown(text[end + 1 :])}', expected a mark and '(NAME)'")
        return self._tree_between(numbers.end(), len(text[:end].rstrip()))

    def _tree_between(self, start: int, end: int) -> Tree:
        builder = TreeBuilder()
        opened: list[int] = []
        complete = False  # whether a node has just ended, so that '|', ')' or the end must follow
        for piece in _PIECE.finditer(self._text, start, end):
            kind = piece.lastindex
            place = piece.start()
            if complete and kind in (_OPEN, _LEAF):
                self._fail(place, f"found '{shown(piece[0])}' after a node, expected '|' or ')'")
            if not complete and kind not in (_OPEN, _LEAF):
                self._fail(place, f"found '{piece[0]}', expected a node before it")
            if kind == _OPEN:
                if not piece[1].rpartition(":")[2].strip():
                    self._fail(place, f"found '{shown(piece[0])}', expected a label before '('")
                builder.open(piece[1])
                opened.append(place)
                continue
            if kind == _LEAF:
                tag, _, word = piece[2].rpartition(":")
                if not (word.strip() and tag.rpartition(":")[2].strip()):
                    self._fail(place, f"found '{shown(piece[2])}', expected 'TAG:word'")
                builder.word(tag, word)
                complete = True
            elif not opened:
                self._fail(place, f"found '{piece[0]}' but no bracket is open")
            elif kind == _NEXT:
                complete = False
                continue
            else:
                opened.pop()
                builder.close()
        if opened:
            self._fail(opened[-1], "the node that starts here is not closed before '#'")
        tree = builder.finish()
        if tree is None:
            self._fail(start, "found '#', expected a tree before it")
        return tree

    def _fail(self, offset: int, problem: str) -> NoReturn:
        raise ReadError(
            problem,
            path=self._path,
            line=self._line,
            column=offset + 1,
            sentence=self._sentence,
        )
