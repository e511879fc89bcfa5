"""Static word vectors as an input: published vectors of words, and a learned map of them.

The vectors stay as they were published, so that words that the training trees lack keep their
place beside those that they have; what is learned is the map to the width of the parser. A form
without a vector of its own has that of its lower-cased form, since many vectors are of text
without capitals; one without either has the zero vector, so that the other inputs speak for it.
START and STOP are no words of a text, and have learned vectors of the full width instead.

==================  ====================================================================
word2vec, text      a line ``words width``, then a line ``word number number ...`` each
GloVe, text         the same without the first line; a word may contain spaces
word2vec, binary    the first line as above, then for each word its bytes, a space and its
                    vector as little-endian float32; line feeds before a word are skipped
==================  ====================================================================

A file is binary if its name ends in ``.bin`` or ``.bin.gz``; all can be compressed with gzip,
whatever they are called. A first line of two whole numbers is a header, empty lines say nothing.
"""

from __future__ import annotations

import gzip
import io
import itertools
import math
import os
import re
import sys
import zlib
from array import array
from collections.abc import Iterable, Iterator
from functools import partial
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from spmrl_bench.errors import PretrainedError
from spmrl_bench.nn.inputs import Boundary, Codes, FormInput
from spmrl_bench.nn.ragged import SentenceDropout
from spmrl_bench.nn.settings import InputSettings, Rate
from spmrl_bench.nn.vocabulary import Vocabulary
from spmrl_bench.storage.files import open_regular_file

#: Bytes that a line may have, and a word of a binary file.
LONGEST_LINE, LONGEST_WORD = 1 << 22, 1 << 16
#: Unpacked bytes for each byte of a compressed file; numbers make three or four.
MOST_PACKED = 100

_HEADER = re.compile(rb"([0-9]{1,40})[ \t]+([0-9]{1,40})[ \t]*\r?\n?")
_NUMBER = re.compile(rb"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")

_CUT_OFF = "; is it cut off? Then fetch it again"

_Entries = Iterator[tuple[str, bytes, "array[float]"]]

# Codes; a word's is its row of the matrix and what follows.
UNKNOWN, START, STOP, FIRST_ROW = range(4)


class StaticVectors(FormInput):
    """A table that is not trained, a map that is, and dropout of the result in each sentence."""

    class Config(InputSettings):
        """Settings of the input ``vectors``."""

        file: str
        """File of static word vectors (word2vec or GloVe)."""
        dropout: Rate
        """Dropout of the mapped vectors."""

        def files(self) -> dict[str, str]:
            return {"file": self.file}

    table: Tensor

    def __init__(self, config: Config, vocabulary: Vocabulary, width: int, **options: Any) -> None:
        """Read the vectors of a file; see :func:`read_word_vectors` for errors."""
        super().__init__(config, vocabulary, width, **options)
        vectors = read_word_vectors(config.file)
        self._codes = {word: code for code, word in enumerate(vectors.words, FIRST_ROW)}
        self.register_buffer("table", torch.from_numpy(vectors.matrix), persistent=False)
        self.linear = nn.Linear(vectors.matrix.shape[1], width, bias=False)
        self.boundaries = nn.Embedding(2, width)
        self.dropout = SentenceDropout(config.dropout)

    def codes(self, form: str | Boundary) -> NDArray[np.int64]:
        if isinstance(form, Boundary):
            code = START if form is Boundary.START else STOP
        else:
            code = self._codes.get(form) or self._codes.get(form.lower(), UNKNOWN)
        return np.array([code], dtype=np.int64)

    def forms(self, codes: Codes) -> Tensor:
        code = codes.values[:, 0]
        vectors = self.table.index_select(0, (code - FIRST_ROW).clamp(min=0))
        mapped = self.linear(vectors * (code >= FIRST_ROW)[:, None])
        at_end = (code == START) | (code == STOP)
        return torch.where(at_end[:, None], self.boundaries((code == STOP).long()), mapped)


class WordVectors(NamedTuple):
    """The vectors of a file, float32 ``[words, width]``, all numbers finite.

    A word is not repeated; its first vector counts.
    """

    words: list[str]
    matrix: NDArray[np.float32]


def read_word_vectors(path: str | PathLike[str]) -> WordVectors:
    """Return the vectors of a file of any of the formats above.

    Raises:
        PretrainedError: the file cannot be read, or a line, or a word of a binary file, is wrong.
    """
    path = Path(path)
    try:
        with open_regular_file(path) as file:
            room = os.fstat(file.fileno()).st_size
            magic = file.peek(4)
            if magic.startswith(b"PK\x03\x04"):
                raise PretrainedError(": found a zip archive; unpack it and name a file of it")
            stream: io.BufferedReader = file
            if magic.startswith(b"\x1f\x8b"):
                room *= MOST_PACKED
                stream = io.BufferedReader(_Unpacked(room, file), 1 << 16)
            return _read(stream, room, path.name.removesuffix(".gz").endswith(".bin"))
    except PretrainedError as error:  # which knows the place in the file
        raise PretrainedError(f"{path}{error}") from None
    except (OSError, EOFError, zlib.error) as error:
        reason = getattr(error, "strerror", None) or error
        raise PretrainedError(f"{path}: cannot be read: {reason}") from None


