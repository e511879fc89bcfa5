"""Bracketed treebank files, from one tree per line to the indented files of the Penn Treebank.

Files in this format are edited by hand and by scripts, and a lost bracket silently swallows
the rest of a file in lenient readers. This one accepts any layout (white space is free, an
outer bracket may lack a label, a sentence may be a single ``(TAG word)``) but nothing that is
no tree, and says at which line and column it stopped making sense. Where the layout of a file
tells that a tree has taken in its neighbours (``margin.py``), that is a mistake too. One
compiled expression splits the text into the pieces of a tree, and an explicit stack replaces
recursion, so that depth is limited by memory only.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from os import PathLike
from typing import Any, Literal, NoReturn

from spmrl_bench.errors import ReadError
from spmrl_bench.readers.bracket_text import lines, shown, unclosed
from spmrl_bench.readers.margin import trees_begin_at_margin
from spmrl_bench.readers.text import OnError, Places, fail, read_text
from spmrl_bench.trees.escapes import ASCII_SPACE, decode_label, escapes_named
from spmrl_bench.trees.tree import Tree, readonly_int32

try:
    from spmrl_bench.readers._brackets import scan
except ImportError:  # not built: everything is read in Python
    scan = None

_ATOM = rf"[^(){ASCII_SPACE}]"
_SPACE = rf"[{ASCII_SPACE}]"

# The number of the last group tells the pieces apart.
_PIECE = re.compile(
    rf"\({_SPACE}*({_ATOM}+){_SPACE}+({_ATOM}+){_SPACE}*\)"  # 2: a tag and its word
    rf"|\({_SPACE}*({_ATOM}*)"  # 3: start of a constituent with its label
    r"|(\))"  # 4: end of a constituent
    rf"|({_ATOM}+)"  # 5: a word where none may stand
)
_NO_SPACE = re.compile(rf"[^{ASCII_SPACE}]")
_LEAF, _OPEN, _CLOSE, _WORD = 2, 3, 4, 5

# How many trees the kernel reads at a time.
_AT_A_TIME = 1024


def read_brackets(
    source: str,
    *,
    path: str | PathLike[str],
    escapes: str = "ptb",
    blank: Literal["error", "tree"] = "error",
    on_error: OnError = fail,
    margin: bool = True,
    line: int = 1,
    column: int = 1,
    sentence: int = 1,
) -> Iterator[Tree]:
    """The trees of a text, in order.

    Args:
        source: the text of a whole file.
        path: its name, for error messages.
        escapes: name of the escape policy of its words (see :mod:`spmrl_bench.trees.escapes`).
        blank: ``"error"`` allows any layout, and every tree must have words. ``"tree"`` is for
            parser output, where line ``k`` is the parse of sentence ``k`` as EVALB reads it:
            each line holds one tree, which may have several roots; brackets without words
            are none, so that an empty line, ``()`` or ``(())`` is a tree without words.
        on_error: what to do with a malformed tree. If it returns, reading goes on with the next
            line that begins with a bracket, and from there on such a line begins a tree.
        margin: whether a bracket at the beginning of a line, inside a tree, is a mistake where the
            layout of the whole text says that trees begin there and nothing else
            (:func:`~spmrl_bench.readers.margin.trees_begin_at_margin`).
        line, column, sentence: where the text begins in its file, for error messages.

    Raises:
        ReadError: the text is malformed; the trees before the place have been yielded.
        SpmrlError: the escape policy is unknown.
    """
    places = Places(source, line, column)
    scanner = _Scanner(source, path, escapes, blank == "tree", margin, places, sentence)
    if blank == "error":
        yield from scanner.plain_trees()
        yield from _resuming(scanner, source, on_error)
        return
    for start, end in lines(source):
        yield scanner.tree_of_line(start, end)


def read_brackets_file(
    path: str | PathLike[str],
    *,
    encoding: str = "utf-8",
    prepare: Callable[[str], str] = str,
    **options: Any,
) -> Iterator[Tree]:
    """The trees of a file, with the options of :func:`read_brackets`.

    ``prepare`` changes its text before it is split into pieces.

    Raises:
        ReadError: the file cannot be read or decoded; or as :func:`read_brackets` says.
    """
    return read_brackets(prepare(read_text(path, encoding)), path=path, **options)


def looks_like_brackets(text: str) -> bool:
    """Whether the beginning of a file is that of bracketed trees with a word and a tag per leaf.

    Half of its brackets or more than a third are leaves, in well-formed text; a bracket with
    three atoms or a word in brackets of its own is another format.
    """
    text = text.lstrip()
    if not text.startswith("("):
        return False
    leaves = opened = others = 0
    for piece in _PIECE.finditer(text):
        leaves += piece.lastindex == _LEAF
        opened += piece.lastindex == _OPEN
        others += piece.lastindex == _WORD
    return leaves > 0 and others <= leaves // 100 and opened <= 4 * leaves


def parse_brackets(
    text: str, *, escapes: str = "ptb", blank: Literal["error", "tree"] = "error"
) -> Tree:
    """The one tree of a string.

    Raises:
        ReadError: the string is malformed or holds no tree or several.
    """
    trees = list(read_brackets(text, path="<string>", escapes=escapes, blank=blank))
    if not trees and blank == "tree":
        return _BLANK
    if len(trees) != 1:
        raise ReadError(f"found {len(trees)} trees, expected one", path="<string>")
    return trees[0]


def _resuming(scanner: _Scanner, source: str, on_error: OnError) -> Iterator[Tree]:
    """The trees from the scanner's offset on.

    After the first malformed one, a line that begins with a bracket ends what is before it;
    else every unclosed tree would be read up to the end of the file.
    """
    end = stop = len(source)
    while scanner.offset < end:
        try:
            yield from scanner.trees(scanner.offset, stop)
            scanner.offset = stop
        except ReadError as error:
            on_error(error)
            scanner.sentence += 1
            begin = _NO_SPACE.search(source, scanner.offset)
            scanner.offset = _line_with_bracket(source, begin.start() if begin else end)
            stop = scanner.offset
        if stop < end:
            stop = _line_with_bracket(source, stop)
            scanner.limit = "the next line that begins with a bracket"
        else:
            scanner.limit = "the file ends"


def _line_with_bracket(source: str, offset: int) -> int:
    """Where the first such line after an offset begins, or the end of the text."""
    found = source.find("\n(", offset)
    return len(source) if found < 0 else found + 1


_BLANK = Tree.build([], [], [])


def _tree(words: list[str], tags: list[str], labels: list[str], bounds: list[int]) -> Tree:
    return Tree(tuple(words), tuple(tags), tuple(labels), readonly_int32(bounds, -1, 2))


def _without_empty(labels: list[str], bounds: list[int]) -> tuple[list[str], list[int]]:
    """The rows that cover a word."""
    rows = list(zip(labels, bounds[::2], bounds[1::2], strict=True))
    kept = [row for row in rows if row[1] < row[2]]
    return [label for label, _, _ in kept], [place for _, *pair in kept for place in pair]


class _Words(dict[str, str]):
    """Words by their text in the file, decoded once."""

    def __init__(self, decode: Callable[[str], str]) -> None:
        super().__init__()
        self._decode = decode

    def __missing__(self, text: str) -> str:
        word = self[text] = self._decode(text)
        return word


class _Scanner:
    """Reads trees out of one text; counts its sentences for the messages."""

    def __init__(
        self,
        source: str,
        path: str | PathLike[str],
        escapes: str,
        one_per_line: bool,
        margin: bool,
        places: Places,
        sentence: int,
    ) -> None:
        self._source = source
        self._places = places
        self._path = path
        self._one_per_line = one_per_line
        self._word = _Words(escapes_named(escapes).decode_word)
        self._label = _Words(decode_label)
        # Whether a bracket at the margin begins a tree; None where that was not asked yet.
        self._margin = None if margin and not one_per_line else False
        self.sentence = sentence
        self.offset = 0  # after the last tree that was read
        self.limit = "the line ends" if one_per_line else "the file ends"

    def plain_trees(self) -> Iterator[Tree]:
        """Trees from the offset on, read by the kernel; ends before the first malformed one."""
        if scan is None:
            return
        end = len(self._source)
        margin = self._margin is not False
        while self.offset < end:
            words, tags, labels, bounds, token_ends, label_ends, after = scan(
                self._source, self.offset, end, _AT_A_TIME, self._word, self._label, margin
            )
            if not len(token_ends):
                at_end = _NO_SPACE.search(self._source, self.offset) is None
                if at_end or not margin or self._trees_begin_at_margin():
                    return
                margin = False
                continue
            words, tags, labels = tuple(words), tuple(tags), tuple(labels)
            spans = bounds.reshape(-1, 2)
            spans.flags.writeable = False
            token = row = 0
            for next_token, next_row in zip(token_ends.tolist(), label_ends.tolist(), strict=True):
                ours, theirs = slice(token, next_token), slice(row, next_row)
                yield Tree(words[ours], tags[ours], labels[theirs], spans[theirs])
                token, row = next_token, next_row
            self.sentence += len(token_ends)
            self.offset = after

    def trees(self, start: int, end: int) -> Iterator[Tree]:
        """The trees between two offsets of the text."""
        word, label = self._word, self._label
        words: list[str] = []
        tags: list[str] = []
        labels: list[str] = []
        bounds: list[int] = []  # start, end of each row of labels
        stack: list[int] = []  # rows of the open constituents
        opened: list[int] = []  # their offsets in the text
        empty: int | None = None  # offset of the first constituent without words
        for piece in _PIECE.finditer(self._source, start, end):
            kind = piece.lastindex
            if stack and self._margin is not False:
                self._check_margin(opened[0], piece.start())
            if kind == _LEAF:
                tag, text = piece.groups()[:2]
                tags.append(label[tag])
                words.append(word[text])
                if stack:
                    continue
            elif kind == _OPEN:
                stack.append(len(labels))
                opened.append(piece.start())
                labels.append(label[piece[3]])
                bounds += (len(words), 0)
                continue
            elif kind == _CLOSE:
                if not stack:
                    self._fail(piece.start(), "found ')' but no bracket is open")
                row, place = stack.pop(), opened.pop()
                bounds[2 * row + 1] = len(words)
                if bounds[2 * row] == len(words) and empty is None:
                    empty = place
                if stack:
                    continue
                if empty is not None and not self._one_per_line:
                    self._fail_empty(empty)
            else:
                self._fail_word(piece.start(), piece[0], opened)
            if self._one_per_line:
                continue
            yield _tree(words, tags, labels, bounds)
            words, tags, labels, bounds = [], [], [], []
            self.sentence += 1
            self.offset = piece.end()
        if stack:
            self._fail(opened[0], unclosed(opened, self._places, self.limit))
        if self._one_per_line:
            if empty is not None:
                labels, bounds = _without_empty(labels, bounds)
            yield _tree(words, tags, labels, bounds) if words else _BLANK

    def tree_of_line(self, start: int, end: int) -> Tree:
        """The tree between two offsets, whatever its number of roots, or that without words."""
        tree = next(self.trees(start, end))
        self.sentence += 1
        return tree

    def _trees_begin_at_margin(self) -> bool:
        if self._margin is None:
            self._margin = trees_begin_at_margin(self._source)
        return self._margin

    def _check_margin(self, begin: int, offset: int) -> None:
        """Fail where the piece of a tree at an offset is the beginning of another tree."""
        if self._source.startswith("\n(", offset - 1) and self._trees_begin_at_margin():
            (line, _), (other, _) = self._places.of(begin), self._places.of(offset)
            problem = (
                f"the tree that begins at line {line} is not closed before line {other}, where "
                "another one begins"
            )
            self._fail(begin, problem)

    def _fail_empty(self, offset: int) -> NoReturn:
        bracket = _PIECE.match(self._source, offset)
        name = bracket[3] if bracket is not None else ""
        expected = "expected a tag and a word, or constituents"
        if name:
            self._fail(offset, f"found '({name})' without a tag or a word in it, {expected}")
        self._fail(offset, f"found an empty bracket '()', {expected}")

    def _fail_word(self, offset: int, text: str, opened: list[int]) -> NoReturn:
        found = shown(text)
        if opened:
            expected = "expected '(TAG word)', '(' or ')'"
            if self._source.find("\n(", opened[0], offset) >= 0:  # it may have taken in others
                expected += f"; the tree begins at line {self._places.of(opened[0])[0]}"
            self._fail(offset, f"found the word '{found}' without a tag, {expected}")
        self._fail(offset, f"found '{found}' outside brackets, expected '('")

    def _fail(self, offset: int, problem: str) -> NoReturn:
        line, column = self._places.of(offset)
        raise ReadError(problem, path=self._path, line=line, column=column, sentence=self.sentence)
