"""A study as a figure: its scores, and its differences beside the published ones.

Scores of a paper are of another treebank, so only differences share an axis with them. Scores
are drawn as points, since their axis does not begin at zero; differences as bars from zero.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from spmrl_bench.analysis.drawing import BLUE, GREY, ORANGE, Sheet
from spmrl_bench.analysis.summary import Line, Summary

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
    bars = " Thin lines: one standard deviation." if several else ""
    return f"{summary.caption} {marks}{bars}"


# ---- Systems: one line of the figure for each ----


def _systems(summary: Summary, lines: Sequence[Line]) -> Sheet:
    study = summary.work.study
    published = any(line.published_difference is not None for line in lines)
    marks = "Small points: seeds; large points: means." + (
        " Diamonds: published differences." if published else ""
    )
    sheet = Sheet(7.6, 0.75 + 0.34 * len(lines), _title(summary), _caption(summary, marks))
    left, right = sheet.axes(2, sharey=True)
    for place, line in enumerate(lines):
        _seeds(left, line, place)
        if line.difference is not None:
            right.barh(place, line.difference.points, height=0.55, color=BLUE, alpha=0.8)
            if line.difference.spread is not None:
                right.errorbar(
                    line.difference.points,
                    place,
                    xerr=line.difference.spread,
                    color="black",
                    elinewidth=0.8,
                    capsize=2,
                )
        if line.published_difference is not None:
            right.plot(line.published_difference, place, **_PUBLISHED)
    left.set_yticks(range(len(lines)), [line.row.name for line in lines])
    left.set_ylim(len(lines) - 0.5, -0.5)
    left.set_xlabel(f"{study.metric} (%)")
    left.grid(axis="both")
    right.axvline(0, color="black", linewidth=0.8)
    right.set_xlabel(f"difference to '{study.reference}' (points)")
    right.grid(axis="x")
    right.tick_params(axis="y", length=0)
    handles = _handles(published)
    right.legend(handles=handles, loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=2)
    return sheet


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


def _handles(published: bool) -> list[Any]:
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    handles: list[Any] = [Patch(color=BLUE, alpha=0.8, label="here")]
    if published:
        handles.append(Line2D([], [], label="published", **_PUBLISHED))
    return handles


# ---- Windows: curves over their size ----


def _windows(summary: Summary, lines: Sequence[Line]) -> Sheet:
    study = summary.work.study
    published = any(line.row.published is not None for line in lines)
    marks = (
        "A window is the largest distance of two tokens that see each other; a relaxed one lets "
        "the first two and the last two tokens see all and be seen by all."
    )
    sheet = Sheet(7.6, 3.1, _title(summary), _caption(summary, marks))
    left, right = sheet.axes(2)
    sizes = sorted({size for size, _ in map(_window, lines) if size is not None})
    places = {size: place for place, size in enumerate(sizes)}
    open_place = len(sizes)
    for name, colour, marker in _SERIES:
        curve = [line for line in lines if _window(line)[0] is None]
        curve += [line for line in lines if _window(line)[1] == name]
        curve.sort(key=lambda line: places.get(_window(line)[0] or -1, open_place))
        xs = [places.get(_window(line)[0] or -1, open_place) for line in curve]
        style: dict[str, Any] = {"color": colour, "marker": marker, "markersize": 4.5}
        left.errorbar(
            xs, [line.mean for line in curve], yerr=_spreads(curve), capsize=2, label=name, **style
        )
        for x, line in zip(xs, curve, strict=True):
            if line.measured is not None and line.spread is not None:
                seeds = line.measured.f1
                left.plot([x] * len(seeds), seeds, ".", color=GREY, markersize=3, alpha=0.6)
        here = [line.difference.points if line.difference else 0.0 for line in curve]
        right.plot(xs, here, label=f"{name}, here", **style)
        if published:
            theirs = [(x, line) for x, line in zip(xs, curve, strict=True) if _has_published(line)]
            right.plot(
                [x for x, _ in theirs],
                [line.published_difference or 0.0 for _, line in theirs],
                label=f"{name}, published",
                **(style | {"markerfacecolor": "white"}),
                linestyle="--",
            )
    left.set_ylabel(f"{study.metric} (%)")
    right.set_ylabel(f"difference to '{study.reference}' (points)")
    right.axhline(0, color="black", linewidth=0.8)
    for axes in (left, right):
        axes.set_xticks(range(open_place + 1), [*map(str, sizes), "∞"])
        axes.set_xlabel("window (tokens)")
        axes.grid(axis="y")
        axes.legend(loc="lower right")
    return sheet


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


def _title(summary: Summary) -> str:
    return f"{summary.work.study.title}: {summary.work.treebank.name}"
