"""The commands that set two runs side by side."""

from __future__ import annotations

import hashlib
import json
import random
from pathlib import Path

import pytest

from spmrl_bench.leaderboard.record import Record, write_record
from spmrl_bench.scoring import Status
from tests.builders import (
    ATTACHED,
    LOOSE,
    SKIPPED,
    cli,
    joined,
    make_record,
    make_result,
)

SENTENCES = 120


def rows(errors: float, seed: int) -> list[tuple[int, ...]]:
    """Counts of a system with this share of wrong brackets on the same sentences."""
    choose = random.Random(seed)
    found = []
    for sentence in range(SENTENCES):
        gold = 5 + sentence % 17
        matched = sum(choose.random() > errors for _ in range(gold))
        found.append((gold, Status.VALID, matched, gold, gold, 0, gold, gold))
    return found


def record(errors: float, seed: int = 1, **signature: str) -> Record:
    found = rows(errors, seed)
    signature = {"seed": str(seed), **signature}
    return make_record(
        seed=seed,
        dev=make_result(*found, **signature),
        test=make_result(*found[:60], split="test", **signature),
        baselines={},
    )


@pytest.fixture
def names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names of the records of a good, a like and a bad system in the results of this folder."""
    monkeypatch.chdir(tmp_path)
    made = record(0.1), record(0.1, seed=2), record(0.2, seed=3)
    return [write_record(one, Path("results/runs")).stem for one in made]


def test_compare_prints_scores_intervals_and_both_p(names: list[str]) -> None:
    good, _, bad = names
    result = cli("compare", bad, good, "--split", "dev", "--trials", "499")
    assert result.exit_code == 0, result.output
    lines = result.stdout.splitlines()
    f1 = next(line for line in lines if line.startswith("F1 "))
    assert f1.split()[-2:] == ["0.0020", "0.0020"]
    assert lines[0].split() == ["A", "B", "B", "-", "A", "p", "randomisation", "p", "bootstrap"]
    assert {line.split()[0] for line in lines[2:5]} == {"F1", "recall", "precision"}
    before, after = (
        sum(row[2] for row in rows(errors, seed)) * 100 / sum(row[3] for row in rows(errors, seed))
        for errors, seed in ((0.2, 3), (0.1, 1))
    )
    assert f" {before:.2f} [" in f1
    assert f" {after:.2f} [" in f1
    assert f" {after - before:+.2f} [+" in f1
    assert "Randomisation: 499 random swaps; bootstrap: 499 draws; seed 0. Inter" in result.stdout
    assert lines[-2].startswith("A: scorer:")
    assert lines[-2].endswith("|seed:3|version:0.1.0")
    assert lines[-1].endswith("|seed:1|version:0.1.0")


def test_compare_counts_sentences(names: list[str]) -> None:
    result = cli("compare", *names[:2], "--split", "dev")
    pairs = list(zip(rows(0.1, 1), rows(0.1, 2), strict=True))
    better = sum(other[2] > one[2] for one, other in pairs)
    worse = sum(other[2] < one[2] for one, other in pairs)
    expected = (
        f"B is better than A on {better} sentences of dev, worse on {worse}, "
        f"equal on {SENTENCES - better - worse} (by F1)."
    )
    assert expected in result.stdout
    assert "LEFT OUT" not in result.stdout
    assert "Fewer than" not in result.stdout


def test_compare_prefers_test_and_prints_json(names: list[str]) -> None:
    def report(*options: str) -> dict[str, object]:
        result = cli("compare", *names[:2], "--format", "json", *options)
        assert result.exit_code == 0, result.output
        found: dict[str, object] = json.loads(result.stdout)
        return found

    first = report("--seed", "4", "--trials", "300")
    assert (first["split"], first["sentences"], first["skipped"]) == ("test", 60, 0)
    assert (first["seed"], first["trials"], first["level"]) == (4, 300, 95.0)
    figures = first["figures"]
    assert isinstance(figures, dict)
    assert list(figures) == ["f1", "recall", "precision"]
    assert 0.05 < figures["f1"]["p_randomisation"] <= 1
    assert figures["f1"]["interval"]["low"] < figures["f1"]["difference"]
    assert report("--seed", "4", "--trials", "300") == first
    assert report("--seed", "5", "--trials", "300") != first


def test_compare_takes_the_metric_that_is_asked_for(tmp_path: Path) -> None:
    rows_of = {0.1: [ATTACHED] * 3 + [LOOSE], 0.2: [LOOSE] * 4}
    paths = []
    for rate, attached in rows_of.items():
        dev = joined(make_result(*rows(rate, 1)[:4]), make_result(*attached, metric="attachment"))
        made = make_record(dev=dev, selected=False, test=None, baselines={})
        paths.append(str(write_record(made, tmp_path)))
    result = cli("compare", *paths, "--metric", "attachment")
    assert result.exit_code == 0, result.output
    lines = result.stdout.splitlines()
    # Of 16 words 13 and 4 have both right: three sentences with 4 and one, or all four, with 1.
    assert lines[2].split()[:2] == ["LAS", "81.25"]
    assert " 25.00 [" in lines[2]
    assert "worse on 3, equal on 1 (by LAS)" in result.stdout
    assert cli("compare", *paths).stdout.splitlines()[2].startswith("F1 ")
    wrong = cli("compare", *paths, "--metric", "attachmnt")
    assert "unknown metric 'attachmnt'. Did you mean attachment?" in wrong.stderr


def test_compare_says_what_is_left_out_and_that_all_swaps_were_tried(tmp_path: Path) -> None:
    paths = []
    for rate, seed in ((0.1, 1), (0.9, 2)):
        dev = make_result(*rows(rate, seed)[:5], SKIPPED, SKIPPED)
        made = make_record(dev=dev, selected=False, test=None, baselines={})
        paths.append(str(write_record(made, tmp_path)))
    result = cli("compare", *paths)
    assert "LEFT OUT of every figure: 2 sentences." in result.stdout
    assert "Randomisation: all swaps; bootstrap: 10,000 draws" in result.stdout
    assert "Fewer than 100 sentences: intervals and p bootstrap are rough." in result.stdout


def test_compare_takes_run_folders(names: list[str]) -> None:
    folder = Path("runs/german-mini/small-charlstm-seed4")
    (folder / "best").mkdir(parents=True)
    (folder / "best" / "weights.safetensors").write_bytes(b"weights")
    made = record(0.15, seed=4).model_copy(
        update={"weights": hashlib.sha256(b"weights").hexdigest()}
    )
    write_record(made, Path("results/runs"))
    result = cli("compare", str(folder), f"results/runs/{names[0]}.json", "--trials", "99")
    assert result.exit_code == 0, result.output
    assert "seed:4" in result.stdout.splitlines()[-2]


def test_explain_lists_the_keys_that_differ(names: list[str]) -> None:
    result = cli("explain", *names[:2])
    assert result.exit_code == 0
    assert [line.split() for line in result.stdout.splitlines()] == [
        ["key", "A", "B"],
        ["---------", "---", "---"],
        ["dev.seed", "1", "2"],
        ["test.seed", "1", "2"],
    ]
    same = cli("explain", names[0], names[0])
    assert len(same.stdout.splitlines()) == 2


def test_mistakes_give_one_message_and_status_1(names: list[str]) -> None:
    other = write_record(record(0.1, prm="COLLINS"), Path("results/runs"))
    for arguments, message in {
        ("compare", names[0], "zzz"): "zzz: no record; expected the file of a record, the beginn",
        ("compare", names[0], other.stem): "\n  prm: spmrl in the first, COLLINS in the second",
        ("explain", "results", names[0]): "results/best: no weights",
    }.items():
        result = cli(*arguments)
        assert (result.exit_code, result.stdout) == (1, "")
        assert result.stderr.startswith("spmrl-bench: ")
        assert message in result.stderr
