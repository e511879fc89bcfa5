"""Dependency treebanks in CoNLL-U and CoNLL-X, checked until every sentence is a tree.

Output of parsers is full of sentences that are no trees, and files lose lines and columns on
the way. A score of such a file is a number like any other, so this reader accepts nothing of
the kind and says at which line it stopped making sense. It reads both formats alike: CoNLL-U
adds comments, multiword ranges (``1-2``) and empty nodes (``1.1``) to CoNLL-X, none of which
CoNLL-X could mean otherwise. Ranges and empty nodes are checked for their place and not kept,
as they have no head.

The package ``conllu`` is not used: its sentences and errors carry no line numbers, and it
accepts cycles, heads out of range, repeated word numbers and lines of eight columns. Every
line would have to be read a second time to tell where the mistake is.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from os import PathLike
from typing import NoReturn

import numpy as np

from spmrl_bench.errors import ReadError
from spmrl_bench.readers.text import read_text
from spmrl_bench.trees.conll import COLUMNS, FORM, HEAD, ID, RELATION, TAGS, TagColumn
from spmrl_bench.trees.dependencies import DependencyTree, Roots, head_fault

_NUMBER = r"(0|[1-9][0-9]{0,8})"  # nine digits: what heads in int32 can hold
_HEAD = re.compile(_NUMBER)
_RANGE = re.compile(rf"{_NUMBER}-{_NUMBER}")
_EMPTY_NODE = re.compile(rf"{_NUMBER}\.{_NUMBER}")
_FLAW = re.compile(r"(?:\A|\t)(?=[\t ]|\Z)| (?=\t|\Z)|\r")
_SENTENCE_ID = re.compile(r"#\s*sent_id\s*=\s*(\S.*?)\s*")
_COLUMN_NAMES = re.compile(r"#\s*global\.columns\s*=\s*(.*?)\s*")
_STANDARD_NAMES = "ID FORM LEMMA UPOS XPOS FEATS HEAD DEPREL DEPS MISC"


@dataclass(frozen=True, slots=True, eq=False)
class ConllSentence:
    """A sentence and its place in the file.

    Attributes:
        tree: words, tags, heads and relations.
        name: its ``sent_id``, or its number in the file, from 1.
        lines: the line of each word, from 1.
    """

    tree: DependencyTree
    name: str
    lines: tuple[int, ...]


def read_conll_file(
    path: str | PathLike[str],
    *,
    encoding: str = "utf-8",
    tags: TagColumn = "xpos",
    roots: Roots = "one",
) -> Iterator[ConllSentence]:
    """The sentences of a file; a byte order mark and the kind of line ends do not matter.

    Raises:
        ReadError: the file cannot be read or decoded, or is malformed.
    """
    return read_conll(read_text(path, encoding), path=path, tags=tags, roots=roots)


def read_conll(
    source: str, *, path: str | PathLike[str], tags: TagColumn = "xpos", roots: Roots = "one"
) -> Iterator[ConllSentence]:
    """The sentences of a text, in order.

    Args:
        source: the text of a whole file.
        path: its name, for error messages.
        tags: which of the two columns of tags to keep.
        roots: whether a sentence may have several words with head 0, as in some CoNLL-X files.

    Raises:
        ReadError: the text is malformed; the sentences before the place have been yielded.
    """
    sentence = _Sentence(path, 1)
    for number, line in enumerate(source.split("\n"), start=1):
        line = line.removesuffix("\r")
        if line:
            sentence.add(number, line)
        elif sentence.line:
            yield sentence.finish(tags, roots)
            sentence = _Sentence(path, sentence.number + 1)
    if sentence.line:
        yield sentence.finish(tags, roots)


class _Sentence:
    """The lines of one sentence as they come in; each is checked against those before it."""

    def __init__(self, path: str | PathLike[str], number: int) -> None:
        self.number = number
        self.line = 0  # the last line of the sentence so far
        self._path = path
        self._name = str(number)
        self._rows: list[list[str]] = []
        self._lines: list[int] = []
        self._range: tuple[int, int] = (0, 0)  # the last word of the last range, and its line
        self._empty_nodes = 0  # since the last word

    def add(self, number: int, line: str) -> None:
        self.line = number
        if line.startswith("#"):
            self._comment(line)
            return
        columns = line.split("\t")
        if len(columns) != COLUMNS:
            count = f"{len(columns)} column{'s' if len(columns) > 1 else ''}"
            self._fail(f"found {count}, expected {COLUMNS} separated by tabs")
        if (flaw := _FLAW.search(line)) is not None:
            place = line.count("\t", 0, flaw.end())
            self._fail(
                f"column {place + 1} is {columns[place]!r}, expected '_' or a text without "
                "spaces at its ends and without carriage returns"
            )
        if columns[ID] == str(len(self._rows) + 1):
            self._rows.append(columns)
            self._lines.append(number)
            self._empty_nodes = 0
        elif (ends := _RANGE.fullmatch(columns[ID])) is not None:
            self._multiword(*map(int, ends.groups()))
        elif (node := _EMPTY_NODE.fullmatch(columns[ID])) is not None:
            self._empty_node(*map(int, node.groups()))
        else:
            hint = "; is a blank line missing before it?" if columns[ID] == "1" else ""
            self._fail(f"word number '{columns[ID]}', expected {len(self._rows) + 1}{hint}")

    def finish(self, tags: TagColumn, roots: Roots) -> ConllSentence:
        if not self._rows:
            self._fail("a sentence without words")
        if self._range[0] > len(self._rows):
            self._fail(
                f"the range ends at word {self._range[0]}, but the sentence has {len(self._rows)}",
                self._range[1],
            )
        heads = []
        for row, line in zip(self._rows, self._lines, strict=True):
            if _HEAD.fullmatch(row[HEAD]) is None:
                self._fail(f"head '{row[HEAD]}', expected a number from 0", line)
            heads.append(int(row[HEAD]))
        fault = head_fault(heads, roots)
        if fault is not None:
            self._fail(fault.problem, self._lines[fault.word - 1])
        words, pos, relations = (
            tuple(row[column] for row in self._rows) for column in (FORM, TAGS[tags], RELATION)
        )
        array = np.array(heads, dtype=np.int32)
        array.flags.writeable = False
        tree = DependencyTree(words, pos, array, relations)
        return ConllSentence(tree, self._name, tuple(self._lines))

    def _comment(self, line: str) -> None:
        if self._rows or self._range[0] or self._empty_nodes:
            self._fail("a comment inside a sentence; is a blank line missing before it?")
        if (name := _SENTENCE_ID.fullmatch(line)) is not None:
            self._name = name[1]
        names = _COLUMN_NAMES.fullmatch(line)
        if names is not None and names[1] != _STANDARD_NAMES:
            self._fail(f"the columns are '{names[1]}', expected '{_STANDARD_NAMES}'")

    def _multiword(self, first: int, last: int) -> None:
        expected = len(self._rows) + 1
        if first != expected or last < first or first <= self._range[0]:
            free = expected > self._range[0]
            self._fail(
                f"range '{first}-{last}', expected "
                + (f"one from {expected}" if free else f"word {expected} of the range before")
            )
        self._range = (last, self.line)

    def _empty_node(self, word: int, number: int) -> None:
        expected = (len(self._rows), self._empty_nodes + 1)
        if (word, number) != expected:
            self._fail(f"empty node '{word}.{number}', expected {expected[0]}.{expected[1]}")
        self._empty_nodes += 1

    def _fail(self, problem: str, line: int | None = None) -> NoReturn:
        raise ReadError(problem, path=self._path, line=line or self.line, sentence=self._name)
