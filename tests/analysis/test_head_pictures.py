"""Pictures of contributions and traces: everything is there, in its place, within the figure."""

from __future__ import annotations

import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg

from spmrl_bench.analysis.drawing import BLUE, ORANGE, Sheet
from spmrl_bench.analysis.head_contributions import HeadContributions, Measure
from spmrl_bench.analysis.head_picture import draw_categories, draw_heads, order_of_heads
from spmrl_bench.analysis.head_trace import SentenceTrace, SpanTrace, trace
from spmrl_bench.analysis.trace_picture import draw_trace
from spmrl_bench.errors import SpmrlError
from spmrl_bench.trees.tree import Tree
from tests.analysis.constructed import random_parser
from tests.analysis.test_head_trace import GOLD, WORDS


def contributions(heads: int, measure: Measure = "norm") -> HeadContributions:
    """Of five categories, one rare and one that is never predicted."""
    means = np.random.default_rng(1).dirichlet([9.0] * heads, size=5)
    if measure == "lead":
        means -= 0.5 / heads
    means[4] = np.nan
    firsts = np.zeros((5, heads), dtype=np.int64)
    spans = np.array([1000, 400, 30, 3, 0])
    firsts[:, 0] = spans
    names = ("NP", "VP", "S+VP", "ADJP", "UCP")
    missed = np.array([5, 4, 3, 2, 1])
    return HeadContributions(measure, 99, names, spans, means, firsts, missed, firsts)


def inside(sheet: Sheet) -> None:
    """No text is beyond the edge of the figure."""
    FigureCanvasAgg(sheet.figure).draw()
    whole = sheet.figure.bbox
    texts = sheet.figure.findobj(match=lambda one: hasattr(one, "get_text"))
    for text in texts:
        if text.get_text() and text.get_visible():
            box = text.get_window_extent()
            assert whole.x0 <= box.x0 < box.x1 <= whole.x1, text.get_text()
            assert whole.y0 <= box.y0 < box.y1 <= whole.y1, text.get_text()


def test_heads_stand_beside_those_of_the_same_category() -> None:
    relative = np.array([[0.0, 9, 1, 0, 8], [5, 0, 0, 7, 0]])
    assert order_of_heads(relative) == [1, 4, 2, 3, 0]
    assert order_of_heads(relative * [[100], [1]]) == [1, 4, 2, 3, 0]
    assert order_of_heads(np.zeros((2, 3))) == [0, 1, 2]


@pytest.mark.parametrize("heads", [1, 5, 60, 112])
def test_the_heat_map_has_each_frequent_category_and_each_head(heads: int) -> None:
    found = contributions(heads)
    sheet = draw_heads(found, model="runs/some")
    inside(sheet)
    *bands, bar = sheet.figure.axes
    assert len(bands) == (2 if heads > 64 else 1)
    shown: list[int] = []
    for axes in bands:
        names = [label.get_text() for label in axes.get_yticklabels()]
        assert names == ["NP (1,000)", "VP (400)", "S+VP (30)"]
        order = [int(label.get_text()) for label in axes.get_xticklabels()]
        image = axes.images[0].get_array().filled(np.nan)[:, : len(order)]
        np.testing.assert_allclose(image, 100 * (found.means[:3, order] - 1 / heads), atol=1e-9)
        shown += order
    assert sorted(shown) == list(range(heads))
    marks = [
        (int(y), int(axes.get_xticklabels()[int(x)].get_text()))
        for axes in bands
        for line in axes.lines
        for x, y in zip(line.get_xdata(), line.get_ydata(), strict=True)
    ]
    assert sorted(marks) == sorted(
        (row, head) for row in range(3) for head in found.top_heads(found.categories[row], 3)
    )
    assert "Left out: the rarest category" in sheet.figure.texts[1].get_text()
    assert bar.get_ylabel() == "share of span vector (%), less average head"


