"""Systems of others: what they are given, and their parses beside those of our own runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from spmrl_bench.errors import ScoreError
from spmrl_bench.experiments.evaluation import score_split
from spmrl_bench.leaderboard.board import groups_of, load_results
from spmrl_bench.leaderboard.compare import comparable_counts
from spmrl_bench.leaderboard.frame import by_age
from spmrl_bench.leaderboard.multilingual import track_document
from spmrl_bench.leaderboard.record import Record, System, read_record, read_records
from spmrl_bench.leaderboard.saved_parses import SavedParses
from spmrl_bench.parsers.base import ParserConfig
from spmrl_bench.parsers.baselines import RightBranching
from spmrl_bench.scoring.metric import metric_named
from spmrl_bench.site.build import site_files
from spmrl_bench.systems.enter import enter, write_task
from spmrl_bench.systems.predictions import file_text
from spmrl_bench.treebanks.treebank import open_treebank
from spmrl_bench.trees.escapes import write_brackets
from spmrl_bench.trees.parse import Layer
from tests.builders import cli, works
from tests.experiments.running import evaluate, train
from tests.laboratory import Laboratory

RESULTS = Path("results")
PARSES = RESULTS / "parses"


def right_branching() -> Any:
    return RightBranching.build(ParserConfig(), open_treebank("tiny-open").examples("train"))


def branching(split: str) -> Path:
    """A file of right-branching parses."""
    gold = open_treebank("tiny-open").examples(split)
    parses = right_branching().parse([sentence.words for sentence in gold], None)
    path = Path(f"{split}.parses")
    path.write_text("".join(f"{write_brackets(parse.tree)}\n" for parse in parses if parse.tree))
    return path


def entered(*splits: str, version: str = "1", **options: Any) -> Record:
    system = System(name="Branch", version=version, outputs={}, url="https://example.org")
    files = {split: [branching(split)] for split in splits}
    return enter(files, open_treebank("tiny-open"), system, RESULTS, **options)[0]


def test_a_task_has_the_words_and_nothing_else(laboratory: Laboratory) -> None:
    bank = open_treebank("tiny-open")
    paths = write_task(bank, "dev", Path("task"))
    assert [path.name for path in paths] == ["tiny-open.dev.conllu", "tiny-open.dev.txt"]
    conllu, text = (path.read_text("utf-8") for path in paths)
    words = [" ".join(parse.words) for parse in bank.examples("dev")]
    assert text.splitlines() == words
    rows = [line.split("\t") for line in conllu.splitlines() if line]
    assert [row[1] for row in rows] == " ".join(words).split()
    assert {cell for row in rows for cell in row[2:]} == {"_"}
    tagged = write_task(bank, "dev", Path("task"), tags=True)[0].read_text()
    tags = [line.split("\t")[4] for line in tagged.splitlines() if line]
    assert tags == [tag for parse in bank.examples("dev") for tag in parse.tags]


def test_dev_and_test_are_one_record_and_looks_at_test_are_counted(laboratory: Laboratory) -> None:
    both, dev = entered("dev", "test"), entered("dev")
    assert set(both.system.outputs) == {"dev", "test"}
    assert (dev.dev, dev.test) == (both.dev, None)
    ours = score_split(right_branching(), open_treebank("tiny-open"), "dev").metrics["brackets"]
    theirs = dev.dev.metrics["brackets"]
    assert theirs.counts == ours.counts
    assert "|variant:Branch 1|" in theirs.signature_long
    assert "output" not in theirs.signature_long
    assert both.system.tested == 1
    assert entered("test").system.tested == 1  # the same file again
    assert entered("dev", version="2").system.tested == 1
    path = branching("test")
    path.write_text(path.read_text().replace("(S ", "(SBAR ", 1))
    system, bank = System(name="Branch", version="2", outputs={}), open_treebank("tiny-open")
    assert enter({"test": [path]}, bank, system, RESULTS)[0].system.tested == 2
    records = read_records(RESULTS / "runs")
    assert [record.variant for record in records] == ["Branch 1"] * 3 + ["Branch 2"] * 2


def page_beside_the_best(system: str) -> str:
    """The page of the site on which it stands beside the best of its treebank."""
    files = site_files(load_results([RESULTS]))
    return next(
        text for name, text in files if f"/{system}" in name.removeprefix("systems")
    ).decode()


def test_runs_and_systems_stand_in_one_table_and_compare(laboratory: Laboratory) -> None:
    train(laboratory, variants=["charlstm"])
    (ours,) = evaluate(laboratory, variants=["charlstm"], save_parses=True)
    theirs = entered("test", save_parses=True)
    assert comparable_counts(ours, theirs, "test", "brackets")[0].skipped == 0
    with pytest.raises(ScoreError, match="second record has no scores on dev: its system was ent"):
        comparable_counts(ours, theirs, "dev", "brackets")
    shown = works("results", "table").stdout
    rows = {line.split("|")[1].strip(): line for line in shown.splitlines() if "|" in line}
    assert {"charlstm", "Branch 1", "right-branching"} <= rows.keys()
    cells = [rows[name].split("|")[5:9] for name in ("Branch 1", "right-branching")]
    assert cells[0] == cells[1]  # recall, precision, F1, complete match on test
    assert "Systems of others. Branch 1: 1 output scored on test." in shown
    found = works("compare", *(path.stem for path in sorted((RESULTS / "runs").iterdir())))
    assert "sentences of test" in found.stdout
    # The table of a track is about what dev selects among our variants.
    tables = [
        track_document(groups_of(by_age(some)), "open", []) for some in ([ours, theirs], [ours])
    ]
    assert tables[0] == tables[1]
    # Pages show trees of both, those that were scored and no others.
    assert "<details>" in page_beside_the_best("Branch")
    (path,) = PARSES.glob("tiny-open/system-*.test.mrg")
    path.write_text(path.read_text().replace("(S ", "(Q "))
    assert "<details>" not in page_beside_the_best("Branch")


def test_faults_are_in_the_signature(laboratory: Laboratory) -> None:
    path = branching("dev")
    lines = path.read_text().splitlines()
    path.write_text("\n".join(["", lines[1][:-1], *lines[2:]]) + "\n")
    about = ("--treebank", "tiny-open", "--system", "B|x:y")
    command = ("systems", "enter", "--dev", path, *about, "--faults")
    assert "2 of 8 answers cannot be scored" in cli(*command, "refuse").stderr
    assert not (RESULTS / "runs").exists()
    result = works(*command, "repair")
    assert "dev: no parse: 1 answers\ndev: repaired: 1 answers\n" in result.stderr
    assert "|var:B/x/y|out:no parse 1+repaired 1|" in result.stdout
    (written,) = (RESULTS / "runs").iterdir()
    output = read_record(written).system.outputs["dev"]
    assert (output.policy, output.handled) == ("repair", {"no parse": 1, "repaired": 1})


def test_both_layers_come_together_and_are_kept_as_they_were_scored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    bank = open_treebank("german-mini")
    gold = bank.examples("dev")
    brackets, conllu = Path("dev.mrg"), Path("dev.conllu")
    trees = file_text(gold, "brackets", structure=True).splitlines()
    trees[2] = "I cannot"
    brackets.write_text("\n".join(trees), encoding="utf-16")
    blocks = file_text(gold, "conllu", structure=True).split("\n\n")
    blocks[4] = blocks[4].replace("\t0\t", "\t77\t")
    conllu.write_text("\n\n".join(blocks), encoding="utf-16")
    system = System(name="Oracle", outputs={})
    options: dict[str, Any] = {"policy": "missing", "encoding": "utf-16"}
    files = {"dev": [brackets, conllu]}
    record, _ = enter(files, bank, system, RESULTS, save_parses=True, **options)
    output = record.system.outputs["dev"]
    assert set(output.sha256) == {"constituents", "dependencies"}
    assert output.handled == {"malformed": 2}
    saved = SavedParses.of_record(RESULTS, record)
    layers: dict[str, Layer] = {"brackets": "constituents", "attachment": "dependencies"}
    for name, layer in layers.items():
        metric, result = metric_named(name), record.dev.metrics[name]
        assert 98 < result.figures[metric.headline] < 100
        rules = metric.rules(bank.rules.get(name, {}))
        pair = saved.read("dev", layer)
        assert metric.count(*pair, rules).to_columns() == result.counts
        assert len(pair[1]) == len(gold)
    assert set(saved.read("dev", "dependencies")[1][4].dependencies.heads.tolist()) == {-1}
    assert not saved.read("dev", "constituents")[1][2].tree.labels
    with pytest.raises(ScoreError, match="two files of dev have the same layer"):
        enter({"dev": [brackets, brackets]}, bank, system, RESULTS, **options)
    conllu.write_text(file_text(gold, "conllu", structure=True))
    perfect = System(name="Perfect", outputs={})
    enter({"dev": [conllu]}, bank, perfect, RESULTS, save_parses=True)
    page = page_beside_the_best("Oracle")
    assert page.count("no answer") == len(gold[4])
    nothing = cli("systems", "enter", "--treebank", "german-mini", "--system", "x")
    assert "nothing to enter" in nothing.stderr
    # What a record of somebody else says leads to no other folder.
    with pytest.raises(ScoreError, match="no parses can be kept"):
        SavedParses.of_record(RESULTS, record.model_copy(update={"weights": "../../secret"}))
