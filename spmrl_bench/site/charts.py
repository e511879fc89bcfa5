"""Scores as pictures: SVG that stands in a page and takes its colours, by day and by night.

Words stay words, for whoever searches, copies or enlarges; series differ by the shape of their
marks too. The axis of scores does not begin at zero, so scores are points, joined by lines where
what lies between them means something.
"""

from __future__ import annotations

import hashlib
import io
import math
import re
import textwrap
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

from markupsafe import Markup

from spmrl_bench.analysis.drawing import load_matplotlib
from spmrl_bench.leaderboard.tables import HeadToHead

MOST_SERIES = 5  # more cannot be told apart
_MARKERS = "os^DX"
# Stand for what the page, or a version of the file, says: words, lines, and the series.
_INK, _LINE, *_SERIES = (f"#0101{number:02x}" for number in range(1, 8))
_IN_PAGE = {
    _INK: "currentColor",
    _LINE: "var(--line)",
    **{own: f"var(--c{number})" for number, own in enumerate(_SERIES)},
}
#: Colours of files, for light and dark grounds.
GROUNDS = {
    "light": dict(zip(_IN_PAGE, ("#1c2430", "#d8dde3", "#1b5a86", "#b3480f"), strict=False)),
    "dark": dict(zip(_IN_PAGE, ("#e4e8ee", "#353e49", "#85c0ea", "#f2a36b"), strict=False)),
}
_STYLE: dict[str, Any] = {
    "font.size": 9,
    "font.sans-serif": ["DejaVu Sans"],
    "text.color": _INK,
    "axes.labelcolor": _INK,
    "axes.edgecolor": _LINE,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": _LINE,
    "xtick.color": _INK,
    "ytick.color": _INK,
    "legend.frameon": False,
    "lines.markersize": 5,
    "svg.hashsalt": "spmrl-bench",  # else names inside the file are drawn at random
    "svg.fonttype": "none",
    "text.parse_math": False,
}
_SPACES = 'xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink"'
_FONT = "system-ui, sans-serif"
_WIDTH = 4.4  # inches: a page is as wide as a phone, or wider


class Chart(NamedTuple):
    """A picture, what it shows, and all of it in words."""

    title: str
    words: str
    svg: Markup
    note: str = ""


def chart(
    title: str,
    about: str,
    ticks: Iterable[Any],
    series: Mapping[str, Mapping[Any, float | None]],
    *,
    score: str,
    rows: bool = False,
    logarithmic: bool = False,
    note: str = "",
) -> Chart:
    """Scores of series over ticks, joined by lines; or points in rows, one for each tick.

    Args:
        about: what the ticks are.
        ticks: keys of the scores in their order; numbers where the axis is logarithmic.
        series: scores by key, of at most :data:`MOST_SERIES`.
        score: what the scores are.
    """
    at = {key: math.log(key) if logarithmic else place for place, key in enumerate(ticks)}
    names = {one: textwrap.fill(_plain(one), 48) for one in series}
    known = {
        one: {key: points[key] for key in at if points.get(key) is not None}
        for one, points in series.items()
    }
    height = (0.5 + 0.2 * len(at) if rows else 2.3) + 0.16 * len(
        "\n".join(names.values()).split("\n")
    )
    with _axes(height) as (figure, axes):
        for (one, points), colour, marker in zip(known.items(), _SERIES, _MARKERS, strict=False):
            pair = [at[key] for key in points], list(points.values())
            line = "" if rows else "-"
            axes.plot(
                *pair[:: -1 if rows else 1], line, marker=marker, color=colour, label=names[one]
            )
        keys, scores = (axes.yaxis, axes.xaxis) if rows else (axes.xaxis, axes.yaxis)
        keys.set_ticks(list(at.values()), [_plain(str(key)) for key in at])
        keys.set_label_text(about)
        keys.grid(rows)
        scores.set_label_text(score)
        if rows:
            axes.invert_yaxis()
        svg = _svg(figure, _IN_PAGE, title)
    told = "; ".join(
        f"{one}: {', '.join(f'{key} {value:.1f}' for key, value in points.items())}"
        for one, points in known.items()
    )
    return Chart(title, f"{score} by {about}. {told}.", Markup(svg), note)


def board(rows: Sequence[HeadToHead], ground: str = "") -> str:
    """Our best and the best of others on each treebank, as SVG.

    Args:
        ground: ``light`` or ``dark`` for a file; empty in a page.
    """
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
        return _svg(figure, GROUNDS[ground] if ground else _IN_PAGE, "board")


@contextmanager
def _axes(height: float) -> Iterator[tuple[Any, Any]]:
    matplotlib = load_matplotlib()
    with matplotlib.rc_context(_STYLE), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of letters that the font has not, which a browser has
        figure = matplotlib.figure.Figure(figsize=(_WIDTH, height), layout="constrained")
        yield figure, figure.subplots()


def _svg(figure: Any, colours: Mapping[str, str], name: str) -> str:
    """The picture with its legend, without a size, and with ids that are its own in a page."""
    text = io.StringIO()
    figure.legend(loc="outside lower left", ncols=1 if name != "board" else 2)
    figure.savefig(text, format="svg", transparent=True, metadata={"Date": None})
    _, _, svg = text.getvalue().partition("<svg")
    box = re.search(r'viewBox="[^"]*"', svg)[0]
    svg = f"<svg {_SPACES} {box}>{svg.partition('>')[2]}"
    svg = re.sub(r"<(metadata|style)\b.*?</\1>", "", svg, flags=re.DOTALL)
    svg = re.sub(r'<g id="[^"]*">', "<g>", svg).replace("'DejaVu Sans', sans-serif", _FONT)
    mark = hashlib.sha256(_plain(name).encode()).hexdigest()[:8]
    svg = re.sub(r'(?<=id=")|(?<=href="#)|(?<=url\(#)', f"c{mark}-", svg)
    for own, other in colours.items():
        svg = svg.replace(own, other)
    return svg


def _plain(text: str) -> str:
    """Text that a file can have: of what is none, marks stand in its place."""
    return re.sub(r"[\x00-\x08\x0b-\x1f]", "?", text.encode("utf-8", "replace").decode())
