"""Static word vectors: the text and binary formats in which they are published.

==================  ====================================================================
word2vec, text      a line ``words width``, then a line ``word number number ...`` each
GloVe, text         the same without the first line; a word may contain spaces
word2vec, binary    the first line as above, then for each word its bytes, a space and its
                    vector as little-endian float32; line feeds before a word are skipped
==================  ====================================================================

A file is binary if its name ends in ``.bin`` or ``.bin.gz``; all can be compressed with gzip,
whatever they are called. A first line of two whole numbers is a header. Files have millions of
lines, so whole blocks of them are converted at once, and a block is only taken apart to say what
is wrong with it.
"""

from __future__ import annotations

import gzip
import os
import re
import warnings
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import BinaryIO, NoReturn

import numpy as np
from numpy.typing import NDArray

from spmrl_bench.bounded_files import open_regular
from spmrl_bench.errors import PretrainedError

Rows = NDArray[np.float32]

#: Bytes that are read at once, and the most that a line or a word of a binary file may have.
BLOCK = 1 << 22
MAX_WORD = 1 << 16

#: Unpacked bytes for each byte of a compressed file; numbers make three or four.
MOST_PACKED = 100

_GZIP, _ZIP, _FASTTEXT = b"\x1f\x8b", b"PK\x03\x04", b"\xba\x16\x4f\x2f"
_BOM = b"\xef\xbb\xbf"
_HEADER = re.compile(rb"([0-9]{1,40})[ \t]+([0-9]{1,40})[ \t]*\r?\n?")
_NUMBER = re.compile(rb"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
_OF_NUMBERS = b"0123456789+-.eE "  # all that lines of plain numbers consist of


@dataclass(frozen=True, slots=True)
class WordVectors:
    """The vectors of a file.

    Attributes:
        words: without repetition, in the order of the file; the first line of a word counts.
        matrix: float32 ``[words, width]``, all numbers finite.
    """

    words: list[str]
    matrix: Rows


def read_word_vectors(path: str | PathLike[str]) -> WordVectors:
    """Read a file of any of these formats.

    Raises:
        PretrainedError: the file cannot be read, or something in it is not of its format; the
            message names the line, or in a binary file the word.
    """
    path = Path(path)
    kind = _Binary if path.name.removesuffix(".gz").endswith(".bin") else _Text
    try:
        with open_regular(path) as file:
            magic = file.read(4)
            file.seek(0)
            size = os.fstat(file.fileno()).st_size
            if magic.startswith(_GZIP):
                found = kind(path, gzip.GzipFile(fileobj=file), MOST_PACKED * size)
            else:
                found = kind(path, file, size)
            if magic == _ZIP:
                found.fail("found a zip archive; unpack it and name a file of it")
            found.read()
    except (OSError, EOFError, zlib.error) as error:
        reason = getattr(error, "strerror", None) or error
        raise PretrainedError(f"{path}: cannot be read: {reason}") from None
    return found.vectors()


class _File:
    """A file while it is being read, block by block."""

    def __init__(self, path: Path, stream: BinaryIO | gzip.GzipFile, size: int) -> None:
        """A file of ``size`` bytes at most, unpacked."""
        self.path = path
        self.stream = stream
        self.size = self.room = size
        self.width = 0
        self.promised: int | None = None  # words, by the first line
        self.count = 0  # words so far, repeated ones too
        self._seen: set[str] = set()
        self._words: list[str] = []
        self._parts: list[Rows] = []

    def fail(self, problem: str, line: int | None = None) -> NoReturn:
        """Say what is wrong, and in which line."""
        raise PretrainedError(f"{self.path}:{'' if line is None else f'{line}:'} {problem}")

    def taken(self, size: int) -> bytes:
        """The next bytes; as many as this if there are."""
        data = self.stream.read(size)
        self.room -= len(data)
        if self.room < 0:
            self.fail(
                f"unpacked it has more than {MOST_PACKED} times its bytes, as no vectors have"
            )
        return data

    def read(self) -> None:
        """Read all of it."""
        raise NotImplementedError

    def is_header(self, line: bytes) -> bool:
        """Whether the first line is one of a word2vec file, which is noted then."""
        match = _HEADER.fullmatch(line)
        if match is None:
            return False
        self.promised, self.width = int(match[1]), int(match[2])
        if not self.promised or not self.width:
            self.fail(
                f"found a header of {self.promised} words of {self.width} numbers, "
                "expected at least one of each",
                1,
            )
        # A number takes two bytes at least, itself and what separates it from the next.
        if self.promised * self.width * 2 > self.size:
            self.fail(
                f"the first line promises {self.promised} words of {self.width} numbers, which "
                "the file is too small for; it seems to be cut off. Fetch it again",
                1,
            )
        return True

    def add(self, words: Sequence[str], rows: Rows) -> None:
        """Take a block in, without the words that are there already."""
        self.count += len(words)
        seen = self._seen
        fresh = []
        for number, word in enumerate(words):
            if word not in seen:
                seen.add(word)
                fresh.append(number)
        if len(fresh) < len(words):
            words, rows = [words[number] for number in fresh], rows[fresh]
        self._words += words
        self._parts.append(rows)

    def check_end(self) -> None:
        """Make sure that no word is missing at the end of the file."""
        if self.promised is not None and self.count < self.promised:
            self.fail(
                f"the first line promises {self.promised} words, but the file ends after "
                f"{self.count}; it seems to be cut off. Fetch it again"
            )

    def vectors(self) -> WordVectors:
        """All of them; nothing can be added afterwards."""
        if not self._words:
            self.fail("found no word vectors; is it the right file?")
        matrix = np.empty((len(self._words), self.width), dtype=np.float32)
        start = 0
        self._parts.reverse()
        while self._parts:  # freed as they are copied, so that memory holds them only once
            part = self._parts.pop()
            matrix[start : start + len(part)] = part
            start += len(part)
        return WordVectors(self._words, matrix)


class _Text(_File):
    """Lines of a word and its numbers."""

    _source = "as the first line says"  # where the width comes from
    _blank: int | None = None  # first of the empty lines that end the file so far

    def read(self) -> None:
        for number, block in self._blocks():
            lines = block.split(b"\n")
            if not lines[-1]:
                lines.pop()
            if number == 1:
                lines[0] = lines[0].removeprefix(_BOM)
                if self.is_header(lines[0]):
                    number, lines = 2, lines[1:]
                else:
                    self._measure(lines[0])
            words, rows = self._parsed(lines, number)
            if self.promised is not None and self.count + len(words) > self.promised:
                self.fail(
                    f"found more than the {self.promised} words that the first line promises",
                    number + self.promised - self.count,
                )
            self.add(words, rows)
        self.check_end()

    def _blocks(self) -> Iterator[tuple[int, bytes]]:
        """Whole lines, about ``BLOCK`` bytes at once, each time with the number of the first."""
        number, rest = 1, b""
        while data := self.taken(BLOCK):
            end = data.rfind(b"\n") + 1
            if end:
                whole = rest + data[:end]
                yield number, whole
                number += whole.count(b"\n")
                rest = data[end:]
            elif len(rest) + len(data) > BLOCK:
                self.fail(
                    f"found a line of more than {BLOCK} bytes, expected a word and its numbers; "
                    "is the file binary? Then its name must end in .bin",
                    number,
                )
            else:
                rest += data
        if rest:
            yield number, rest

    def _measure(self, first: bytes) -> None:
        """Take the width from a first line that is no header."""
        self.width, self._source = _trailing_numbers(first.split()), "as in the first line"
        if not self.width:
            self.fail(
                f"found {_shown(first)}, expected a word and its numbers, or how many words of "
                "how many numbers follow",
                1,
            )

    def _parsed(self, lines: list[bytes], number: int) -> tuple[list[str], Rows]:
        """Words and float32 ``[words, width]`` of lines; ``number`` is that of the first."""
        words: list[bytes] = []
        rests: list[bytes] = []
        separators = self.width - 1
        for place, line in enumerate(lines, number):
            line = line.rstrip(b" \t\r")
            if not line:
                self._blank = self._blank or place
                continue
            if self._blank is not None:
                self.fail("found an empty line, expected a word and its numbers", self._blank)
            word, _, rest = line.partition(b" ")
            if rest.count(b" ") != separators or not word or b"\t" in word:
                word, rest = self._split(line, place)
            words.append(word)
            rests.append(rest)
        values = _plain_numbers(b" ".join(rests), len(rests) * self.width)
        if values is None:
            # Empty lines only stand at the end, so that the words are lines that follow on.
            rows = [self._numbers(rest, place) for place, rest in enumerate(rests, number)]
            values = np.array(rows, dtype=np.float32)
        return self._decoded(words, number), values.reshape(-1, self.width)

    def _split(self, line: bytes, place: int) -> tuple[bytes, bytes]:
        """Word and numbers of a line that has spaces in its word, or too many elsewhere."""
        fields, width = line.split(), self.width
        if line[:1] in (b" ", b"\t") and len(fields) <= width:
            self.fail("found no word before the numbers", place)
        extra = fields[-width - 1] if len(fields) > width + 1 else b""
        # A word may end in a whole number, as in "page 1"; numbers of vectors have a point.
        if len(fields) <= width or (b"." in extra and _NUMBER.fullmatch(extra)):
            numbers = len(fields) - 1 if len(fields) <= width else _trailing_numbers(fields)
            self._fail_width(numbers, place, f" ({_shown(line)})")
        return b" ".join(fields[:-width]), b" ".join(fields[-width:])

    def _numbers(self, rest: bytes, place: int) -> list[float]:
        """The numbers of a line, one by one."""
        fields = rest.split()
        if len(fields) != self.width:
            self._fail_width(len(fields), place)
        for number, field in enumerate(fields, 1):
            if _NUMBER.fullmatch(field) is None or not _finite(float(field)):
                self.fail(
                    f"number {number} is {_shown(field)}, expected a finite decimal number", place
                )
        return [float(field) for field in fields]

    def _fail_width(self, numbers: int, place: int, line: str = "") -> NoReturn:
        found = f"{numbers} number{'' if numbers == 1 else 's'}"
        self.fail(f"found {found}, expected {self.width}, {self._source}{line}", place)

    def _decoded(self, words: list[bytes], number: int) -> list[str]:
        try:
            return b"\n".join(words).decode().split("\n") if words else []
        except UnicodeDecodeError:
            for place, word in enumerate(words, number):
                if problem := _encoding_problem(word):
                    self.fail(
                        f"{problem}; is the file binary? Then its name must end in .bin", place
                    )
            raise


class _Binary(_File):
    """Words, each followed by a space and its numbers as they are in memory."""

    def read(self) -> None:
        first = self.stream.readline(100)
        if not self.is_header(first):
            what = "a model of fastText" if first.startswith(_FASTTEXT) else _shown(first.strip())
            self.fail(
                f"found {what}, expected the first line of a word2vec file: how many words of how "
                "many numbers follow. If it is a text file, its name must not end in .bin",
                1,
            )
        promised, size = self.promised or 0, 4 * self.width
        data, ended = b"", False
        while self.count < promised and not ended:
            fresh = self.taken(max(BLOCK, size))
            ended = not fresh
            data += fresh
            words: list[bytes] = []
            vectors: list[bytes] = []
            start = 0
            while self.count + len(words) < promised:
                space = data.find(b" ", start, start + MAX_WORD)
                if space < 0 and len(data) - start >= MAX_WORD:
                    self._fail_word(
                        len(words),
                        f" has no end within {MAX_WORD} bytes; is the file of the word2vec format?",
                    )
                end = space + 1 + size
                if space < 0 or len(data) < end:
                    break
                words.append(data[start:space].lstrip(b"\n"))
                vectors.append(data[space + 1 : end])
                start = end
            data = data[start:]
            rows = np.frombuffer(b"".join(vectors), dtype="<f4").reshape(-1, self.width)
            self._check(words, rows)
            self.add([word.decode() for word in words], rows.astype(np.float32, copy=False))
        self.check_end()
        if (data + self.stream.read(1 + MAX_WORD)).strip(b"\n"):
            self.fail(
                f"found more bytes after the {promised} words of {self.width} numbers that the "
                "first line promises"
            )

    def _check(self, words: list[bytes], rows: Rows) -> None:
        for number, word in enumerate(words):
            if problem := _encoding_problem(word) if word else "has no bytes":
                self._fail_word(number, f": {problem}")
        bad = np.argwhere(~np.isfinite(rows))
        if len(bad):
            row, column = bad[0].tolist()
            self._fail_word(
                row,
                f", {_shown(words[row])}: number {column + 1} is {rows[row, column]}, "
                "expected a finite number",
            )

    def _fail_word(self, number: int, problem: str) -> NoReturn:
        """Say what is wrong with a word of the block."""
        self.fail(f"word {self.count + number + 1}{problem}")


def _plain_numbers(text: bytes, size: int) -> Rows | None:
    """Numbers between spaces, float32 ``[size]``; None where anything about them is unusual."""
    if text.translate(None, _OF_NUMBERS):
        return None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # older versions of NumPy warn of what later ones refuse
        try:
            values = np.fromstring(text, dtype=np.float32, sep=" ")
        except ValueError:
            return None
    return values if values.size == size and bool(np.isfinite(values).all()) else None


def _finite(value: float) -> bool:
    with np.errstate(over="ignore"):
        return bool(np.isfinite(np.float32(value)))


def _trailing_numbers(fields: Sequence[bytes]) -> int:
    """How many numbers a line ends with, after at least one field that is its word."""
    count = 0
    for field in reversed(fields[1:]):
        if _NUMBER.fullmatch(field) is None:
            break
        count += 1
    return count


def _encoding_problem(word: bytes) -> str:
    """What is wrong with the bytes of a word; empty if they are UTF-8."""
    try:
        word.decode()
    except UnicodeDecodeError as error:
        return f"byte 0x{word[error.start]:02x} of the word {_shown(word)} is not UTF-8"
    return ""


def _shown(text: bytes) -> str:
    """Bytes for a message, cut where they are many."""
    cut = text if len(text) <= 40 else text[:40] + b" ..."
    return f"'{cut.decode(errors='backslashreplace')}'"
