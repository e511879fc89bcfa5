"""Bracketed trees off a stream of any size, a piece of it in memory at a time.

The format has no marks between trees, and a tree may take many lines. But brackets stand for
nothing else in it, so that the text can be cut, before any of it is understood, where as many
have been closed as opened; the reader of whole texts then reads the piece in front of the cut.
"""

from __future__ import annotations

from collections.abc import Iterator
from os import PathLike
from typing import BinaryIO, NoReturn

import numpy as np

from spmrl_bench.errors import ReadError
from spmrl_bench.readers.brackets import read_brackets
from spmrl_bench.trees.tree import Tree

#: Bytes that are read at a time.
BLOCK = 1 << 20
#: Bytes after which a tree that is not closed is taken for a mistake.
LONGEST = 1 << 26

_NEWLINE, _OPEN, _CLOSE = b"\n()"


def read_bracket_stream(
    stream: BinaryIO,
    *,
    path: str | PathLike[str],
    escapes: str = "ptb",
    line: int = 1,
    sentence: int = 1,
) -> Iterator[Tree]:
    """The trees of a UTF-8 stream, in order; any layout, as :func:`read_brackets` allows it.

    Args:
        stream: read until its end, no further than needed for the next trees.
        path: its name, for error messages.
        escapes: name of the escape policy of its words.
        line, sentence: what the stream begins with, for error messages.

    Raises:
        ReadError: the stream is malformed, not UTF-8, or has a tree of more than
            :data:`LONGEST` bytes; the trees before the place have been yielded.
        SpmrlError: the escape policy is unknown.
    """
    reader = _Pieces(path, escapes, line, sentence)
    held: list[bytes] = []  # since the last cut
    size = depth = 0
    while block := _read(stream, path):
        cut, depth = _last_cut(block, depth)
        if cut:
            yield from reader.trees(b"".join((*held, block[:cut])))
            held, size = [], 0
        held.append(block[cut:])
        size += len(block) - cut
        if size > LONGEST:
            reader.fail_endless(b"".join(held))
    yield from reader.trees(b"".join(held))


def _read(stream: BinaryIO, path: str | PathLike[str]) -> bytes:
    """The next bytes, as soon as there are any."""
    read = getattr(stream, "read1", stream.read)
    try:
        return bytes(read(BLOCK))
    except OSError as error:
        raise ReadError(f"cannot be read on: {error.strerror}", path=path) from None


def _last_cut(block: bytes, depth: int) -> tuple[int, int]:
    """Where a block can be cut (0: nowhere), and the depth of brackets after the cut's rest.

    Where a bracket is closed that was never opened, the cut comes at the end: what is in front
    of it cannot be read, whatever follows.
    """
    if not block:
        return 0, depth
    data = np.frombuffer(block, dtype=np.uint8)
    closing = data == _CLOSE
    depths = np.cumsum((data == _OPEN).astype(np.int8) - closing.astype(np.int8), dtype=np.int64)
    depths += depth
    if depths.min() < 0:
        return len(block), 0
    cuts = np.flatnonzero((depths == 0) & (closing | (data == _NEWLINE)))
    return int(cuts[-1]) + 1 if len(cuts) else 0, int(depths[-1])


class _Pieces:
    """Reads one piece after the other and knows where in the stream each begins."""

    def __init__(self, path: str | PathLike[str], escapes: str, line: int, sentence: int) -> None:
        self._path = path
        self._escapes = escapes
        self._line, self._column, self._sentence = line, 1, sentence
        self._begun = line > 1  # a byte order mark is in front of the first line only

    def trees(self, piece: bytes) -> Iterator[Tree]:
        """The trees of a piece that ends between trees or at the end of the stream."""
        try:
            text = piece.decode()
        except UnicodeDecodeError as error:
            whole, _ = _last_cut(piece[: error.start], 0)
            line = self._line + piece.count(b"\n", 0, error.start)
            yield from self.trees(piece[:whole])
            problem = f"not UTF-8 text: {error.reason}"
            raise ReadError(problem, path=self._path, line=line) from None
        if not self._begun:
            text = text.removeprefix("\ufeff")
            self._begun = True
        for tree in read_brackets(
            text,
            path=self._path,
            escapes=self._escapes,
            margin=False,  # a piece does not show the layout of all
            line=self._line,
            column=self._column,
            sentence=self._sentence,
        ):
            yield tree
            self._sentence += 1
        last = text.rfind("\n")
        self._line += text.count("\n")
        self._column = len(text) - last if last >= 0 else self._column + len(text)

    def fail_endless(self, piece: bytes) -> NoReturn:
        """Raise the error of a tree that does not end."""
        text = piece[: piece.find(b"(") + 1].decode(errors="replace")
        lines = text.split("\n")
        column = len(lines[-1]) if len(lines) > 1 else self._column + len(text) - 1
        raise ReadError(
            f"the bracket that opens here is not closed within {LONGEST >> 20} MiB",
            path=self._path,
            line=self._line + len(lines) - 1,
            column=column,
            sentence=self._sentence,
        )
