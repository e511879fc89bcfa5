"""In which encoding a treebank's files are.

A wrong guess gives words that look almost right, so what is uncertain is said. Files are UTF-8 if
all are, or UTF-16 by their mark; else a Chinese encoding if that fits, else a Western one. Where
many lines are UTF-8 and others are not, two encodings were mixed, and any choice would spoil one of
them: that is refused.
"""

from __future__ import annotations

import codecs
import encodings.aliases
import re
from collections.abc import Sequence
from pathlib import Path

from spmrl_bench.errors import TreebankError, unknown_name

#: Codecs of Python that no file is written in; some take a time that grows with its square.
_NO_ENCODINGS = ("idna", "punycode", "raw-unicode-escape", "undefined", "unicode-escape")

_MARKS = {
    codecs.BOM_UTF32_LE: "utf-32",
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF8: "utf-8",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
_NOT_ASCII = re.compile(rb"[\x80-\xff]+")
# Of lines with other characters than those of ASCII, the share in UTF-8 that is no chance.
_NO_CHANCE = 0.05


def is_encoding(name: str) -> bool:
    """Whether files can be written in a codec of Python's; some are not for text."""
    try:
        known = codecs.lookup(name).name.replace("_", "-")
        b"a".decode(name)
    except UnicodeDecodeError:  # half a letter
        return True
    except (LookupError, ValueError):
        return False
    return known not in _NO_ENCODINGS


def check_encoding(name: str) -> str:
    """The name, if it is that of an encoding.

    Raises:
        TreebankError: it is not; names that are near it are listed.
    """
    if not is_encoding(name):
        every = {alias.replace("_", "-") for alias in encodings.aliases.aliases.values()}
        near = unknown_name("encoding", name, filter(is_encoding, every)).partition(" Known:")[0]
        raise TreebankError(f"{near} Any text encoding of Python is allowed, such as utf-8, cp1252")
    return name


def marked_encoding(data: bytes) -> str | None:
    """The encoding that a file's first bytes name, if they do."""
    return next((name for mark, name in _MARKS.items() if data.startswith(mark)), None)


def guess_encoding(paths: Sequence[Path]) -> str:
    """The encoding of files that belong together.

    Raises:
        TreebankError: two were mixed, within a file or from one to the next.
    """
    marks = {marked_encoding(_first_bytes(path)) for path in paths}
    if len(marks) == 1 and (mark := marks.pop()) not in (None, "utf-8"):
        return str(mark)
    if all_decode(paths, "utf-8"):
        return "utf-8"
    _refuse_mixed(paths)
    # A Chinese character is two bytes that are not ASCII; an accented letter is one of them.
    runs = [run for path in paths for run in _NOT_ASCII.findall(path.read_bytes())]
    chinese = 10 * sum(len(run) % 2 == 0 for run in runs) > 9 * len(runs)
    tried = ("gb18030", "cp1252") if chinese else ("cp1252",)
    return next((name for name in tried if all_decode(paths, name)), "latin-1")


def all_decode(paths: Sequence[Path], encoding: str) -> bool:
    """Whether all files can be read and are text in an encoding."""
    for path in paths:
        try:
            path.read_bytes().decode(encoding)
        except (OSError, UnicodeDecodeError):
            return False
    return True


def _refuse_mixed(paths: Sequence[Path]) -> None:
    """Make sure that hardly any line is UTF-8 where not all are; else an error names two."""
    count = {True: 0, False: 0}
    first: dict[bool, str] = {}
    for path in paths:
        for number, line in enumerate(path.read_bytes().split(b"\n"), start=1):
            if line.isascii():
                continue
            try:
                line.decode("utf-8")
                whole = True
            except UnicodeDecodeError:
                whole = False
            count[whole] += 1
            first.setdefault(whole, f"{path}:{number}")
    if count[True] > _NO_CHANCE * (count[True] + count[False]):
        raise TreebankError(
            f"two encodings are mixed: {first[True]} is UTF-8 and so are {count[True] - 1:,} other "
            f"lines, {first[False]} is not and neither are {count[False] - 1:,} others. Convert "
            "them to one, or name the one to read them all in with --encoding"
        )


def _first_bytes(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(4)
