"""A study as a picture: its scores, and its differences beside the published ones.

Scores of a paper are of another treebank, so only differences share an axis with them. Scores
are drawn as points, since their axis does not begin at zero; differences as bars from zero.
"""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from spmrl_bench.analysis.drawing import BLUE, GREEN, GREY, ORANGE, Figure
from spmrl_bench.analysis.study_run import StudyResult, estimate
from spmrl_bench.leaderboard.board import SeedMean

if TYPE_CHECKING:
    from spmrl_bench.analysis.study_table import Findings

# How far a bar and a published figure stand from the middle of a line, so that both are seen.
LOWER, UPPER = 0.11, 0.27
# Points below the best score from which on a score would flatten the rest of a curve; of curves
# over time, which begin at nothing.
_FAR, _EARLY = 8, 30
_PUBLISHED: dict[str, Any] = {
    "marker": "D", "markersize": 5.5, "markerfacecolor": "white", "markeredgecolor": ORANGE,
    "markeredgewidth": 1.5, "linestyle": "none",
}  # fmt: skip


def _figure(findings: Findings, height: float, *marks: str) -> Figure:
    seeds = "Small points: seeds; thin lines: one standard deviation."
    caption = (findings.caption, *marks, seeds if findings.several else "")
    return Figure(7.6, height, findings.title, " ".join(filter(None, caption)))


def _curve(axes: Any, points: Mapping[Any, SeedMean], far: float, **style: Any) -> None:
    """A line through means, with thin lines of a standard deviation.

    Points that are so ``far`` below the best one of all lines do not show.
    """
    means = [one.mean for one in points.values()]
    spread = [one.sd or 0.0 for one in points.values()]
    thin: dict[str, Any] = {"elinewidth": 0.8, "capsize": 2, "markersize": 4.5}
    axes.errorbar([*points], means, yerr=spread if any(spread) else None, **thin | style)
    highest = axes.dataLim.y1
    if axes.dataLim.y0 <= highest - far:
        axes.set_ylim(highest - far, highest + 0.05 * far)
    axes.grid(axis="y")


def _systems(findings: Findings) -> Figure:
    study, rows = findings.work.study, findings.rows
    theirs = [study.published_difference(one.row) for one in rows]
    marks = "Bars: differences here; diamonds: published ones." if any(theirs) else ""
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
            bar = {"height": 0.46, "color": BLUE, "alpha": 0.8}
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
    return figure


def _name(name: str, reference: str) -> str:
    """The name of a row; the reference is marked, and a long one takes two lines."""
    shown = textwrap.fill(name, len(name) // 2 + 6) if len(name) > 34 else name
    return f"{shown}\n(reference)" if name == reference else shown


def _parsing(findings: Findings) -> Figure:
    """Curves over the values of a setting of parsing, one picture for each figure."""
    study, rows = findings.work.study, findings.rows
    beside = [one for one in study.beside if all(row.scores_by(one) for row in rows)]
    (setting,) = rows[0].row.parsing
    metrics = beside or [study.metric]
    figure = _figure(findings, 2.9, f"Scores {_FAR} points below the best are not shown.")
    for axes, metric in zip(figure.axes(1, len(metrics), squeeze=False).flat, metrics, strict=True):
        points = dict(enumerate(estimate(one.scores_by(metric)) for one in rows))
        _curve(axes, points, _FAR, color=BLUE, marker="o")
        values = [f"{one.row.parsing[setting]:g}" for one in rows]
        axes.set_xticks(range(len(rows)), values, fontsize=6.5)
        axes.set_xlabel(setting)
        axes.set_title(f"dev {metric.title} (%)", fontsize=9)
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
    axes = figure.axes(1, 1)
    for number, (name, line) in enumerate(lines.items()):
        style = {
            "color": (BLUE, ORANGE, GREEN, GREY)[number % 4],
            "linestyle": ("-", "--", ":")[number // 4 % 3],
            "label": f"{name} (reference)" if name == study.reference else name,
        }
        _curve(axes, line, _EARLY, drawstyle="steps-post", **style)
    axes.set_xlabel("minutes")
    axes.set_ylabel(f"{study.measure} (%)")
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


_DRAW = {"systems": _systems, "parsing": _parsing, "minutes": _minutes}


def draw_study(findings: Findings) -> Figure:
    """What the study asks for."""
    return _DRAW[findings.work.study.figure](findings)
