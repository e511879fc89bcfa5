"""Brackets with the label before them: ``NP(Det:the|N:dog)``, ``np(det(the),n(dog))``.

A separator stands between the children of a node, and text that is no label is a leaf. Each
entry, or without entries each line, holds a tree.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from os import PathLike
from typing import NoReturn

from spmrl_bench.errors import ReadError
from spmrl_bench.readers.bracket_text import atoms, lines, shown
from spmrl_bench.readers.building import EMPTY, TreeBuilder
from spmrl_bench.readers.dialect import Dialect
from spmrl_bench.readers.templates import examples
from spmrl_bench.readers.text import OnError, Places
from spmrl_bench.trees.tree import Tree

_OPEN, _TEXT, _NEXT = 1, 2, 3
_NESTED = "\0"  # in place of the tag of a word whose tag is the label of the open node


class LabelFirstReader:
    """Reads the trees of one text."""

    def __init__(
        self, text: str, path: str | PathLike[str], on_error: OnError, dialect: Dialect
    ) -> None:
        node = dialect.node
        self._text = text
        self._path = path
        self._on_error = on_error
        self._dialect = dialect
        self._places = Places(text)
        self._known: dict[str, tuple[str, str]] = dialect.known
        self._number = 0
        self._name: str | None = None
        structural = re.escape(node.opening + node.closing + node.separator)
        # Without a separator white space ends a leaf; a label may have it before the bracket.
        plain = f"[^{structural}]" if node.separator else rf"[^{structural}\s]"
        if dialect.backslashed:
            plain = rf"(?:\\\S?|(?!\\){plain})"
        opening, closing = re.escape(node.opening), re.escape(node.closing)
        separator = re.escape(node.separator) if node.separator else "(?!)"
        self._piece = re.compile(
            rf"({plain}*+)\s*{opening}|({plain}++)|({separator})|({closing})", re.DOTALL
        )

    def all_trees(self) -> Iterator[Tree]:
        """The trees of the text."""
        for start, end in lines(self._text):
            if not self._text[start:end].strip():
                continue
            self._number += 1
            self._name = None
            try:
                tree = self._tree(start, end)
            except ReadError as error:
                self._on_error(error)
                continue
            if tree is not None:
                yield tree

    def _tree(self, start: int, end: int) -> Tree | None:
        entries = self._dialect.entries
        for entry in entries:
            found = entry.match(self._text, start, end, self._dialect.node.closing)
            if found is not None:
                self._name, start, end = found
                break
        else:
            if entries:
                expected = " or ".join(f"'{entry.text}'" for entry in entries)
                self._fail(start, f"found '{shown(self._text[start:end])}', expected {expected}")
        return self._tree_between(start, end)

    def _tree_between(self, start: int, end: int) -> Tree | None:
        builder = TreeBuilder()
        opened: list[int] = []
        dropped: int | None = None  # depth of a node that is left out
        complete = False  # whether a node has just ended, so that no other may follow at once
        node = self._dialect.node
        separated = node.separator != ""
        for piece in self._piece.finditer(self._text, start, end):
            kind, place = piece.lastindex, piece.start()
            if kind in (_TEXT, _OPEN):
                if kind == _TEXT and piece[2].isspace():
                    continue
                if complete and (separated or not opened):
                    self._fail_complete(piece, inside=bool(opened))
                complete = kind == _TEXT
                if dropped is not None:
                    if kind == _OPEN:
                        opened.append(place)
                elif kind == _TEXT:
                    self._leaf(builder, piece[2], place)
                else:
                    opened.append(place)
                    label = piece[1].strip()
                    if label in self._dialect.drop:
                        dropped = len(opened)
                    else:
                        self._open(builder, label, piece)
            elif not complete:
                self._fail(place, f"found '{piece[0]}', expected a node before it")
            elif not opened:
                self._fail(place, f"found '{piece[0]}' but no bracket is open")
            elif kind == _NEXT:
                complete = False
            else:
                opened.pop()
                if dropped is None:
                    builder.close()
                elif len(opened) < dropped:
                    dropped = None
                    builder.skip()
        if opened:
            self._fail(opened[-1], "the node that starts here is not closed before the tree ends")
        tree = builder.finish()
        if tree is None:
            self._fail(start, "found no word, expected a tree")
        return tree

    def _open(self, builder: TreeBuilder, label: str, piece: re.Match[str]) -> None:
        if not label or label.endswith(":"):
            opening = self._dialect.node.opening
            found = f"found '{shown(piece[0])}', expected a label before '{opening}'"
            self._fail(piece.start(), found)
        if builder.in_tag:
            self._fail(piece.start(), f"found '{shown(piece[0])}' beside a word, expected ')'")
        builder.open(label)

    def _leaf(self, builder: TreeBuilder, text: str, place: int) -> None:
        known = self._known.get(text)
        if known is None:
            known = self._known[text] = self._meaning(" ".join(atoms(text)))
        tag, word = known
        if tag == _NESTED:
            own = builder.label or ""
            empty = own in self._dialect.empty_tags or self._dialect.is_empty(word, own)
            word = word if empty else self._dialect.decode(word)
            if not builder.turn_to_tag(word, EMPTY if empty else None):
                self._fail(place, f"found the word '{shown(text)}' beside others, expected ')'")
        elif word:
            builder.word(tag, word)
        elif not tag:
            expected = examples(self._dialect.leaves)
            self._fail(place, f"found '{shown(text)}', expected {expected}")

    def _meaning(self, text: str) -> tuple[str, str]:
        """Tag and word of a leaf; no word where it is left out, no tag where it is none."""
        dialect = self._dialect
        for leaf in dialect.leaves:
            found = leaf.match(text)
            if found is None or not found.word:
                continue
            tag, word = found.tag or "_", found.word
            if leaf.kind == "nested":
                return _NESTED, word
            if tag in dialect.drop:
                return tag, ""
            if tag in dialect.empty_tags or dialect.is_empty(word, tag):
                return EMPTY, word
            return tag, dialect.decode(word)
        return "", ""

    def _fail_complete(self, piece: re.Match[str], *, inside: bool) -> NoReturn:
        after, expected = "a node", f"'{self._dialect.node.separator}' or ')'"
        if not inside:
            after, expected = "a tree", "its end"
        self._fail(piece.start(), f"found '{shown(piece[0])}' after {after}, expected {expected}")

    def _fail(self, offset: int, problem: str) -> NoReturn:
        line, column = self._places.of(offset)
        raise ReadError(
            problem,
            path=self._path,
            line=line,
            column=column,
            sentence=self._number if self._name is None else self._name,
        )
