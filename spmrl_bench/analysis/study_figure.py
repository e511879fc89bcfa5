"""A study as a picture: its scores, and its differences beside the published ones.

Scores of a paper are of another treebank, so only differences share an axis with them. Scores
are drawn as points, since their axis does not begin at zero; differences as bars from zero.
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from spmrl_bench.analysis.drawing import BLUE, GREEN, GREY, ORANGE, Figure
from spmrl_bench.analysis.study_plan import encoder_of
from spmrl_bench.analysis.study_run import StudyResult, estimate
from spmrl_bench.leaderboard.board import SeedMean

if TYPE_CHECKING:
    from spmrl_bench.analysis.study_table import Findings

# How far below and above the middle of its line a bar and a published figure stand, so that the
# one does not hide the deviation of the other.
LOWER, UPPER = 0.11, 0.27
# Points below the best score from which on a score would flatten the rest of a curve; of curves
# over time, which begin at nothing.
_FAR, _EARLY = 8, 30
_PUBLISHED: dict[str, Any] = {
    "marker": "D", "markersize": 5.5, "markerfacecolor": "white", "markeredgecolor": ORANGE,
    "markeredgewidth": 1.5, "linestyle": "none", "label": "published",
}  # fmt: skip
_LEGEND: dict[str, Any] = {
    "loc": "lower center", "bbox_to_anchor": (0.5, 1.0), "ncols": 2, "frameon": False,
    "fontsize": 8,
}  # fmt: skip


#: Label, means by place, and style.
Line = tuple[str, Mapping[float, SeedMean], Mapping[str, Any]]


def draw_study(findings: Findings) -> Figure:
    """The picture that the study asks for."""
    draw = {"systems": _systems, "windows": _windows, "parsing": _parsing, "minutes": _minutes}
    return draw[findings.work.study.figure](findings)


def _figure(findings: Findings, height: float, *marks: str) -> Figure:
    """An empty picture with title and caption."""
    seeds = "Small points: seeds; thin lines: one standard deviation."
    caption = (findings.caption, *marks, seeds if findings.several else "")
    return Figure(7.6, height, findings.title, " ".join(filter(None, caption)))


def _curves(
    figure: Figure, x: str, panels: Mapping[str, Sequence[Line]], far: float = math.inf
) -> list[Any]:
    """Pictures side by side of lines through means, with thin lines of a standard deviation.

    Points that are so ``far`` below the best one do not show.
    """
    drawn = list(figure.axes(1, len(panels), squeeze=False).flat)
    for axes, (y, lines) in zip(drawn, panels.items(), strict=True):
        for label, points, style in lines:
            means, sds = [one.mean for one in points.values()], [one.sd for one in points.values()]
            spread = [sd or 0.0 for sd in sds] if any(sds) else None
            thin: dict[str, Any] = {"elinewidth": 0.8, "capsize": 2, "markersize": 4.5}
            axes.errorbar([*points], means, yerr=spread, label=label, **thin, **style)
        known = [one.mean for _, points, _ in lines for one in points.values()]
        if known and min(known) <= max(known) - far:
            axes.set_ylim(max(known) - far, max(known) + 0.05 * far)
        axes.set_xlabel(x)
        axes.set_ylabel(y)
        axes.grid(axis="y")
    return drawn


def _systems(findings: Findings) -> Figure:
    """One line of the picture for each system."""
    study, rows = findings.work.study, findings.rows
    theirs = [study.published_difference(one.row) for one in rows]
    published = any(one is not None for one in theirs)
    marks = "Diamonds: published differences." if published else ""
    figure = _figure(findings, 0.75 + 0.34 * len(rows), marks)
    left, right = figure.axes(1, 2, sharey=True)
    for place, one in enumerate(rows):
        score, found = one.score, findings.differences.get(one.name)
        if score.sd is not None:
            seeds = list(one.scores.values())
            left.plot(seeds, [place] * len(seeds), "o", color=GREY, markersize=3, alpha=0.7)
        thin: dict[str, Any] = {"elinewidth": 1.0, "capsize": 2.5}
        left.errorbar(score.mean, place, xerr=score.sd, fmt="o", color=BLUE, markersize=6.5, **thin)
        if found is not None:
            error = {"ecolor": "black", **thin}
            low = place + LOWER
            bar = {"height": 0.46, "color": BLUE, "alpha": 0.8, "label": "here"}
            right.barh(low, found.mean, xerr=found.sd, error_kw=error, **bar)
        if (other := theirs[place]) is not None:
            right.plot(other, place - UPPER, **_PUBLISHED)
    left.set_yticks(range(len(rows)), [_name(one.name, study.reference) for one in rows])
    left.set_ylim(len(rows) - 0.5, -0.5)
    left.set_xlabel(f"{study.measure} (%)")
    right.axvline(0, color="black", linewidth=0.8)
    right.set_xlabel("difference to the reference (points)")
    right.tick_params(axis="y", length=0)
    left.grid(axis="both")
    right.grid(axis="x")
    for axes in (left, right):
        axes.locator_params(axis="x", nbins=5)
    if published:
        handles, labels = right.get_legend_handles_labels()
        once = dict(zip(labels, handles, strict=True))
        right.legend(once.values(), once.keys(), **_LEGEND)
    return figure


def _name(name: str, reference: str) -> str:
    """The name of a row; the reference is marked, and a long one takes two lines."""
    shown = textwrap.fill(name, len(name) // 2 + 6) if len(name) > 34 else name
    return f"{shown}\n(reference)" if name == reference else shown


def _windows(findings: Findings) -> Figure:
    """Curves over the size of a window."""
    study = findings.work.study
    marks = (
        "A window is the largest distance of two tokens that see each other; a relaxed one lets "
        "the first two and the last two tokens see all and be seen by all."
    )
    figure = _figure(findings, 3.3, marks)
    windows = [(*_window(one), one) for one in findings.rows]
    sizes = sorted({size for size, _, _ in windows if size is not None})
    places = {size: place for place, size in enumerate((*sizes, None))}
    scores: list[Line] = []
    differences: list[Line] = []
    zero = SeedMean(0.0, None, 1)
    for kind, colour, marker, shift in (
        ("strict", BLUE, "o", -0.06),
        ("relaxed", ORANGE, "s", 0.06),
    ):
        style = {"color": colour, "marker": marker}
        # A row without a window is the end of both curves, which stand side by side, so that the
        # deviation of one does not hide that of the other.
        own = {
            places[size] + shift: one
            for size, relaxed, one in windows
            if size is None or relaxed == (kind == "relaxed")
        }
        curve = dict(sorted(own.items()))
        ours = {x: findings.differences.get(one.name, zero) for x, one in curve.items()}
        theirs = {
            x: SeedMean(study.published_difference(one.row) or 0.0, None, 1)
            for x, one in curve.items()
            if one.row.published is not None
        }
        scores.append((kind, {x: one.score for x, one in curve.items()}, style))
        differences.append((f"{kind}, here", ours, style))
        if theirs:
            dashed = style | {"markerfacecolor": "white", "linestyle": "--"}
            differences.append((f"{kind}, published", theirs, dashed))
    panels = {f"{study.measure} (%)": scores, "difference to no window (points)": differences}
    for axes in _curves(figure, "window (tokens)", panels):
        axes.set_xticks(range(len(sizes) + 1), [*map(str, sizes), "∞"])
        axes.legend(**_LEGEND)
    return figure


def _window(one: StudyResult) -> tuple[int | None, bool]:
    """The window of a row, at test time or of its run, and whether it is relaxed."""
    limit, (_, encoder) = one.row.limit, encoder_of(one.config.model)
    if limit.window is None and hasattr(encoder, "relaxed_window"):
        return encoder.window, encoder.relaxed_window
    return limit.window, limit.relaxed


def _parsing(findings: Findings) -> Figure:
    """Curves over the values of a setting of parsing, one picture for each figure."""
    study, rows = findings.work.study, findings.rows
    beside = [one for one in study.beside if all(row.scores_by(one) for row in rows)]
    (setting,) = rows[0].row.parsing
    figure = _figure(findings, 2.9, f"Scores {_FAR} points below the best are not shown.")
    panels = {}
    for metric in beside or [study.metric]:
        points = dict(enumerate(estimate(one.scores_by(metric)) for one in rows))
        panels[f"dev {metric.title} (%)"] = [("", points, {"color": BLUE, "marker": "o"})]
    for axes in _curves(figure, setting, panels, _FAR):
        values = [f"{one.row.parsing[setting]:g}" for one in rows]
        axes.set_xticks(range(len(rows)), values, fontsize=6.5)
    return figure


def _minutes(findings: Findings) -> Figure:
    """Curves over the minutes of training, one for each system: the best score known by then."""
    study = findings.work.study
    lines = {one.name: line for one in findings.rows if (line := best_by_minute(one))}
    left_out = ", ".join(one.name for one in findings.rows if one.name not in lines)
    marks = (
        "A curve is the best score known by then, the mean of the seeds, after so many minutes of "
        "training and scoring dev; it ends where the first of its runs ended."
    )
    figure = _figure(findings, 3.4, marks, f"Without times: {left_out}." if left_out else "")
    curves: list[Line] = []
    for number, (name, line) in enumerate(lines.items()):
        shown = f"{name} (reference)" if name == study.reference else name
        style = {
            "color": (BLUE, ORANGE, GREEN, GREY)[number % 4],
            "linestyle": ("-", "--", ":")[number // 4 % 3],
            "drawstyle": "steps-post",
        }
        curves.append((shown, line, style))
    (axes,) = _curves(figure, "minutes", {f"{study.measure} (%)": curves}, _EARLY)
    axes.set_xlim(left=0)
    for minute in study.minutes:
        if minute <= axes.get_xlim()[1]:
            axes.axvline(minute, color=GREY, linewidth=0.6, zorder=0.5)
    if lines:
        axes.legend(loc="lower right", frameon=False, fontsize=8)
    return figure


def best_by_minute(one: StudyResult) -> dict[float, SeedMean]:
    """The best score known by then, a mean over a row's runs, at each of their evaluations.

    It begins when all runs have a score, and ends where the first of them ended. Empty where a run
    of an earlier version did not note its times.
    """
    times = [[seconds / 60 for seconds, _ in state.curve] for state in one.ended]
    if not all(times):
        return {}
    end = min(each[-1] for each in times)
    early = sorted({minutes for each in times for minutes in each if minutes <= end})
    known = {minutes: one.score_within(minutes) for minutes in early}
    # The deviations of many evaluations would hide the curve.
    return {minutes: replace(found, sd=None) for minutes, found in known.items() if found}
