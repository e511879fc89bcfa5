"""The text between brackets: its atoms and its regions.

Readers of bracket-like formats and the functions that tell these formats apart need the same
few things of a text, in time linear in its length, however many mistakes it has.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

from spmrl_bench.trees.brackets import ASCII_SPACE

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


def leaf_sizes(text: str) -> list[int]:
    """How many atoms each bracket without brackets in it has, which tells formats apart.

    Empty where the text does not start with a bracket.
    """
    if not text.lstrip("\ufeff" + _TRIM).startswith("("):
        return []
    return [len(atoms(leaf)) for leaf in _INNERMOST.findall(text)]


def regions_at_margin(text: str) -> Iterator[tuple[int, int]]:
    """Offsets of the pieces of a text that begin with a bracket at the beginning of a line."""
    start = 0
    while (end := text.find("\n(", start)) >= 0:
        yield start, end + 1
        start = end + 1
    yield start, len(text)
