"""In which encoding a treebank's files are.

A wrong guess gives words that look almost right, so what is uncertain is said. Files are UTF-8 if
all are, or UTF-16 by their mark; else a Chinese encoding if that fits, else a Western one. Where
many places are UTF-8 and others are not, two encodings were mixed, and any choice would spoil one
of them: that is refused.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Sequence
from pathlib import Path

from spmrl_bench.errors import TreebankError

_MARKS = {
    codecs.BOM_UTF32_LE: "utf-32",
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF8: "utf-8",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
_NOT_ASCII = re.compile(rb"[\x80-\xff]+")
# Of places with other characters than those of ASCII, the share in UTF-8 that is no chance.
_NO_CHANCE = 0.05


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
    try:
        return all(_decodes(path.read_bytes(), encoding) for path in paths)
    except OSError:
        return False


def _refuse_mixed(paths: Sequence[Path]) -> None:
    """Make sure that hardly anything is UTF-8 where not all is; else an error names two lines.

    What is looked at are stretches of characters that are not ASCII, as one line may have both.
    """
    count = {True: 0, False: 0}
    first: dict[bool, str] = {}
    for path in paths:
        for number, line in enumerate(path.read_bytes().split(b"\n"), start=1):
            for run in _NOT_ASCII.findall(line):
                whole = _decodes(run, "utf-8")
                count[whole] += 1
                first.setdefault(whole, f"{path}:{number}")
    if count[True] > _NO_CHANCE * (count[True] + count[False]):
        raise TreebankError(
            f"two encodings are mixed: in {first[True]} there is UTF-8, as in {count[True] - 1:,} "
            f"other places; in {first[False]} there is something else, as in {count[False] - 1:,} "
            "others. Convert them to one, or name the one to read them all in with --encoding"
        )


def _decodes(data: bytes, encoding: str) -> bool:
    try:
        data.decode(encoding)
    except UnicodeDecodeError:
        return False
    return True


def _first_bytes(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(4)
