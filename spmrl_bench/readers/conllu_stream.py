"""CoNLL-U off a stream, a sentence at a time, and out again with other heads.

Who gives sentences to a parser in CoNLL-U wants the same lines back: comments, ranges, empty
nodes, lemmas, features and MISC as they were, to the byte. The package ``conllu`` reads and
writes the columns, each as the text in it, since not all features and MISC that it takes apart
come out as they went in (``A=`` and ``A=b=c`` do not). Comments stay lines, for it keeps only
those with a ``=``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from os import PathLike
from typing import BinaryIO

from conllu.models import Token, TokenList
from conllu.parser import DEFAULT_FIELDS, parse_token_and_metadata

from spmrl_bench.errors import ReadError
from spmrl_bench.readers.conll import Rows
from spmrl_bench.readers.sentences import Line
from spmrl_bench.readers.text import LONGEST, stream_lines
from spmrl_bench.trees.conll import check_writable

_AS_TEXT = {field: lambda columns, number: columns[number] for field in DEFAULT_FIELDS}


@dataclass(frozen=True, slots=True)
class ConlluSentence:
    """A sentence as it stands in a file.

    Attributes:
        head: the lines in front of the first row, with their ends: comments, and blank lines
            beyond the one that ended the sentence before.
        rows: of words, ranges and empty nodes; every column is text.
        ends: the end of the line of each row, and of the blank line after them.
        name: its identifier, or its number in the file.
        line: where its first word stands, from 1.
    """

    head: str
    rows: TokenList
    ends: tuple[str, ...]
    name: str
    line: int

    def column(self, field: str) -> list[str]:
        """What one column, by its name in lower case, says of each word."""
        return [row[field] for row in self.rows if row["id"].isdecimal()]

    def with_dependencies(self, heads: Iterable[str], relations: Iterable[str]) -> str:
        """The lines of the sentence with these heads and relations of its words.

        Raises:
            TreeError: the format cannot hold a relation.
        """
        rows = TokenList([Token(row) for row in self.rows])
        words = (row for row in rows if row["id"].isdecimal())
        for word, head, relation in zip(words, heads, relations, strict=True):
            check_writable(word["id"], relation)
            word["head"], word["deprel"] = head, relation
        lines = rows.serialize().split("\n")
        return self.head + "".join(map("".join, zip(lines, self.ends, strict=False)))


def read_conllu_stream(
    stream: BinaryIO, *, path: str | PathLike[str], line: int = 1, sentence: int = 1
) -> Iterator[ConlluSentence]:
    """The sentences of a UTF-8 stream, in order, without its byte order mark.

    They are checked as in :func:`spmrl_bench.readers.conll.read_conll`, except for their heads,
    which need not be there. If the last blank line is missing, the last sentence gets one.

    Args:
        stream: read until its end, no further than needed for the next sentence.
        path: its name, for error messages.
        line, sentence: numbers of what the stream begins with.

    Raises:
        ReadError: the stream cannot be read on, is not UTF-8, is malformed, or has a sentence of
            more than :data:`LONGEST` characters; the sentences before the place have been yielded.
    """
    head: list[str] = []
    block: list[Line] = []
    number, size = sentence - 1, 0
    for row in stream_lines(stream, path, line):
        if _without_end(row[1]):
            block.append(row)
            size += len(row[1])
            if size > LONGEST:
                problem = (
                    f"a sentence of more than {LONGEST >> 20} MiB begins here; expected a blank "
                    "line after each sentence"
                )
                raise ReadError(problem, path=path, line=block[0][0])
        elif block:
            number += 1
            yield _sentence(number, head, [*block, row], path)
            head, block, size = [], [], 0
        else:
            head.append(row[1])
    if block:
        yield _sentence(number + 1, head, block, path)


def _without_end(line: str) -> str:
    return line.removesuffix("\n").removesuffix("\r")


def _sentence(
    number: int, head: list[str], block: Sequence[Line], path: str | PathLike[str]
) -> ConlluSentence:
    """A sentence of its lines with their ends, and of the blank ones in front of them."""
    checked = Rows(path, number)
    rows = []
    ends = []
    for place, line in block:
        text = _without_end(line)
        columns = checked.add(place, text) if text else []
        if columns:
            rows.append((place, columns))
        if rows:
            ends.append(line[len(text) :])
        else:
            head.append(line)
    checked.finish()
    # The last line, and the blank line after it, may lack their ends.
    newline = block[0][1][len(_without_end(block[0][1])) :] or "\n"
    ends = [end or newline for end in ends] + [newline] * (len(rows) + 1 - len(ends))
    read = parse_token_and_metadata(
        "\n".join("\t".join(columns) for _, columns in rows), field_parsers=_AS_TEXT
    )
    for (place, columns), row in zip(rows, read, strict=True):
        for column, (expected, found) in enumerate(zip(columns, row.values(), strict=True), 1):
            if found != expected:
                checked.fail(
                    f"column {column} is {expected!r}, expected a text without two spaces side "
                    "by side and without white space at its ends",
                    place,
                )
    return ConlluSentence("".join(head), read, tuple(ends), checked.name, checked.lines[0])
