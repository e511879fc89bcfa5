"""The commands on results: which parser is better, and the tables of all records."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from spmrl_bench.leaderboard.documents import write_document
from spmrl_bench.leaderboard.record import Record
from spmrl_bench.readers.conll import conll_lines
from tests.builders import (
    ATTACHED,
    LOOSE,
    SKIPPED,
    cli,
    joined,
    make_record,
    make_result,
    make_treebank,
    noisy,
    refused,
    works,
)

RESULTS = Path("results")
TABLE = ("results", "table")


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def record(errors: float, seed: int = 1, variant: str = "charlstm", **signature: str) -> Record:
    found = noisy(errors, seed, 120)
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
def names() -> list[str]:
    """Names of the records of a good, a like and a bad system in the results of this folder."""
    made = record(0.1), record(0.1, seed=2), record(0.2, seed=3)
    return [write_document(one, RESULTS / "runs").stem for one in made]


def percentage(counts: Sequence[list[tuple[int, ...]]]) -> float:
    matched, gold = (sum(row[k] for some in counts for row in some) for k in (2, 3))
    return 100 * matched / gold


def test_scores_intervals_and_both_p(names: list[str]) -> None:
    good, _, bad = names
    printed = works("compare", bad, good, "--split", "dev", "--trials", "499").stdout
    lines = printed.splitlines()
    assert lines[0].split() == ["A", "B", "B", "-", "A", "p", "randomisation", "p", "bootstrap"]
    assert [line.split()[0] for line in lines[2:5]] == ["F1", "recall", "precision"]
    assert lines[2].split()[-2:] == ["0.0020", "0.0020"]
    before, after = percentage([noisy(0.2, 3, 120)]), percentage([noisy(0.1, 1, 120)])
    for shown in (f" {before:.2f} [", f" {after:.2f} [", f" {after - before:+.2f} [+"):
        assert shown in lines[2]
    pairs = list(zip(noisy(0.2, 3, 120), noisy(0.1, 1, 120), strict=True))
    better = sum(other[2] > one[2] for one, other in pairs)
    worse = sum(other[2] < one[2] for one, other in pairs)
    assert f"B is better than A on {better} sentences of dev, worse on {worse}, equal" in printed
    assert "Randomisation: 499 random swaps; bootstrap: 499 draws; seed 0. Inter" in printed


def test_json_and_the_split_that_both_have(names: list[str]) -> None:
    def report(*options: str) -> dict[str, Any]:
        printed = works("compare", *names[:2], "--format", "json", "--trials", "300", *options)
        return dict(json.loads(printed.stdout))

    first = report("--seed", "4")
    assert (first["split"], first["sentences"], first["skipped"]) == ("test", 60, 0)
    assert list(first["figures"]) == ["f1", "recall", "precision"]
    assert report("--seed", "4") == first != report("--seed", "5")


def test_the_metric_that_is_asked_for_and_what_is_left_out(tmp_path: Path) -> None:
    paths = []
    for rate, attached in ((0.1, [ATTACHED] * 3 + [LOOSE] * 4), (0.9, [LOOSE] * 7)):
        brackets = make_result(*noisy(rate, 1, 5), SKIPPED, SKIPPED)
        dev = joined(brackets, make_result(*attached, metric="attachment"))
        made = make_record(dev=dev, selected=False, test=None, baselines={})
        paths.append(write_document(made, tmp_path))
    printed = works("compare", *paths, "--metric", "attachment").stdout
    # Of 28 words 16 and 7 have both right: three sentences with 4 and four, or all, with 1.
    row = printed.splitlines()[2]
    assert row.split()[:2] == ["LAS", "57.14"]
    assert " 25.00 [" in row
    assert "worse on 3, equal on 4 (by LAS)" in printed
    printed = works("compare", *paths).stdout
    assert printed.splitlines()[2].startswith("F1 ")
    assert "LEFT OUT of every figure: 2 sentences." in printed
    assert "Randomisation: all swaps; bootstrap: 10,000 draws" in printed


def test_compare_takes_all_seeds_of_variants() -> None:
    for seed in (1, 2, 3):
        write_document(record(0.1, seed), RESULTS / "runs")
        write_document(record(0.3, seed + 3, "bilstm"), RESULTS / "runs")
    command = ("compare", "charlstm", "bilstm", "--split", "dev", "--trials", "99")
    report = json.loads(works(*command, "--format", "json").stdout)
    # The figures are those of the sentences of all seeds together.
    expected = percentage([noisy(0.1, seed, 120) for seed in (1, 2, 3)])
    assert report["figures"]["f1"]["one"] == pytest.approx(expected)
    assert report["seeds"]["p"] == pytest.approx(2 / 20)  # of 20 ways to divide six runs
    assert report["differences"]["recipe.variant"] == ["charlstm", "bilstm"]
    printed = works(*command).stdout
    assert f"Over seeds: {report['seeds']['A']} and {report['seeds']['B']}; p 0.1000" in printed
    assert "\nWhat else differs:\n" in printed
    wrong = refused("compare", "charlstm", "bilsmt")
    assert wrong.startswith("bilsmt: no record")


def test_compare_takes_files() -> None:
    gold = "(S (NP (D the) (N dog)) (VP (V barks)))\n" * 3
    texts = {"gold": gold, "a": gold.replace("(NP", "(X", 1), "b": gold, "c": f"(())\n{gold[40:]}"}
    for name, text in texts.items():
        Path(f"{name}.mrg").write_text(text, encoding="utf-8")
        lines = conll_lines("wv", "TT", "01" if name == "a" else "20", "rr")
        Path(f"{name}.conllu").write_text(lines, encoding="utf-8")
    printed = works("compare", "a.mrg", "b.mrg", "--gold", "gold.mrg", "--latex", "t.tex").stdout
    assert "F1 & 88.89" in Path("t.tex").read_text(encoding="utf-8")
    assert printed.splitlines()[2].split()[:2] == ["F1", "88.89"]
    assert "B is better than A on 1 sentences of gold.mrg, worse on 0, equal on 2" in printed
    printed = works("compare", "a.conllu", "b.conllu", "--gold", "gold.conllu").stdout
    assert printed.splitlines()[2].split()[:2] == ["LAS", "0.00"]
    wrong = refused("compare", "a.mrg", "c.mrg", "--gold", "gold.mrg")
    assert "leave out different sentences of gold.mrg" in wrong


def test_what_does_not_compare_is_refused_and_what_differs_is_listed(names: list[str]) -> None:
    listed = works("compare", *names[:2]).stdout.partition("What else differs:")[2]
    assert [line.split() for line in listed.splitlines()[4:]] == [
        ["dev.seed", "1", "2"], ["test.seed", "1", "2"]
    ]  # fmt: skip
    assert "What else differs" not in works("compare", names[0], names[0]).stdout
    other = write_document(record(0.1, prm="COLLINS"), RESULTS / "runs")
    result = cli("compare", names[0], other.stem)
    assert (result.exit_code, result.stdout) == (1, "")
    assert "\n  prm: spmrl in the first, COLLINS in the second" in result.stderr


def write(
    language: str = "german", track: str = "mini", folder: str = "runs", seed: int = 1
) -> str:
    """The name of a record that is written."""
    bank = make_treebank(f"{language}-{track}", track, language=language)
    record = make_record(treebank=bank, lang=language, seed=seed)
    return write_document(record, RESULTS / folder).stem


def tables(track: str) -> set[str]:
    return {path.suffix for path in RESULTS.glob(f"multilingual-{track}.*")}


def test_one_treebank_or_track_is_printed_and_all_are_written_in_both_forms() -> None:
    write("german")
    write("french", "open")
    whole, csv = works(*TABLE).stdout, works(*TABLE, "--format", "csv").stdout
    assert whole.startswith("## german-mini (mini track, generated sentences)\n")
    assert csv.startswith("track,treebank,group,variant,size,seed,dev_f1,")
    shown = works(*TABLE, "--treebank", "french-open").stdout
    assert "german-mini (" not in shown
    assert shown.startswith("## french-open (open track")
    assert shown in whole
    assert (RESULTS / "table.md").read_text(encoding="utf-8") == whole
    assert (RESULTS / "table.csv").read_text(encoding="utf-8") == csv
    assert "| german " in works(*TABLE, "--track", "mini").stdout
    for option, wrong, near in (
        ("treebank", "french-opne", "french-open"), ("track", "mimi", "mini"),
    ):  # fmt: skip
        said = refused(*TABLE, f"--{option}", wrong)
        assert f"among the records: unknown {option} '{wrong}'. Did you mean {near}?" in said


def test_tables_of_tracks_with_two_languages_are_written() -> None:
    for language, track in (("german", "mini"), ("french", "mini"), ("german", "open")):
        write(language, track)
    result = works(*TABLE)
    assert (tables("mini"), tables("open")) == ({".md", ".csv", ".tex"}, set())
    assert result.stderr == "wrote results/multilingual-mini.{md,csv,tex}\n"
    assert "| french " in (RESULTS / "multilingual-mini.md").read_text(encoding="utf-8")


def test_shipped_records_are_shown_as_such() -> None:
    own, shipped = write(), write(folder="shipped/runs", seed=2)
    shown = works(*TABLE).stdout
    assert "| charlstm, shipped " in shown
    assert "| charlstm  " in shown
    works("compare", own, shipped)


def test_a_table_that_cannot_be_written_is_named() -> None:
    write()
    (RESULTS / "table.md").mkdir()
    assert "results/table.md: cannot be written: " in refused(*TABLE)
