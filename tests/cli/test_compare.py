"""The command that compares two parsers: of runs, of variants with their seeds, of files."""

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
    refused,
    works,
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


def record(errors: float, seed: int = 1, variant: str = "charlstm", **signature: str) -> Record:
    found = rows(errors, seed)
    signature = {"seed": str(seed), **signature}
    return make_record(
        seed=seed,
        variant=variant,
        recipe={"variant": variant},
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
    result = works("compare", bad, good, "--split", "dev", "--trials", "499")
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
    (one,) = (line for line in lines if line.startswith("A: scorer:"))
    (other,) = (line for line in lines if line.startswith("B: scorer:"))
    assert one.endswith("|seed:3|version:0.1.0")
    assert other.endswith("|seed:1|version:0.1.0")


def test_compare_counts_sentences(names: list[str]) -> None:
    result = works("compare", *names[:2], "--split", "dev")
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
        result = works("compare", *names[:2], "--format", "json", *options)
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
        paths.append(write_record(made, tmp_path))
    result = works("compare", *paths, "--metric", "attachment")
    lines = result.stdout.splitlines()
    # Of 16 words 13 and 4 have both right: three sentences with 4 and one, or all four, with 1.
    assert lines[2].split()[:2] == ["LAS", "81.25"]
    assert " 25.00 [" in lines[2]
    assert "worse on 3, equal on 1 (by LAS)" in result.stdout
    assert works("compare", *paths).stdout.splitlines()[2].startswith("F1 ")
    wrong = refused("compare", *paths, "--metric", "attachmnt")
    assert "unknown metric 'attachmnt'. Did you mean attachment?" in wrong


def test_compare_says_what_is_left_out_and_that_all_swaps_were_tried(tmp_path: Path) -> None:
    paths = []
    for rate, seed in ((0.1, 1), (0.9, 2)):
        dev = make_result(*rows(rate, seed)[:5], SKIPPED, SKIPPED)
        made = make_record(dev=dev, selected=False, test=None, baselines={})
        paths.append(write_record(made, tmp_path))
    printed = works("compare", *paths).stdout
    assert "LEFT OUT of every figure: 2 sentences." in printed
    assert "Randomisation: all swaps; bootstrap: 10,000 draws" in printed
    assert "Fewer than 100 sentences: intervals and p bootstrap are rough." in printed


def test_compare_takes_run_folders(names: list[str]) -> None:
    folder = Path("runs/german-mini/small-charlstm-seed4")
    (folder / "best").mkdir(parents=True)
    (folder / "best" / "weights.safetensors").write_bytes(b"weights")
    made = record(0.15, seed=4).model_copy(
        update={"weights": hashlib.sha256(b"weights").hexdigest()}
    )
    write_record(made, Path("results/runs"))
    result = works("compare", folder, f"results/runs/{names[0]}.json", "--trials", "99")
    assert "|seed:4|" in result.stdout
    assert "no weights" in refused("compare", "results", names[0])


def test_compare_takes_all_seeds_of_variants(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for seed in (1, 2, 3):
        write_record(record(0.1, seed), Path("results/runs"))
        write_record(record(0.3, seed + 3, "bilstm"), Path("results/runs"))
    command = ("compare", "charlstm", "bilstm", "--split", "dev", "--trials", "99")
    report = json.loads(works(*command, "--format", "json").stdout)
    # The figures are those of the sentences of all seeds together.
    counts = [rows(0.1, seed) for seed in (1, 2, 3)]
    matched, gold = (sum(row[k] for some in counts for row in some) for k in (2, 3))
    assert report["figures"]["f1"]["one"] == pytest.approx(100 * matched / gold)
    assert report["seeds"]["p"] == pytest.approx(2 / 20)  # of 20 ways to divide six runs
    assert report["differences"]["recipe.variant"] == ["charlstm", "bilstm"]
    printed = works(*command, "--latex", "out/difference.tex").stdout
    assert f"Over seeds: {report['seeds']['A']} and {report['seeds']['B']}; p 0.1000" in printed
    assert "\nWhat else differs:\n" in printed
    latex = Path("out/difference.tex").read_text(encoding="utf-8")
    assert r"\begin{tabular}" in latex
    assert "A: charlstm, B: bilstm, dev" in latex
    wrong = refused("compare", "charlstm", "bilsmt")
    assert wrong.startswith("bilsmt: no record")


def test_compare_takes_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    gold = "(S (NP (D the) (N dog)) (VP (V barks)))\n" * 3
    texts = {"gold": gold, "a": gold.replace("(NP", "(X", 1), "b": gold, "c": f"(())\n{gold[40:]}"}
    for name, text in texts.items():
        Path(f"{name}.mrg").write_text(text, encoding="utf-8")
        heads = "2 0" if name != "a" else "0 1"
        conllu = "".join(
            f"{k}\tw{k}\t_\tT\tT\t_\t{head}\tr\t_\t_\n" for k, head in enumerate(heads.split(), 1)
        )
        Path(f"{name}.conllu").write_text(f"{conllu}\n", encoding="utf-8")
    printed = works("compare", "a.mrg", "b.mrg", "--gold", "gold.mrg").stdout
    assert printed.splitlines()[2].split()[:2] == ["F1", "88.89"]
    assert "B is better than A on 1 sentences of gold.mrg, worse on 0, equal on 2" in printed
    printed = works("compare", "a.conllu", "b.conllu", "--gold", "gold.conllu").stdout
    assert printed.splitlines()[2].split()[:2] == ["LAS", "0.00"]
    wrong = refused("compare", "a.mrg", "c.mrg", "--gold", "gold.mrg")
    assert "leave out different sentences of gold.mrg" in wrong


def test_what_does_not_compare_is_refused_and_what_differs_is_listed(names: list[str]) -> None:
    listed = works("compare", *names[:2]).stdout.partition("What else differs:")[2]
    assert [line.split() for line in listed.split("\n")[2:]][2:-1] == [
        ["dev.seed", "1", "2"],
        ["test.seed", "1", "2"],
    ]
    assert "What else differs" not in works("compare", names[0], names[0]).stdout
    other = write_record(record(0.1, prm="COLLINS"), Path("results/runs"))
    said = refused("compare", names[0], "zzz")
    assert said.startswith("zzz: no record; expected the file of a record, the beginning")
    result = cli("compare", names[0], other.stem)
    assert (result.exit_code, result.stdout) == (1, "")
    assert "\n  prm: spmrl in the first, COLLINS in the second" in result.stderr
