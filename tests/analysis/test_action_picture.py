"""Pictures of attention before actions: each row shows its action, its weights and its state."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.patches import Rectangle

from spmrl_bench.analysis.action_picture import PAGE, draw_actions
from spmrl_bench.analysis.drawing import Sheet
from spmrl_bench.parsers.views import DerivationTrace
from tests.analysis.test_head_pictures import inside
from tests.parsers.test_transition_parser import crossing, parser_of

WORDS = ["a", "c", "b", "d", "e", "c", "a"]


def found_in(words: Sequence[str], **changes: Any) -> DerivationTrace:
    made = parser_of(crossing(), max_positions=500, attention_layers=3, beam=1, **changes)
    return made.derivation(words)


def pictures(sheet: Sheet) -> list[Any]:
    """The axes of layers, without that of the colour bar."""
    return sheet.figure.axes[:-1]


def test_every_row_shows_its_action_and_its_state() -> None:
    found = found_in(WORDS)
    sheet = draw_actions(found, layers=[0, 2], model="runs/some")
    inside(sheet)
    left, right = pictures(sheet)
    assert [label.get_text() for label in left.get_yticklabels()] == list(found.actions)
    assert not any(label.get_text() for label in right.get_yticklabels())
    for axes, layer in ((left, 0), (right, 2)):
        assert [label.get_text() for label in axes.get_xticklabels()] == WORDS
        np.testing.assert_array_equal(axes.images[0].get_array(), found.weights[:, layer])
        assert f"layer {layer}" in [text.get_text() for text in axes.texts]
        cells_down, cells_across, stack, arcs = axes.collections
        assert len(cells_down.get_segments()) == len(WORDS) - 1
        assert len(cells_across.get_segments()) == len(found.actions) - 1
        # A line crosses the rows in which its word is on the stack.
        crossed = np.zeros_like(found.on_stack)
        for (word, first), (_, last) in stack.get_segments():
            crossed[round(first + 0.5) : round(last) + 1, int(word)] = True
        np.testing.assert_array_equal(crossed, found.on_stack)
        hatched = np.zeros_like(found.removed)
        for patch in axes.patches:
            if isinstance(patch, Rectangle) and patch.get_hatch():
                top, height = round(patch.get_y() + 0.5), round(patch.get_height())
                hatched[top : top + height, round(patch.get_x() + 0.5)] = True
        np.testing.assert_array_equal(hatched, found.removed)
        right_heads, left_heads, second, top = axes.lines
        for marks, words in ((second, found.second), (top, found.top)):
            points = dict(zip(marks.get_ydata(), marks.get_xdata(), strict=True))
            assert points == {row: word - 1 for row, word in enumerate(words) if word > 0}
        rows = {row: arc for row, arc in enumerate(found.arcs.tolist()) if arc[1] > 0}
        ends = {int(y): (start, end) for (start, y), (end, _) in arcs.get_segments()}
        assert ends == {
            row: (head - 1 if head else -0.5, word - 1) for row, (head, word) in rows.items()
        }
        # The head of an arrow is at the dependent, on the side of the head.
        for marks, sign in ((right_heads, 1), (left_heads, -1)):
            pointed = dict(zip(marks.get_ydata(), marks.get_xdata(), strict=True))
            assert [*pointed] == [
                row for row, (head, word) in rows.items() if (word - head) * sign > 0
            ]
            assert all(
                0 < (rows[row][1] - 1 - place) * sign < 0.5 for row, place in pointed.items()
            )


def test_probabilities_stand_beside_their_rows_once() -> None:
    values = np.linspace(0, 1, 14)
    found = replace(found_in(WORDS), probabilities=values, score=-1.234)
    left, right = pictures(draw_actions(found, layers=[0, 1], model="runs/some"))
    assert not _percent(left)
    texts = _percent(right)
    assert {row: text.get_text() for row, text in texts.items()} == {
        row: f"{100 * value:.0f}" for row, value in enumerate(values)
    }
    assert [row for row, text in texts.items() if text.get_fontweight() == "bold"] == [*range(12)]


def _percent(axes: Any) -> dict[int, Any]:
    """Numbers beside a picture, by row."""
    return {text.xy[1]: text for text in axes.texts if text.get_text().isdigit()}


LONG = "Donaudampfschifffahrtsgesellschaft"


@pytest.mark.parametrize(
    ("words", "layers", "across"),
    [
        (["Go"], [0, 1, 2], 3),
        (["WWWWWWWWWWWW"] * 2, [0, 1, 2], 3),
        (["a"] * 12, [0, 1, 2], 3),
        ([LONG, *["word"] * 19], [0, 1, 2], 3),
        (["word"] * 30, [0, 1, 2], 2),
        ([LONG] * 12, [1], 1),
        (["word"] * 40, [0, 2], 1),
    ],
)
def test_pictures_stand_side_by_side_where_they_fit(
    words: list[str], layers: list[int], across: int
) -> None:
    sheet = draw_actions(found_in(words), layers=layers, model="runs/some")
    inside(sheet)
    boxes = [axes.get_window_extent() for axes in pictures(sheet)]
    assert len(boxes) == len(layers)
    assert len({round(box.x0) for box in boxes}) == across
    assert len({round(box.y0) for box in boxes}) == -(-len(layers) // across)
    if len(words) <= 30:
        assert sheet.figure.get_figwidth() <= PAGE + 0.01
    # No text of a picture is in another picture, and titles do not touch each other.
    for number, axes in enumerate(pictures(sheet)):
        texts = [*axes.texts, *axes.get_xticklabels(), *axes.get_yticklabels()]
        shown = [text.get_window_extent() for text in texts if text.get_text()]
        others = [box for other, box in enumerate(boxes) if other != number]
        assert not any(text.overlaps(box) for text in shown for box in others)
    titles = [
        text.get_window_extent()
        for axes in pictures(sheet)
        for text in axes.texts
        if text.get_text().startswith("layer")
    ]
    assert len(titles) == len(layers)
    assert not any(one.overlaps(other) for k, one in enumerate(titles) for other in titles[k + 1 :])


def test_words_are_drawn_as_they_are(tmp_path: Path) -> None:
    words = ["$$", "$a^2$", "5$", "\N{NO-BREAK SPACE}", "\N{HEBREW LETTER ALEF}"]
    draw_actions(found_in(words), layers=[0], model="$$").save(tmp_path / "some.svg")
    picture = (tmp_path / "some.svg").read_text(encoding="utf-8")
    assert all(picture.count(f">{word}<") == 1 for word in words)
