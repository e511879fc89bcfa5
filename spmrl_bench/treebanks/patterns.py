"""The files that a manifest means.

Releases of one treebank differ in small ways: a folder in capitals or not, a full training
set or only the small one, files that are numbered with gaps. A manifest therefore names files
by patterns:

``*``
    any characters of a name; what matches is read in bytewise order.
``{0001..0159}``
    each of these numbers, as wide as the first; every file must be there. With a question
    mark, ``{001..270?}``, those that are there, and at least one.
``{tags}``
    ``gold`` or ``pred``, as the manifest says where its tags come from.
``a | b``
    the first of these patterns that any file matches.
"""

from __future__ import annotations

import glob
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from math import prod
from pathlib import Path

from spmrl_bench.storage.paths import check_path

#: Stands between alternatives.
ALTERNATIVE = " | "

_NUMBERS = re.compile(r"\{(\d+)\.\.(\d+)(\?)?\}")
_RANGE = re.compile(r"([1-9]\d*)?\.\.([1-9]\d*)?")
_NAMES = 100_000  # that one pattern may stand for
_DIGITS = 9
_WILD = 8  # folders of a path that may have a star


@dataclass(frozen=True, slots=True)
class MatchedFiles:
    """The files of a list of patterns, in reading order, and the patterns without any."""

    paths: tuple[Path, ...]
    missing: tuple[str, ...]


def find_files(
    folder: Path, patterns: Iterable[str], *, exclude: Iterable[str] = (), tags: str = "gold"
) -> MatchedFiles:
    """Return the files under a folder that some patterns mean, less those to exclude.

    ``tags`` is what ``{tags}`` stands for.
    """
    paths: list[Path] = []
    missing: list[str] = []
    for pattern in patterns:
        found, lacking = _first_present(folder, pattern.replace("{tags}", tags))
        paths += found
        missing += lacking
    unwanted = {path for pattern in exclude for path in _matches(folder, pattern)[0]}
    wanted = tuple(path for path in paths if path not in unwanted)
    return MatchedFiles(wanted, tuple(missing))


def check_pattern(text: str) -> str:
    """Return the text, if it is a pattern of paths that lead downwards, for a schema.

    Raises:
        ValueError: one of its alternatives is none, or stands for too many names.
    """
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


def check_range(text: str) -> tuple[int, int | None]:
    """Return the first number of ``"1..1000"`` or ``"1.."``, from 1, and the last one or None.

    Raises:
        ValueError: it is not of that form, or empty.
    """
    match = _RANGE.fullmatch(text) if len(text) < 2 * _DIGITS + 3 else None
    if match is None or match[0] == ".." or (match[2] and int(match[1] or 1) > int(match[2])):
        raise ValueError(
            "expected two numbers from 1 in rising order, such as '1..1000', or one of them, such "
            "as '1001..'"
        )
    return int(match[1] or 1), int(match[2]) if match[2] else None


def _first_present(folder: Path, pattern: str) -> tuple[list[Path], list[str]]:
    results = [_matches(folder, alternative) for alternative in pattern.split(ALTERNATIVE)]
    for found, lacking in results:
        if found:
            return found, lacking
    return [], [pattern] if len(results) > 1 else results[0][1]


def _matches(folder: Path, pattern: str) -> tuple[list[Path], list[str]]:
    """The files of a pattern without alternatives, and what should be there and is not."""
    paths: list[Path] = []
    missing: list[str] = []
    for name, needed in _numbered(pattern):
        if "*" in name:
            only_stars = glob.escape(name).replace("[*]", "*")  # '[' and '?' stand for themselves
            found = sorted(path for path in folder.glob(only_stars) if path.is_file())
        else:
            found = [folder / name] if (folder / name).is_file() else []
        paths += found
        if not found and needed:
            missing.append(name)
    return paths, missing if paths or missing else [pattern]


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
