"""The text between brackets: its atoms, its regions, and lines and columns in it.

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


class Places:
    """Lines and columns of one text, both from 1, each counted from the one asked for last.

    So all errors of a file together cost no more than reading it once, as long as their offsets
    mostly grow; :func:`spmrl_bench.readers.text.position` counts from the beginning.
    """

    def __init__(self, text: str) -> None:
        self._text = text
        self._offset = 0
        self._line = 1

    def of(self, offset: int) -> tuple[int, int]:
        """Line and column of an offset."""
        if offset >= self._offset:
            self._line += self._text.count("\n", self._offset, offset)
        else:
            self._line -= self._text.count("\n", offset, self._offset)
        self._offset = offset
        return self._line, offset - self._text.rfind("\n", 0, offset)
