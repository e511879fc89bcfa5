"""Systems of others: what they are given, and their parses beside those of our own runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from spmrl_bench.errors import ScoreError
from spmrl_bench.experiments.score import score_split
from spmrl_bench.leaderboard.board import groups_of
from spmrl_bench.leaderboard.compare import comparable_counts
from spmrl_bench.leaderboard.frame import by_age
from spmrl_bench.leaderboard.multilingual import track_document
from spmrl_bench.leaderboard.record import Record, System, read_record, read_records
from spmrl_bench.parsers.base import ParserConfig
from spmrl_bench.parsers.baselines import RightBranching
from spmrl_bench.readers.conll import conll_lines
from spmrl_bench.systems.entry import enter
from spmrl_bench.systems.material import write_task
from spmrl_bench.treebanks.treebank import open_treebank
from spmrl_bench.trees.escapes import write_brackets
from tests.builders import cli
from tests.experiments.running import evaluate, train
from tests.laboratory import Laboratory

RESULTS = Path("results")


def right_branching() -> Any:
    return RightBranching.build(ParserConfig(), open_treebank("tiny-open").examples("train"))


def branching(split: str) -> Path:
    """A file of right-branching parses."""
    gold = open_treebank("tiny-open").examples(split)
    parses = right_branching().parse([sentence.words for sentence in gold], None)
    path = Path(f"{split}.parses")
    path.write_text("".join(f"{write_brackets(parse.tree)}\n" for parse in parses if parse.tree))
    return path


def entered(*splits: str, version: str = "1") -> Record:
    system = System(name="Branch", version=version, outputs={}, url="https://example.org")
    files = {split: [branching(split)] for split in splits}
    return enter(files, open_treebank("tiny-open"), system, RESULTS)[0]


def test_a_task_has_the_words_and_nothing_else(laboratory: Laboratory) -> None:
    bank = open_treebank("tiny-open")
    paths = write_task(bank, "dev", Path("task"))
    assert [path.name for path in paths] == ["tiny-open.dev.conllu", "tiny-open.dev.txt"]
    conllu, text = (path.read_bytes() for path in paths)
    words = [" ".join(parse.words) for parse in bank.examples("dev")]
    assert text.decode().splitlines() == words
    rows = [line.split("\t") for line in conllu.decode().splitlines() if line]
    assert [row[1] for row in rows] == " ".join(words).split()
    assert {cell for row in rows for cell in row[2:]} == {"_"}
    tagged = write_task(bank, "dev", Path("task"), tags=True)[0].read_text()
    tags = [line.split("\t")[4] for line in tagged.splitlines() if line]
    assert tags == [tag for parse in bank.examples("dev") for tag in parse.tags]


def test_a_system_is_scored_as_our_own_parsers_are(laboratory: Laboratory) -> None:
    record = entered("dev")
    bank = open_treebank("tiny-open")
    ours = score_split(right_branching(), bank, "dev")
    assert record.dev.metrics["brackets"].counts == ours.metrics["brackets"].counts
    assert record.test is None
    signature = record.dev.metrics["brackets"].signature_long
    assert "|variant:Branch 1|" in signature
    assert "output" not in signature


def test_dev_and_test_are_one_record_and_looks_at_test_are_counted(laboratory: Laboratory) -> None:
    both = entered("dev", "test")
    assert set(both.system.outputs) == {"dev", "test"}
    assert both.dev == entered("dev").dev
    assert both.system.tested == 1
    assert entered("test").system.tested == 1  # the same file again
    assert entered("dev", version="2").system.tested == 1
    path = branching("test")
    path.write_text(path.read_text().replace("(S ", "(SBAR ", 1))
    system = System(name="Branch", version="2", outputs={})
    bank = open_treebank("tiny-open")
    assert enter({"test": [path]}, bank, system, RESULTS)[0].system.tested == 2
    records = read_records(RESULTS / "runs")
    assert [record.variant for record in records] == ["Branch 1"] * 3 + ["Branch 2"] * 2


def test_runs_and_systems_stand_in_one_table_and_compare(laboratory: Laboratory) -> None:
    train(laboratory, variants=["charlstm"])
    (ours,) = evaluate(laboratory, variants=["charlstm"])
    theirs = entered("test")
    assert comparable_counts(ours, theirs, "test", "brackets")[0].skipped == 0
    with pytest.raises(ScoreError, match="second record has no scores on dev: its system was ent"):
        comparable_counts(ours, theirs, "dev", "brackets")
    shown = cli("table").stdout
    rows = {line.split("|")[1].strip(): line for line in shown.splitlines() if "|" in line}
    assert {"charlstm", "Branch 1", "right-branching"} <= rows.keys()
    cells = [
        [cell.strip() for cell in rows[name].split("|")] for name in ("Branch 1", "right-branching")
    ]
    assert cells[0][5:9] == cells[1][5:9]  # recall, precision, F1, complete match on test
    assert "Systems of others. Branch 1: 1 output scored on test." in shown
    found = cli("compare", *(path.stem for path in sorted((RESULTS / "runs").iterdir())))
    assert found.exit_code == 0, found.output
    assert "sentences of test" in found.stdout
    # The table of a track is about what dev selects among our variants.
    tables = [
        track_document(groups_of(by_age(some)), "open", []) for some in ([ours, theirs], [ours])
    ]
    assert tables[0] == tables[1]


def test_faults_are_in_the_signature(laboratory: Laboratory) -> None:
    path = branching("dev")
    lines = path.read_text().splitlines()
    path.write_text("\n".join(["", lines[1][:-1], *lines[2:]]) + "\n")
    result = cli("enter", "--dev", str(path), "--treebank", "tiny-open", "--system", "B")
    assert result.exit_code == 1
    assert "2 of 8 answers cannot be scored" in result.stderr
    assert not (RESULTS / "runs").exists()
    options = ("--treebank", "tiny-open", "--system", "B|x:y", "--faults", "repair")
    result = cli("enter", "--dev", str(path), *options)
    assert result.exit_code == 0, result.output
    assert "dev: no parse: 1 answers\ndev: repaired: 1 answers\n" in result.stderr
    assert "|var:B/x/y|out:no parse 1+repaired 1|" in result.stdout
    (written,) = (RESULTS / "runs").iterdir()
    record = read_record(written)
    assert record.system.outputs["dev"].handled == {"no parse": 1, "repaired": 1}
    assert record.system.outputs["dev"].policy == "repair"


def test_both_layers_come_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    bank = open_treebank("german-mini")
    gold = bank.examples("dev")
    brackets, conllu = Path("dev.mrg"), Path("dev.conllu")
    brackets.write_text("".join(f"{write_brackets(parse.tree)}\n" for parse in gold if parse.tree))
    rows = (
        conll_lines(tree.words, tree.tags, map(str, tree.heads.tolist()), tree.relations)
        for parse in gold
        if (tree := parse.dependencies)
    )
    conllu.write_text("".join(rows))
    system = System(name="Oracle", outputs={})
    record, _ = enter({"dev": [brackets, conllu]}, bank, system, RESULTS)
    assert record.dev.figure("brackets", "f1") == record.dev.figure("attachment", "las") == 100
    assert set(record.system.outputs["dev"].sha256) == {"constituents", "dependencies"}
    with pytest.raises(ScoreError, match="two files of dev have the same layer"):
        enter({"dev": [brackets, brackets]}, bank, system, RESULTS)
    nothing = cli("enter", "--treebank", "german-mini", "--system", "x")
    assert "nothing to enter" in nothing.stderr
