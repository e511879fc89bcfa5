"""A study as a picture: its scores, and its differences beside the published ones.

Scores of a paper are of another treebank, so only differences share an axis with them. Scores
are drawn as points, since their axis does not begin at zero; differences as bars from zero.
"""

from __future__ import annotations

import textwrap
from typing import Any

from spmrl_bench.analysis.drawing import BLUE, GREEN, GREY, ORANGE, Sheet
from spmrl_bench.analysis.findings import Findings
from spmrl_bench.analysis.run_study import Measured, estimate
from spmrl_bench.analysis.trials import Attentive, encoder_of

# How far below and above the middle of its line a bar and a published figure stand, so that the
# one does not hide the deviation of the other.
LOWER, UPPER = 0.11, 0.27

# Points below the best score from which on a score would flatten the rest of a curve.
_FAR = 8
# The same of curves over time, which begin at nothing.
_EARLY = 30

_SERIES = (("strict", BLUE, "o"), ("relaxed", ORANGE, "s"))
_PUBLISHED: dict[str, Any] = {
    "marker": "D", "markersize": 5.5, "markerfacecolor": "white", "markeredgecolor": ORANGE,
    "markeredgewidth": 1.5, "linestyle": "none",
}  # fmt: skip
_LEGEND: dict[str, Any] = {
    "loc": "lower center", "bbox_to_anchor": (0.5, 1.0), "ncols": 2, "frameon": False,
    "fontsize": 8,
}  # fmt: skip


def draw_study(findings: Findings) -> Sheet:
    """The picture that the study asks for."""
    draw = {
        "systems": _systems,
        "windows": _windows,
        "parsing": _over_parsing,
        "minutes": _over_minutes,
    }
    return draw[findings.work.study.figure](findings)


def _sheet(findings: Findings, height: float, marks: str) -> Sheet:
    """An empty picture with title and caption."""
    seeds = "Small points: seeds; thin lines: one standard deviation."
    caption = (findings.caption, marks, seeds if findings.several else "")
    return Sheet(7.6, height, findings.title, " ".join(filter(None, caption)))


# ---- Systems: one line of the picture for each ----


def _systems(findings: Findings) -> Sheet:
    study, rows = findings.work.study, findings.rows
    published = any(study.published_difference(one.row) is not None for one in rows)
    marks = "Diamonds: published differences." if published else ""
    sheet = _sheet(findings, 0.75 + 0.34 * len(rows), marks)
    left, right = sheet.axes(1, 2, sharey=True)
    for place, one in enumerate(rows):
        score, found = one.score, findings.differences.get(one.name)
        if score.sd is not None:
            seeds = list(one.scores.values())
            left.plot(seeds, [place] * len(seeds), "o", color=GREY, markersize=3, alpha=0.7)
            thin: dict[str, Any] = {"color": BLUE, "elinewidth": 1.2, "capsize": 2.5}
            left.errorbar(score.mean, place, xerr=score.sd, **thin)
        left.plot(score.mean, place, "o", color=BLUE, markersize=6.5, alpha=0.9)
        if found is not None:
            low = place + LOWER
            right.barh(low, found.mean, height=0.46, color=BLUE, alpha=0.8)
            if found.sd is not None:
                thin = {"color": "black", "elinewidth": 0.8, "capsize": 2}
                right.errorbar(found.mean, low, xerr=found.sd, **thin)
        theirs = study.published_difference(one.row)
        if theirs is not None:
            right.plot(theirs, place - UPPER, **_PUBLISHED)
    left.set_yticks(range(len(rows)), [_name(one.name, study.reference) for one in rows])
    left.set_ylim(len(rows) - 0.5, -0.5)
    left.set_xlabel(f"{study.measure} (%)")
    left.grid(axis="both")
    right.axvline(0, color="black", linewidth=0.8)
    right.set_xlabel("difference to the reference (points)")
    right.grid(axis="x")
    for axes in (left, right):
        axes.locator_params(axis="x", nbins=5)
    right.tick_params(axis="y", length=0)
    if published:
        right.legend(handles=_handles(), **_LEGEND)
    return sheet


