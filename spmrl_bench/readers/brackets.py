"""Trees in nested brackets: the scanner of all such formats, and the plain format itself.

Files of this kind are edited by hand and by scripts, and a lost bracket silently swallows the
rest of a file in lenient readers. The scanner accepts any layout (white space is free) but nothing
that is no tree, and says at which line and column it stopped making sense. A stack replaces
recursion, so that depth is limited by memory only. What an innermost bracket stands for, a word
with its tag or a comment, the scanner does not know: each format has a function for that
(:mod:`spmrl_bench.readers.dialects`).

A tree that lost its last bracket takes the next ones in, until somewhere a bracket too many closes
it. All that gives it away is a bracket in the first column while the tree is open. But there are
files that begin each constituent there, so a text is judged as a whole
(:func:`trees_begin_at_margin`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator
from dataclasses import KW_ONLY, dataclass
from functools import cache
from typing import Any, BinaryIO, Literal, NamedTuple, NoReturn

from spmrl_bench.errors import ReadError
from spmrl_bench.readers.text import (
    LONGEST,
    FilePath,
    LineIndex,
    OnError,
    excerpt,
    fail,
    fields,
    read_text,
    stream_lines,
)
from spmrl_bench.trees.escapes import ASCII_SPACE, decode_label, escapes_named
from spmrl_bench.trees.transforms import EMPTY_TAG, OUTER_BRACKETS
from spmrl_bench.trees.tree import Tree, readonly_int32

_ATOM = rf"[^(){ASCII_SPACE}]"

# The number of the last group tells the pieces apart. Nothing in the pattern can fail once it has
# begun, so that no text is scanned twice.
_PIECE = re.compile(
    rf"\([{ASCII_SPACE}]*({_ATOM}*)[{ASCII_SPACE}]*([^()]*)(\))?"  # 2: a node begins, 3: a leaf
    r"|(\))"  # 4: a node ends
    rf"|({_ATOM}[^()]*)"  # 5: text
)
_OPEN, _LEAF, _CLOSE = 2, 3, 4

_LINE = re.compile(r"^(?!\Z).*", re.MULTILINE)
_LABEL = re.compile(rf"\([{ASCII_SPACE}]*([^()\[\]{{}}<>{ASCII_SPACE}]*)")


class Leaf(NamedTuple):
    """The word that an innermost bracket stands for."""

    word: str | None  # None in a part of a word that says nothing, such as its lemma in brackets
    tag: str | None = None  # None if the label of the bracket around this one is the tag
    node: str | None = None  # the label of a constituent that holds nothing but the word


#: What a bracket with this label and this text after it stands for; None for what is left out. It
#: raises a ValueError with the problem if there is no such bracket in the format.
ReadLeaf = Callable[[str, str], Leaf | None]


@dataclass(eq=False)
class Scanner:
    """Reads trees out of the brackets of one text."""

    text: str  # of a file, or a part of it that begins with a line and a sentence
    path: FilePath  # for error messages
    leaf: ReadLeaf
    _: KW_ONLY
    plain: bool = False  # whether labels have escapes, and brackets inside a tree may have none
    is_empty: Callable[[str, str], bool] | None = None  # of the word in a node, and of its label
    drop: Collection[str] = ()  # labels of nodes that are left out with all below them
    wrappers: Collection[str] = ()  # labels of brackets that hold trees and are no part of them
    id: str = ""  # label of the node, left out too, that names a tree; if one has it, all must
    line: int = 1  # number of the line that the text begins with
    sentence: int = 1  # number of the next tree
    name: str | None = None  # what errors call it instead, where that is known
    limit: str = "the next bracket that begins a line"  # ends a region of the text, for messages
    on_error: OnError = fail  # if it returns, reading goes on behind the tree

    def __post_init__(self) -> None:
        leaf, drop = self.leaf, frozenset((*self.drop, self.id) if self.id else self.drop)
        self.drop = drop
        named = rf"\(\s*{re.escape(self.id)}\s"
        self._needs_name = self.id != "" and re.search(named, self.text) is not None
        self._lines = LineIndex(self.text, self.line)
        self._label = cache(decode_label if self.plain else str)
        self._leaf = cache(lambda label, rest: None if label in drop else leaf(label, rest))
        self._begin = 0  # offset of the outermost bracket
        self._stack: list[int] = []  # rows of the open constituents
        self._opened: list[int] = []  # offsets of the open brackets: wrappers, then constituents

    def _clear(self) -> None:
        self._words: list[str] = []
        self._tags: list[str] = []
        self._labels: list[str] = []
        self._bounds: list[int] = []  # start, end of each row of labels
        self._tagged = False  # whether the innermost constituent turned out to be a tag
        self._dropped = 0  # number of rows when a node was last left out

    def all_trees(self, margin: bool = True) -> Iterator[Tree]:
        """Yield the trees of the text.

        After the first mistake, or if the layout tells and ``margin`` allows, a bracket at the
        beginning of a line ends what is before it.
        """
        text, rest = self.text, 0
        if not (margin and trees_begin_at_margin(text)):
            try:
                yield from self.trees(0, len(text))
                return
            except ReadError as error:
                self.leave_out(error)
                rest = text.find("\n(", self._begin) + 1
                if not rest:
                    return
        for region in _regions_at_margin(text, rest):
            yield from self.region(*region)

    def region(self, start: int, end: int, *, together: bool = False) -> Iterator[Tree]:
        """Yield the trees between two offsets, up to the first mistake there."""
        try:
            yield from self.trees(start, end, together=together)
        except ReadError as error:
            self.leave_out(error)

    def leave_out(self, error: ReadError) -> None:
        """Hand on the error of the current sentence and be ready for the next."""
        self.on_error(error)
        self.sentence += 1
        self.name = None

    def trees(self, start: int, end: int, *, together: bool = False) -> Iterator[Tree]:
        """Yield the trees between two offsets, or with ``together`` one of all that is there, up to
        a ReadError where something is no tree."""
        self._clear()
        stack, opened = self._stack, self._opened
        stack.clear()
        opened.clear()
        first = self.sentence
        pieces = _PIECE.finditer(self.text, start, end)
        for piece in pieces:
            kind = piece.lastindex
            if not opened:
                self._begin, first = piece.start(), self.sentence
            if kind == _LEAF:
                self._take(piece)
            elif kind == _OPEN:
                if piece[1] not in self.drop:
                    self._open(piece, end)
                    continue
                self._drop_node(piece[1], self._below(piece, pieces, end), piece.start())
            elif kind == _CLOSE:
                self._close(piece.start())
            else:
                # What is outside may be no treebank at all, and nobody else's to read.
                found = f"'{excerpt(piece[5])}'" if opened else "text"
                where = "outside" if not opened else "beside" if stack else "between"
                expected = "'(' or ')'" if opened else "'('"
                self.fail(piece.start(), f"found {found} {where} brackets, expected {expected}")
            if stack or together:
                continue
            some = self._words or self.sentence > first  # trees in the outermost bracket
            if some and not opened and self._needs_name and self.name is None:
                self.fail(self._begin, f"found a tree without '({self.id} name)', as others have")
            if self._words:
                yield self._finished()
                self.sentence += 1
            if self.id and not opened:
                self.name = None
        if opened:
            self._fail_unclosed(end)
        if together:
            yield self._finished()
            self.sentence += 1

    def _finished(self) -> Tree:
        spans = readonly_int32(self._bounds, -1, 2)
        tree = Tree(tuple(self._words), tuple(self._tags), tuple(self._labels), spans)
        self._clear()
        return tree

    def _take(self, piece: re.Match[str]) -> None:
        try:
            found = self._leaf(*piece.group(1, 2))
        except ValueError as error:
            self._fail_at_word(piece, str(error))
        if found is None:
            self._drop_node(piece[1], piece[2], piece.start())
        word, tag, node = found or Leaf(None)
        if word is None:
            return
        if tag is None:
            tag = self._tag_above(word, piece.start())
        elif node is not None:
            self._labels.append(node)
            self._bounds += (len(self._words), len(self._words) + 1)
        self._words.append(word)
        self._tags.append(tag)

    def _tag_above(self, word: str, offset: int) -> str:
        """The innermost constituent as the tag of the word in it."""
        row = self._stack[-1] if self._stack else -1
        label = self._labels[row] if row >= 0 and not self._tagged else ""
        if label and self.is_empty is not None and self.is_empty(word, label):
            return EMPTY_TAG
        if not label or row < len(self._labels) - 1 or self._bounds[-2] < len(self._words):
            where = "beside others" if label or self._tagged else "without a tag"
            self.fail(offset, f"found the word '{excerpt(word)}' {where}, expected '(TAG (word))'")
        self._tagged = True
        return label

    def _open(self, piece: re.Match[str], end: int) -> None:
        label, rest = piece.group(1, 2)
        if self._stack and not (label or self.plain or piece.end() == end):
            self.fail(piece.start(), "found a bracket without a label inside a tree")
        self._opened.append(piece.start())
        if not self._stack and label in self.wrappers and not rest:
            return
        if rest:
            if piece.end() == end and not self.plain:
                self._fail_unclosed(end)
            self._fail_at_word(piece, f"found '{excerpt(rest)}' beside brackets, expected '('")
        if self._tagged:
            self.fail(piece.start(), f"found '({excerpt(label)}' beside a word, expected ')'")
        self._stack.append(len(self._labels))
        self._labels.append(self._label(label))
        self._bounds += (len(self._words), 0)

    def _close(self, offset: int) -> None:
        if not self._opened:
            self.fail(offset, "found ')' but no bracket is open")
        begin = self._opened.pop()
        if not self._stack:
            return
        row = self._stack.pop()
        self._bounds[2 * row + 1] = len(self._words)
        hollow = self._bounds[2 * row] == len(self._words)
        if hollow and self._dropped <= row:
            self.fail(begin, f"found '({self._labels[row]})' without a word in it")
        if hollow or self._tagged:  # then it is the last row
            self._labels.pop()
            del self._bounds[-2:]
            self._dropped, self._tagged = row, False

    def _below(self, piece: re.Match[str], pieces: Iterator[re.Match[str]], end: int) -> str:
        """Read to the end of a node; return all text in it."""
        found = [piece[2]]
        depth = 1
        for inner in pieces:
            depth += (inner.lastindex == _OPEN) - (inner.lastindex == _CLOSE)
            found += filter(None, inner.group(1, 2, 5))
            if not depth:
                return " ".join(found)
        self._opened.append(piece.start())
        self._fail_unclosed(end)

    def _drop_node(self, label: str, text: str, offset: int) -> None:
        self._dropped = len(self._labels)
        if self.id and label == self.id:
            name = " ".join(fields(text))
            if self.name is not None:
                self.fail(offset, f"found a second {label}, '{name}'; is a tree not closed?")
            if not name:
                self.fail(offset, f"found '({label})' without a name")
            self.name = name

    def _fail_unclosed(self, end: int) -> NoReturn:
        opened = self._opened
        limit = "the file ends" if end == len(self.text) else self.limit
        problem = f"the tree that starts here is not closed before {limit}"
        if len(opened) > 1:
            line, column = self._lines.place(opened[-1])
            problem += f"; the innermost of {len(opened)} open brackets is at {line}:{column}"
        self.fail(opened[0], problem)

    def _fail_at_word(self, piece: re.Match[str], problem: str) -> NoReturn:
        self.fail(piece.start(2 if self.plain and piece[2] else 0), problem)

    def fail(self, offset: int, problem: str) -> NoReturn:
        """Raise the error of the current sentence."""
        # A tree may have taken in others.
        if self._opened and self.text.find("\n(", self._begin, offset) >= 0:
            problem += f"; the tree begins at line {self._lines.place(self._begin)[0]}"
        line, column = self._lines.place(offset)
        sentence = self.sentence if self.name is None else self.name
        raise ReadError(problem, path=self.path, line=line, column=column, sentence=sentence)


def read_brackets(
    source: str,
    *,
    path: FilePath,
    escapes: str = "ptb",
    blank: Literal["error", "tree"] = "error",
    on_error: OnError = fail,
    margin: bool = True,
    line: int = 1,
    sentence: int = 1,
) -> Iterator[Tree]:
    """Yield the trees of a text in plain brackets, in order.

    An outer bracket, and any other, may lack a label; a sentence may be a single ``(TAG word)``.

    Args:
        source, path: the text of a whole file, and its name for error messages.
        escapes: name of the escape policy of its words (see :mod:`spmrl_bench.trees.escapes`).
        blank: ``"error"`` allows any layout, and every tree must have words. ``"tree"`` is for
            parser output as EVALB reads it: each line holds one tree, which may have several
            roots, and an empty line, ``()`` or ``(())`` is a tree without words.
        on_error: takes the error of a tree. If it returns, reading goes on with the next line (that
            begins with a bracket, if trees have any layout; each such line then begins a tree).
        margin: whether the layout of the text counts (:func:`trees_begin_at_margin`).
        line, sentence: numbers of what the text begins with.

    A SpmrlError says that the escape policy is unknown.
    """
    decode = escapes_named(escapes).decode_word

    def leaf(label: str, rest: str) -> Leaf | None:
        words = fields(rest)
        if len(words) == 1 and label:
            return Leaf(decode(words[0]), decode_label(label))
        if not words and blank == "tree":
            return None
        content = excerpt(f"{label} {rest}")
        raise ValueError(f"found '({content})', expected '(TAG word)' or brackets in brackets")

    scanner = Scanner(
        source, path, leaf, plain=True, line=line, sentence=sentence, on_error=on_error
    )
    if blank == "error":
        yield from scanner.all_trees(margin)
        return
    scanner.limit = "the line ends"
    for start, end in lines(source):
        yield from scanner.region(start, end, together=True)


def read_brackets_file(
    path: FilePath, *, encoding: str = "utf-8", **options: Any
) -> Iterator[Tree]:
    """Yield the trees of a file, with the options and errors of :func:`read_brackets`."""
    return read_brackets(read_text(path, encoding), path=path, **options)


def read_bracket_stream(
    stream: BinaryIO, *, path: FilePath, escapes: str = "ptb", line: int = 1, sentence: int = 1
) -> Iterator[Tree]:
    """Yield the trees of a UTF-8 stream, in order, in any layout.

    No marks separate trees, which may take many lines. So lines are held until as many brackets
    have been closed as opened. ``line`` and ``sentence`` are the numbers of what the stream begins
    with. Raise a ReadError as :func:`~spmrl_bench.readers.text.stream_lines`, or if a tree is
    malformed or has more than :data:`~spmrl_bench.readers.text.LONGEST` characters.
    """
    held: list[str] = []
    begin = line  # of what is held
    depth = size = 0

    def trees() -> Iterator[Tree]:
        return read_brackets(
            "".join(held), path=path, escapes=escapes, margin=False, line=begin, sentence=sentence
        )  # a part does not show the layout of all

    for number, text in stream_lines(stream, path, line):
        held.append(text)
        size += len(text)
        depth += text.count("(") - text.count(")")
        if depth <= 0:
            for tree in trees():
                yield tree
                sentence += 1
            held, begin, depth, size = [], number + 1, 0, 0
        elif size > LONGEST:
            whole = "".join(held)
            begin, column = LineIndex(whole, begin).place(whole.find("("))
            problem = f"the tree that starts here is not closed within {LONGEST >> 20} MiB"
            raise ReadError(problem, path=path, line=begin, column=column, sentence=sentence)
    yield from trees()


def parse_brackets(
    text: str, *, escapes: str = "ptb", blank: Literal["error", "tree"] = "error"
) -> Tree:
    """Return the one tree of a string; a ReadError if it is malformed or holds none or several."""
    line = text or "\n"  # which may be a blank tree
    trees = list(read_brackets(line, path="<string>", escapes=escapes, blank=blank))
    if len(trees) != 1:
        raise ReadError(f"found {len(trees)} trees, expected one", path="<string>")
    return trees[0]


def looks_like_brackets(text: str) -> bool:
    """Return whether a file begins with trees of which most leaves are a tag and one word."""
    text = text.lstrip()
    if not text.startswith("("):
        return False
    leaves = opened = others = 0
    for piece in _PIECE.finditer(text):
        beside = len(fields(piece[2] or piece[5] or ""))
        is_leaf = piece.lastindex == _LEAF and beside == 1 and piece[1] != ""
        leaves += is_leaf
        opened += piece.lastindex in (_OPEN, _LEAF) and not is_leaf
        others += 0 if is_leaf else beside
    return leaves > 0 and others <= leaves // 100 and opened <= 4 * leaves


def one_tree_per_line(text: str) -> bool:
    """Return whether every line closes what it opens, so that blank lines are sentences."""
    return all(line.count("(") == line.count(")") for line in text.split("\n"))


def lines(text: str) -> Iterator[tuple[int, int]]:
    """Yield the offsets of the lines of a text, without their ends."""
    return (line.span() for line in _LINE.finditer(text))


def _regions_at_margin(text: str, start: int = 0) -> Iterator[tuple[int, int]]:
    """Offsets of the pieces of a text that begin with a bracket at the beginning of a line."""
    while (end := text.find("\n(", start)) >= 0:
        yield start, end + 1
        start = end + 1
    yield start, len(text)


_WHOLE = 8  # so many whole trees must stand against one in doubt
_ENOUGH = 32  # so many in doubt show whether there are too many of them


def trees_begin_at_margin(text: str) -> bool:
    """Return whether a bracket in the first column always begins a tree.

    The text is cut into entries, each from one bracket in the first column to the next. Those with
    as many opening brackets as closing ones are whole trees. An entry that leaves a bracket open
    makes a group with all up to the one that closes it: an unclosed tree and what it took in, or a
    sound tree whose constituents stand in the first column. It is taken for the first if

    - no group begins with an entry without words, such as ``(S`` on a line of its own;
    - no entry inside a group begins otherwise than some tree of the text does, as ``(NP`` would;
    - there are eight entries that are whole trees for each group; or every entry of the text has
      the same outer bracket: none, TOP, ROOT, S1 or VROOT.
    """
    depth = whole = groups = 0
    roots: set[str] = set()
    inside: set[str] = set()
    group: list[tuple[str, bool]] = []  # of each entry inside: its first label, whether it is whole
    for start, end in _regions_at_margin(text):
        balance = text.count("(", start, end) - text.count(")", start, end)
        label = _LABEL.match(text, start)
        if label is None:  # what comes before the first bracket in that column
            depth = max(0, balance)
            continue
        whole += balance == 0
        if depth:
            group.append((label[1], balance == 0))
        else:
            roots.add(label[1])
            if balance > 0:
                groups += 1
                if text.find(")", start, end) < 0:
                    return False
        depth = max(0, depth + balance)
        if group and not depth:
            inside.update(label for label, _ in group)
            group.clear()
            if groups >= _ENOUGH and whole < _WHOLE * groups:
                return False
    # What a tree took in that is open at the end was never part of it.
    roots.update(label for label, is_whole in group if is_whole)
    outer = len(roots) == 1 and roots <= OUTER_BRACKETS
    return inside <= roots and (outer or whole >= _WHOLE * groups)
