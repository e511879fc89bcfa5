"""Spans traced back to heads, as a picture: for each span its heads and what they looked at."""

from __future__ import annotations

import textwrap
from typing import Any

import numpy as np

from spmrl_bench.analysis.attention_picture import LARGEST
from spmrl_bench.analysis.drawing import BLUE, GREY, ORANGE, Sheet, load_matplotlib
from spmrl_bench.analysis.head_trace import Rank, SentenceTrace, SpanTrace, heading, lead_text
from spmrl_bench.errors import SpmrlError

_CAPTION = (
    "Rows: the heads that contribute most to the label, {by}. Squares: how much each takes of "
    "each token, its strongest in percent; the span is framed. Bars: what the head brings into "
    "the lead of the label's score over that of the other one; thin black bars: by how much the "
    "lead falls without it. Parser: {model}."
)
_BY: dict[Rank, str] = {
    "lead": "by their parts of its lead",
    "without": "by what its lead loses without them",
    "norm": "by their shares of the span vector",
}
#: Tokens of each head whose weights are written out.
NUMBERED = 3
#: Inches: of a head, above the heads of a span, left of them, and of the bars.
_ROW = 0.17
_HEADER = 0.42
_LEFT = 0.6
_BARS = 1.5
_LABEL_SIZE = 6.5


def draw_trace(
    found: SentenceTrace, *, model: str, top: int = 5, by: Rank = "lead", title: str = ""
) -> Sheet:
    """One row of the picture for each span.

    Args:
        found: spans.
        model: what to call the parser.
        top: heads of each span.
        by: what they are ranked by.
        title: of the picture, if not the sentence's usual one.

    Raises:
        SpmrlError: there are no spans, the figure would be too large, or matplotlib is not
            installed.
    """
    spans = found.spans
    if not spans:
        raise SpmrlError("there are no spans to draw")
    tokens = ["START", *found.tree.words, "STOP"]
    pairs = [(span, span.top_heads(top, by)) for span in spans]
    below = max(0.4, 0.053 * max(map(len, tokens)) + 0.12)
    heights = [_HEADER + _ROW * len(heads) + below for _, heads in pairs]
    width = max(7.6, 0.16 * len(tokens) + _LEFT + _BARS + 0.5)
    if max(width, sum(heights)) > LARGEST:
        raise SpmrlError(
            f"the figure would be {width:.0f} by {sum(heights):.0f} inches; choose a --span, fewer "
            "heads (--top), or a shorter sentence"
        )
    caption = _CAPTION.format(by=_BY[by], model=model)
    sheet = Sheet(width, sum(heights), title or "Labels traced back to heads", caption)
    matplotlib = load_matplotlib()
    strongest = max(float(span.weights[heads].max()) for span, heads in pairs)
    norm = matplotlib.colors.Normalize(0, strongest)
    values = [np.concatenate((span.parts[heads], span.without[heads])) for span, heads in pairs]
    low = min(0.0, *(each.min() for each in values))
    high = max(0.0, *(each.max() for each in values))
    room = 0.05 * (high - low) or 1.0
    reached = 0.0
    for (span, heads), taken in zip(pairs, heights, strict=True):
        place = (reached + _HEADER, _ROW * len(heads))
        reached += taken
        left = sheet.place(_LEFT, place[0], width - _LEFT - _BARS - 0.5, place[1])
        right = sheet.place(width - _BARS - 0.35, place[0], _BARS, place[1])
        _draw_weights(left, span, heads, tokens, norm)
        _draw_bars(right, span, heads)
        right.set_xlim(low - room * (low < 0), high + room)
        # About 0.08 inches are the mean width of a bold character.
        letters = int((width - _LEFT) / 0.085) - len(heading(span))
        text = " ".join(found.tree.words[span.start : span.end])
        text = textwrap.shorten(text, max(letters, 20), placeholder=" ...")
        left.set_title(
            f"{heading(span)}: {text}",
            loc="left",
            fontsize=8.5,
            fontweight="bold",
            color=ORANGE if span.wrong else "black",
            pad=15,
        )
        left.annotate(
            f"{span.start}:{span.end}; {lead_text(span)}",
            (0, 1),
            xycoords="axes fraction",
            xytext=(0, 4),
            textcoords="offset points",
            fontsize=7,
            color=GREY,
        )
        right.set_xlabel("part of lead (points)", fontsize=6.5, labelpad=1.5)
    return sheet


def _draw_weights(
    axes: Any, span: SpanTrace, heads: list[int], tokens: list[str], norm: Any
) -> None:
    """What the heads looked at."""
    from matplotlib.patches import Rectangle

    axes.imshow(
        span.weights[heads], cmap="Blues", norm=norm, aspect="auto", interpolation="nearest"
    )
    for row, head in enumerate(heads):
        weights = span.weights[head]
        for token in np.argsort(-weights, kind="stable")[:NUMBERED].tolist():
            colour = "white" if norm(weights[token]) > 0.55 else "black"
            percent = f"{100 * weights[token]:.0f}"
            axes.text(token, row, percent, fontsize=5.5, color=colour, ha="center", va="center")
    frame = Rectangle(
        (span.start + 0.5, -0.5),
        span.end - span.start,
        len(heads),
        fill=False,
        edgecolor=ORANGE if span.wrong else "black",
        linewidth=1.2,
        clip_on=False,
    )
    axes.add_patch(frame)
    axes.set_xticks(range(len(tokens)), tokens)
    axes.set_yticks(range(len(heads)), [f"head {head}" for head in heads])
    axes.tick_params(length=0, pad=2, labelsize=_LABEL_SIZE)
    axes.tick_params(axis="x", labelrotation=90)
    for spine in axes.spines.values():
        spine.set_visible(False)


def _draw_bars(axes: Any, span: SpanTrace, heads: list[int]) -> None:
    """What the heads do for the label."""
    places = np.arange(len(heads))
    parts = span.parts[heads]
    axes.barh(places, parts, height=0.7, color=[BLUE if part >= 0 else ORANGE for part in parts])
    axes.barh(places, span.without[heads], height=0.2, color="black")
    axes.axvline(0, color="black", linewidth=0.6)
    axes.set_ylim(len(heads) - 0.5, -0.5)
    axes.set_yticks([])
    axes.grid(axis="x")
    axes.locator_params(axis="x", nbins=4)
    axes.tick_params(axis="x", labelsize=_LABEL_SIZE)