def _name(name: str, reference: str) -> str:
    """The name of a row; the reference is marked, and a long one takes two lines."""
    shown = textwrap.fill(name, len(name) // 2 + 6) if len(name) > 34 else name
    return f"{shown}\n(reference)" if name == reference else shown


def _handles() -> list[Any]:
    """What the marks of the differences mean."""
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    return [
        Patch(color=BLUE, alpha=0.8, label="here"),
        Line2D([], [], label="published", **_PUBLISHED),
    ]


# ---- Windows: curves over their size ----


def _windows(findings: Findings) -> Sheet:
    study = findings.work.study
    marks = (
        "A window is the largest distance of two tokens that see each other; a relaxed one lets "
        "the first two and the last two tokens see all and be seen by all."
    )
    sheet = _sheet(findings, 3.3, marks)
    left, right = sheet.axes(1, 2)
    windows = [(*_window(one), one) for one in findings.rows]
    sizes = sorted({size for size, _, _ in windows if size is not None})
    places = {size: place for place, size in enumerate((*sizes, None))}
    thin: dict[str, Any] = {"elinewidth": 0.8, "capsize": 2}
    for number, (kind, colour, marker) in enumerate(_SERIES):
        style: dict[str, Any] = {"color": colour, "marker": marker, "markersize": 4.5}
        # A row without a window is the end of both curves, which stand side by side, so that the
        # deviation of one does not hide that of the other.
        curve = sorted(
            ((places[size], one) for size, own, one in windows if size is None or own == kind),
            key=lambda pair: pair[0],
        )
        xs = [place + 0.12 * number - 0.06 for place, _ in curve]
        scores = [one.score for _, one in curve]
        differences = [findings.differences.get(one.name) for _, one in curve]
        for axes, shown, label in ((left, scores, kind), (right, differences, f"{kind}, here")):
            means = [estimate.mean if estimate else 0.0 for estimate in shown]
            sds = [(estimate.sd if estimate else None) or 0.0 for estimate in shown]
            spread = sds if findings.several and any(sds) else None
            axes.errorbar(xs, means, yerr=spread, label=label, **style, **thin)
        for x, (_, one) in zip(xs, curve, strict=True) if findings.several else ():
            seeds = list(one.scores.values())
            left.plot([x] * len(seeds), seeds, ".", color=GREY, markersize=3.5, alpha=0.8)
        theirs = [
            (x, study.published_difference(one.row) or 0.0)
            for x, (_, one) in zip(xs, curve, strict=True)
            if one.row.published is not None
        ]
        if theirs:
            style |= {"markerfacecolor": "white", "linestyle": "--"}
            right.plot(*zip(*theirs, strict=True), label=f"{kind}, published", **style)
    left.set_ylabel(f"{study.measure} (%)")
    right.set_ylabel("difference to no window (points)")
    right.axhline(0, color="black", linewidth=0.8, zorder=0.5)
    for axes in (left, right):
        axes.set_xticks(range(len(sizes) + 1), [*map(str, sizes), "∞"])
        axes.set_xlabel("window (tokens)")
        axes.grid(axis="y")
        axes.legend(**_LEGEND)
    return sheet


# ---- A setting of parsing: curves over its values, one picture for each figure ----


def _over_parsing(findings: Findings) -> Sheet:
    study, rows = findings.work.study, findings.rows
    shown_metrics = [one for one in study.beside if all(row.scores_by(one) for row in rows)]
    metrics = shown_metrics or [study.metric]
    (setting,) = rows[0].row.parsing
    marks = f"Triangles: more than {_FAR} points below the best, outside the picture."
    seeds = "Thin lines: one standard deviation." if findings.several else ""
    caption = " ".join(filter(None, (findings.caption, marks, seeds)))
    sheet = Sheet(7.6, 2.9, findings.title, caption)
    values = [f"{one.row.parsing[setting]:g}" for one in rows]
    for axes, metric in zip(sheet.axes(1, len(metrics), squeeze=False).flat, metrics, strict=True):
        known = list(enumerate(estimate(one.scores_by(metric)) for one in rows))
        best = max(found.mean for _, found in known)
        near = [(x, found) for x, found in known if found.mean > best - _FAR]
        lowest = min(found.mean - (found.sd or 0.0) for _, found in near)
        highest = max(found.mean + (found.sd or 0.0) for _, found in near)
        margin = 0.08 * (highest - lowest) + 0.02
        xs, shown = [x for x, _ in near], [found for _, found in near]
        thin: dict[str, Any] = {"color": BLUE, "elinewidth": 0.8, "capsize": 2}
        spread = [found.sd or 0.0 for found in shown] if findings.several else None
        axes.errorbar(
            xs, [found.mean for found in shown], yerr=spread, marker="o", markersize=4, **thin
        )
        bottom = lowest - 3 * margin
        for x, found in known:
            if found.mean <= best - _FAR:
                axes.plot(x, bottom + margin, "v", color=ORANGE, markersize=5)
                early = x < len(rows) / 2  # the number stands towards the middle
                axes.annotate(
                    f"{found.mean:.1f}",
                    (x, bottom + margin),
                    xytext=(5 if early else -5, 0),
                    textcoords="offset points",
                    fontsize=7,
                    color=ORANGE,
                    ha="left" if early else "right",
                    va="center",
                )
        axes.set_ylim(bottom, highest + margin)
        axes.set_xticks(range(len(rows)), values, fontsize=6.5)
        axes.set_xlabel(setting)
        axes.set_title(f"dev {metric.title} (%)", fontsize=9)
        axes.grid(axis="y")
    return sheet


# ---- Minutes of training: one curve for each system, the best score known by then ----


def _over_minutes(findings: Findings) -> Sheet:
    study = findings.work.study
    lines = {one.name: line for one in findings.rows if (line := best_by_minute(one))}
    left_out = ", ".join(one.name for one in findings.rows if one.name not in lines)
    marks = (
        "A curve is the best score known by then, the mean of the seeds, after so many minutes of "
        "training and scoring dev; it ends where the first of its runs ended."
    )
    without = f"Without times: {left_out}." if left_out else ""
    caption = " ".join(filter(None, (findings.caption, marks, without)))
    sheet = Sheet(7.6, 3.4, findings.title, caption)
    axes = sheet.axes(1, 1)
    for number, (name, line) in enumerate(lines.items()):
        shown = f"{name} (reference)" if name == study.reference else name
        style: dict[str, Any] = {
            "color": (BLUE, ORANGE, GREEN, GREY)[number % 4],
            "linestyle": ("-", "--", ":")[number // 4 % 3],
        }
        minutes, scores = zip(*line, strict=True)
        axes.plot(minutes, scores, drawstyle="steps-post", label=shown, **style)
        axes.plot(minutes[-1], scores[-1], "o", color=style["color"], markersize=4)
    known = [score for line in lines.values() for _, score in line]
    best, lowest = max(known, default=100.0), min(known, default=0.0)
    axes.set_ylim(max(lowest, best - _EARLY) - 1, best + 1)
    axes.set_xlim(left=0)
    for minute in study.minutes:
        if minute <= axes.get_xlim()[1]:
            axes.axvline(minute, color=GREY, linewidth=0.6, zorder=0.5)
    axes.set_xlabel("minutes")
    axes.set_ylabel(f"{study.measure} (%)")
    axes.grid(axis="y")
    if lines:
        axes.legend(loc="lower right", frameon=False, fontsize=8)
    return sheet


def best_by_minute(one: Measured) -> list[tuple[float, float]]:
    """The best score known by then, a mean over a row's runs, at each of their evaluations.

    It begins when all runs have a score, and ends where the first of them ended. Empty where a run
    of an earlier version did not note its times.
    """
    times = [[seconds / 60 for seconds, _ in state.curve] for state in one.ended]
    if not all(times):
        return []
    end = min(each[-1] for each in times)
    early = sorted({minutes for each in times for minutes in each if minutes <= end})
    known = [(minutes, one.score_within(minutes)) for minutes in early]
    return [(minutes, found.mean) for minutes, found in known if found is not None]


def _window(one: Measured) -> tuple[int | None, str]:
    """The window of a row, at test time or of its run, and of which kind it is."""
    limit, (_, encoder) = one.row.limit, encoder_of(one.config.model)
    size, relaxed = limit.window, limit.relaxed
    if size is None and isinstance(encoder, Attentive):
        size, relaxed = encoder.window, encoder.relaxed_window
    return size, "relaxed" if relaxed else "strict"
