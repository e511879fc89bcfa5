"""Dependency treebanks: CoNLL-U and CoNLL-X, and the three columns of the Penn Treebank's layer.

Output of parsers is full of sentences that are no trees, and files lose lines and columns on
the way. A score of such a file is a number like any other, so these readers accept nothing of
the kind and say at which line it stopped making sense. CoNLL-U and CoNLL-X are read alike: CoNLL-U
adds comments, multiword ranges (``1-2``) and empty nodes (``1.1``), none of which CoNLL-X could
mean otherwise.

Who gives CoNLL-U to a parser wants the same lines back, to the byte: what comes off a stream is
kept as text. The package ``conllu`` writes; it does not read, for it accepts cycles, heads out of
range, repeated word numbers and lines of eight columns, and cuts columns at two spaces.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, groupby, repeat
from typing import Any, BinaryIO, Literal, NoReturn

from conllu.models import Token, TokenList
from conllu.parser import DEFAULT_FIELDS

from spmrl_bench.errors import ReadError, TreeError
from spmrl_bench.readers.text import LONGEST, FilePath, OnError, fail, read_text, stream_lines
from spmrl_bench.trees.dependencies import DependencyTree, Roots, head_fault, merge_words
from spmrl_bench.trees.escapes import escapes_named
from spmrl_bench.trees.tree import readonly_int32

#: ``upos`` is column 4 (UPOS, CPOSTAG), ``xpos`` is column 5 (XPOS, POSTAG).
TagColumn = Literal["upos", "xpos"]

#: Whether a multiword token such as French *du* is split into its words or one whole word.
MultiwordTokens = Literal["split", "whole"]

#: What stands in a column that says nothing.
UNSPECIFIED = "_"

#: A text that no column can hold: empty, with a space at an end, or with a separator in it.
UNWRITABLE = re.compile(r"\A(?:\Z| )| \Z|[\t\r\n]")

# Columns of a line, from 0.
_COLUMNS = len(DEFAULT_FIELDS)
_BLANK_ROW = dict.fromkeys(DEFAULT_FIELDS, UNSPECIFIED)
_ID, _FORM, _HEAD, _RELATION, _MISC = 0, 1, 6, 7, 9

_NUMBER = r"(0|[1-9][0-9]{0,8})"  # nine digits: what heads in int32 can hold
_A_NUMBER = re.compile(_NUMBER)
_RANGE = re.compile(rf"{_NUMBER}-{_NUMBER}")
_EMPTY_NODE = re.compile(rf"{_NUMBER}\.{_NUMBER}")
_COMMENT = re.compile(r"#\s*(sent_id|global\.columns)\s*=")
_STANDARD_NAMES = "ID FORM LEMMA UPOS XPOS FEATS HEAD DEPREL DEPS MISC"
_ROW = re.compile(
    rf"{_NUMBER}(?:[-.]{_NUMBER})?(?:\t[^\t]+){{5}}\t(?:{_NUMBER}|_)(?:\t[^\t]+){{3}}"
)
_DP_ROW = re.compile(r"[^\t ][^\t]*\t[^\t ]+\t[0-9]{1,9}")
_FLAW = re.compile(r"(?:\A|\t)(?=[\t ]|\Z)| (?=\t|\Z)|\r")

_Line = tuple[int, str]  # number, from 1, and text


@dataclass(frozen=True, slots=True, eq=False)
class DependencySentence:
    """A sentence and its place in the file."""

    tree: DependencyTree
    name: str  # its identifier in the file, or else its number there, from 1
    lines: tuple[int, ...]  # the line of each word, from 1


@dataclass(frozen=True, slots=True)
class ConlluSentence:
    """A sentence as it stands in a file."""

    head: str  # the comments and blank lines in front of the first row, with their ends
    rows: Sequence[Sequence[str]]  # the columns of words, ranges and empty nodes
    ends: tuple[str, ...]  # the end of the line of each row, and of the blank line after them
    name: str  # its identifier, or else its number in the file
    line: int  # where its first word stands, from 1

    def column(self, field: str) -> list[str]:
        """Return what one column, by its name in lower case, says of each word."""
        number = DEFAULT_FIELDS.index(field)
        return [row[number] for row in self.rows if row[_ID].isdecimal()]

    def with_dependencies(
        self, heads: Iterable[str], relations: Iterable[str], notes: Sequence[str] = ()
    ) -> str:
        """Return the lines of the sentence with these heads and relations of its words, and with
        ``notes`` of each behind what column MISC has; a TreeError if the format cannot hold a
        relation."""
        changed = dict(zip(self.column("id"), zip(heads, relations, strict=True), strict=True))
        noted = dict(zip(changed, notes, strict=False))
        text = self.head
        for row, end in zip([*self.rows, ()], self.ends, strict=True):
            if row and row[_ID] in changed:
                check_writable(row[_ID], changed[row[_ID]][1])
                row = (*row[:_HEAD], *changed[row[_ID]], *row[_RELATION + 1 :])
                if note := noted.get(row[_ID]):
                    before = "" if row[_MISC] == UNSPECIFIED else f"{row[_MISC]}|"
                    row = (*row[:_MISC], before + note)
            text += "\t".join(row) + end
        return text


def read_conll_file(
    path: FilePath, *, encoding: str = "utf-8", **options: Any
) -> Iterator[DependencySentence]:
    """Yield the sentences of a file, with the options and errors of :func:`read_conll`."""
    return read_conll(read_text(path, encoding), path=path, **options)


def read_dependencies(path: FilePath, *, encoding: str = "utf-8") -> Iterator[DependencyTree]:
    """Yield the trees of a file of CoNLL-U or CoNLL-X, with the errors of :func:`read_conll`."""
    return (sentence.tree for sentence in read_conll_file(path, encoding=encoding))


def read_conll(
    source: str,
    *,
    path: FilePath,
    tag_column: TagColumn = "xpos",
    roots: Roots = "one",
    escapes: str | None = None,
    multiword: MultiwordTokens = "split",
    on_error: OnError = fail,
) -> Iterator[DependencySentence]:
    """Yield the sentences of a text, in order; the kind of line ends does not matter.

    Args:
        source, path: the text of a whole file, and its name for error messages.
        tag_column: which of the two columns of tags to keep.
        roots: whether a sentence may have several words with head 0, as in some CoNLL-X files.
        escapes: name of the escape policy of the words (see :mod:`spmrl_bench.trees.escapes`),
            for files that were made from bracketed ones; the formats themselves have none.
        multiword: whether a multiword token is its words, which have heads of their own, or one
            word with the head of the part nearest to the root.
        on_error: takes the error of a malformed sentence; if it returns, the next one is read.
    """
    decode = escapes_named(escapes).decode_word if escapes is not None else str
    for number, block in enumerate(_blocks(source), start=1):
        sentence = _Checker(path, number)
        try:
            for line, text in block:
                sentence.add(line, text)
            sentence.finish()
            yield sentence.dependencies(tag_column, roots, decode, whole=multiword == "whole")
        except ReadError as error:
            on_error(error)


def read_dp(
    path: FilePath, *, encoding: str = "utf-8", on_error: OnError = fail
) -> Iterator[DependencySentence]:
    """Yield the sentences of a file of three columns, word, tag and head; each has one root.

    NLTK's sample of the Penn Treebank has a dependency layer in this form, whose words carry the
    escapes of its trees (``-LRB-``, ``1\\/2``). Relations, which it lacks, are ``_``. Errors are
    those of :func:`read_conll_file`.
    """
    decode = escapes_named("ptb").decode_word
    for number, block in enumerate(_blocks(read_text(path, encoding)), start=1):
        try:
            rows = [_columns(text, 3, path, line, str(number)) for line, text in block]
            words, tags, heads = zip(*rows, strict=True)
            yield _sentence(
                list(map(decode, words)), tags, heads, [UNSPECIFIED] * len(words),
                lines=[line for line, _ in block], roots="one", name=str(number), path=path,
            )  # fmt: skip
        except ReadError as error:
            on_error(error)


def read_conllu_stream(stream: BinaryIO, *, path: FilePath) -> Iterator[ConlluSentence]:
    """Yield the sentences of a UTF-8 stream, in order, without its byte order mark.

    They are checked as in :func:`read_conll`, but need not have heads. If the last blank line is
    missing, the last sentence gets one. No more is read than is needed. Raise a ReadError as
    :func:`~spmrl_bench.readers.text.stream_lines`, or if a sentence is malformed or has more than
    :data:`~spmrl_bench.readers.text.LONGEST` characters.
    """
    head: list[str] = []
    block: list[_Line] = []
    size, sentence = 0, 1
    for row in chain(stream_lines(stream, path), [(0, "")]):
        if _without_end(row[1]):
            block.append(row)
            size += len(row[1])
            if size > LONGEST:
                problem = f"a sentence of more than {LONGEST >> 20} MiB begins here; expected a"
                raise ReadError(f"{problem} blank line after each", path=path, line=block[0][0])
        elif block:
            yield _as_text(sentence, head, [*block, row], path)
            sentence += 1
            head, block, size = [], [], 0
        else:
            head.append(row[1])


def _without_end(line: str) -> str:
    return line.removesuffix("\n").removesuffix("\r")


def _as_text(
    number: int, head: list[str], block: Sequence[_Line], path: FilePath
) -> ConlluSentence:
    """A sentence of its lines with their ends, and of the blank ones in front of them."""
    checker = _Checker(path, number)
    rows: list[list[str]] = []
    ends: list[str] = []
    for place, line in block:
        text = _without_end(line)
        columns = checker.add(place, text) if text else []
        if columns:
            rows.append(columns)
        if rows:
            ends.append(line[len(text) :])
        else:
            head.append(line)
    checker.finish()
    # The last line, and the blank line after it, may lack their ends.
    newline = block[0][1][len(_without_end(block[0][1])) :] or "\n"
    ends = [end or newline for end in ends]
    return ConlluSentence("".join(head), rows, tuple(ends), checker.name, checker.lines[0])


def looks_like_conll(text: str) -> bool:
    """Return whether a text, perhaps cut at its end, is CoNLL-U or CoNLL-X."""
    lines = (line for block in _blocks(text) for _, line in block)
    row = next((line for line in lines if not line.startswith("#")), "")
    return _ROW.fullmatch(row) is not None


def looks_like_dp(text: str) -> bool:
    """Return whether a text, perhaps cut at its end, begins with a sentence of three columns."""
    rows = [line for _, line in next(_blocks(text), [])[:1000]]
    if len(rows) > 1 and not text.endswith("\n"):
        rows.pop()  # perhaps cut
    return bool(rows) and all(_DP_ROW.fullmatch(row) for row in rows)


def conll_lines(
    words: Iterable[str],
    tags: Iterable[str],
    heads: Iterable[str],
    relations: Iterable[str],
    *,
    tag_column: TagColumn = "xpos",
    notes: Iterable[str] | None = None,
) -> str:
    """Return the lines of one sentence and the blank line after it, as CoNLL-U and CoNLL-X, with
    ``notes`` in column MISC.

    Reading them gives back an equal tree. All that a tree does not hold is ``_``. A TreeError tells
    which column cannot hold its text (:data:`UNWRITABLE`).
    """
    rows = TokenList()
    misc = iter(notes) if notes is not None else repeat(UNSPECIFIED)
    for number, row in enumerate(zip(words, tags, heads, relations, strict=True), start=1):
        for text in row:
            check_writable(number, text)
        named = zip(("form", tag_column, "head", "deprel", "misc"), (*row, next(misc)), strict=True)
        rows.append(Token(_BLANK_ROW | {"id": str(number)} | dict(named)))
    return rows.serialize()


def check_writable(number: int | str, text: str) -> None:
    """Raise a TreeError if a column of a word, by its number, cannot hold a text."""
    if UNWRITABLE.search(text):
        raise TreeError(f"word {number}: CoNLL cannot hold {text!r}")


def _blocks(source: str) -> Iterator[list[_Line]]:
    """The runs of lines that are not blank."""
    lines = (line.removesuffix("\r") for line in source.split("\n"))
    for filled, block in groupby(enumerate(lines, start=1), lambda line: line[1] != ""):
        if filled:
            yield list(block)


def _columns(text: str, count: int, path: FilePath, line: int, sentence: str) -> list[str]:
    columns = text.split("\t")
    if len(columns) != count:
        found = f"{len(columns)} column{'s' if len(columns) > 1 else ''}"
        problem = f"found {found}, expected {count} separated by tabs"
    elif (flaw := _FLAW.search(text)) is not None:
        number = text.count("\t", 0, flaw.end())
        problem = (
            f"column {number + 1} is {columns[number]!r}, expected '_' or a text without "
            "spaces at its ends and without carriage returns"
        )
    else:
        return columns
    raise ReadError(problem, path=path, line=line, sentence=sentence)


def _sentence(
    words: Sequence[str],
    tags: Sequence[str],
    heads: Sequence[str],
    relations: Sequence[str],
    *,
    lines: Sequence[int],
    roots: Roots,
    name: str,
    path: FilePath,
) -> DependencySentence:
    """The sentence of a file's columns, if its heads, which are text, form a tree."""
    for head, line in zip(heads, lines, strict=True):
        if _A_NUMBER.fullmatch(head) is None:
            found = f"'{head}'" if set(head) <= set("-_.0123456789") else "is text"
            problem = f"head {found}, expected a number from 0"
            raise ReadError(problem, path=path, line=line, sentence=name)
    numbers = list(map(int, heads))
    fault = head_fault(numbers, roots)
    if fault is not None:
        raise ReadError(fault.problem, path=path, line=lines[fault.word - 1], sentence=name)
    tree = DependencyTree(tuple(words), tuple(tags), readonly_int32(numbers), tuple(relations))
    return DependencySentence(tree, name, tuple(lines))


