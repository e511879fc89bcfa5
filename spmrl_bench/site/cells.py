"""Tables of a page: a template writes them as HTML, and a script lets readers sort and filter."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from spmrl_bench.leaderboard.board import SeedMean, mean_text
from spmrl_bench.leaderboard.writing import Note
from spmrl_bench.scoring.metric import format_value


class Cell(NamedTuple):
    """What stands in a place of a table."""

    text: str = ""
    href: str = ""  # address of a page of the site
    mark: str = ""  # raised behind the text; what has one is set off
    tag: str = ""  # in small letters behind the text
    strong: bool = False
    numeric: bool = False  # set flush right, and sorted by value


Value = Cell | SeedMean | str | float | None


def cell(value: Value) -> Cell:
    """A cell as it is, or of a text, a number with two decimals, a whole number, or nothing."""
    if value is None or isinstance(value, str):
        return Cell(value or "")
    if isinstance(value, Cell):
        return value
    text = mean_text(value) if isinstance(value, SeedMean) else format_value(value)
    return Cell(text.replace("-", "\N{MINUS SIGN}"), numeric=True)


@dataclass(frozen=True)
class Table:
    """A table under a caption; the first cell of each row is its head."""

    name: str  # of its own on the page
    caption: str
    columns: Sequence[Value]
    rows: Sequence[Sequence[Value]]
    notes: Sequence[Note] = ()
    fixed: bool = False  # whether the order of the rows is part of what they say

    @cached_property
    def cells(self) -> list[list[Cell]]:
        """The heads of the columns in which something stands, then the rows.

        A column is numeric if a number stands in it.
        """
        rows = [list(map(cell, row)) for row in (self.columns, *self.rows)]
        columns = [own for own in zip(*rows, strict=True) if any(one.text for one in own[1:])]
        heads = [head._replace(numeric=any(one.numeric for one in rest)) for head, *rest in columns]
        return [heads, *map(list, list(zip(*columns, strict=True))[1:])]
