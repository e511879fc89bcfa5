"""Records of version 2 as they were written once, and the figures that tables made of them then."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from spmrl_bench.leaderboard.board import groups_of
from spmrl_bench.leaderboard.frame import StoredRecord, by_age, records_frame
from spmrl_bench.leaderboard.published import load_published
from spmrl_bench.leaderboard.record import read_records
from spmrl_bench.leaderboard.tables import results_csv, results_frame, results_markdown

GOLDEN = Path(__file__).parent / "golden"
SHIPPED = Path(__file__).resolve().parents[2] / "results" / "shipped"


def test_old_records_are_read_as_they_would_be_written_today() -> None:
    records = read_records(GOLDEN)
    assert [(one.variant, one.seed) for one in records] == [
        ("charlstm", 1), ("charlstm", 2), ("word-charlstm", 1),
    ]  # fmt: skip
    first, _, word = records
    assert (first.schema_version, first.kind, first.select) == (5, "chart", "brackets.f1")
    assert first.metrics == ["brackets"]
    assert first.treebank.fingerprints["constituents"].startswith("57814608")
    assert list(first.baselines) == ["right-branching"]
    assert (word.test, word.baselines) == (None, {})
    counts = first.dev.counts("brackets")
    assert len(counts) == first.dev.sentences == 300
    # A figure that was not stored then follows from the counts that were.
    assert "average_crossing" not in first.dev.metrics["brackets"].figures
    frame = records_frame(by_age([first]))
    crossing = frame[(frame["figure"] == "average_crossing") & (frame["split"] == "dev")]
    (total,) = crossing["value"] * 300
    assert total == pytest.approx(sum(first.dev.metrics["brackets"].counts["crossing"]))


def test_numbers_of_old_records_are_those_of_then() -> None:
    rows = results_frame(groups_of(by_age(read_records(GOLDEN))), load_published()[0])
    mean, first, second, word, baseline = (rows.loc[number] for number in range(5))
    assert (first["dev_f1"], second["dev_f1"]) == (85.29784537389101, 85.732606604681)
    assert (mean["dev_f1"], mean["dev_f1_sd"]) == (85.515225989286, 0.3074226144886101)
    assert (mean["test_f1"], mean["test_f1_sd"]) == (85.5629516742758, 0.3060598859585239)
    assert (first["test_recall"], first["test_precision"]) == (84.21725239616613, 87.40053050397879)
    assert (mean["test_complete_match"], mean["test_sentences"]) == (48.66666666666667, 300)
    assert (word["dev_f1"], word["published_test_f1"]) == (82.61964735516372, 87.69)
    assert (baseline["test_recall"], baseline["test_f1"]) == (
        20.447284345047922,
        13.325005205080158,
    )


def test_shipped_tables_are_those_of_the_shipped_records() -> None:
    if not (SHIPPED / "runs").is_dir():
        pytest.skip("no results beside the tests")
    asked = ["git", "status", "--porcelain", "--untracked-files=all", "--", str(SHIPPED)]
    changed = subprocess.run(asked, cwd=SHIPPED, capture_output=True, text=True, check=False)
    if changed.returncode or changed.stdout:
        pytest.skip("the results beside the tests are not only those that are shipped")
    records, published = read_records(SHIPPED / "runs"), load_published()[0]
    rows = results_csv(groups_of(by_age(records)), published)
    assert rows == (SHIPPED / "table.csv").read_text(encoding="utf-8")
    text = results_markdown(records, published)
    assert text == (SHIPPED / "table.md").read_text(encoding="utf-8")


def test_shipped_records_stand_beside_those_of_the_user() -> None:
    first, second, word = read_records(GOLDEN)
    mine = first.model_copy(update={"finished": word.finished})
    stored = [StoredRecord(one, shipped=True) for one in (first, second, word)]
    (group,) = groups_of([*stored, StoredRecord(mine)])
    assert [(entry.form, entry.title) for entry in group.entries] == [
        ("mean", "charlstm, shipped"),
        ("run", "charlstm"),
        ("run", "word-charlstm, shipped"),
        ("baseline", "right-branching"),
    ]