class _Checker:
    """The lines of one sentence as they come in; each is checked against those before it."""

    def __init__(self, path: FilePath, number: int) -> None:
        self.name = str(number)
        self.lines: list[int] = []
        self._line = 0  # the last line of the sentence so far
        self._path = path
        self._rows: list[list[str]] = []
        self._ranges: dict[int, tuple[str, int]] = {}  # by first word: form, number of words
        self._range: tuple[int, int] = (0, 0)  # the last word of the last range, and its line
        self._empty_nodes = 0  # since the last word

    def add(self, number: int, line: str) -> list[str]:
        """Take in a line; return its columns, none for a comment."""
        self._line = number
        if line.startswith("#"):
            self._comment(line)
            return []
        columns = _columns(line, _COLUMNS, self._path, number, self.name)
        if columns[_ID] == str(len(self._rows) + 1):
            self._rows.append(columns)
            self.lines.append(number)
            self._empty_nodes = 0
        elif (ends := _RANGE.fullmatch(columns[_ID])) is not None:
            self._multiword(int(ends[1]), int(ends[2]), columns[_FORM])
        elif _EMPTY_NODE.fullmatch(columns[_ID]) is not None:
            self._empty_nodes += 1
            if columns[_ID] != (expected := f"{len(self._rows)}.{self._empty_nodes}"):
                self._fail(f"empty node '{columns[_ID]}', expected {expected}")
            if len(self._rows) + 1 in self._ranges:
                self._fail(f"empty node '{expected}' behind the range that follows it")
        else:
            hint = "; is a blank line missing before it?" if columns[_ID] == "1" else ""
            self._fail(f"word number '{columns[_ID]}', expected {len(self._rows) + 1}{hint}")
        return columns

    def finish(self) -> None:
        if not self._rows:
            self._fail("a sentence without words")
        if self._range[0] > len(self._rows):
            problem = f"the range ends at word {self._range[0]}, but the sentence has "
            self._fail(f"{problem}{len(self._rows)}", self._range[1])

    def dependencies(
        self, tags: TagColumn, roots: Roots, decode: Callable[[str], str], *, whole: bool
    ) -> DependencySentence:
        """Return the sentence, its multiword tokens whole or as their words."""
        columns = dict(zip(DEFAULT_FIELDS, zip(*self._rows, strict=True), strict=True))
        forms = columns["form"]
        found = _sentence(
            list(map(decode, forms)), columns[tags], columns["head"], columns["deprel"],
            lines=self.lines, roots=roots, name=self.name, path=self._path,
        )  # fmt: skip
        if not whole or not self._ranges:
            return found
        tokens: list[tuple[int, str, int]] = []  # number of words, form, line
        first = 0
        while first < len(forms):
            form, size = self._ranges.get(first + 1, (forms[first], 1))
            tokens.append((size, decode(form), self.lines[first]))
            first += size
        sizes, words, lines = zip(*tokens, strict=True)
        return DependencySentence(merge_words(found.tree, sizes, words), self.name, lines)

    def _comment(self, line: str) -> None:
        if self._rows or self._range[0] or self._empty_nodes:
            self._fail("a comment inside a sentence; is a blank line missing before it?")
        key = _COMMENT.match(line)
        value = line[key.end() :].strip() if key else ""
        if key and key[1] == "sent_id":
            self.name = value or self.name
        elif key and value != _STANDARD_NAMES:
            self._fail(f"the columns are '{value}', expected '{_STANDARD_NAMES}'")

    def _multiword(self, first: int, last: int, form: str) -> None:
        expected = len(self._rows) + 1
        if first != expected or last < first or first <= self._range[0]:
            free = expected > self._range[0]
            what = f"one from {expected}" if free else f"word {expected} of the range before"
            self._fail(f"range '{first}-{last}', expected {what}")
        self._range = (last, self._line)
        self._ranges[first] = (form, last - first + 1)

    def _fail(self, problem: str, line: int | None = None) -> NoReturn:
        raise ReadError(problem, path=self._path, line=line or self._line, sentence=self.name)
