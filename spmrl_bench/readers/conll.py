"""Dependency treebanks in CoNLL-U and CoNLL-X, checked until every sentence is a tree.

Output of parsers is full of sentences that are no trees, and files lose lines and columns on
the way. A score of such a file is a number like any other, so this reader accepts nothing of
the kind and says at which line it stopped making sense. It reads both formats alike: CoNLL-U
adds comments, multiword ranges (``1-2``) and empty nodes (``1.1``) to CoNLL-X, none of which
CoNLL-X could mean otherwise. Empty nodes are checked for their place and not kept, as they have no
head; of ranges the form is kept where multiword tokens are to be one word each.

The package ``conllu`` reads and writes the sentences that pass through the program
(:mod:`spmrl_bench.readers.conllu_stream`), but no treebank and no file to be scored: it accepts
cycles, heads out of range, repeated word numbers and lines of eight columns, and says of no
sentence where it stands. Each of its sentences is therefore checked here, and to read a whole
treebank with it, too, takes twice the time.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from itertools import accumulate
from os import PathLike
from typing import Any, Literal, NoReturn

from spmrl_bench.errors import ReadError
from spmrl_bench.readers.sentences import (
    DependencySentence,
    Line,
    blocks,
    dependency_sentence,
    read_blocks,
    split_columns,
)
from spmrl_bench.readers.text import OnError, fail, read_text
from spmrl_bench.trees.conll import COLUMNS, FORM, HEAD, ID, RELATION, TAGS, TagColumn
from spmrl_bench.trees.dependencies import Roots, merge_words
from spmrl_bench.trees.escapes import escapes_named

#: Whether a multiword token such as French *du* is split into its words or one whole word.
MultiwordTokens = Literal["split", "whole"]

_NUMBER = r"(0|[1-9][0-9]{0,8})"
_RANGE = re.compile(rf"{_NUMBER}-{_NUMBER}")
_EMPTY_NODE = re.compile(rf"{_NUMBER}\.{_NUMBER}")
_COMMENT = re.compile(r"#\s*(sent_id|global\.columns)\s*=")
_STANDARD_NAMES = "ID FORM LEMMA UPOS XPOS FEATS HEAD DEPREL DEPS MISC"
_ROW = re.compile(
    rf"{_NUMBER}(?:[-.]{_NUMBER})?(?:\t[^\t]+){{5}}\t(?:{_NUMBER}|_)(?:\t[^\t]+){{3}}"
)


def read_conll_file(
    path: str | PathLike[str], *, encoding: str = "utf-8", **options: Any
) -> Iterator[DependencySentence]:
    """The sentences of a file, with the options of :func:`read_conll`.

    Raises:
        ReadError: the file cannot be read or decoded; or as :func:`read_conll` says.
    """
    return read_conll(read_text(path, encoding), path=path, **options)


def read_conll(
    source: str,
    *,
    path: str | PathLike[str],
    tag_column: TagColumn = "xpos",
    roots: Roots = "one",
    escapes: str | None = None,
    multiword: MultiwordTokens = "split",
    on_error: OnError = fail,
) -> Iterator[DependencySentence]:
    """The sentences of a text, in order; the kind of line ends does not matter.

    Args:
        source: the text of a whole file.
        path: its name, for error messages.
        tag_column: which of the two columns of tags to keep.
        roots: whether a sentence may have several words with head 0, as in some CoNLL-X files.
        escapes: name of the escape policy of the words (see :mod:`spmrl_bench.trees.escapes`),
            for files that were made from bracketed ones; the formats themselves have none.
        multiword: whether a multiword token is its words, which have heads of their own, or one
            word with the head of the part nearest to the root.
        on_error: takes the error of a sentence; if it returns, the next one is read.

    Raises:
        ReadError: from ``on_error``, a sentence is malformed.
    """
    decode = escapes_named(escapes).decode_word if escapes is not None else str

    def parse(number: int, block: list[Line]) -> DependencySentence:
        sentence = Rows(path, number)
        for line, text in block:
            sentence.add(line, text)
        sentence.finish()
        found = dependency_sentence(
            list(map(decode, sentence.column(FORM))),
            *map(sentence.column, (TAGS[tag_column], HEAD, RELATION)),
            lines=sentence.lines,
            roots=roots,
            name=sentence.name,
            path=path,
        )
        if multiword == "split" or not sentence.ranges:
            return found
        tokens = sentence.tokens()
        firsts = accumulate((size for _, size in tokens[:-1]), initial=0)
        return replace(
            found,
            tree=merge_words(
                found.tree, [s for _, s in tokens], [decode(form) for form, _ in tokens]
            ),
            lines=tuple(found.lines[first] for first in firsts),
        )

    return read_blocks(source, parse, on_error)


def looks_like_conll(text: str) -> bool:
    """Whether a text, perhaps cut at its end, is of one of these formats."""
    lines = (line for block in blocks(text.removeprefix("\ufeff")) for _, line in block)
    row = next((line for line in lines if not line.startswith("#")), "")
    return _ROW.fullmatch(row) is not None


class Rows:
    """The lines of one sentence as they come in; each is checked against those before it.

    What its heads are is not looked at. ``name`` is the sentence's identifier, or its number;
    ``lines`` has the line of each word, from 1, and ``ranges`` of the first word of each multiword
    token its form and the number of its words.
    """

    def __init__(self, path: str | PathLike[str], number: int) -> None:
        self.name = str(number)
        self.lines: list[int] = []
        self.ranges: dict[int, tuple[str, int]] = {}
        self._line = 0  # the last line of the sentence so far
        self._path = path
        self._rows: list[list[str]] = []
        self._range: tuple[int, int] = (0, 0)  # the last word of the last range, and its line
        self._empty_nodes = 0  # since the last word

    def column(self, number: int) -> list[str]:
        """What stands in one column, numbered from 0, of each word."""
        return [row[number] for row in self._rows]

    def add(self, number: int, line: str) -> list[str]:
        """Take in a line and its number; its columns, none for a comment.

        Raises:
            ReadError: the line is malformed, or does not belong behind those before it.
        """
        self._line = number
        if line.startswith("#"):
            self._comment(line)
            return []
        columns = split_columns(line, COLUMNS, path=self._path, line=number, sentence=self.name)
        if columns[ID] == str(len(self._rows) + 1):
            self._rows.append(columns)
            self.lines.append(number)
            self._empty_nodes = 0
        elif (ends := _RANGE.fullmatch(columns[ID])) is not None:
            self._multiword(int(ends[1]), int(ends[2]), columns[FORM])
        elif (node := _EMPTY_NODE.fullmatch(columns[ID])) is not None:
            self._empty_node(*map(int, node.groups()))
        else:
            hint = "; is a blank line missing before it?" if columns[ID] == "1" else ""
            self.fail(f"word number '{columns[ID]}', expected {len(self._rows) + 1}{hint}")
        return columns

    def finish(self) -> None:
        """Make sure that the sentence is whole.

        Raises:
            ReadError: it has no words, or a range does not end.
        """
        if not self._rows:
            self.fail("a sentence without words")
        if self._range[0] > len(self._rows):
            self.fail(
                f"the range ends at word {self._range[0]}, but the sentence has {len(self._rows)}",
                self._range[1],
            )

    def _comment(self, line: str) -> None:
        if self._rows or self._range[0] or self._empty_nodes:
            self.fail("a comment inside a sentence; is a blank line missing before it?")
        if (key := _COMMENT.match(line)) is None:
            return
        value = line[key.end() :].strip()
        if key[1] == "sent_id":
            self.name = value or self.name
        elif value != _STANDARD_NAMES:
            self.fail(f"the columns are '{value}', expected '{_STANDARD_NAMES}'")

    def tokens(self) -> list[tuple[str, int]]:
        """The form of each token, and how many words it is."""
        tokens: list[tuple[str, int]] = []
        number = 1
        while number <= len(self._rows):
            tokens.append(self.ranges.get(number, (self._rows[number - 1][FORM], 1)))
            number += tokens[-1][1]
        return tokens

    def _multiword(self, first: int, last: int, form: str) -> None:
        expected = len(self._rows) + 1
        if first != expected or last < first or first <= self._range[0]:
            free = expected > self._range[0]
            self.fail(
                f"range '{first}-{last}', expected "
                + (f"one from {expected}" if free else f"word {expected} of the range before")
            )
        self._range = (last, self._line)
        self.ranges[first] = (form, last - first + 1)

    def _empty_node(self, word: int, number: int) -> None:
        found, expected = f"{word}.{number}", f"{len(self._rows)}.{self._empty_nodes + 1}"
        if found != expected:
            self.fail(f"empty node '{found}', expected {expected}")
        self._empty_nodes += 1

    def fail(self, problem: str, line: int | None = None) -> NoReturn:
        """Raise a ReadError about a line of the sentence, by default the last."""
        raise ReadError(problem, path=self._path, line=line or self._line, sentence=self.name)
