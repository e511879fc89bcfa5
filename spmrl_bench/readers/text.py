"""Text of treebank files, and places in it.

Treebanks come in several encodings, with or without a byte order mark, and an error is only
of use with the line and column where an editor finds it.
"""

from __future__ import annotations

from os import PathLike
from pathlib import Path

from spmrl_bench.errors import ReadError


def read_text(path: str | PathLike[str], encoding: str = "utf-8") -> str:
    """The text of a file without its byte order mark; line ends as they are.

    Only where carriage returns alone end lines, as once on the Macintosh, they become line feeds.

    Raises:
        ReadError: the file cannot be opened, or a byte is not of the encoding.
    """
    try:
        data = Path(path).read_bytes()
    except OSError as error:
        raise ReadError(f"cannot be read: {error.strerror}", path=path) from error
    try:
        text = data.decode(encoding).removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        found = data[error.start : error.start + 1].hex()
        problem = f"byte 0x{found} is not {encoding} text; is the encoding another one?"
        raise ReadError(problem, path=path, line=line) from error
    return text.replace("\r", "\n") if "\r" in text and "\n" not in text else text


def position(text: str, offset: int) -> tuple[int, int]:
    """Line and column of an offset, both from 1."""
    return text.count("\n", 0, offset) + 1, offset - text.rfind("\n", 0, offset)
