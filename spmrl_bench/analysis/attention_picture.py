"""Attention weights of a sentence as small pictures side by side, one for each layer and head."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spmrl_bench.analysis.drawing import Sheet, load_matplotlib
from spmrl_bench.errors import SpmrlError
from spmrl_bench.nn.encoders import Part

#: A larger figure, in inches, cannot be read as one, and takes gigabytes to draw.
LARGEST = 70.0

_TITLES: Mapping[Part, str] = {
    "content": "content alone",
    "position": "position alone",
    "combined": "content and position together",
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
    count = len(tokens)
    crowded = max(1.1, min(2.4, 0.085 * count), 0.05 * count)
    # A picture by itself has room for large labels; of many, each has what keeps them readable.
    cell = max(2.4, 0.15 * count) if len(layers) == len(heads) == 1 else crowded
    size = min(6.5, 0.85 * 72 * cell / count)
    gap = math.ceil(0.2 * count / cell)  # tokens that a title of a picture takes
    pitch = cell * (count + gap) / count
    block_width, block_height = len(heads) * pitch, len(layers) * pitch
    across = len(maps) if len(maps) * block_width <= max(24.0, block_width) else 1
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
    sheet = Sheet(width, height, "Attention of the parser", caption, between=0.06)
    matplotlib = load_matplotlib()
    norm = matplotlib.colors.PowerNorm(0.5, vmin=0, vmax=1)  # small weights can be seen
    blocks = sheet.axes(down, across, squeeze=False)
    for axes, (part, weights) in zip(blocks.flat, maps.items(), strict=True):
        if tuple(maps) != ("combined",):
            axes.set_title(_TITLES[part], fontsize=10, pad=17)
        _draw_block(axes, weights, tokens, layers, heads, gap, norm, size)
    bar = sheet.figure.colorbar(
        blocks.flat[0].images[0], ax=list(blocks.flat), fraction=0.02, pad=0.01, aspect=30
    )
    bar.set_label("attention weight", fontsize=7.5)
    bar.set_ticks([0, 0.05, 0.2, 0.5, 1], labels=["0", "0.05", "0.2", "0.5", "1"])
    bar.ax.tick_params(labelsize=6.5)
    return sheet


def _draw_block(
    axes: Any,
    weights: NDArray[np.float32],
    tokens: Sequence[str],
    layers: Sequence[int],
    heads: Sequence[int],
    gap: int,
    norm: Any,
    size: float,
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
            frame = Rectangle((left - 0.5, top - 0.5), count, count, fill=False, linewidth=0.5)
            frame.set_clip_on(False)
            axes.add_patch(frame)
            axes.annotate(
                f"layer {layer}, head {head}",
                (left + (count - 1) / 2, top - 0.5),
                xytext=(0, 2.5),
                textcoords="offset points",
                fontsize=7,
                ha="center",
            )
    axes.imshow(image, cmap="Blues", norm=norm, interpolation="nearest")
    places = [
        [k * step + i for k in range(len(of)) for i in range(count)] for of in (layers, heads)
    ]
    axes.set_yticks(places[0], list(tokens) * len(layers))
    axes.set_xticks(places[1], list(tokens) * len(heads))
    axes.tick_params(length=1.5, pad=1, labelsize=size)
    axes.tick_params(axis="x", labelrotation=90)
    for spine in axes.spines.values():
        spine.set_visible(False)
