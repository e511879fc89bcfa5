"""Contributions of heads by category, as a heat map and as bars.

Both show the figures of Mrini et al. 2020 (section 4.5, figure 8) for all heads and not for some
that were picked. What a head contributes is set beside the average head, which is the dotted
line of that figure: in the heat map as colour, in the bars as a line. Neighbouring heads are
those that stand out in the same category. A row of pictures is as wide as a page and has at most
64 heads, so that their numbers can be read; more go on in rows below.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spmrl_bench.analysis.drawing import BLUE, GREY, ORANGE, PALE, Sheet, load_matplotlib
from spmrl_bench.analysis.head_contributions import HeadContributions, Measure
from spmrl_bench.errors import SpmrlError

WIDTH = 7.6
#: Heads beside each other, and categories below each other that are shown.
MOST_HEADS = 64
MOST_CATEGORIES = 24
#: Spans of a category that is shown; the mean of fewer would say more of these than of heads.
FEWEST_SPANS = 10
#: Heads that are marked in each category.
MARKED = 3

#: Of each measure: what the axis is called, factor, and what the caption says.
_TEXTS: dict[Measure, tuple[str, float, str]] = {
    "norm": (
        "share of span vector (%)",
        100,
        "Contribution: the norm of a head's features in the span vector, as a share of the sum "
        "over the heads.",
    ),
    "released": (
        "contribution (%)",
        100,
        "Contribution: as in the released code of Mrini et al., the sum of a head's features in "
        "the span vector, scaled to 0 to 1 over the heads, through a softmax.",
    ),
    "lead": (
        "part of lead (points)",
        1,
        "Contribution: what a head brings into the lead of the label's score over the runner-up.",
    ),
    "without": (
        "lead lost without it (points)",
        1,
        "Contribution: by how much the lead of the label's score over the runner-up falls when "
        "the head is taken away.",
    ),
}


def order_of_heads(relative: NDArray[np.float64]) -> list[int]:
    """Heads in the order of the category in which each stands out the most.

    Args:
        relative: ``[categories, heads]``, contributions less that of the average head.

    Returns:
        Within a category, those that stand out the most come first. A head stands out in a
        category by what it contributes there beyond its own mean over the categories, in standard
        deviations of the heads of each.
    """
    deviation = relative.std(axis=1, keepdims=True)
    own = relative / np.where(deviation > 0, deviation, 1)
    own = own - own.mean(axis=0)
    best = own.argmax(axis=0)
    heads = range(relative.shape[1])
    return sorted(heads, key=lambda head: (best[head], -own[best[head], head], head))


def draw_heads(found: HeadContributions, *, model: str, title: str = "") -> Sheet:
    """A heat map: the categories that are predicted the most, below each other, by heads.

    Args:
        found: contributions.
        model: what to call the parser.
        title: of the picture, if not the usual one.

    Raises:
        SpmrlError: no span was predicted, or matplotlib is not installed.
    """
    rows = np.flatnonzero(found.spans >= min(FEWEST_SPANS, found.spans.max(initial=0)))
    rows = rows[:MOST_CATEGORIES]
    if not found.spans.any():
        raise SpmrlError("the parser found no constituents, so there is nothing to draw")
    label, factor, explained = _TEXTS[found.measure]
    means = found.means[rows] * factor
    relative = means - means.mean(axis=1, keepdims=True)
    order = order_of_heads(relative)
    bands = _bands(order)
    left_out = int((found.spans > 0).sum()) - len(rows)
    caption = (
        f"{explained} Colour: its mean over the spans predicted to be of the category, less that "
        "of the average head. Dots: the "
        f"{MARKED} heads that contribute most to a category. Heads stand beside those that stand "
        f"out in the same category. Parser: {model}; {found.sentences:,} sentences."
    )
    if left_out:
        rarest = "rarest category" if left_out == 1 else f"{left_out} rarest categories"
        caption += f" Left out: the {rarest}."
    below = 0.55  # numbers of heads, and the name of their axis
    # The name of the colours needs some height, however few rows there are.
    height = max(2.9, len(bands) * (0.155 * len(rows) + below))
    sheet = Sheet(WIDTH, height, title or "Contributions of heads by category", caption)
    matplotlib = load_matplotlib()
    widest = float(np.quantile(np.abs(relative), 0.995)) or 1.0
    norm = matplotlib.colors.Normalize(-widest, widest)
    axes = sheet.axes(len(bands), 1, squeeze=False)[:, 0]
    names = [f"{found.categories[row]} ({found.spans[row]:,})" for row in rows]
    for each, heads in zip(axes, bands, strict=True):
        shown = np.full((len(rows), len(bands[0])), np.nan)
        shown[:, : len(heads)] = relative[:, heads]
        image = each.imshow(shown, cmap="RdBu", norm=norm, aspect="auto", interpolation="nearest")
        for row in range(len(rows)):
            marked = np.argsort(-means[row], kind="stable")[:MARKED].tolist()
            places = [heads.index(head) for head in marked if head in heads]
            each.plot(places, [row] * len(places), "o", mfc="white", mec="black", ms=2.6, mew=0.5)
        each.set_yticks(range(len(rows)), names)
        _number_heads(each, heads, len(bands[0]))
        each.tick_params(axis="y", length=0, labelsize=7)
        for spine in each.spines.values():
            spine.set_visible(False)
    axes[-1].set_xlabel("head", fontsize=8)
    bar = sheet.figure.colorbar(
        image, ax=list(axes), fraction=0.025, pad=0.01, aspect=30, extend="both"
    )
    bar.set_label(f"{label}, less average head", fontsize=7.5)
    bar.ax.tick_params(labelsize=6.5)
    return sheet


def draw_categories(
    found: HeadContributions, categories: Sequence[str], *, model: str, title: str = ""
) -> Sheet:
    """Bars: the mean contribution of each head to some categories, one below the other.

    The heads of one category are in the order of their contributions; those of several in the
    order of :func:`order_of_heads`, the same for all.

    Args:
        found: contributions.
        categories: names, at least one.
        model: what to call the parser.
        title: of the picture, if not the usual one.

    Raises:
        SpmrlError: a category was never predicted, or matplotlib is not installed.
    """
    rows = [found.row(name) for name in categories]
    for row in rows:
        if not found.spans[row]:
            raise SpmrlError(
                f"no span was predicted to be {found.categories[row]} "
                f"({found.missed[row]:,} were missed), so heads have no mean contribution to it"
            )
    label, factor, explained = _TEXTS[found.measure]
    means = found.means[rows] * factor
    if len(rows) == 1:
        order = np.argsort(-means[0], kind="stable").tolist()
    else:
        order = order_of_heads(means - means.mean(axis=1, keepdims=True))
    bands = _bands(order)
    caption = (
        f"{explained} Bars: its mean over the spans predicted to be of the category; blue: the "
        f"{MARKED} heads with the highest; dashed line: the average head. Parser: {model}; "
        f"{found.sentences:,} sentences."
    )
    panels = len(rows) * len(bands)
    height = 2.3 if panels == 1 else 1.35 * panels + 0.3
    name = "category" if len(rows) == 1 else "categories"
    title = title or f"Contributions of heads to the {name} {', '.join(categories)}"
    sheet = Sheet(WIDTH, height, title, caption)
    axes = sheet.axes(panels, 1, squeeze=False)[:, 0]
    for place, each in enumerate(axes):
        k, band = divmod(place, len(bands))
        heads, values = bands[band], means[k]
        marked = np.argsort(-values, kind="stable")[:MARKED].tolist()
        colours = [
            BLUE if head in marked else ORANGE if values[head] < 0 else PALE for head in heads
        ]
        each.bar(range(len(heads)), values[heads], width=0.8, color=colours)
        each.axhline(values.mean(), color=GREY, linewidth=0.8, linestyle="--")
        if values.min() < 0:
            each.axhline(0, color="black", linewidth=0.6)
        low, high = min(0.0, values.min()), max(0.0, values.max())
        each.set_ylim(low - 0.02 * (high - low) * (low < 0), high + 0.05 * (high - low))
        for head in set(marked) & set(heads):
            each.annotate(
                f"{values[head]:.3g}",
                (heads.index(head), values[head]),
                xytext=(0.3, -1.5),
                textcoords="offset points",
                fontsize=min(6.5, 0.6 * 72 * 6.6 / len(bands[0])),
                color="white",
                ha="center",
                va="top",
                rotation=90,
            )
        if band == 0:
            spans = "span" if found.spans[rows[k]] == 1 else "spans"
            each.set_title(
                f"{categories[k]} ({found.spans[rows[k]]:,} {spans})", loc="left", fontsize=9
            )
        each.grid(axis="y")
        each.tick_params(axis="y", labelsize=7)
        each.locator_params(axis="y", nbins=5)
        _number_heads(each, heads, len(bands[0]))
        each.set_xlim(-0.7, len(bands[0]) - 0.3)
    axes[-1].set_xlabel("head", fontsize=8)
    sheet.figure.supylabel(label, fontsize=8)
    return sheet


def _bands(order: list[int]) -> list[list[int]]:
    """The heads in rows of at most :data:`MOST_HEADS`, as even as can be."""
    rows = math.ceil(len(order) / MOST_HEADS)
    width = math.ceil(len(order) / rows)
    return [order[low : low + width] for low in range(0, len(order), width)]


def _number_heads(axes: Any, heads: Sequence[int], width: int) -> None:
    """The number of each head below its place; ``width`` places are as wide as the axes."""
    size = min(7.0, 0.8 * 72 * 6.1 / width)
    axes.set_xticks(range(len(heads)), [str(head) for head in heads])
    crowded = width > 36
    axes.tick_params(axis="x", length=1.5, pad=1.5, labelsize=size, labelrotation=90 * crowded)
