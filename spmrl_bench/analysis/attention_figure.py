"""Attention weights of a sentence as small pictures side by side, one for each layer and head."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spmrl_bench.analysis.attention_maps import Part
from spmrl_bench.analysis.drawing import Sheet, load_matplotlib
from spmrl_bench.errors import SpmrlError

#: A larger figure, in inches, cannot be read as one, and takes gigabytes to draw.
LARGEST = 60.0

_TITLES: Mapping[Part, str] = {
    "content": "content alone",
    "position": "position alone",
    "combined": "both together",
}
_CAPTION = (
    "How much each token (row) takes of each token (column), in one picture for each head. "
    "Rows sum to 1. "
)
_PARTS_CAPTION = (
    "Content and position alone: what the head would look at if only that product of queries and "
    "keys counted. "
)
_START, _STOP = "START", "STOP"


def draw_attention(
    maps: Mapping[Part, NDArray[np.float32]],
    words: Sequence[str],
    *,
    layers: Sequence[int],
    heads: Sequence[int],
    model: str,
) -> Sheet:
    """The pictures of the chosen layers and heads, a block for each part.

    Args:
        maps: ``[layers, heads, n + 2, n + 2]`` of each part to show, see ``attention_maps``.
        words: the sentence, ``n`` words.
        layers: which to show, from 0; likewise ``heads``.
        model: what to call the parser.

    Raises:
        SpmrlError: the figure would be too large, or matplotlib is not installed.
    """
    tokens = [_START, *words, _STOP]
    single = len(layers) == len(heads) == 1
    # A label needs its height for every token; without labels a token needs a few points.
    cell = max(2.4, 0.15 * len(tokens)) if single else max(1.1, 0.11 * len(tokens))
    block_width, block_height = len(heads) * cell, len(layers) * cell
    across = len(maps) if len(maps) * block_width <= max(14.0, block_width) else 1
    down = len(maps) // across
    margin = 0.09 * max(map(len, tokens)) + 0.9
    width = max(5.0, across * (block_width + margin) + 0.8)
    height = down * (block_height + margin)
    if max(width, height) > LARGEST:
        raise SpmrlError(
            f"the figure would be {width:.0f} by {height:.0f} inches; choose a --layer, a --head "
            "or a --part, or a shorter sentence"
        )
    caption = _CAPTION + (_PARTS_CAPTION if len(maps) > 1 else "") + f"Parser: {model}."
    sheet = Sheet(width, height, "Attention of the parser", caption)
    matplotlib = load_matplotlib()
    norm = matplotlib.colors.PowerNorm(0.5, vmin=0, vmax=1)  # small weights can be seen
    blocks = sheet.figure.subfigures(down, across, squeeze=False)
    for block, (part, weights) in zip(blocks.flat, maps.items(), strict=True):
        block.suptitle(_TITLES[part], fontsize=10)
        grid = block.subplots(len(layers), len(heads), squeeze=False)
        for row, layer in enumerate(layers):
            for column, head in enumerate(heads):
                axes = grid[row, column]
                axes.imshow(weights[layer, head], cmap="Blues", norm=norm)
                axes.set_title(f"layer {layer}, head {head}", fontsize=7, pad=2)
                _label(axes, tokens, left=column == 0, below=row == len(layers) - 1)
        bar = block.colorbar(
            grid[0, 0].images[0], ax=list(grid.flat), fraction=0.03, pad=0.02, aspect=30
        )
        bar.set_label("attention weight", fontsize=7.5)
        bar.set_ticks([0, 0.05, 0.2, 0.5, 1], labels=["0", "0.05", "0.2", "0.5", "1"])
        bar.ax.tick_params(labelsize=6.5)
    return sheet


def _label(axes: Any, tokens: Sequence[str], *, left: bool, below: bool) -> None:
    """Tokens at the left and at the bottom of a block only."""
    places = range(len(tokens))
    axes.set_xticks(places, tokens if below else [""] * len(tokens))
    axes.set_yticks(places, tokens if left else [""] * len(tokens))
    axes.tick_params(length=1.5, pad=1, labelsize=6.5)
    axes.tick_params(axis="x", labelrotation=90)
    for spine in axes.spines.values():
        spine.set_visible(True)
        spine.set_linewidth(0.4)
