"""A study as a picture: its scores, and its differences beside the published ones.

Scores of a paper are of another treebank, so only differences share an axis with them. Scores
are drawn as points, since their axis does not begin at zero; differences as bars from zero.
"""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import Any

from spmrl_bench.analysis.drawing import BLUE, GREY, ORANGE, Sheet
from spmrl_bench.analysis.findings import Findings, Line
from spmrl_bench.analysis.trials import Attentive

# How far below and above the middle of its line a bar and a published figure stand, so that the
# one does not hide the deviation of the other.
LOWER, UPPER = 0.11, 0.27

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
    """The picture that the study asks for.

    Raises:
        SpmrlError: matplotlib is not installed.
    """
    draw = _windows if findings.work.study.figure == "windows" else _systems
    return draw(findings)


def _sheet(findings: Findings, height: float, marks: str) -> Sheet:
    """An empty picture with title and caption."""
    seeds = "Small points: seeds; thin lines: one standard deviation."
    caption = (findings.caption, marks, seeds if findings.several else "")
    return Sheet(7.6, height, findings.title, " ".join(filter(None, caption)))


# ---- Systems: one line of the picture for each ----


def _systems(findings: Findings) -> Sheet:
    study, lines = findings.work.study, findings.lines
    published = any(line.published_difference is not None for line in lines)
    marks = "Diamonds: published differences." if published else ""
    sheet = _sheet(findings, 0.75 + 0.34 * len(lines), marks)
    left, right = sheet.axes(2, sharey=True)
    for place, line in enumerate(lines):
        score, found = line.score, line.difference
        if score.sd is not None:
            seeds = list(line.measured.scores.values())
            left.plot(seeds, [place] * len(seeds), "o", color=GREY, markersize=3, alpha=0.7)
            left.errorbar(score.mean, place, xerr=score.sd, color=BLUE, elinewidth=1.2, capsize=2.5)
        left.plot(score.mean, place, "o", color=BLUE, markersize=6.5, alpha=0.9)
        if found is not None:
            low = place + LOWER
            right.barh(low, found.mean, height=0.46, color=BLUE, alpha=0.8)
            if found.sd is not None:
                thin: dict[str, Any] = {"color": "black", "elinewidth": 0.8, "capsize": 2}
                right.errorbar(found.mean, low, xerr=found.sd, **thin)
        if line.published_difference is not None:
            right.plot(line.published_difference, place - UPPER, **_PUBLISHED)
    left.set_yticks(range(len(lines)), [_name(line.name, study.reference) for line in lines])
    left.set_ylim(len(lines) - 0.5, -0.5)
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
    lines = findings.lines
    marks = (
        "A window is the largest distance of two tokens that see each other; a relaxed one lets "
        "the first two and the last two tokens see all and be seen by all."
    )
    sheet = _sheet(findings, 3.3, marks)
    left, right = sheet.axes(2)
    sizes = sorted({size for size, _ in map(_window, lines) if size is not None})
    thin: dict[str, Any] = {"elinewidth": 0.8, "capsize": 2}
    for number, (kind, colour, marker) in enumerate(_SERIES):
        curve = _curve(lines, kind)
        # Side by side, so that the deviation of one does not hide that of the other.
        shift = 0.12 * number - 0.06
        xs = [_place(line, sizes) + shift for line in curve]
        style: dict[str, Any] = {"color": colour, "marker": marker, "markersize": 4.5}
        scores = [line.score for line in curve]
        sds = [score.sd for score in scores] if findings.several else None
        left.errorbar(xs, [one.mean for one in scores], yerr=sds, label=kind, **style, **thin)
        for x, line in zip(xs, curve, strict=True):
            seeds = list(line.measured.scores.values()) if findings.several else []
            left.plot([x] * len(seeds), seeds, ".", color=GREY, markersize=3.5, alpha=0.8)
        # The reference row has no difference to itself.
        ours = [(one.mean, one.sd or 0.0) if (one := line.difference) else (0, 0) for line in curve]
        means, sds = [mean for mean, _ in ours], [sd for _, sd in ours]
        spread = sds if any(sds) else None
        right.errorbar(xs, means, yerr=spread, label=f"{kind}, here", **style, **thin)
        theirs = [
            (x, line.published_difference or 0.0)
            for x, line in zip(xs, curve, strict=True)
            if line.measured.row.published is not None
        ]
        if theirs:
            style |= {"markerfacecolor": "white", "linestyle": "--"}
            right.plot(*zip(*theirs, strict=True), label=f"{kind}, published", **style)
    left.set_ylabel(f"{findings.work.study.measure} (%)")
    right.set_ylabel("difference to no window (points)")
    right.axhline(0, color="black", linewidth=0.8, zorder=0.5)
    for axes in (left, right):
        axes.set_xticks(range(len(sizes) + 1), [*map(str, sizes), "∞"])
        axes.set_xlabel("window (tokens)")
        axes.grid(axis="y")
        axes.legend(**_LEGEND)
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
    limit, model = line.measured.row.limit, line.measured.config.model
    size, relaxed = limit.window, limit.relaxed
    if size is None and isinstance(model, Attentive):
        size, relaxed = model.attention_window, model.relaxed_window
    return size, "relaxed" if relaxed else "strict"
