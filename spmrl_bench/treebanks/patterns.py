"""The files that a manifest means.

Releases of one treebank differ in small ways: a folder in capitals, only the small training set,
numbers with gaps. A manifest therefore names files by patterns:

``*``
    any characters of a name; what matches is read in bytewise order.
``{0001..0159}``
    each of these numbers, as wide as the first; every file must be there. With a question
    mark, ``{001..270?}``, those that are there, and at least one.
``{tags}``
    ``gold`` or ``pred``, as the manifest says where its tags come from.
``a | b``
    the first of these patterns that any file matches.

What is not there as it is written is looked for packed (``NAME.gz``).
"""

from __future__ import annotations

import glob
import os
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from math import prod
from pathlib import Path
from typing import NamedTuple

from spmrl_bench.storage.paths import check_path

#: Stands between alternatives.
ALTERNATIVE = " | "

_NUMBERS = re.compile(r"\{(\d+)\.\.(\d+)(\?)?\}")
_RANGE = re.compile(r"([1-9]\d*)?\.\.([1-9]\d*)?")
_NAMES = 100_000  # that one pattern may stand for
_DIGITS = 9
_WILD = 8  # folders of a path that may have a star


class MatchedFiles(NamedTuple):
    """The files of a list of patterns, in reading order, and the patterns without any."""

    paths: tuple[Path, ...]
    missing: tuple[str, ...]


def find_files(
    folder: Path, patterns: Iterable[str], *, exclude: Iterable[str] = (), tags: str = "gold"
) -> MatchedFiles:
    """Return the files that patterns mean, less those to exclude; ``{tags}`` stands for tags."""
    found = [_matches(folder, pattern, tags) for pattern in patterns]
    unwanted = {path for pattern in exclude for path in _matches(folder, pattern, tags).paths}
    return MatchedFiles(
        tuple(path for one in found for path in one.paths if path not in unwanted),
        tuple(name for one in found for name in one.missing),
    )


def check_pattern(text: str) -> str:
    """Return the text; ValueError if it is no pattern of paths that lead downwards."""
    for pattern in text.split(ALTERNATIVE):
        numbers = [match.groups() for match in _NUMBERS.finditer(pattern)]
        for first, last, _ in numbers:
            if max(len(first), len(last)) > _DIGITS or int(first) > int(last):
                raise ValueError(
                    f"{{{first[:12]}..{last[:12]}}}: expected two numbers in rising order, of "
                    f"{_DIGITS} digits at most"
                )
        names = prod(int(last) - int(first) + 1 for first, last, _ in numbers)
        if names > _NAMES:
            raise ValueError(f"stands for {names:,} files; {_NAMES:,} are allowed")
        if "**" in pattern:
            raise ValueError("has '**'; '*' stands for characters of one name")
        if sum("*" in part for part in pattern.split("/")) > _WILD:
            raise ValueError(f"has a '*' in more than {_WILD} names of a path")
        check_path(_NUMBERS.sub(lambda match: match[2], pattern.replace("*", "x")))
    return text


def check_range(text: str) -> tuple[int, int]:
    """Return the numbers of ``"1..9"`` or ``"1.."`` (to ``sys.maxsize``); ValueError else."""
    match = _RANGE.fullmatch(text) if len(text) < 2 * _DIGITS + 3 else None
    if match is None or match[0] == ".." or (match[2] and int(match[1] or 1) > int(match[2])):
        raise ValueError(
            "expected two numbers from 1 in rising order, such as '1..1000', or one of them, such "
            "as '1001..'"
        )
    return int(match[1] or 1), int(match[2] or sys.maxsize)


def some(names: Sequence[str], most: int = 8) -> str:
    """Return the first names, and how many more there are."""
    more = len(names) - most
    return ", ".join(names[:most]) + (f" and {more} more" if more > 0 else "")


def _matches(folder: Path, pattern: str, tags: str) -> MatchedFiles:
    pattern = pattern.replace("{tags}", tags)
    alternatives = pattern.split(ALTERNATIVE)
    for alternative in alternatives:
        paths: list[Path] = []
        missing: list[str] = []
        for name, needed in _numbered(alternative):
            found = _files_called(folder, name) or _files_called(folder, f"{name}.gz")
            paths += found
            if not found and needed:
                missing.append(name)
        if paths or (missing and len(alternatives) == 1):
            return MatchedFiles(tuple(paths), tuple(missing))
    return MatchedFiles((), (pattern,))


def _files_called(folder: Path, name: str) -> list[Path]:
    there: Iterable[Path] = [folder / name]
    if "*" in name:
        # '[' and '?' stand for themselves.
        there = folder.glob(glob.escape(name).replace("[*]", "*"))
    return sorted(path for path in there if path.is_file())


def subfolders(folder: Path, called: re.Pattern[str] | None = None) -> list[Path]:
    """Return the folders in a folder that are called so, sorted; none if it cannot be read."""
    try:
        names = sorted(_listed(folder, folder.stat().st_mtime_ns))
    except OSError:
        return []
    wanted = names if called is None else filter(called.fullmatch, names)
    return [path for path in (folder / name for name in wanted) if path.is_dir()]


@lru_cache(maxsize=1024)
def _listed(folder: Path, _changed: int) -> list[str]:
    return os.listdir(folder)


def _numbered(pattern: str) -> Iterator[tuple[str, bool]]:
    """Each name that numbers in braces stand for, and whether there must be such a file."""
    match = _NUMBERS.search(pattern)
    if match is None:
        yield pattern, True
        return
    first, last, optional = match.groups()
    for number in range(int(first), int(last) + 1):
        name = f"{pattern[: match.start()]}{number:0{len(first)}d}{pattern[match.end() :]}"
        for inner, needed in _numbered(name):
            yield inner, needed and not optional