class _Unpacked(gzip.GzipFile):
    """A compressed file, which may not be larger than a bound when it is unpacked."""

    def __init__(self, room: int, file: io.BufferedReader) -> None:
        super().__init__(fileobj=file)
        self._room = room

    def read(self, size: int | None = -1) -> bytes:
        if self.tell() > self._room:
            raise PretrainedError(
                f": unpacked it has more than {MOST_PACKED} times its bytes, as no vectors have"
            )
        return super().read(size)


def _read(stream: io.BufferedReader, room: int, binary: bool) -> WordVectors:
    """The vectors of a stream of at most ``room`` bytes."""
    first = stream.readline(LONGEST_LINE + 1).removeprefix(b"\xef\xbb\xbf")
    header = _HEADER.fullmatch(first)
    promised = int(header[1]) if header else None
    # Without a header, numbers behind at least one field that is a word.
    numbers_of_first = itertools.takewhile(_NUMBER.fullmatch, first.split()[:0:-1])
    width = int(header[2]) if header else len(list(numbers_of_first))
    if promised is not None and not 0 < 2 * promised * width <= room:
        # A number takes two bytes at least.
        raise PretrainedError(
            f":1: found a header of {promised} words of {width} numbers, expected at least one of "
            f"each, and no more than the file has room for{_CUT_OFF}"
        )
    if binary and not header:
        raise PretrainedError(
            f":1: found {_shown(first)}, expected the first line of a word2vec file: how many "
            "words of how many numbers follow. If it is a text file, its name must not end in .bin"
        )
    words: dict[str, None] = {}
    numbers, count = array("f"), 0
    rest = iter(partial(stream.readline, LONGEST_LINE + 1), b"")
    lines = itertools.chain([b"" if header else first], rest)
    entries = _binary(stream, width) if binary else _text(lines, width)
    for count, (place, spelling, row) in enumerate(entries, 1):
        if promised is not None and count > promised:
            raise PretrainedError(f"{place} found more than the {promised} words of the first line")
        try:
            word = spelling.decode()
        except UnicodeDecodeError as error:
            hint = "" if binary else "; is the file binary? Then name it .bin"
            raise PretrainedError(
                f"{place} byte 0x{spelling[error.start]:02x} of the word {_shown(spelling)} is not "
                f"UTF-8{hint}"
            ) from None
        if not math.isfinite(sum(row)):
            number, value = next(each for each in enumerate(row, 1) if not math.isfinite(each[1]))
            raise PretrainedError(f"{place} number {number} is {value}, expected a finite number")
        if word not in words:
            words[word] = None
            numbers += row
    if count < (promised or 1):
        raise PretrainedError(f": found {count} words of {promised or 'at least 1'}{_CUT_OFF}")
    return WordVectors(list(words), np.frombuffer(numbers, np.float32).reshape(-1, width))


def _text(lines: Iterable[bytes], width: int) -> _Entries:
    """Place, word and numbers of each line that is not empty."""
    for number, line in enumerate(lines, 1):
        place, fields = f":{number}:", line.split()
        if len(line) > LONGEST_LINE or not width:
            raise PretrainedError(
                f"{place} found {_shown(line)}, expected a word and its numbers, or in the first "
                "line how many words of how many numbers follow; is it binary? Then name it .bin"
            )
        if not fields:
            continue
        # A word may end in a whole number, as in "page 1"; numbers of vectors have a point.
        extra = fields[-width - 1] if len(fields) > width + 1 else b""
        if len(fields) <= width or (b"." in extra and _NUMBER.fullmatch(extra)):
            raise PretrainedError(
                f"{place} found {len(fields) - 1} numbers, expected {width} ({_shown(line)})"
            )
        word, row = b" ".join(fields[:-width]), fields[-width:]
        try:
            if b"_" in line and any(b"_" in field for field in row):
                raise ValueError
            numbers = array("f", map(float, row))
        except ValueError:
            at, field = next(e for e in enumerate(row, 1) if not _NUMBER.fullmatch(e[1]))
            raise PretrainedError(
                f"{place} number {at} is {_shown(field)}, expected a decimal number"
            ) from None
        yield place, word, numbers


def _binary(stream: io.BufferedReader, width: int) -> _Entries:
    """Place, word and numbers of each word, until nothing but line feeds is left."""
    for number in itertools.count(1):
        place, word = f": word {number}:", bytearray()
        while (byte := stream.read(1)) not in (b" ", b""):
            word += byte if byte != b"\n" or word else b""
            if len(word) > LONGEST_WORD:
                raise PretrainedError(f"{place} it has no end within {LONGEST_WORD} bytes")
        if not byte and not word:
            return
        data = stream.read(4 * width)
        if len(data) < 4 * width:
            raise PretrainedError(f"{place} the file ends within it{_CUT_OFF}")
        if not word:
            raise PretrainedError(f"{place} it has no bytes")
        row = array("f", data)
        if sys.byteorder == "big":
            row.byteswap()
        yield place, bytes(word), row


def _shown(text: bytes) -> str:
    """Bytes for a message, cut where they are many."""
    text = text.strip()
    cut = text if len(text) <= 40 else text[:40] + b" ..."
    return f"'{cut.decode(errors='backslashreplace')}'"
