"""A study as a figure: its scores, and its differences beside the published ones.

Scores of a paper are of another treebank, so only differences share an axis with them. Scores
are drawn as points, since their axis does not begin at zero; differences as bars from zero.
"""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import Any

from spmrl_bench.analysis.drawing import BLUE, GREY, ORANGE, Sheet
from spmrl_bench.analysis.summary import Line, Summary

# How far below and above the middle of its line a bar and a published figure stand, so that the
# one does not hide the spread of the other.
LOWER, UPPER = 0.11, 0.27

_SERIES = (("strict", BLUE, "o"), ("relaxed", ORANGE, "s"))


def draw_study(summary: Summary) -> Sheet:
    """The figure that the study asks for.

    Raises:
        SpmrlError: matplotlib is not installed.
    """
    lines = [line for line in summary.lines if line.measured is not None]
    if summary.work.study.figure == "windows":
        return _windows(summary, lines)
    return _systems(summary, lines)


def _caption(summary: Summary, marks: str) -> str:
    several = any(line.spread is not None for line in summary.lines)
    seeds = "Small points: seeds; thin lines: one standard deviation." if several else ""
    return " ".join(filter(None, (summary.caption, marks, seeds)))


# ---- Systems: one line of the figure for each ----


def _systems(summary: Summary, lines: Sequence[Line]) -> Sheet:
    study = summary.work.study
    published = any(line.published_difference is not None for line in lines)
    marks = "Diamonds: published differences." if published else ""
    sheet = Sheet(7.6, 0.75 + 0.34 * len(lines), _title(summary), _caption(summary, marks))
    left, right = sheet.axes(2, sharey=True)
    for place, line in enumerate(lines):
        _seeds(left, line, place)
        if line.difference is not None:
            right.barh(place + LOWER, line.difference.points, height=0.46, color=BLUE, alpha=0.8)
            if line.difference.spread is not None:
                right.errorbar(
                    line.difference.points,
                    place + LOWER,
                    xerr=line.difference.spread,
                    color="black",
                    elinewidth=0.8,
                    capsize=2,
                )
        if line.published_difference is not None:
            right.plot(line.published_difference, place - UPPER, **_PUBLISHED)
    names = [_name(line, study.reference) for line in lines]
    left.set_yticks(range(len(lines)), names)
    left.set_ylim(len(lines) - 0.5, -0.5)
    left.set_xlabel(f"{study.metric} (%)")
    left.grid(axis="both")
    right.axvline(0, color="black", linewidth=0.8)
    right.set_xlabel("difference to the reference (points)")
    right.grid(axis="x")
    for axes in (left, right):
        axes.locator_params(axis="x", nbins=5)
    right.tick_params(axis="y", length=0)
    if published:
        right.legend(
            handles=_handles(),
            loc="lower center",
            bbox_to_anchor=(0.5, 1.0),
            ncols=2,
            frameon=False,
            fontsize=8,
        )
    return sheet


