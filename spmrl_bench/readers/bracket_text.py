"""The text between brackets: its atoms and its regions.

Readers of bracket-like formats and the functions that tell these formats apart need the same
few things of a text, in time linear in its length, however many mistakes it has.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache

from spmrl_bench.readers.text import Places
from spmrl_bench.trees.escapes import ASCII_SPACE

_TRIM = " \t\n\r\f\v"
_BLANK = re.compile(f"[{ASCII_SPACE}]+")
_INNERMOST = re.compile(r"\(([^()]*)\)")


@lru_cache(maxsize=1 << 16)
def atoms(text: str) -> tuple[str, ...]:
    """What ASCII white space separates; other white space is part of words."""
    text = text.strip(_TRIM)
    return tuple(_BLANK.split(text)) if text else ()


def shown(text: str) -> str:
    """Text for a message: on one line and not long."""
    text = " ".join(atoms(text))
    return text if len(text) <= 40 else text[:37] + "..."


def unclosed(opened: Sequence[int], places: Places, limit: str) -> str:
    """What is wrong at the first of the offsets of brackets that are open at a limit."""
    if len(opened) == 1:
        return f"the tree that starts here is not closed before {limit}"
    line, column = places.of(opened[-1])
    return (
        f"the tree that starts here lacks {len(opened)} closing brackets before {limit}; "
        f"the innermost open one is at line {line} column {column}"
    )


def leaf_sizes(text: str) -> list[int]:
    """How many atoms each bracket without brackets in it has, which tells formats apart.

    Empty where the text does not start with a bracket.
    """
    if not text.lstrip("\ufeff" + _TRIM).startswith("("):
        return []
    return [len(atoms(leaf)) for leaf in _INNERMOST.findall(text)]


def lines(text: str) -> Iterator[tuple[int, int]]:
    """Offsets of the lines of a text, without their ends."""
    start = 0
    while start < len(text):
        end = text.find("\n", start)
        end = len(text) if end < 0 else end
        yield start, end
        start = end + 1


def regions_at_margin(text: str, opening: str = "(", start: int = 0) -> Iterator[tuple[int, int]]:
    """Offsets of the pieces of a text that begin with a bracket at the beginning of a line."""
    begin = f"\n{opening}"
    while (end := text.find(begin, start)) >= 0:
        yield start, end + 1
        start = end + 1
    yield start, len(text)


def one_tree_per_line(text: str) -> bool:
    """Whether every line closes the brackets that it opens, so that blank lines are sentences."""
    return all(line.count("(") == line.count(")") for line in text.split("\n"))
