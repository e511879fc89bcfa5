"""Figures: what is drawn of which arrays, within their edges, and the same each time."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg

from spmrl_bench.analysis.attention import draw_actions, draw_heads_of
from spmrl_bench.analysis.drawing import Figure
from spmrl_bench.analysis.heads import HeadContributions, Measure, draw_heads, order_of_heads
from spmrl_bench.analysis.study import load_study
from spmrl_bench.analysis.study_run import plan_study
from spmrl_bench.analysis.study_table import Findings, draw_study, write_study
from spmrl_bench.errors import RecordError, SpmrlError
from spmrl_bench.scoring.metric import SelectionMetric
from tests.analysis.test_studies import found_in, measured
from tests.laboratory import Laboratory
from tests.parsers.test_transition_parser import crossing, parser_of

F1 = SelectionMetric.parse("brackets.f1")


def inside(figure: Figure) -> list[str]:
    """The texts of a figure, none of which is beyond its edge."""
    FigureCanvasAgg(figure.figure).draw()
    whole, texts = figure.figure.bbox, []
    for text in figure.figure.findobj(match=lambda one: hasattr(one, "get_text")):
        if text.get_text() and text.get_visible():
            box = text.get_window_extent()
            assert whole.x0 <= box.x0 < box.x1 <= whole.x1, text.get_text()
            assert whole.y0 <= box.y0 < box.y1 <= whole.y1, text.get_text()
            texts.append(text.get_text())
    return texts


def labels(axis: Any) -> list[str]:
    return [label.get_text() for label in axis.get_ticklabels()]


def caption(figure: Figure) -> str:
    return figure.figure.texts[1].get_text().replace("\n", " ")


@pytest.mark.parametrize("seeds", [1, 3])
def test_systems_are_named_and_their_differences_are_bars(
    laboratory: Laboratory, seeds: int
) -> None:
    found = found_in(laboratory, seeds)
    left, right = draw_study(found).figure.axes
    assert labels(left.yaxis) == ["plain\n(reference)", "better", "worse", "new"]
    widths = [bar.get_width() for bar in right.patches]
    assert widths == [difference.mean for difference in found.differences.values()]
    diamonds = [line.get_xdata()[0] for line in right.lines if line.get_marker() == "D"]
    assert diamonds == [1.5, -2.0]
    small = [line for line in left.lines if line.get_markersize() == 3]
    assert len(small) == (4 if seeds > 1 else 0)
    assert left.get_xlabel() == "dev F1 (%)"


def test_settings_of_parsing_are_a_curve_without_what_is_far_below() -> None:
    work = plan_study(load_study("span-weight"), treebank="german-mini", seeds=2)
    values = {each.row.name: [80.0 + k / 10] * 2 for k, each in enumerate(work.runs)}
    values["lambda 0: arcs alone"] = [20.0] * 2
    only_f1 = replace(work, study=work.study.model_copy(update={"metric": F1, "beside": (F1,)}))
    (axes,) = draw_study(Findings(only_f1, measured(only_f1, values))).figure.axes
    assert labels(axes.xaxis)[:3] == ["0", "0.1", "0.2"]
    (curve,) = (line for line in axes.lines if line.get_marker() == "o")
    assert list(curve.get_ydata()) == [20.0, *(80.0 + k / 10 for k in range(1, 11))]
    low, high = axes.get_ylim()
    assert 72 < low < 80.1 < 81 < high


def test_files_are_the_same_each_time_and_tables_do_not_wait_for_matplotlib(
    laboratory: Laboratory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = found_in(laboratory)
    one, two = tmp_path / "one" / "some-1.0", tmp_path / "two" / "some-1.0"
    for place in (one, two):
        assert write_study(found, place) == ""
    endings = {path.name.removeprefix("some-1.0.") for path in one.parent.iterdir()}
    assert endings == {"csv", "md", "tex", "png", "svg"}
    for path in one.parent.iterdir():
        assert path.read_bytes() == (two.parent / path.name).read_bytes()
    with pytest.raises(RecordError, match=r"some\.csv: cannot be written"):
        write_study(found, one.with_name("some-1.0.csv") / "some")

    def absent() -> None:
        raise SpmrlError("figures need matplotlib")

    monkeypatch.setattr("spmrl_bench.analysis.drawing.load_matplotlib", absent)
    assert write_study(found, tmp_path / "some") == "figures need matplotlib"
    assert {path.suffix for path in tmp_path.glob("some.*")} == {".csv", ".md", ".tex"}


TOKENS = ["START", "the", "old", "dog", "STOP"]


def test_each_head_has_a_picture_in_each_part() -> None:
    maps = {part: np.full((4, 3, 5, 5), 0.2, np.float32) for part in ("content", "combined")}
    for value, marked in zip((0.25, 0.5), maps.values(), strict=True):
        marked[:, :, 3, 1] = value  # the third word takes more of the first
    figure = draw_heads_of(maps, TOKENS[1:-1], layers=[1, 3], heads=[0, 2], model="runs/some")
    assert "content alone" in inside(figure)
    blocks = [axes for axes in figure.figure.axes if axes.get_title()]
    titles = [f"layer {layer}, head {head}" for layer in (1, 3) for head in (0, 2)]
    for axes, value in zip(blocks, (0.25, 0.5), strict=True):
        assert [text.get_text() for text in axes.texts] == titles
        assert labels(axes.yaxis) == labels(axes.xaxis) == TOKENS * 2
        image = axes.images[0].get_array().filled(np.nan)
        # A token stands beside its row of the picture.
        for layer in range(2):
            for place in range(5):
                row = image[round(axes.get_yticks()[5 * layer + place])]
                assert np.nansum(row == value) == (2 if place == 3 else 0)
    large, some = {"combined": np.zeros((1, 1, 300, 300), np.float32)}, range(8)
    with pytest.raises(SpmrlError, match=r"^the figure would be \d+ by \d+ inches; choose fewer"):
        draw_heads_of(large, ["a"] * 298, layers=some, heads=some, model="some")


def test_every_row_of_actions_shows_its_state() -> None:
    words = ["a", "c", "Donaudampfschifffahrtsgesellschaft", "d", "e", "c", "a"]
    parser = parser_of(crossing(), max_positions=500, attention_layers=3, beam=1)
    found = parser.derivation(words)
    figure = draw_actions(found, layers=[0, 2], model="runs/some")
    inside(figure)
    left, right, _ = figure.figure.axes
    percent = [f"{100 * p:.0f}" for p in found.probabilities]
    assert labels(left.yaxis) == [" ".join(row) for row in zip(found.actions, percent, strict=True)]
    assert not any(labels(right.yaxis))
    for axes, layer in ((left, 0), (right, 2)):
        assert labels(axes.xaxis) == words
        np.testing.assert_array_equal(axes.images[0].get_array(), found.weights[:, layer])
        assert axes.get_title() == f"layer {layer}"
        _, _, stack, arrows = axes.collections
        # A line crosses the rows in which its word is on the stack.
        crossed = np.zeros_like(found.on_stack)
        for (word, first), (_, last) in stack.get_segments():
            crossed[round(first + 0.5) : round(last) + 1, int(word)] = True
        np.testing.assert_array_equal(crossed, found.on_stack)
        for marks, own in zip(axes.lines, (found.second, found.top), strict=True):
            points = dict(zip(marks.get_ydata(), marks.get_xdata(), strict=True))
            assert points == {row: word - 1 for row, word in enumerate(own) if word > 0}
        ends = arrows.XY[:, 0] + arrows.U + 0.3 * np.sign(arrows.U)
        drawn = {int(y): (x, round(end)) for (x, y), end in zip(arrows.XY, ends, strict=True)}
        assert drawn == {
            row: (head - 1 if head else -0.5, word - 1)
            for row, (head, word) in enumerate(found.arcs.tolist())
            if word > 0
        }


def test_words_are_drawn_as_they_are(tmp_path: Path) -> None:
    parser = parser_of(crossing(), max_positions=500, beam=1)
    words = ["$$", "$a^2$", "5$", "\N{NO-BREAK SPACE}", "\N{HEBREW LETTER ALEF}"]
    draw_actions(parser.derivation(words), layers=[0], model="$$").save(tmp_path / "some.svg")
    picture = (tmp_path / "some.svg").read_text(encoding="utf-8")
    assert all(picture.count(f">{word}<") == 1 for word in words)


def contributions(heads: int, measure: Measure = "norm") -> HeadContributions:
    """Of five categories, one rare and one that is never predicted."""
    means = np.random.default_rng(1).dirichlet([9.0] * heads, size=5)
    means[4] = np.nan
    firsts, missed = np.zeros((2, 5, heads), dtype=np.int64)
    firsts[:, 0], missed[:, 0] = [1000, 400, 30, 3, 0], [5, 4, 3, 2, 1]
    means -= 0.5 / heads if measure == "lead" else 0
    names = ("NP", "VP", "S+VP", "ADJP", "UCP")
    return HeadContributions(measure, 99, names, means, firsts, missed)


def best_heads(found: HeadContributions, row: int, most: int) -> list[int]:
    return np.argsort(-found.means[row], kind="stable")[:most].tolist()


def test_heads_stand_beside_those_of_the_same_category() -> None:
    relative = np.array([[0.0, 9, 1, 0, 8], [5, 0, 0, 7, 0]])
    assert order_of_heads(relative) == [1, 4, 2, 3, 0]
    assert order_of_heads(relative * [[100], [1]]) == [1, 4, 2, 3, 0]
    assert order_of_heads(np.zeros((2, 3))) == [0, 1, 2]


@pytest.mark.parametrize("heads", [1, 5, 112])
def test_the_heat_map_has_each_frequent_category_and_each_head(heads: int) -> None:
    found = contributions(heads)
    figure = draw_heads(found, model="runs/some")
    inside(figure)
    axes, bar = figure.figure.axes
    assert labels(axes.yaxis) == ["NP (1,000)", "VP (400)", "S+VP (30)"]
    order = list(map(int, labels(axes.xaxis)))
    assert sorted(order) == list(range(heads))
    image = axes.images[0].get_array()
    np.testing.assert_allclose(image, 100 * (found.means[:3, order] - 1 / heads), atol=1e-9)
    for row, line in enumerate(axes.lines):
        assert [order[x] for x in line.get_xdata()] == best_heads(found, row, 3)
        assert set(line.get_ydata()) == {row}
    assert "Left out: the 1 rarest" in caption(figure)
    assert bar.get_ylabel() == "share of span vector (%), less average head"
    nothing = np.zeros((0, heads), dtype=np.int64)
    with pytest.raises(SpmrlError, match="found no constituents"):
        draw_heads(HeadContributions("norm", 1, (), nothing, nothing, nothing), model="some")


def test_the_heat_map_of_named_categories() -> None:
    found = contributions(5, "lead")
    figure = draw_heads(found, ["VP"], model="runs/some")
    inside(figure)
    axes, _ = figure.figure.axes
    assert list(map(int, labels(axes.xaxis))) == best_heads(found, 1, 5)
    assert "Left out" not in caption(figure)
    both = draw_heads(found, ["ADJP", "NP"], model="runs/some").figure.axes[0]
    assert labels(both.yaxis) == ["ADJP (3)", "NP (1,000)"]
    with pytest.raises(SpmrlError, match=r"no span was predicted to be UCP \(1 were missed\)"):
        draw_heads(found, ["UCP"], model="runs/some")