def _name(line: Line, reference: str) -> str:
    """The name of a row; the reference is marked, and a long one takes two lines."""
    name = line.row.name
    if len(name) > 34:
        name = textwrap.fill(name, len(name) // 2 + 6)
    return f"{name}\n(reference)" if line.row.name == reference else name


_PUBLISHED: dict[str, Any] = {
    "marker": "D", "markersize": 5.5, "markerfacecolor": "white", "markeredgecolor": ORANGE,
    "markeredgewidth": 1.5, "linestyle": "none",
}  # fmt: skip


def _seeds(axes: Any, line: Line, place: int) -> None:
    """Scores of the seeds, their mean and standard deviation on one line."""
    if line.measured is None:
        return
    scores = line.measured.f1
    if line.spread is not None:
        axes.plot(scores, [place] * len(scores), "o", color=GREY, markersize=3, alpha=0.7)
        axes.errorbar(line.mean, place, xerr=line.spread, color=BLUE, elinewidth=1.2, capsize=2.5)
    axes.plot(line.mean, place, "o", color=BLUE, markersize=6.5, alpha=0.9)


def _handles() -> list[Any]:
    """What the marks of the differences mean."""
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    return [
        Patch(color=BLUE, alpha=0.8, label="here"),
        Line2D([], [], label="published", **_PUBLISHED),
    ]


# ---- Windows: curves over their size ----


def _windows(summary: Summary, lines: Sequence[Line]) -> Sheet:
    study = summary.work.study
    marks = (
        "A window is the largest distance of two tokens that see each other; a relaxed one lets "
        "the first two and the last two tokens see all and be seen by all."
    )
    sheet = Sheet(7.6, 3.3, _title(summary), _caption(summary, marks))
    left, right = sheet.axes(2)
    sizes = sorted({size for size, _ in map(_window, lines) if size is not None})
    for number, (kind, colour, marker) in enumerate(_SERIES):
        curve = _curve(lines, kind)
        # Side by side, so that the spread of one does not hide that of the other.
        shift = 0.12 * number - 0.06
        xs = [_place(line, sizes) + shift for line in curve]
        style: dict[str, Any] = {"color": colour, "marker": marker, "markersize": 4.5}
        spread: dict[str, Any] = {"elinewidth": 0.8, "capsize": 2}
        left.errorbar(
            xs, [line.mean for line in curve], yerr=_spreads(curve), label=kind, **style, **spread
        )
        for x, line in zip(xs, curve, strict=True):
            if line.measured is not None and line.spread is not None:
                seeds = line.measured.f1
                left.plot([x] * len(seeds), seeds, ".", color=GREY, markersize=3.5, alpha=0.8)
        right.errorbar(
            xs,
            [line.difference.points if line.difference else 0.0 for line in curve],
            yerr=_difference_spreads(curve),
            label=f"{kind}, here",
            **style,
            **spread,
        )
        theirs = [(x, line) for x, line in zip(xs, curve, strict=True) if _has_published(line)]
        if theirs:
            right.plot(
                [x for x, _ in theirs],
                [line.published_difference or 0.0 for _, line in theirs],
                label=f"{kind}, published",
                linestyle="--",
                **(style | {"markerfacecolor": "white"}),
            )
    left.set_ylabel(f"{study.metric} (%)")
    right.set_ylabel("difference to no window (points)")
    right.axhline(0, color="black", linewidth=0.8, zorder=0.5)
    for axes in (left, right):
        axes.set_xticks(range(len(sizes) + 1), [*map(str, sizes), "∞"])
        axes.set_xlabel("window (tokens)")
        axes.grid(axis="y")
        axes.legend(
            loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=2, frameon=False, fontsize=8
        )
    return sheet


def _curve(lines: Sequence[Line], kind: str) -> list[Line]:
    """The rows of one kind of window from the smallest on; without a window is of both kinds."""
    chosen = [line for line in lines if _window(line)[0] is None or _window(line)[1] == kind]
    return sorted(chosen, key=lambda line: (_window(line)[0] is None, _window(line)[0]))


def _place(line: Line, sizes: Sequence[int]) -> int:
    """Where a row stands on the axis, which has a place for each size and one for no window."""
    size = _window(line)[0]
    return len(sizes) if size is None else sizes.index(size)


def _window(line: Line) -> tuple[int | None, str]:
    """The window of a row, at test time or of its run, and of which kind it is."""
    limit = line.row.limit
    if limit.window is not None:
        return limit.window, "relaxed" if limit.relaxed else "strict"
    if line.measured is None:
        return None, "strict"
    model = line.measured.config.model
    return model.attention_window, "relaxed" if model.relaxed_window else "strict"


def _has_published(line: Line) -> bool:
    return line.row.published is not None


def _spreads(lines: Sequence[Line]) -> list[float] | None:
    spreads = [line.spread for line in lines if line.spread is not None]
    return spreads if len(spreads) == len(lines) else None


def _difference_spreads(lines: Sequence[Line]) -> list[float] | None:
    """Of the differences; the reference row has none to itself."""
    found = [(line.difference.spread if line.difference else 0.0) for line in lines]
    known = [spread for spread in found if spread is not None]
    return known if len(known) == len(found) and any(known) else None


def _title(summary: Summary) -> str:
    return f"{summary.work.study.title}: {summary.work.treebank.name}"
