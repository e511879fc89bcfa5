"""Outputs of others that are kept: what was scored is there again, and pages show nothing else."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from spmrl_bench.errors import SpmrlError
from spmrl_bench.experiments.score import KnownRecords, evaluate_all
from spmrl_bench.experiments.train import train_all
from spmrl_bench.leaderboard.board import load_results
from spmrl_bench.leaderboard.record import Record, System, read_records
from spmrl_bench.readers.conll import conll_lines
from spmrl_bench.scoring.metric import metric_named
from spmrl_bench.site.build import site_files
from spmrl_bench.systems.description import Known
from spmrl_bench.systems.entry import enter
from spmrl_bench.systems.outputs import kept_output
from spmrl_bench.systems.run import system_runs
from spmrl_bench.treebanks.treebank import open_treebank
from spmrl_bench.trees.escapes import write_brackets
from spmrl_bench.trees.parse import Parse
from tests.experiments.running import evaluate, train
from tests.laboratory import Laboratory

RUNS, RESULTS = Path("runs"), Path("results")
PARSES = RESULTS / "parses"


def scored(laboratory: Laboratory, system: Known, how: str, *, save: bool = True) -> Record:
    """A system that was trained and scored."""
    asked = system_runs(str(laboratory.recipe), system, settings={"how": how})
    train_all(asked, device="cpu", jobs=1)
    (record,), _ = evaluate_all(asked, KnownRecords(RESULTS), device="cpu", save_parses=save)
    return record


def kept(record: Record, split: str, metric: str = "brackets") -> list[Parse]:
    """The parses that are kept, which have the counts of the record."""
    scorer, result = metric_named(metric), record.result(split)
    (layer,) = scorer.layers
    bank = open_treebank(record.treebank.name)
    pair = kept_output(record, split, layer, RESULTS, bank.manifest.transforms)
    rules = scorer.rules(bank.manifest.rules[metric])
    assert scorer.count(*pair, rules).to_columns() == result.metrics[metric].counts
    return pair[1]


def pages() -> dict[str, bytes]:
    """The site of all records."""
    return dict(site_files(load_results([RESULTS])))


def drawn(system: str) -> bool:
    """Whether trees of a system are drawn beside those of the best."""
    (page,) = (text for name, text in pages().items() if re.match(f"compare/.*/{system}", name))
    return b"<details>" in page


def test_what_a_system_answered_is_kept_and_shown_beside_ours(
    laboratory: Laboratory, flat: Known
) -> None:
    train(laboratory, variants=["charlstm"])
    evaluate(laboratory, variants=["charlstm"], save_parses=True)
    record = scored(laboratory, flat, "faulty")
    for split in ("dev", "test"):
        (layer, digest), *_ = record.system.outputs[split].sha256.items()
        assert layer == "constituents"
        path = PARSES / "tiny-open" / f"output-{digest[:16]}.{split}.mrg"
        answers = RUNS / "tiny-open" / "flat-small-how=faulty-seed1" / f"{split}.parses"
        assert path.read_bytes() == answers.read_bytes()
        parses = kept(record, split)
        assert not parses[1].tree.labels  # the answer that could not be scored
    assert drawn("Flat-")
    path = next(PARSES.glob("tiny-open/output-*.dev.mrg"))
    path.write_text(path.read_text().replace("(S ", "(Q "))
    assert not drawn("Flat-")


def test_what_has_a_record_is_kept_when_that_is_asked_for(
    laboratory: Laboratory, flat: Known
) -> None:
    record = scored(laboratory, flat, "well", save=False)
    assert not PARSES.exists()
    with pytest.raises(SpmrlError):
        kept(record, "dev")
    assert scored(laboratory, flat, "well") == record
    kept(record, "dev")
    assert len(read_records(RESULTS / "runs")) == 1


def test_entered_files_of_both_layers_are_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    bank = open_treebank("german-mini")
    gold = bank.examples("dev")
    brackets = [write_brackets(parse.tree) for parse in gold if parse.tree]
    rows = [
        conll_lines(tree.words, tree.tags, map(str, tree.heads.tolist()), tree.relations)
        for parse in gold
        if (tree := parse.dependencies)
    ]
    rows[4] = rows[4].replace("\t0\t", "\t77\t")
    files = {"dev": [Path("dev.mrg"), Path("dev.conllu")]}
    for path, text in zip(files["dev"], ("\n".join(brackets) + "\n", "".join(rows)), strict=True):
        path.write_text(text, encoding="utf-16")
    record, _ = enter(
        files, bank, System(name="Oracle", outputs={}), RESULTS,
        policy="missing", encoding="utf-16", save_parses=True,
    )  # fmt: skip
    assert record.dev.figure("brackets", "f1") == 100
    assert 99 < record.dev.figure("attachment", "las") < 100
    kept(record, "dev")
    parses = kept(record, "dev", "attachment")
    assert {-1} == set(parses[4].dependencies.heads.tolist())

    Path("dev.conllu").write_text("".join(rows).replace("\t77\t", "\t0\t"), encoding="utf-8")
    perfect = System(name="Perfect", outputs={})
    enter({"dev": [Path("dev.conllu")]}, bank, perfect, RESULTS, save_parses=True)
    page = next(text for name, text in pages().items() if "/Oracle-" in name).decode()
    assert page.count("no answer") == len(gold[4])


def test_a_hash_that_leads_elsewhere_is_no_name_of_a_file(
    laboratory: Laboratory, flat: Known
) -> None:
    record = scored(laboratory, flat, "well")
    system = record.system
    output = system.outputs["dev"].model_copy(update={"sha256": {"constituents": "../../secret"}})
    changed = system.model_copy(update={"outputs": {"dev": output}})
    with pytest.raises(SpmrlError, match="nothing of constituents of dev"):
        kept(record.model_copy(update={"system": changed}), "dev")
