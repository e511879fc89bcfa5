"""Pictures: that they are drawn, show every figure once, and are the same each time."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from spmrl_bench.analysis.attention_picture import draw_attention
from spmrl_bench.analysis.definition import load_study
from spmrl_bench.analysis.drawing import Sheet
from spmrl_bench.analysis.findings import Findings
from spmrl_bench.analysis.study_picture import draw_study
from spmrl_bench.analysis.study_table import write_study
from spmrl_bench.analysis.trials import plan_study
from spmrl_bench.errors import RecordError, SpmrlError
from spmrl_bench.scoring.metric import SelectionMetric
from spmrl_bench.training.schedule import Progress
from tests.analysis.examples import measured, planned, study_of
from tests.analysis.test_findings import ROWS, SCORES
from tests.laboratory import Laboratory

F1 = SelectionMetric.parse("brackets.f1")
WINDOWS = {
    "no window": {"published": 93.0},
    "window 5, strict": {"published": 80.0, "limit": {"window": 5}},
    "window 5, relaxed": {"published": 90.0, "limit": {"window": 5, "relaxed": True}},
    "window 20, strict": {"published": 92.0, "model": {"attention_window": 20}},
}


def findings_of(laboratory: Laboratory, seeds: int, figure: str = "systems") -> Findings:
    rows = WINDOWS if figure == "windows" else ROWS
    work = planned(laboratory, study_of(rows, figure=figure), seeds=seeds)
    scores = SCORES if figure == "systems" else {
        name: [70.0 + row + seed / 2 for seed in range(seeds)] for row, name in enumerate(WINDOWS)
    }  # fmt: skip
    return Findings(work, measured(work, {name: f1[:seeds] for name, f1 in scores.items()}))


def texts(sheet: Sheet) -> list[str]:
    sheet.figure.canvas.draw()
    return [text.get_text() for text in sheet.figure.findobj(match=_is_text)]


def _is_text(artist: object) -> bool:
    return hasattr(artist, "get_text") and bool(artist.get_text())


@pytest.mark.parametrize("seeds", [1, 3])
def test_systems_are_named_and_their_differences_are_bars(
    laboratory: Laboratory, seeds: int
) -> None:
    found = findings_of(laboratory, seeds)
    sheet = draw_study(found)
    left, right = sheet.figure.axes
    names = [label.get_text() for label in left.get_yticklabels()]
    assert names == ["plain\n(reference)", "better", "worse", "new"]
    widths = [bar.get_width() for bar in right.patches]
    assert widths == [difference.mean for difference in found.differences.values()]
    diamonds = [line.get_xdata()[0] for line in right.lines if line.get_marker() == "D"]
    assert diamonds == [1.5, -2.0]
    small = [line for line in left.lines if line.get_markersize() == 3]
    assert len(small) == (4 if seeds > 1 else 0)
    assert "dev F1 (%)" in texts(sheet)
    assert any("difference to the reference (points)" in text for text in texts(sheet))


@pytest.mark.parametrize("seeds", [1, 2])
def test_settings_of_parsing_are_a_curve_and_what_is_far_below_stands_at_its_edge(
    seeds: int,
) -> None:
    work = plan_study(load_study("span-weight"), treebank="german-mini", seeds=seeds)
    values = {trial.row.name: [80.0 + k / 10] * seeds for k, trial in enumerate(work.trials)}
    values["lambda 0: arcs alone"] = [20.0] * seeds
    only_f1 = replace(work, study=work.study.model_copy(update={"metric": F1, "beside": (F1,)}))
    (axes,) = draw_study(Findings(only_f1, measured(only_f1, values))).figure.axes
    assert [label.get_text() for label in axes.get_xticklabels()][:3] == ["0", "0.1", "0.2"]
    curve = next(line for line in axes.lines if line.get_marker() == "o")
    assert list(curve.get_ydata()) == [80.0 + k / 10 for k in range(1, 11)]
    (edge,) = (line for line in axes.lines if line.get_marker() == "v")
    low, high = axes.get_ylim()
    assert list(edge.get_xdata()) == [0]
    assert low < edge.get_ydata()[0] < 80.1 < high < 82
    assert [text.get_text() for text in axes.texts] == ["20.0"]


def test_minutes_of_training_are_curves_of_the_best_score_known_by_then(
    laboratory: Laboratory,
) -> None:
    rows: dict[str, dict[str, object]] = {"slow": {}, "quick": {"model": {"layers": 2}}, "old": {}}
    rows["old"] = {"model": {"layers": 3}}
    work = planned(laboratory, study_of(rows, figure="minutes", minutes=[1, 9]), seeds=2)
    plain = measured(work, {"slow": [70, 71], "quick": [80, 81], "old": [60, 61]})
    curves = {
        "slow": ([(60, 40.0), (120, 70.0)], [(90, 50.0), (150, 71.0)]),
        "quick": ([(30, 80.0), (60, 79.0)], [(30, 60.0), (90, 81.0)]),
        "old": ([(30, 60.0)], []),
    }
    known = [
        replace(
            one,
            ended=tuple(
                Progress(curve=curve, stopped_by="max_epochs") for curve in curves[one.name]
            ),
        )
        for one in plain
    ]
    sheet = draw_study(Findings(work, known))
    (axes,) = sheet.figure.axes
    drawn = {
        line.get_label(): list(zip(line.get_xdata(), line.get_ydata(), strict=True))
        for line in axes.lines
        if line.get_drawstyle() == "steps-post"
    }
    assert drawn == {
        "slow (reference)": [(1.5, 45.0), (2.0, 60.0)],
        "quick": [(0.5, 70.0), (1.0, 70.0)],
    }
    assert any("Without times: old." in text.replace("\n", " ") for text in texts(sheet))
    assert [line.get_xdata()[0] for line in axes.lines if line.get_linewidth() == 0.6] == [1]


@pytest.mark.parametrize("seeds", [1, 2])
def test_windows_are_curves_over_their_size(laboratory: Laboratory, seeds: int) -> None:
    found = findings_of(laboratory, seeds, "windows")
    left, right = draw_study(found).figure.axes
    assert [label.get_text() for label in left.get_xticklabels()] == ["5", "20", "∞"]
    means = {one.name: one.score.mean for one in found.rows}
    curves = [list(line.get_ydata()) for line in left.lines if line.get_linestyle() == "-"]
    strict = ["window 5, strict", "window 20, strict", "no window"]
    relaxed = ["window 5, relaxed", "no window"]
    assert curves[:2] == [[means[name] for name in names] for names in (strict, relaxed)]
    published = [list(line.get_ydata()) for line in right.lines if line.get_linestyle() == "--"]
    assert published == [[-13.0, -1.0, 0.0], [-3.0, 0.0]]


def test_all_files_are_written_and_the_same_each_time(
    laboratory: Laboratory, tmp_path: Path
) -> None:
    first, second = tmp_path / "one" / "some-1.0", tmp_path / "two" / "some-1.0"
    for place in (first, second):
        assert write_study(findings_of(laboratory, 3), place) == ""
    names = {path.name for path in first.parent.iterdir()}
    assert names == {f"some-1.0.{ending}" for ending in ("csv", "md", "tex", "png", "svg")}
    for path in first.parent.iterdir():
        assert path.read_bytes() == (second.parent / path.name).read_bytes()


def test_without_matplotlib_there_are_tables_and_a_reason(
    laboratory: Laboratory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def absent() -> None:
        raise SpmrlError("figures need matplotlib")

    monkeypatch.setattr("spmrl_bench.analysis.study_table.load_matplotlib", absent)
    assert write_study(findings_of(laboratory, 1), tmp_path / "some") == "figures need matplotlib"
    assert {path.suffix for path in tmp_path.glob("some.*")} == {".csv", ".md", ".tex"}


def test_files_that_cannot_be_written_are_named(laboratory: Laboratory, tmp_path: Path) -> None:
    (tmp_path / "folder").write_text("not a folder")
    with pytest.raises(RecordError, match=r"some\.csv: cannot be written"):
        write_study(findings_of(laboratory, 1), tmp_path / "folder" / "some")
    with pytest.raises(RecordError, match=r"some\.png: cannot be written"):
        Sheet(3, 3, "", "").save(tmp_path / "folder" / "some.png")


# Attention ------------------------------------------------------------------------------


TOKENS = ["START", "the", "old", "dog", "STOP"]


def weights(layers: int, heads: int, tokens: int) -> np.ndarray:
    return np.full((layers, heads, tokens, tokens), 1 / tokens, dtype=np.float32)


def test_each_head_has_a_picture_in_each_part() -> None:
    maps = {part: weights(4, 3, 5) for part in ("content", "combined")}
    for value, marked in zip((0.25, 0.5), maps.values(), strict=True):
        marked[:, :, 3, 1] = value  # the third word takes more of the first
    sheet = draw_attention(maps, TOKENS[1:-1], layers=[1, 3], heads=[0, 2], model="runs/some")
    blocks = [axes for axes in sheet.figure.axes if axes.get_title()]
    titles = [f"layer {layer}, head {head}" for layer in (1, 3) for head in (0, 2)]
    for axes, value in zip(blocks, (0.25, 0.5), strict=True):
        assert [text.get_text() for text in axes.texts] == titles
        assert [label.get_text() for label in axes.get_yticklabels()] == TOKENS * 2
        assert [label.get_text() for label in axes.get_xticklabels()] == TOKENS * 2
        image = axes.images[0].get_array().filled(np.nan)
        # A token stands beside its row of the picture.
        for layer in range(2):
            for place in range(5):
                row = image[round(axes.get_yticks()[5 * layer + place])]
                assert np.nansum(row == value) == (2 if place == 3 else 0)
    assert any("content" in text for text in texts(sheet))


def test_a_figure_larger_than_a_wall_is_refused() -> None:
    with pytest.raises(SpmrlError, match=r"^the figure would be \d+ by \d+ inches; choose a --l"):
        draw_attention(
            {"combined": weights(1, 1, 300)},
            ["a"] * 298,
            layers=range(8),
            heads=range(8),
            model="some",
        )
