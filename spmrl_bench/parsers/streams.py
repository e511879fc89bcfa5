"""Parsing a stream of text into lines of text, one per sentence and in the same order.

A pipe has lines, some of them empty, and expects line ``k`` of the output to answer line
``k`` of the input. Words are separated by ASCII white space only: a no-break space is part
of a word.
"""

from __future__ import annotations

import codecs
from collections.abc import Iterator
from typing import TYPE_CHECKING, BinaryIO

from spmrl_bench.errors import ReadError
from spmrl_bench.readers.brackets import read_brackets
from spmrl_bench.trees.brackets import write_brackets

if TYPE_CHECKING:
    from spmrl_bench.parsers.chart_parser import ChartParser

_NAME = "<standard input>"


def parse_tokens(stream: BinaryIO, parser: ChartParser) -> Iterator[str]:
    """One bracketed tree for each line of words, lazily; an empty line for an empty line.

    Raises:
        ReadError: the stream is empty or not UTF-8.
        SentenceTooLongError: a sentence has more words than the parser has positions.
    """
    answered = False
    for tree in parser.parse(_sentences(stream)):
        yield write_brackets(tree) if len(tree) else ""
        answered = True
    if not answered:
        raise ReadError("empty; expected one sentence per line", path=_NAME)


def parse_brackets(stream: BinaryIO, parser: ChartParser) -> Iterator[str]:
    """One new bracketed tree for each bracketed tree, which gives the words and tags.

    Raises:
        ReadError: the stream is empty, not UTF-8, or holds a malformed tree.
        SentenceTooLongError: a sentence has more words than the parser has positions.
    """
    text = "".join(_decoded(line, number) for number, line in _numbered(stream))
    given = list(read_brackets(text, path=_NAME))
    if not given:
        raise ReadError("empty; expected bracketed trees", path=_NAME)
    for tree in parser.parse([tree.words for tree in given], [tree.tags for tree in given]):
        yield write_brackets(tree)


def _sentences(stream: BinaryIO) -> Iterator[list[str]]:
    for number, line in _numbered(stream):
        yield [_decoded(word, number) for word in line.split()]


def _numbered(stream: BinaryIO) -> Iterator[tuple[int, bytes]]:
    for number, line in enumerate(stream, start=1):
        yield number, line.removeprefix(codecs.BOM_UTF8) if number == 1 else line


def _decoded(text: bytes, line: int) -> str:
    try:
        return text.decode()
    except UnicodeDecodeError as error:
        raise ReadError(f"not UTF-8 text: {error.reason}", path=_NAME, line=line) from None
