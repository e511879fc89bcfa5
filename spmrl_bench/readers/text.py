"""What every reader needs: the text of a file, places in it, and what becomes of mistakes.

An error is only of use with the line and column where an editor finds it.

Some releases contain sentences that no reader can make sense of. A reader hands the error of each
to a function of the caller's, which may raise or count it, and if that returns, goes on at the
next place that is safe. What a sentence is, this module does not know.
"""

from __future__ import annotations

import codecs
import encodings.aliases
import re
from collections.abc import Callable, Iterator
from os import PathLike
from pathlib import Path
from typing import BinaryIO

from spmrl_bench.errors import ReadError, SpmrlError, unknown_name
from spmrl_bench.storage.files import open_unpacked
from spmrl_bench.trees.escapes import ASCII_SPACE

#: How a file is named.
FilePath = str | PathLike[str]

#: Bytes after which a line of a stream, or a sentence of several, is taken for a mistake.
LONGEST = 1 << 24

#: Takes the error of one sentence; may raise it, or return to leave the sentence out.
OnError = Callable[[ReadError], None]

#: What ASCII white space separates; other white space is part of words.
fields = re.compile(f"[^{ASCII_SPACE}]+").findall

# Codecs of Python that no file is written in; some take a time that grows with its square.
_NO_ENCODINGS = ("idna", "punycode", "raw-unicode-escape", "undefined", "unicode-escape")


class MistakeError(Exception):
    """The problem of a sentence, and its place; the reader of its file adds the rest."""


def fail(error: ReadError) -> None:
    """Stop at the first error: raise it."""
    raise error


def is_encoding(name: str) -> bool:
    """Return whether files can be written in a codec of Python's."""
    try:
        known = codecs.lookup(name).name.replace("_", "-")
        b"a".decode(name)
    except UnicodeDecodeError:  # half a letter
        return True
    except (LookupError, ValueError):
        return False
    return known not in _NO_ENCODINGS


def check_encoding(name: str) -> None:
    """Raise a SpmrlError, which lists near ones, if a name is not that of an encoding."""
    if not is_encoding(name):
        every = {alias.replace("_", "-") for alias in encodings.aliases.aliases.values()}
        near = unknown_name("encoding", name, filter(is_encoding, every)).partition(" Known:")[0]
        raise SpmrlError(f"{near} Any text encoding of Python is allowed, such as utf-8, cp1252")


def read_text(path: FilePath, encoding: str = "utf-8") -> str:
    """Return the text of a file without its byte order mark; line ends as they are.

    Only where carriage returns alone end lines, as once on the Macintosh, they become line feeds.
    Raise a ReadError if the file cannot be opened or a byte is not of the encoding, a SpmrlError if
    there is no such encoding.
    """
    check_encoding(encoding)
    try:
        with open_unpacked(Path(path)) as file:
            data = file.read()
    except OSError as error:
        raise ReadError(f"cannot be read: {error.strerror}", path=path) from error
    try:
        text = data.decode(encoding).removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        problem = (
            f"byte 0x{data[error.start]:02x} is not {encoding} text; is the encoding another one? "
            "(--encoding, or encoding in a manifest)"
        )
        line = data.count(b"\n", 0, error.start) + 1
        raise ReadError(problem, path=path, line=line) from error
    return text.replace("\r", "\n") if "\r" in text and "\n" not in text else text


def stream_lines(stream: BinaryIO, path: FilePath, line: int = 1) -> Iterator[tuple[int, str]]:
    """Yield the lines of a UTF-8 stream without its byte order mark: number, text with its end.

    The stream may be the rest of a file; ``line`` is the number of its first line. Raise a
    ReadError if a line cannot be read or decoded, or has more than :data:`LONGEST` bytes; those
    before it have been yielded.
    """
    first = line
    try:
        while data := stream.readline(LONGEST + 1):
            if len(data) > LONGEST:
                problem = (
                    f"a line of more than {LONGEST >> 20} MiB; expected text in lines, a sentence "
                    "or a word on each. Is it another kind of file, or are its line ends missing?"
                )
                raise ReadError(problem, path=path, line=line)
            data = data.removeprefix(codecs.BOM_UTF8) if line == 1 else data
            # Carriage returns alone end lines, as in `read_text`.
            alone = line == first and b"\r" in data and not data.endswith(b"\n")
            for text in data.splitlines(keepends=True) if alone else [data]:
                yield line, text.decode()
                line += 1
    except UnicodeDecodeError as error:
        raise ReadError(f"not UTF-8 text: {error.reason}", path=path, line=line) from None
    except OSError as error:
        raise ReadError(
            f"cannot be read on: {error.strerror or error}", path=path, line=line
        ) from None


def excerpt(text: str) -> str:
    """Return a text for a message, on one line and not long."""
    text = " ".join(fields(text))
    return text if len(text) <= 40 else text[:37] + "..."


class LineIndex:
    """Lines and columns of a text, both from 1; all take linear time if their offsets grow."""

    def __init__(self, text: str, line: int = 1) -> None:
        self._text = text
        self._offset = 0
        self._line = line

    def place(self, offset: int) -> tuple[int, int]:
        """Return line and column of an offset."""
        self._line += self._text.count("\n", self._offset, offset)
        self._line -= self._text.count("\n", offset, self._offset)
        self._offset = offset
        return self._line, offset - self._text.rfind("\n", 0, offset)
