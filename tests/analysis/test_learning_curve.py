"""Learning curves: which records are points of one curve, the table, the picture, the files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from spmrl_bench.analysis.learning_curve import curves_document, draw_curves, learning_curves
from spmrl_bench.leaderboard.board import groups_of
from spmrl_bench.leaderboard.documents import write_document
from spmrl_bench.leaderboard.frame import by_age
from spmrl_bench.leaderboard.record import Record
from tests.builders import works
from tests.site.generated import run_record, system_record

WHOLE = 2000  # sentences of german-mini, as its manifest says


def ours(quality: float, sentences: int | None, seed: int = 1, **more: object) -> Record:
    given: dict[str, Any] = {"train.sentences": sentences} if sentences else {}
    return run_record("german-mini", "bilstm", seed, quality, recipe={"settings": given | more})


def theirs(quality: float, sentences: int | None) -> Record:
    values = {"sentences": sentences} if sentences else {}
    settings = {f"system.{key}": value for key, value in values.items()}
    recipe = {"kind": "system", "system": {"name": "Other"} | values, "settings": settings}
    return system_record("german-mini", "Other", quality).model_copy(update={"recipe": recipe})


def curves(*records: Record) -> pd.DataFrame:
    return learning_curves(groups_of(by_age(records)))


def points(*records: Record) -> dict[str, list[int]]:
    return curves(*records).groupby("system", sort=False)["sentences"].apply(list).to_dict()


def test_points_differ_in_their_sentences_and_seeds_only() -> None:
    records = [ours(0.8, 500), ours(0.7, 125), ours(0.9, None), ours(0.72, 125, seed=2)]
    others = [theirs(0.4, 125), theirs(0.6, None), run_record("german-mini", "once", 1, 0.5)]
    assert points(*records, *others) == {"bilstm": [125, 500, WHOLE], "Other 2": [125, WHOLE]}
    scores = [record.test.figure("brackets", "f1") for record in records[1::2] if record.test]
    first = next(curves(*records).itertuples())
    assert (first.seeds, first.mean) == (2, pytest.approx(sum(scores) / 2))


def test_other_settings_and_sizes_are_another_curve() -> None:
    quick = {"train.max_epochs": 5}
    records = [ours(0.7, 125), ours(0.9, 500), ours(0.5, 125, **quick), ours(0.6, 500, **quick)]
    assert list(points(*records)) == ["bilstm", "bilstm (max_epochs=5)"]
    assert list(points(*records[:3])) == ["bilstm"], "a point is no curve"
    large = [record.model_copy(update={"size": "published"}) for record in records[:2]]
    assert sorted(points(*records[:2], *large)) == ["bilstm, published", "bilstm, small"]
    for record in (recipe := [ours(0.2, 125), ours(0.3, 500)]):  # which says something else now
        record.recipe["train"] = {"max_epochs": 7}
    assert len(points(*records[:2], *recipe)) == 2


def test_a_table_and_a_picture() -> None:
    records = [ours(0.7, 125), ours(0.9, None), ours(0.72, 125, seed=2), theirs(0.4, 125)]
    found = curves(*records, theirs(0.5, 500))
    (table,) = curves_document(found).tables
    assert table.headings == ["system", "125", "500", "2,000"]
    one, two = table.rows
    assert [bool(cell) for cell in one] == [True, True, False, True]
    assert "±" in one[1]
    assert [bool(cell) for cell in two] == [True, True, True, False]
    *_, unused = draw_curves(pd.concat([found.assign(title=one) for one in "abc"])).figure.axes
    assert not unused.axison
    (axes,) = draw_curves(found).figure.axes
    assert [text.get_text() for text in axes.get_xticklabels()] == table.headings[1:]
    assert [text.get_text() for text in axes.get_legend().get_texts()] == [one[0], two[0]]
    drawn = [list(container.lines[0].get_xdata()) for container in axes.containers]
    assert drawn == [[125, WHOLE], [125, 500]]


def test_the_same_records_give_the_same_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write_document(ours(0.7, 125), Path("results/runs"))
    assert "learning-curves" not in works("results", "table").stderr
    write_document(ours(0.9, None), Path("results/runs"))
    kept = []
    for _ in range(2):
        said = works("results", "table").stderr
        assert "wrote results/learning-curves.{md,csv,tex} and .{png,svg}\n" in said
        kept.append({path.name: path.read_bytes() for path in Path("results").glob("learning-*")})
    assert kept[0] == kept[1]
    assert {name.partition(".")[2] for name in kept[0]} == {"md", "csv", "tex", "png", "svg"}
    lines = kept[0]["learning-curves.csv"].decode().splitlines()
    assert lines[0] == "title,system,sentences,seeds,mean,sd"
    assert [line.split(",")[:4] for line in lines[1:]] == [
        ["german-mini: F1", "bilstm", number, "1"] for number in ("125", "2000")
    ]
