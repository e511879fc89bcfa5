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
import re
import warnings
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import BinaryIO, NoReturn

import numpy as np
from numpy.typing import NDArray

from spmrl_bench.errors import PretrainedError

Rows = NDArray[np.float32]
Stream = BinaryIO | gzip.GzipFile

#: Bytes that are read at once, and the most that a line or a word of a binary file may have.
BLOCK = 1 << 22
MAX_WORD = 1 << 16

_GZIP, _ZIP, _FASTTEXT = b"\x1f\x8b", b"PK\x03\x04", b"\xba\x16\x4f\x2f"
_BOM = b"\xef\xbb\xbf"
_HEADER = re.compile(rb"([0-9]{1,12})[ \t]+([0-9]{1,6})[ \t]*\r?\n?")
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
    name = path.name.removesuffix(".gz")
    try:
        with _opened(path) as stream:
            found = _Found(path)
            if name.endswith(".bin"):
                _read_binary(stream, path, found)
            else:
                _read_text(stream, path, found)
    except (OSError, EOFError, zlib.error) as error:
        reason = getattr(error, "strerror", None) or error
        raise PretrainedError(f"{path}: cannot be read: {reason}") from None
    return found.vectors()


@contextmanager
def _opened(path: Path) -> Iterator[Stream]:
    """The bytes of a file, decompressed where they need it."""
    with path.open("rb") as file:
        magic = file.read(4)
        file.seek(0)
        if magic == _ZIP:
            raise PretrainedError(f"{path}: found a zip archive; unpack it and name a file of it")
        if magic.startswith(_GZIP):
            with gzip.open(file, "rb") as stream:
                yield stream
        else:
            yield file