@pytest.mark.parametrize("heads", [5, 60, 112])
def test_bars_show_each_head_and_mark_the_first(heads: int) -> None:
    found = contributions(heads, "lead")
    sheet = draw_categories(found, ["VP"], model="runs/some")
    inside(sheet)
    bars = [bar for axes in sheet.figure.axes for bar in axes.patches]
    labels = [
        int(label.get_text()) for axes in sheet.figure.axes for label in axes.get_xticklabels()
    ]
    heights = [bar.get_height() for bar in bars]
    assert heights == sorted(found.means[1], reverse=True)
    assert labels == found.top_heads("VP", heads)
    from matplotlib.colors import to_hex

    colours = [to_hex(bar.get_facecolor()).upper() for bar in bars]
    assert colours[:3] == [BLUE] * 3
    assert BLUE not in colours[3:]
    assert all(
        (height < 0) == (colour == ORANGE)
        for height, colour in zip(heights[3:], colours[3:], strict=True)
    )


def test_bars_of_several_categories_have_the_same_order() -> None:
    sheet = draw_categories(contributions(60), ["S+VP", "NP"], model="runs/some")
    inside(sheet)
    one, other = (
        [label.get_text() for label in axes.get_xticklabels()] for axes in sheet.figure.axes
    )
    assert one == other
    assert [axes.get_title(loc="left") for axes in sheet.figure.axes] == [
        "S+VP (30 spans)", "NP (1,000 spans)",
    ]  # fmt: skip


def test_what_cannot_be_drawn() -> None:
    found = contributions(5)
    with pytest.raises(SpmrlError, match=r"unknown category 'VPP'\. Did you mean VP"):
        draw_categories(found, ["VPP"], model="some")
    with pytest.raises(SpmrlError, match=r"no span was predicted to be UCP \(1 were missed\)"):
        draw_categories(found, ["UCP"], model="some")
    shapes = (0, (0, 5), (0, 5), 0, (0, 5))
    none = HeadContributions("norm", 1, (), *(np.zeros(shape, dtype=np.int64) for shape in shapes))
    with pytest.raises(SpmrlError, match="found no constituents"):
        draw_heads(none, model="some")
    with pytest.raises(SpmrlError, match="there are no spans to draw"):
        draw_trace(SentenceTrace(GOLD, None, (), 0), model="some")
    words = ["dog"] * 600
    values = np.zeros(5)
    span = SpanTrace(
        0, 1, ("NP",), None, (), 1.0, 0.0, True, values, values, values, np.ones((5, 602))
    )
    long = SentenceTrace(Tree.build(words, words, [(0, 600, "S")]), None, (span,), 1)
    with pytest.raises(SpmrlError, match=r"^the figure would be \d+ by \d+ inches; choose a --sp"):
        draw_trace(long, model="some")


def test_a_trace_has_a_row_for_each_span() -> None:
    found = trace(random_parser(), WORDS, gold=GOLD, spans=[(0, 7), (2, 6), (6, 7)])
    sheet = draw_trace(found, model="runs/some", top=3)
    inside(sheet)
    axes = sheet.figure.axes
    assert len(axes) == 2 * len(found.spans)
    for span, (left, right) in zip(
        found.spans, zip(axes[::2], axes[1::2], strict=True), strict=True
    ):
        heads = span.top_heads(3)
        assert [label.get_text() for label in left.get_yticklabels()] == [
            f"head {head}" for head in heads
        ]
        tokens = [label.get_text() for label in left.get_xticklabels()]
        assert tokens == ["START", *WORDS, "STOP"]
        np.testing.assert_allclose(left.images[0].get_array(), span.weights[heads])
        (frame,) = left.patches
        assert (frame.get_x(), frame.get_width()) == (span.start + 0.5, span.end - span.start)
        widths = [bar.get_width() for bar in right.patches]
        assert widths == [*span.parts[heads], *span.without[heads]]
        assert left.get_title(loc="left").endswith(" ".join(WORDS[span.start : span.end]))
    long = "Donaudampfschifffahrtsgesellschaft"
    for sentence in (["Go"], [long] * 3, ["word"] * 17):
        whole = [(0, len(sentence))]
        inside(draw_trace(trace(random_parser(), sentence, spans=whole), model="runs/some"))
