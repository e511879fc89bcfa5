"""Vectors of whole words: tables that are learned, and published vectors that stay as they are.

The tables know the vocabulary's words and tags, and have the vector of UNK for all others. They may
begin with published vectors, of much more text, and change them with everything else (Dyer et al.
2015, Dozat & Manning 2017, Zhang et al. 2017), so that a saved parser needs the file no more.

Static vectors know the words of the file, those that the training trees lack among them; what is
learned is the map to the width of the parser. A form without a vector of its own has that of its
lower-cased form, and one without either the zero vector. START and STOP, which are no words of a
text, have learned vectors of the full width.

A text file of word2vec begins with a line ``words width``, then has a line ``word number ...`` for
each; one of GloVe lacks the first, and a word may contain spaces. A binary file of word2vec, whose
name ends in ``.bin`` or ``.bin.gz``, has the first line, then for each word its bytes, a space and
its vector as little-endian float32. All can be compressed with gzip, whatever they are called.
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
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from spmrl_bench.errors import PretrainedError
from spmrl_bench.nn.inputs import Boundary, Codes, FormInput, LexicalInput, Tokens
from spmrl_bench.nn.settings import InputSettings, Positive, Rate
from spmrl_bench.nn.vocabulary import FIRST_TAG, FIRST_WORD, Vocabulary
from spmrl_bench.storage.files import open_regular_file

#: Bytes that a line may have, and a word of a binary file.
LONGEST_LINE, LONGEST_WORD = 1 << 22, 1 << 16
#: Unpacked bytes for each byte of a compressed file; numbers make three or four.
MOST_PACKED = 100

_HEADER = re.compile(rb"([0-9]{1,40})[ \t]+([0-9]{1,40})[ \t]*\r?\n?")
_NUMBER = re.compile(rb"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")

_CUT_OFF = "; is it cut off? Then fetch it again"

_Entries = Iterator[tuple[bytes, "array[float]"]]

# Codes; a word's is its row of the matrix and what follows.
UNKNOWN, START, STOP, FIRST_ROW = range(4)


class WordEmbedding(LexicalInput):
    """A vector for each word of the vocabulary."""

    class Config(InputSettings):
        """Settings of the input ``word``."""

        dropout: Rate
        """Dropout of word embeddings."""
        max_words: Positive | None = None
        """Known words, the most frequent of the training trees; without it all of them."""
        vectors: str | None = None
        """File of word vectors (word2vec or GloVe), as wide, that the embeddings start from."""

        def files(self) -> dict[str, str]:
            return {} if self.vectors is None else {"vectors": self.vectors}

        def outside(self) -> dict[str, str]:
            return {}  # training changes what it begins with

    def __init__(self, config: Config, vocabulary: Vocabulary, width: int, **options: Any) -> None:
        super().__init__(config, vocabulary, width, **options)
        self._rows = vocabulary.word_ids
        self.embedding = nn.Embedding(FIRST_WORD + len(vocabulary.words), width)

    def forward(self, tokens: Tokens, codes: Codes | None) -> Tensor:
        return self.dropout(self.embedding(tokens.words), tokens.layout)

    @torch.no_grad()
    def start(self) -> None:
        """Put the vectors of a file into the rows of its words; a word without one has that of its
        lower-cased form, or keeps its random row."""
        if (path := self.config.vectors) is None:
            return
        words, matrix = read_word_vectors(path)
        given, width = matrix.shape[1], self.embedding.embedding_dim
        if given != width:
            raise PretrainedError(
                f"{path}: the vectors have {given} numbers, but the embeddings of words have "
                f"{width}; where inputs stand side by side (model.join = 'concatenated'), "
                "model.d_word is their width"
            )
        place = {word: row for row, word in enumerate(words)}
        found = {
            row: place[known]
            for word, row in self._rows.items()
            if (known := word if word in place else word.lower()) in place
        }
        if not found:
            raise PretrainedError(
                f"{path}: none of the {len(self._rows)} words of the training sentences has a "
                "vector; is it of this language?"
            )
        chosen = torch.from_numpy(matrix[list(found.values())])
        self.embedding.weight[torch.tensor(list(found))] = chosen.to(self.embedding.weight)

    @torch.no_grad()
    def reorder(self, rows: Sequence[int]) -> None:
        """Give the words, without UNK and the ends of a sentence, the rows of now in this order."""
        order = torch.tensor([*range(FIRST_WORD), *rows])
        self.embedding.weight = nn.Parameter(self.embedding.weight[order])


class TagEmbedding(LexicalInput):
    """A vector for each tag of the vocabulary."""

    class Config(InputSettings):
        """Settings of the input ``tag``."""

        dropout: Rate = 0.2
        """Dropout of tag embeddings."""

    def __init__(self, config: Config, vocabulary: Vocabulary, width: int, **options: Any) -> None:
        super().__init__(config, vocabulary, width, **options)
        self.embedding = nn.Embedding(FIRST_TAG + len(vocabulary.tags), width)

    def forward(self, tokens: Tokens, codes: Codes | None) -> Tensor:
        return self.dropout(self.embedding(tokens.tags), tokens.layout)


class StaticVectors(FormInput):
    """A table that is not trained, and a map that is."""

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
        super().__init__(config, vocabulary, width, **options)
        words, matrix = read_word_vectors(config.file)
        self._codes = {word: code for code, word in enumerate(words, FIRST_ROW)}
        self.register_buffer("table", torch.from_numpy(matrix), persistent=False)
        self.linear = nn.Linear(matrix.shape[1], width, bias=False)
        self.boundaries = nn.Embedding(2, width)

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


def read_word_vectors(path: str | PathLike[str]) -> tuple[list[str], NDArray[np.float32]]:
    """Return the distinct words of a file, and ``[words, width]`` finite vectors, or raise a
    PretrainedError. Of several vectors of a word the first counts."""
    path = Path(path)
    try:
        with open_regular_file(path) as file:
            room = os.fstat(file.fileno()).st_size
            magic = file.peek(4)
            if magic.startswith(b"PK\x03\x04"):
                raise OSError(0, "found a zip archive; unpack it and name a file of it")
            stream: io.BufferedReader = file
            if magic.startswith(b"\x1f\x8b"):
                unpacked = _Unpacked(fileobj=file)
                unpacked.room = room = MOST_PACKED * room
                stream = io.BufferedReader(unpacked, 1 << 16)
            return _read(path, stream, room)
    except (OSError, EOFError, zlib.error) as error:
        reason = getattr(error, "strerror", None) or error
        raise PretrainedError(f"{path}: cannot be read: {reason}") from None


class _Unpacked(gzip.GzipFile):
    """A compressed file, of which no more is unpacked than there is room for."""

    room: int

    def read(self, size: int | None = -1) -> bytes:
        if self.tell() > self.room:
            raise OSError(0, f"unpacked it has more than {MOST_PACKED} times its bytes")
        return super().read(size)


def _read(
    path: Path, stream: io.BufferedReader, room: int
) -> tuple[list[str], NDArray[np.float32]]:
    """The vectors of a stream of at most ``room`` bytes."""
    binary = path.name.removesuffix(".gz").endswith(".bin")
    readline = partial(stream.readline, LONGEST_LINE + 1)
    words: dict[str, None] = {}
    numbers, count, place = array("f"), 0, ":1"
    try:
        first = readline().removeprefix(b"\xef\xbb\xbf")
        header = _HEADER.fullmatch(first)
        # Without one, numbers behind at least one field that is a word.
        of_first = itertools.takewhile(_NUMBER.fullmatch, first.split()[:0:-1])
        promised, width = map(int, header.groups()) if header else (0, len(list(of_first)))
        # A number takes two bytes at least.
        if not 0 < 2 * promised * width <= room if header else binary:
            raise ValueError(
                f"found {_shown(first)}, expected how many words of how many numbers follow, and "
                f"no more than there is room for{_CUT_OFF}. A text file must not be named .bin"
            )
        lines = itertools.chain([b"" if header else first], iter(readline, b""))
        entries = _binary(stream, width) if binary else _text(lines, width)
        for number in itertools.count(1):
            place = f": word {number}" if binary else f":{number}"
            entry = next(entries, None)
            if entry is None:
                break
            word, row = entry[0].decode(), entry[1]
            if not row:
                continue
            count += 1
            if header and count > promised:
                raise ValueError(f"found more than the {promised} words of the first line")
            if not math.isfinite(sum(row)):
                at, value = next(each for each in enumerate(row, 1) if not math.isfinite(each[1]))
                raise ValueError(f"number {at} is {value}, expected a finite number")
            if word not in words:
                words[word] = None
                numbers += row
    except UnicodeDecodeError as error:
        raise PretrainedError(
            f"{path}{place}: the word {_shown(error.object)} is not UTF-8; is the file binary? "
            "Then name it .bin"
        ) from None
    except ValueError as error:
        raise PretrainedError(f"{path}{place}: {error}") from None
    if count < promised:
        raise PretrainedError(f"{path}: found {count} words of {promised}{_CUT_OFF}")
    return list(words), np.frombuffer(numbers, np.float32).reshape(-1, width)


def _text(lines: Iterable[bytes], width: int) -> _Entries:
    """Word and numbers of each line; none of an empty one."""
    for line in lines:
        fields = line.split()
        if len(line) > LONGEST_LINE or not width:
            raise ValueError(
                f"found {_shown(line)}, expected a word and its numbers; is the file binary? Then "
                "name it .bin"
            )
        # A word may end in a whole number, as in "page 1"; numbers of vectors have a point.
        extra = fields[-width - 1] if len(fields) > width + 1 else b""
        if 0 < len(fields) <= width or (b"." in extra and _NUMBER.fullmatch(extra)):
            raise ValueError(f"found {len(fields) - 1} numbers, expected {width} ({_shown(line)})")
        word, row = b" ".join(fields[:-width]), fields[-width:]
        try:
            if b"_" in line and any(b"_" in field for field in row):
                raise ValueError
            yield word, array("f", map(float, row))
        except ValueError:
            at, field = next(each for each in enumerate(row, 1) if not _NUMBER.fullmatch(each[1]))
            raise ValueError(f"number {at} is {_shown(field)}, expected a decimal number") from None


def _binary(stream: io.BufferedReader, width: int) -> _Entries:
    """Word and numbers of each word, until nothing but line feeds is left."""
    while True:
        letters = itertools.takewhile(b" ".__ne__, iter(partial(stream.read, 1), b""))
        word = b"".join(itertools.islice(letters, LONGEST_WORD + 1)).lstrip(b"\n")
        data = stream.read(4 * width)
        if not word and not data:
            return
        if len(word) > LONGEST_WORD:
            raise ValueError(f"it has no end within {LONGEST_WORD} bytes")
        if len(data) < 4 * width:
            raise ValueError(f"the file ends within it{_CUT_OFF}")
        if not word:
            raise ValueError("it has no bytes")
        row = array("f", data)
        if sys.byteorder == "big":
            row.byteswap()
        yield word, row


def _shown(text: bytes) -> str:
    return f"'{text.strip()[:40].decode(errors='backslashreplace')}'"
