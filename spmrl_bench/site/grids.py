"""Tables of a page: cells of text with links and marks, and what a reader may do with them.

A page without scripts shows a grid as it is. With scripts its columns can be sorted and, where it
says so, its rows filtered; for that the script reads the text of the cells, so nothing stands in a
page twice.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from spmrl_bench.leaderboard.board import SeedMean, mean_text
from spmrl_bench.scoring.metric import Number, format_value

MINUS = "\N{MINUS SIGN}"


class Cell(NamedTuple):
    """What stands in a place of a grid.

    Attributes:
        text: as it is read.
        href: address of the page that it leads to, from the root of the site; empty for none.
        mark: raised behind the text.
        strong: whether it stands out.
        band: whether it belongs to those that stand out.
        code: whether it is a command or a name in a file.
        tag: a word in small letters behind it.
    """

    text: str
    href: str = ""
    mark: str = ""
    strong: bool = False
    band: bool = False
    code: bool = False
    tag: str = ""


class Head(NamedTuple):
    """The head of a column.

    Attributes:
        title: of the column.
        numeric: whether it holds numbers, which are set flush right and sorted by value.
        choice: whether a reader may choose among its values.
        href: address of a page; empty for none.
        above: a word above the title.
    """

    title: str
    numeric: bool = False
    choice: bool = False
    href: str = ""
    above: str = ""


@dataclass(frozen=True)
class Grid:
    """A table.

    Attributes:
        name: of its own on the page.
        caption: what it shows.
        heads: of the columns; the first column has the heads of the rows.
        rows: cells.
        filtered: whether a reader may look for rows.
        sorted: whether a reader may sort it.
        notes: below it.
        downloads: addresses of files with its numbers, by their format.
    """

    name: str
    caption: str
    heads: Sequence[Head]
    rows: Sequence[Sequence[Cell]]
    filtered: bool = False
    sorted: bool = True
    notes: Sequence[str] = ()
    downloads: Sequence[tuple[str, str]] = field(default=())

    @property
    def is_sortable(self) -> bool:
        """Whether there is anything to sort."""
        return self.sorted and len(self.rows) > 1


def number(value: Number, signed: bool = False) -> Cell:
    """A figure: two decimals, or a whole number; empty for none."""
    if value is None:
        return Cell("")
    text = f"{value:+.2f}" if signed else format_value(value)
    return Cell(text.replace("-", MINUS))


def estimated(found: SeedMean | None) -> Cell:
    """A mean with its standard deviation."""
    return Cell(mean_text(found).replace("-", MINUS))


def whole(value: float | None) -> Cell:
    """A whole number; empty for none."""
    return Cell("" if value is None else f"{value:.0f}")
