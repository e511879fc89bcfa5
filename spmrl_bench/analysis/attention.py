"""Attention weights of a sentence as pictures.

Of an encoder there is a picture for each layer and head. Of a transition parser there is one for
each layer of attention, with a row for each action and the state of the parser over the weights: a
line runs down the column of a word from the action after the one that pushed it to the action that
removes it, so that the lines that cross a row are the stack at that moment, and an arc is an arrow
from line to line.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spmrl_bench.analysis.drawing import ORANGE, PALE, Figure, load_matplotlib, plain
from spmrl_bench.nn.encoders import Part
from spmrl_bench.parsers.views import DerivationTrace

_TITLES: Mapping[Part, str] = {
    "content": "content alone",
    "position": "position alone",
    "combined": "content and position together",
}
_HEADS = (
    "How much each token (row) takes of each token (column), in one picture for each head. Rows "
    "sum to 1. Content or position alone: only that product of queries and keys counts. "
    "Parser: {model}."
)
_ACTIONS = (
    "Rows: the actions of the parse in their order, each with its probability in percent. Colour: "
    "how much of each word (column) a layer of attention takes before the action; rows sum to 1. "
    "A line down a column: the word is on the stack, above it waits, below it has been removed; "
    "filled circle: on top, open circle: next. Arrow: the arc that the action makes, from its head "
    "(the left edge: the root) to the dependent; crossing arcs are drawn as the actions make them. "
    "Log probability of the parse: {score:.2f}. Parser: {model}."
)
PAGE = 9.0  # inches: what can still be read when it is printed as wide as a page
_TICKS = [0, 0.05, 0.2, 0.5, 1]


def draw_heads_of(
    maps: Mapping[Part, NDArray[np.float32]],
    words: Sequence[str],
    *,
    layers: Sequence[int],
    heads: Sequence[int],
    model: str,
) -> Figure:
    """The pictures of the chosen layers and heads (from 0), a block for each part. ``maps`` are
    weights of ``Parser.attention``, ``[layers, heads, n + 2, n + 2]`` of ``n`` words. Raise a
    SpmrlError if the figure would be too large, or matplotlib is not installed."""
    tokens = ["START", *words, "STOP"]
    count = len(tokens)
    # A picture by itself has room for large labels; of many, each has what keeps them readable.
    alone = len(layers) == len(heads) == 1
    cell = max(2.4, 0.15 * count) if alone else max(1.1, min(2.4, 0.085 * count), 0.05 * count)
    gap = math.ceil(0.2 * count / cell)  # tokens that a title of a picture takes
    pitch = cell * (count + gap) / count
    across = len(maps) if len(maps) * len(heads) * pitch <= 24 else 1
    down = len(maps) // across
    margin = 0.09 * max(map(len, tokens)) + 0.9
    width = max(5.0, across * (len(heads) * pitch + margin) + 0.8)
    height = down * (len(layers) * pitch + margin)
    figure = Figure(width, height, "Attention of the parser", _HEADS.format(model=model))
    blocks = figure.axes(down, across, squeeze=False)
    for axes, (part, weights) in zip(blocks.flat, maps.items(), strict=True):
        if tuple(maps) != ("combined",):
            axes.set_title(_TITLES[part], fontsize=10, pad=17)
        _draw_block(axes, weights, tokens, layers, heads, gap)
        axes.tick_params(labelsize=min(6.5, 0.85 * 72 * cell / count))
    _name_colours(figure, blocks)
    return figure


def _draw_block(
    axes: Any,
    weights: NDArray[np.float32],
    tokens: Sequence[str],
    layers: Sequence[int],
    heads: Sequence[int],
    gap: int,
) -> None:
    """All pictures of one part, as one image with gaps: axes of their own take minutes."""
    from matplotlib.patches import Rectangle

    count = len(tokens)
    step = count + gap
    image = np.full((len(layers) * step - gap, len(heads) * step - gap), np.nan, np.float32)
    for row, layer in enumerate(layers):
        for column, head in enumerate(heads):
            top, left = row * step, column * step
            image[top : top + count, left : left + count] = weights[layer, head]
            corner = (left - 0.5, top - 0.5)
            axes.add_patch(Rectangle(corner, count, count, fill=False, lw=0.5, clip_on=False))
            middle = left + (count - 1) / 2
            axes.text(middle, top - 0.7, f"layer {layer}, head {head}", size=7, ha="center")
    axes.imshow(image, cmap="Blues", norm=_norm(), interpolation="nearest")
    for ticks, of in ((axes.set_yticks, layers), (axes.set_xticks, heads)):
        places = [k * step + i for k in range(len(of)) for i in range(count)]
        ticks(places, [*tokens] * len(of))
    plain(axes)
    axes.tick_params(axis="x", labelrotation=90)


def draw_actions(found: DerivationTrace, *, layers: Sequence[int], model: str) -> Figure:
    """A picture for each of the chosen layers (from 0), side by side if they fit on a page. Raise a
    SpmrlError if the figure would be too large, or matplotlib is not installed."""
    count, n = found.removed.shape
    names = 0.075 * (max(map(len, found.actions)) + 5)
    pitch = 0.12 * n + 0.2
    across = max(1, min(len(layers), int((PAGE - names) / pitch)))
    down = math.ceil(len(layers) / across)
    width = max(5.0, names + across * pitch + 0.6)
    height = down * (0.135 * count + 0.065 * max(map(len, found.words)) + 0.4)
    caption = _ACTIONS.format(score=found.score, model=model)
    figure = Figure(width, height, "Attention before each action", caption)
    blocks = figure.axes(down, across, squeeze=False)
    percent = (100 * found.probabilities).round().astype(int).tolist()
    labels = [f"{action} {p}" for action, p in zip(found.actions, percent, strict=True)]
    for k, axes in enumerate(blocks.flat):
        if k >= len(layers):
            axes.remove()
            continue
        options: dict[str, Any] = {"aspect": "auto", "interpolation": "nearest"}
        axes.imshow(found.weights[:, layers[k]], cmap="Blues", norm=_norm(), **options)
        _draw_states(axes, found)
        axes.set_title(f"layer {layers[k]}", fontsize=8)
        axes.set_xticks(range(n), found.words)
        axes.set_yticks(range(count), labels if k % across == 0 else [""] * count)
        plain(axes)
        axes.tick_params(axis="x", labelrotation=90, labeltop=True, labelbottom=False)
    _name_colours(figure, blocks)
    return figure


def _draw_states(axes: Any, found: DerivationTrace) -> None:
    count, n = found.removed.shape
    rows = np.arange(count)
    # Lines between cells lead the eye. As grids of the axes they would take seconds.
    axes.vlines(np.arange(1, n) - 0.5, -0.5, count - 0.5, color=PALE, linewidth=0.3)
    axes.hlines(rows[1:] - 0.5, -0.5, n - 0.5, color=PALE, linewidth=0.3)
    stacked = np.flatnonzero(found.on_stack.any(axis=0))
    firsts = found.on_stack.argmax(axis=0)[stacked]
    lasts = firsts + found.on_stack.sum(axis=0)[stacked] - 1
    axes.vlines(stacked, firsts - 0.5, lasts, color=ORANGE, linewidth=0.7)
    made = np.flatnonzero(found.arcs[:, 1] > 0)
    heads, dependents = found.arcs[made].T - 1.0
    heads[heads < 0] = -0.5
    lengths = dependents - heads
    lengths -= 0.3 * np.sign(lengths)  # an arrow ends beside the circle of its word
    options = {"angles": "xy", "scale_units": "xy", "scale": 1, "width": 0.09, "units": "x"}
    axes.quiver(heads, made, lengths, 0 * made, color=ORANGE, **options)
    circle = {"marker": "o", "markersize": 3.2, "markeredgecolor": ORANGE, "markeredgewidth": 0.7}
    for words, colour in ((found.second, "white"), (found.top, ORANGE)):
        chosen = words > 0
        axes.plot(words[chosen] - 1, rows[chosen], linestyle="none", mfc=colour, **circle)


def _norm() -> Any:
    """Of colours: small weights can be seen."""
    return load_matplotlib().colors.PowerNorm(0.5, vmin=0, vmax=1)


def _name_colours(figure: Figure, blocks: NDArray[Any]) -> None:
    drawn = [axes for axes in blocks.flat if axes.images]
    figure.colours(drawn[0].images[0], drawn, "attention weight", ticks=_TICKS, format="%g")