class _Found:
    """Words and rows while they are being read, block by block."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._seen: set[str] = set()
        self._words: list[str] = []
        self._parts: list[Rows] = []
        self.read = 0

    def add(self, words: Sequence[str], rows: Rows) -> None:
        """Take a block in, without the words that are there already."""
        self.read += len(words)
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

    def vectors(self) -> WordVectors:
        """All of them; nothing can be added afterwards."""
        if not self._words:
            raise PretrainedError(f"{self._path}: found no word vectors; is it the right file?")
        matrix = np.empty((len(self._words), self._parts[0].shape[1]), dtype=np.float32)
        start = 0
        self._parts.reverse()
        while self._parts:  # freed as they are copied, so that memory holds them only once
            part = self._parts.pop()
            matrix[start : start + len(part)] = part
            start += len(part)
        return WordVectors(self._words, matrix)


@dataclass(frozen=True, slots=True)
class _Header:
    """The first line of a word2vec file."""

    words: int
    width: int

    @classmethod
    def of(cls, line: bytes, path: Path) -> _Header | None:
        """What a line says, or None if it is no header."""
        match = _HEADER.fullmatch(line)
        if match is None:
            return None
        header = cls(int(match[1]), int(match[2]))
        if not header.words or not header.width:
            raise PretrainedError(
                f"{path}:1: found a header of {header.words} words of {header.width} numbers, "
                "expected at least one of each"
            )
        return header

    def check_end(self, found: int, path: Path) -> None:
        """Make sure that no word is missing at the end of the file."""
        if found < self.words:
            raise PretrainedError(
                f"{path}: the first line promises {self.words} words, but the file ends after "
                f"{found}; it seems to be cut off. Fetch it again"
            )


# Text


def _read_text(stream: Stream, path: Path, found: _Found) -> None:
    header: _Header | None = None
    block_parser: _TextBlocks | None = None
    for number, block in _blocks(stream, path):
        lines = block.split(b"\n")
        if not lines[-1]:
            lines.pop()
        if block_parser is None:
            lines[0] = lines[0].removeprefix(_BOM)
            header = _Header.of(lines[0], path)
            block_parser = _TextBlocks(path, header, lines[0])
            if header is not None:
                number, lines = number + 1, lines[1:]
        words, rows = block_parser.parsed(lines, number)
        if header is not None and found.read + len(words) > header.words:
            line = number + header.words - found.read
            raise PretrainedError(
                f"{path}:{line}: found more than the {header.words} words that the first line "
                "promises"
            )
        found.add(words, rows)
    if header is not None:
        header.check_end(found.read, path)


def _blocks(stream: Stream, path: Path) -> Iterator[tuple[int, bytes]]:
    """Whole lines, about ``BLOCK`` bytes at once, each time with the number of the first."""
    number, rest = 1, b""
    while data := stream.read(BLOCK):
        end = data.rfind(b"\n") + 1
        if end:
            whole = rest + data[:end]
            yield number, whole
            number += whole.count(b"\n")
            rest = data[end:]
        elif len(rest) + len(data) > BLOCK:
            raise PretrainedError(
                f"{path}:{number}: found a line of more than {BLOCK} bytes, expected a word and "
                "its numbers; is the file binary? Then its name must end in .bin"
            )
        else:
            rest += data
    if rest:
        yield number, rest


class _TextBlocks:
    """Turns blocks of lines into words and rows."""

    def __init__(self, path: Path, header: _Header | None, first: bytes) -> None:
        self._path = path
        self._blank: int | None = None  # first of the empty lines that end the file so far
        if header is not None:
            self._width, self._source = header.width, "as the first line says"
        else:
            self._width, self._source = _trailing_numbers(first.split()), "as in the first line"
            if not self._width:
                self._fail(
                    1,
                    f"found {_shown(first)}, expected a word and its numbers, or how many words "
                    "of how many numbers follow",
                )

    def parsed(self, lines: list[bytes], number: int) -> tuple[list[str], Rows]:
        """Words and float32 ``[words, width]`` of lines; ``number`` is that of the first."""
        words: list[bytes] = []
        rests: list[bytes] = []
        separators = self._width - 1
        for place, line in enumerate(lines, number):
            line = line.rstrip(b" \t\r")
            if not line:
                self._blank = self._blank or place
                continue
            if self._blank is not None:
                self._fail(self._blank, "found an empty line, expected a word and its numbers")
            word, _, rest = line.partition(b" ")
            if rest.count(b" ") != separators or not word or b"\t" in word:
                word, rest = self._split(line, place)
            words.append(word)
            rests.append(rest)
        values = _plain_numbers(b" ".join(rests), len(rests) * self._width)
        if values is None:
            # Empty lines only stand at the end, so that the words are lines that follow on.
            rows = [self._numbers(rest, place) for place, rest in enumerate(rests, number)]
            values = np.array(rows, dtype=np.float32)
        return self._decoded(words, number), values.reshape(-1, self._width)

    def _split(self, line: bytes, place: int) -> tuple[bytes, bytes]:
        """Word and numbers of a line that has spaces in its word, or too many elsewhere."""
        fields = line.split()
        width = self._width
        if line[:1] in (b" ", b"\t") and len(fields) <= width:
            self._fail(place, "found no word before the numbers")
        extra = fields[-width - 1] if len(fields) > width + 1 else b""
        # A word may end in a whole number, as in "page 1"; numbers of vectors have a point.
        if len(fields) <= width or (b"." in extra and _NUMBER.fullmatch(extra)):
            numbers = len(fields) - 1 if len(fields) <= width else _trailing_numbers(fields)
            self._fail(
                place, f"found {_count(numbers)}, expected {width}, {self._source} ({_shown(line)})"
            )
        return b" ".join(fields[:-width]), b" ".join(fields[-width:])

    def _numbers(self, rest: bytes, place: int) -> list[float]:
        """The numbers of a line, one by one."""
        fields = rest.split()
        if len(fields) != self._width:
            self._fail(
                place, f"found {_count(len(fields))}, expected {self._width}, {self._source}"
            )
        for number, field in enumerate(fields, 1):
            if _NUMBER.fullmatch(field) is None or not _finite(float(field)):
                self._fail(
                    place, f"number {number} is {_shown(field)}, expected a finite decimal number"
                )
        return [float(field) for field in fields]

    def _decoded(self, words: list[bytes], number: int) -> list[str]:
        try:
            return b"\n".join(words).decode().split("\n") if words else []
        except UnicodeDecodeError:
            for place, word in enumerate(words, number):
                if problem := _encoding_problem(word):
                    self._fail(
                        place, f"{problem}; is the file binary? Then its name must end in .bin"
                    )
            raise

    def _fail(self, line: int, problem: str) -> NoReturn:
        raise PretrainedError(f"{self._path}:{line}: {problem}")


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


def _count(numbers: int) -> str:
    return f"{numbers} number" if numbers == 1 else f"{numbers} numbers"


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


# Binary


def _read_binary(stream: Stream, path: Path, found: _Found) -> None:
    first = stream.readline(100)
    header = _Header.of(first, path)
    if header is None:
        what = "a model of fastText" if first.startswith(_FASTTEXT) else _shown(first.strip())
        raise PretrainedError(
            f"{path}:1: found {what}, expected the first line of a word2vec file: how many words "
            "of how many numbers follow. If it is a text file, its name must not end in .bin"
        )
    size = 4 * header.width
    data, ended = b"", False
    while found.read < header.words and not ended:
        fresh = stream.read(max(BLOCK, size))
        ended = not fresh
        data += fresh
        words: list[bytes] = []
        vectors: list[bytes] = []
        start = 0
        while found.read + len(words) < header.words:
            space = data.find(b" ", start, start + MAX_WORD)
            if space < 0 and len(data) - start >= MAX_WORD:
                raise PretrainedError(
                    f"{path}: {_which(found, words)} has no end within {MAX_WORD} bytes; is the "
                    "file of the word2vec format?"
                )
            end = space + 1 + size
            if space < 0 or len(data) < end:
                break
            words.append(data[start:space].lstrip(b"\n"))
            vectors.append(data[space + 1 : end])
            start = end
        data = data[start:]
        rows = np.frombuffer(b"".join(vectors), dtype="<f4").reshape(-1, header.width)
        _check_binary(words, rows, path, found)
        found.add([word.decode() for word in words], rows.astype(np.float32, copy=False))
    header.check_end(found.read, path)
    if (data + stream.read(1 + MAX_WORD)).strip(b"\n"):
        raise PretrainedError(
            f"{path}: found more bytes after the {header.words} words of {header.width} numbers "
            "that the first line promises"
        )


def _check_binary(words: list[bytes], rows: Rows, path: Path, found: _Found) -> None:
    for number, word in enumerate(words):
        problem = _encoding_problem(word) if word else "has no bytes"
        if problem:
            raise PretrainedError(f"{path}: {_which(found, words[:number])}: {problem}")
    bad = np.argwhere(~np.isfinite(rows))
    if len(bad):
        row, column = bad[0].tolist()
        raise PretrainedError(
            f"{path}: {_which(found, words[:row])}, {_shown(words[row])}: number {column + 1} is "
            f"{rows[row, column]}, expected a finite number"
        )


def _which(found: _Found, before: list[bytes]) -> str:
    return f"word {found.read + len(before) + 1}"
