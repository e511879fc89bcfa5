"""What pages are made of: tables, which a template writes, and scores as pictures.

A script lets readers sort and filter tables. Pictures are SVG that takes the colours of its page,
by day and by night. Words stay words, for whoever searches, copies or enlarges; series differ by
the shape of their marks too. The axis of scores does not begin at zero, so scores are points.
"""

from __future__ import annotations

import hashlib
import io
import re
import textwrap
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

from markupsafe import Markup

from spmrl_bench.analysis.drawing import STYLE, load_matplotlib
from spmrl_bench.leaderboard.board import SeedMean, mean_text
from spmrl_bench.leaderboard.tables import HeadToHead
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
        """The heads of the columns in which something stands, then the rows. A column is numeric if
        a number stands in it."""
        rows = [list(map(cell, row)) for row in (self.columns, *self.rows)]
        columns = [own for own in zip(*rows, strict=True) if any(one.text for one in own[1:])]
        heads = [head._replace(numeric=any(one.numeric for one in rest)) for head, *rest in columns]
        return [heads, *map(list, list(zip(*columns, strict=True))[1:])]


# Pictures -------------------------------------------------------------------------------------

MOST_SERIES = 5  # more cannot be told apart
_MARKERS = "os^DX"
# Words, lines and the series as they are drawn, for light grounds; in their places, what is said
# on dark ones, where a picture has two series, and in a page.
_DRAWN = ("#1c2430", "#d8dde3", "#1b5a86", "#b3480f", "#2f7d46", "#7a4a9e", "#6b6b6b")
_DARK = ("#e4e8ee", "#353e49", "#85c0ea", "#f2a36b")
_IN_PAGE = ("currentColor", "var(--line)", *(f"var(--c{number})" for number in range(5)))
_INK, _LINE, *_SERIES = _DRAWN
_STYLE = STYLE | {
    "font.sans-serif": ["DejaVu Sans"],
    "text.color": _INK,
    "axes.labelcolor": _INK,
    "axes.edgecolor": _LINE,
    "axes.grid": True,
    "grid.color": _LINE,
    "xtick.color": _INK,
    "ytick.color": _INK,
    "legend.frameon": False,
    "lines.markersize": 5,
}
_WIDTH = 4.4  # inches: a page is as wide as a phone, or wider


class Chart(NamedTuple):
    """A picture, what it shows, and all of it in words."""

    title: str
    words: str
    svg: Markup


def chart(
    title: str,
    ticks: Mapping[str, str],
    series: Mapping[str, Mapping[str, float | None]],
    score: str,
) -> Chart:
    """Scores of at most :data:`MOST_SERIES` series in rows; ``ticks`` are what these are called, by
    the keys of the scores, and ``score`` says what the scores are."""
    rows = {key: place for place, key in enumerate(ticks)}
    known = {
        name: {key: points[key] for key in rows if points.get(key) is not None}
        for name, points in series.items()
    }
    lines = sum(1 + len(name) // 50 for name in series)
    with _axes(0.6 + 0.2 * len(rows) + 0.17 * lines) as (figure, axes):
        for (name, points), colour, marker in zip(known.items(), _SERIES, _MARKERS, strict=False):
            places = [rows[key] for key in points]
            label = textwrap.fill(_plain(name), 50)
            axes.plot(list(points.values()), places, marker, color=colour, label=label)
        axes.set_yticks(range(len(rows)), list(map(_plain, ticks.values())))
        axes.set_ylim(len(rows) - 0.5, -0.5)
        axes.set_xlabel(score)
        svg = _coloured(_svg(figure, title), _IN_PAGE)
    told = "; ".join(
        f"{name}: {', '.join(f'{key} {value:.1f}' for key, value in points.items())}"
        for name, points in known.items()
    )
    return Chart(title, f"{title}. {told}.", Markup(svg))


def board(rows: Sequence[HeadToHead]) -> dict[str, str]:
    """Our best and the best of others on each treebank, as SVG: of a page, by the key ``""``, and
    of files for ``light`` and ``dark`` grounds."""
    with _axes(0.8 + 0.27 * len(rows)) as (figure, axes):
        places = range(len(rows))
        ours, others = [row.our_test for row in rows], [row.their_test for row in rows]
        axes.hlines(places, ours, others, color=_LINE, linewidth=2)
        axes.plot(ours, places, "o", color=_SERIES[0], label="our best")
        axes.plot(others, places, "D", color=_SERIES[1], label="best of the others")
        for place, row in enumerate(rows):
            mark = "" if row.ahead == "neither" else "*"
            text = f"{row.difference:+.1f}{mark}".replace("-", "\N{MINUS SIGN}")
            axes.annotate(text, (1.02, place), xycoords=("axes fraction", "data"), va="center")
        axes.set_yticks(places, [_plain(f"{row.treebank} {row.figure}") for row in rows])
        axes.set_ylim(len(rows) - 0.4, -0.6)
        axes.grid(visible=False, axis="y")
        axes.set_xlabel("score on test (* p < 0.05)")
        drawn = _svg(figure, "board", ncols=2)
    return {"": _coloured(drawn, _IN_PAGE), "light": drawn, "dark": _coloured(drawn, _DARK)}


@contextmanager
def _axes(height: float) -> Iterator[tuple[Any, Any]]:
    matplotlib = load_matplotlib()
    with matplotlib.rc_context(_STYLE), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of letters that the font has not, which a browser has
        figure = matplotlib.figure.Figure(figsize=(_WIDTH, height), layout="constrained")
        yield figure, figure.subplots()


def _svg(figure: Any, name: str, ncols: int = 1) -> str:
    """The picture with its legend, as wide as there is room, and with ids of its own in a page."""
    text = io.StringIO()
    figure.legend(loc="outside lower left", ncols=ncols)
    figure.savefig(text, format="svg", transparent=True, metadata={"Date": None})
    svg = text.getvalue()
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"<(metadata|style)\b.*?</\1>", "", svg, flags=re.DOTALL)
    svg = re.sub(r'<g id="[^"]*">', "<g>", svg).replace("'DejaVu Sans'", "system-ui")
    mark = hashlib.sha256(_plain(name).encode()).hexdigest()[:8]
    return re.sub(r'(?<=id=")|(?<=href="#)|(?<=url\(#)', f"c{mark}-", svg)


def _coloured(svg: str, colours: Sequence[str]) -> str:
    for own, other in zip(_DRAWN, colours, strict=False):
        svg = svg.replace(own, other)
    return svg


def _plain(text: str) -> str:
    """Text that a file can have: of what is none, marks stand in its place."""
    return re.sub(r"[\x00-\x08\x0b-\x1f]", "?", text.encode("utf-8", "replace").decode())
