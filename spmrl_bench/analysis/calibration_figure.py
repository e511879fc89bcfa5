"""Reliability diagrams: how often decisions are right beside how sure the parser is of them.

In each bin of probabilities a bar shows the share that is right; where the parser is as often right
as it says, it ends at the diagonal (Guo et al. 2017, section 2). Below are the decisions of each.
"""

from __future__ import annotations

from collections.abc import Mapping

from spmrl_bench.analysis.drawing import BLUE, GREY, ORANGE, PALE, Figure
from spmrl_bench.parsers.calibration import BINS, Decisions


def draw_calibration(found: Mapping[str, Decisions], about: str) -> Figure:
    """Draw decisions by what they are called, each in a panel of its own."""
    caption = (
        f"Bars: the share of decisions that is right, by their probability in {BINS} bins; points: "
        "the mean probability of each; below: the share of all decisions that each bin has. A "
        "constituent of a parse, or the head of a word, is a decision; error: the expected "
        f"calibration error. {about}"
    )
    figure = Figure(6.6, 3.3, "Is the parser as often right as it says?", caption)
    panels = figure.axes(2, len(found), sharex=True, squeeze=False, height_ratios=(4, 1))
    for (name, decisions), above, below in zip(found.items(), *panels, strict=True):
        bins = decisions.bins
        places = [(min(int(one.probability * BINS), BINS - 1) + 0.5) / BINS for one in bins]
        above.bar(places, [one.right for one in bins], width=0.9 / BINS, color=BLUE)
        sure = [one.probability for one in bins]
        above.plot(places, sure, "o", mfc="white", mec=ORANGE, mew=1.4, markersize=4.5)
        above.plot((0, 1), (0, 1), color=GREY, linewidth=0.8, linestyle="--")
        above.set_title(f"{name}: error {decisions.error:.3f}", fontsize=9)
        shares = [one.decisions / len(decisions.right) for one in bins]
        below.bar(places, shares, width=0.9 / BINS, color=PALE, edgecolor=GREY, linewidth=0.6)
        below.set_xlabel("probability")
        above.set_xlim(0, 1)
        above.set_ylim(0, 1.02)
        below.set_ylim(0, 1)
    panels[0, 0].set_ylabel("right")
    panels[1, 0].set_ylabel("share")
    return figure
