"""Contributions of heads by category, as a heat map.

It shows the figures of Mrini et al. 2020 (section 4.5, figure 8) for all heads and not for some
that were picked. Its colours are what a head contributes beside the average head, which is the
dotted line of that figure. Neighbouring heads are those that stand out in the same category.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from spmrl_bench.analysis.drawing import Figure, load_matplotlib, plain
from spmrl_bench.analysis.heads import HeadContributions, Measure, Rows
from spmrl_bench.errors import SpmrlError

WIDTH = 7.6
MOST_CATEGORIES = 24
FEWEST_SPANS = 10  # of a category: the mean of fewer would say more of these than of heads
MARKED = 3  # heads of each category

#: Of each measure: what the axis is called, factor, and what the caption says.
_TEXTS: dict[Measure, tuple[str, float, str]] = {
    "norm": (
        "share of span vector (%)",
        100,
        "the norm of a head's features in the span vector, as a share of the sum over the heads",
    ),
    "released": (
        "contribution (%)",
        100,
        "as in the released code of Mrini et al., the sum of a head's features in the span vector, "
        "scaled to 0 to 1 over the heads, through a softmax",
    ),
    "lead": (
        "part of lead (points)",
        1,
        "what a head brings into the lead of the label's score over the runner-up",
    ),
}


def order_of_heads(relative: Rows) -> list[int]:
    """Heads in the order of the category in which each stands out the most.

    Within a category, those that stand out the most come first. A head stands out in a category by
    what it contributes there (``[categories, heads]``, less the average head) beyond its own mean
    over the categories, in standard deviations of the heads of each; of one category alone, by all
    that it contributes.
    """
    deviation = relative.std(axis=1, keepdims=True)
    own = relative / np.where(deviation > 0, deviation, 1)
    if len(own) > 1:
        own -= own.mean(axis=0)
    return np.lexsort((-own.max(axis=0), own.argmax(axis=0))).tolist()


def draw_heads(found: HeadContributions, categories: Sequence[str] = (), *, model: str) -> Figure:
    """A heat map: some categories or those that are predicted the most, below each other, by heads.

    Raise a SpmrlError if no span was predicted, or none of a category that is named, or matplotlib
    is not installed.
    """
    spans = found.spans
    named = [found.row(name) for name in categories]
    for row in named:
        if not spans[row]:
            raise SpmrlError(
                f"no span was predicted to be {found.categories[row]} "
                f"({found.missed[row]:,} were missed), so heads have no mean contribution to it"
            )
    if not spans.any():
        raise SpmrlError("the parser found no constituents, so there is nothing to draw")
    rows = np.flatnonzero(spans >= min(FEWEST_SPANS, spans.max()))[:MOST_CATEGORIES]
    left_out = f"Left out: the {int((spans > 0).sum()) - len(rows)} rarest categories. "
    if named:
        rows, left_out = np.array(named), ""
    label, factor, explained = _TEXTS[found.measure]
    means = found.means[rows] * factor
    relative = means - means.mean(axis=1, keepdims=True)
    order = order_of_heads(relative)
    caption = (
        f"Contribution: {explained}. Colour: its mean over the spans predicted to be of the "
        f"category, less that of the average head. Dots: the {MARKED} heads that contribute most. "
        f"Heads stand beside those that stand out in the same category. {left_out}"
        f"Parser: {model}; {found.sentences:,} sentences."
    )
    height = max(2.9, 0.155 * len(rows) + 0.55)  # the name of the colours needs some
    figure = Figure(WIDTH, height, "Contributions of heads by category", caption)
    widest = float(np.quantile(np.abs(relative), 0.995)) or 1.0
    norm = load_matplotlib().colors.Normalize(-widest, widest)
    axes = figure.axes(1, 1)
    options: dict[str, Any] = {"norm": norm, "aspect": "auto", "interpolation": "nearest"}
    image = axes.imshow(relative[:, order], cmap="RdBu", **options)
    for row in range(len(rows)):
        first = np.argsort(-means[row], kind="stable")[:MARKED].tolist()
        places = [order.index(head) for head in first]
        axes.plot(places, [row] * len(places), "o", mfc="white", mec="black", ms=2.6, mew=0.5)
    axes.set_yticks(range(len(rows)), [f"{found.categories[row]} ({spans[row]:,})" for row in rows])
    plain(axes)
    axes.set_xticks(range(len(order)), [str(head) for head in order])
    size = min(7.0, 0.8 * 72 * 6.1 / len(order))
    axes.tick_params(axis="x", length=1.5, labelsize=size, labelrotation=90 * (len(order) > 36))
    axes.set_xlim(-0.7, len(order) - 0.3)
    axes.set_xlabel("head", fontsize=8)
    figure.colours(image, axes, f"{label}, less average head", extend="both")
    return figure
