"""What a transition parser looks at before each action, as a picture: a row for each action.

Over the weights lies the state of the parser. A line runs down the column of a word from the action
after the one that pushed it to the action that removes it, so that the lines that cross a row are
the stack at that moment, and an arc is an arrow from line to line.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from spmrl_bench.analysis.attention_picture import LARGEST
from spmrl_bench.analysis.drawing import GREY, ORANGE, PALE, Sheet, load_matplotlib
from spmrl_bench.errors import SpmrlError
from spmrl_bench.parsers.views import DerivationTrace

_CAPTION = (
    "Rows: the actions of the parse in their order, each with its probability in percent. Colour: "
    "how much of each word (column) a layer of attention takes before the action; rows sum to 1. "
    "A line down a column: the word is on the stack; filled circle: on top, open circle: next. "
    "Arrow: the arc that the action makes, from its head (the left edge: the root) to the "
    "dependent. Hatched: the word has been removed. Words without line and hatching wait. "
    "Log probability of the parse: {score:.2f}. Parser: {model}."
)
_LIFTED = (
    " Arcs are drawn as the actions make them; in the parse {count} of the words hang elsewhere "
    "(crossing arcs)."
)
#: Inches: what can still be read when it is printed as wide as a page.
PAGE = 9.0
#: Inches: a word at most and at least, an action, the percentages, between pictures, around all,
#: titles, colour bar.
_COLUMN, _NARROW = 0.16, 0.11
_ROW = 0.135
_PERCENT = 0.3
_GAP = 0.16
_EDGE = 0.15
_TITLE = 0.2
_BAR = 0.42
_SIZE = 6.5
#: Actions from which on the words stand below the picture as well.
_TALL = 24
#: Probability below which an action stands out.
_DOUBTFUL = 0.9
_HATCH = "#A6A6A6"
_TICKS = [0, 0.05, 0.2, 0.5, 1]


class _Room(NamedTuple):
    """Lengths of a figure, in inches."""

    names: float
    """Left of a row of pictures, for the actions."""
    words: float
    """Above a picture, and below a tall one."""
    width: float
    """Of a picture, likewise its height."""
    height: float
    across: int
    """Pictures side by side."""


def draw_actions(found: DerivationTrace, *, layers: Sequence[int], model: str) -> Sheet:
    """A picture for each of the chosen layers, side by side if they fit on a page.

    Args:
        found: actions and attention of a sentence.
        layers: which to show, from 0; at least one.
        model: what to call the parser.

    Raises:
        SpmrlError: the figure would be too large, or matplotlib is not installed.
    """
    matplotlib = load_matplotlib()
    count = len(found.actions)
    room = _room(found, len(layers))
    across = room.across
    pitch = max(room.width + _GAP, 0.5)  # that of a title, where there are few words
    down = math.ceil(len(layers) / across)
    below = room.words if count > _TALL else 0.0
    block = _TITLE + room.words + room.height + below
    width = max(5.0, room.names + across * pitch - _GAP + _PERCENT + 2 * _EDGE)
    height = down * (block + _GAP) + _BAR
    if max(width, height) > LARGEST:
        raise SpmrlError(
            f"the figure would be {width:.0f} by {height:.0f} inches; choose a --layer, or a "
            "shorter sentence"
        )
    sheet = Sheet(width, height, "Attention before each action", _caption(found, model))
    norm = matplotlib.colors.PowerNorm(0.5, vmin=0, vmax=1)  # small weights can be seen
    axes: Any = None
    for place, layer in enumerate(layers):
        row, column = divmod(place, across)
        left = _EDGE + room.names + column * pitch
        top = row * (block + _GAP) + _TITLE + room.words
        axes = sheet.place(left, top, room.width, room.height)
        _draw_weights(axes, found, layer, norm)
        _draw_states(axes, found)
        _name_words(axes, found.words, below > 0)
        axes.set_yticks(range(count), found.actions if column == 0 else [])
        axes.annotate(
            f"layer {layer}",
            (0.5, 1),
            xycoords="axes fraction",
            xytext=(0, 72 * room.words + 2),
            textcoords="offset points",
            fontsize=8,
            ha="center",
        )
        if column == across - 1 or place == len(layers) - 1:
            _name_probabilities(axes, found)
    place_of_bar = sheet.place(_EDGE + room.names, height - _BAR + 0.13, 1.6, 0.09)
    bar = sheet.figure.colorbar(axes.images[0], cax=place_of_bar, orientation="horizontal")
    bar.set_ticks(_TICKS, labels=[f"{tick:g}" for tick in _TICKS])
    bar.ax.tick_params(labelsize=_SIZE, length=1.5, pad=1)
    bar.ax.set_title("attention weight", fontsize=7, pad=2)
    return sheet


def _room(found: DerivationTrace, layers: int) -> _Room:
    """As many pictures side by side as fit, with columns as wide as there is room for."""
    names = _longest(found.actions) + 0.08
    count, n = found.removed.shape
    free = PAGE - names - _PERCENT - 2 * _EDGE
    across = max(1, min(layers, int((free + _GAP) / (_NARROW * n + _GAP))))
    column = min(_COLUMN, max(_NARROW, (free - (across - 1) * _GAP) / (across * n)))
    return _Room(names, _longest(found.words) + 0.08, column * n, _ROW * count, across)


def _longest(texts: Sequence[str]) -> float:
    """The width of the longest of some texts, in inches."""
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import text_to_path

    font = FontProperties(size=_SIZE)
    widths = [
        text_to_path.get_text_width_height_descent(text, font, ismath=False)[0]
        for text in dict.fromkeys(texts)
    ]
    return float(max(widths)) / 72


def _caption(found: DerivationTrace, model: str) -> str:
    """What is to be seen."""
    text = _CAPTION.format(score=found.score, model=model)
    tree = found.parse.dependencies
    made = np.zeros(len(found.words), dtype=np.int32)
    heads, dependents = found.arcs[found.arcs[:, 1] > 0].T
    made[dependents - 1] = heads
    count = 0 if tree is None else int((tree.heads != made).sum())
    return text + (_LIFTED.format(count=count) if count else "")


def _draw_weights(axes: Any, found: DerivationTrace, layer: int, norm: Any) -> None:
    axes.imshow(
        found.weights[:, layer], cmap="Blues", norm=norm, aspect="auto", interpolation="nearest"
    )
    count, n = found.removed.shape
    # Lines between cells lead the eye. As grids of the axes they would take seconds.
    axes.vlines(np.arange(1, n) - 0.5, -0.5, count - 0.5, color=PALE, linewidth=0.3)
    axes.hlines(np.arange(1, count) - 0.5, -0.5, n - 0.5, color=PALE, linewidth=0.3)


def _draw_states(axes: Any, found: DerivationTrace) -> None:
    """The stack, what has left it, and the arcs."""
    from matplotlib.patches import Rectangle

    count = len(found.actions)
    stacked = np.flatnonzero(found.on_stack.any(axis=0))
    firsts = found.on_stack.argmax(axis=0)[stacked]
    lasts = firsts + found.on_stack.sum(axis=0)[stacked] - 1
    axes.vlines(stacked, firsts - 0.5, lasts, color=ORANGE, linewidth=0.7)
    for word, gone in enumerate(found.removed.sum(axis=0).tolist()):
        place = (word - 0.5, count - gone - 0.5)
        hatched = Rectangle(
            place, 1, gone, facecolor="none", edgecolor=_HATCH, hatch="//////", linewidth=0
        )
        axes.add_patch(hatched)
    made = np.flatnonzero(found.arcs[:, 1] > 0)
    heads, dependents = found.arcs[made].T - 1.0
    heads = np.where(heads < 0, -0.5, heads)
    axes.hlines(made, heads, dependents, color=ORANGE, linewidth=0.9)
    to_right = heads < dependents
    for chosen, marker, beside in ((to_right, ">", -0.42), (~to_right, "<", 0.42)):
        axes.plot(
            dependents[chosen] + beside,
            made[chosen],
            linestyle="none",
            marker=marker,
            markersize=4.2,
            markeredgewidth=0,
            color=ORANGE,
        )
    rows = np.arange(count)
    for words, colour in ((found.second, "white"), (found.top, ORANGE)):
        chosen = words > 0
        axes.plot(
            words[chosen] - 1,
            rows[chosen],
            linestyle="none",
            marker="o",
            markersize=3.2,
            markerfacecolor=colour,
            markeredgecolor=ORANGE,
            markeredgewidth=0.7,
            zorder=3,  # above the arrows
        )


def _name_words(axes: Any, words: Sequence[str], below: bool) -> None:
    axes.set_xlim(-0.5, len(words) - 0.5)
    axes.set_ylim(2 * len(words) - 0.5, -0.5)
    axes.set_xticks(range(len(words)), words)
    axes.tick_params(which="major", length=0, pad=2, labelsize=_SIZE)
    axes.tick_params(
        axis="x", labelrotation=90, top=True, labeltop=True, bottom=below, labelbottom=below
    )
    for spine in axes.spines.values():
        spine.set_visible(False)


def _name_probabilities(axes: Any, found: DerivationTrace) -> None:
    """Right of the last picture of a row; doubtful actions stand out."""
    percent = [f"{100 * probability:.0f}" for probability in found.probabilities.tolist()]
    for row, text in enumerate(["%", *percent], start=-1):
        doubtful = row >= 0 and found.probabilities[row] < _DOUBTFUL
        axes.annotate(
            text,
            (1, row),
            xycoords=("axes fraction", "data"),
            xytext=(15, 0),
            textcoords="offset points",
            fontsize=_SIZE,
            color="black" if doubtful else GREY,
            fontweight="bold" if doubtful else "normal",
            ha="right",
            va="center",
        )
