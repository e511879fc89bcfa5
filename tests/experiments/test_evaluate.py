"""Scoring runs: what is selected, what is scored when, what a record says, and its parses."""

from __future__ import annotations

import hashlib
import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from spmrl_bench.errors import CheckpointError, RecipeError, TreeError
from spmrl_bench.experiments.evaluation import (
    baseline_results,
    evaluate_parser,
    gold_parses,
    rules_of,
)
from spmrl_bench.experiments.score import Scoring
from spmrl_bench.leaderboard.compare import find_record
from spmrl_bench.leaderboard.record import Record, SplitResult
from spmrl_bench.leaderboard.saved_parses import SavedParses
from spmrl_bench.leaderboard.tables import results_markdown
from spmrl_bench.parsers.base import Parser
from spmrl_bench.parsers.ensemble import Ensemble
from spmrl_bench.parsing.models import load_parser
from spmrl_bench.scoring import load_prm, score_files
from spmrl_bench.treebanks.treebank import open_treebank
from spmrl_bench.trees import Parse
from spmrl_bench.trees.dependencies import DependencyTree
from spmrl_bench.trees.tree import Tree
from tests.builders import records_in
from tests.damage import WEIGHTS
from tests.experiments.conftest import (
    FIRST,
    FOLDERS,
    RESULTS,
    RUNS,
    change,
    evaluate,
    plan,
    score,
    train,
)
from tests.laboratory import SIZES, Laboratory


def test_runs_scored_side_by_side_have_the_same_records(laboratory: Laboratory) -> None:
    options: dict[str, Any] = {"seeds": [1, 2], "variants": ["charlstm"]}
    train(laboratory, **options)
    found = [
        score(plan(laboratory, **options), Path(name), ensemble=True, jobs=jobs)
        for name, jobs in (("in-turn", 1), ("side-by-side", 2))
    ]
    alone, together = ([dump(record) for record in records] for records in found)
    assert alone == together
    assert len(alone) == 2 + 1
    assert len(records_in(Path("side-by-side") / "runs")) == len(alone)


def test_evaluations_at_once_leave_one_record(laboratory: Laboratory) -> None:
    """Records have inputs in the order of their names, parsers in that of the registry."""
    train(laboratory, variants=["word-tag"])
    (run,) = plan(laboratory, variants=["word-tag"])
    for _ in range(2):  # as if both had looked for records before either had written one
        run.score(Scoring(RESULTS), device="cpu")
    assert len(records_in(RESULTS / "runs")) == 1


def dump(record: Record) -> dict[str, Any]:
    """What a record says but for when and how fast."""
    content = record.model_dump(mode="json", exclude={"finished", "training", "hardware"})
    for split in ("dev", "test"):
        if content[split] is not None:
            del content[split]["tokens_per_second"]
    return content


def assert_counted(result: SplitResult, parser: Parser, split: str) -> None:
    """The counts of a result are those of the parser, counted once more."""
    bank, metrics = open_treebank("tiny-open"), ["brackets"]
    found = evaluate_parser(parser, gold_parses(bank, split, metrics), rules_of(bank, metrics))
    assert result.counts("brackets").rows.tolist() == found.counts["brackets"].rows.tolist()


def dev_f1(record: Record) -> float | int | None:
    return record.dev.figure("brackets", "f1")


def long_signature(result: SplitResult) -> str:
    return result.metrics["brackets"].signature_long


@pytest.mark.parametrize(
    ("f1", "selected"),  # a tie goes to the first
    [((50.0, 60.0), "word-charlstm"), ((60.0, 50.0), "charlstm"), ((50.0, 50.0), "charlstm")],
)
def test_dev_selects_and_only_the_selected_variant_sees_test(
    trained: Laboratory, splits_parsed: list[int], f1: tuple[float, float], selected: str
) -> None:
    for folder, value in zip(FOLDERS, f1, strict=True):
        change(folder, best_score=value)
    records = evaluate(trained)
    assert [record.variant for record in records] == ["charlstm", "word-charlstm"]
    for record in records:
        assert record.selected == (record.variant == selected)
        assert (record.test is not None) == record.selected
        assert bool(record.baselines) == record.selected
    assert sorted(splits_parsed) == sorted([SIZES["dev"], SIZES["dev"], SIZES["test"]])

    splits_parsed.clear()
    assert evaluate(trained) == records
    assert splits_parsed == []
    assert records_in(RESULTS / "runs") == records


def test_the_mean_over_the_seeds_selects_and_all_seeds_of_the_selected_variant_see_test(
    laboratory: Laboratory, splits_parsed: list[int]
) -> None:
    train(laboratory, seeds=[1, 2])
    # The single best run is of the other variant.
    f1 = {"charlstm-seed1": 70, "charlstm-seed2": 40, "word-charlstm-seed1": 55}
    f1["word-charlstm-seed2"] = 56
    for name, value in f1.items():
        change(RUNS / "tiny-open" / f"small-{name}", best_score=value)
    records = evaluate(laboratory, seeds=[1, 2])
    assert [f"{record.variant}-seed{record.seed}" for record in records] == list(f1)
    for record in records:
        assert record.selected == (record.variant == "word-charlstm")
        assert (record.test is not None) == bool(record.baselines) == record.selected
    assert len(splits_parsed) == 4 + 2
    # One seed selects otherwise, and the table says so until all seeds are compared again.
    (first, second) = evaluate(laboratory)
    assert (first.selected, second.selected) == (True, False)
    assert len(records_in(RESULTS / "runs")) == 6
    again = evaluate(laboratory, seeds=[1, 2])
    assert [record.selected for record in again] == [record.selected for record in records]
    assert [dev_f1(record) for record in again] == [dev_f1(record) for record in records]
    assert [record in records for record in again] == [False, True, False, True]
    assert evaluate(laboratory, seeds=[1, 2]) == again


def test_an_ensemble_averages_all_seeds_of_the_selected_variant(
    laboratory: Laboratory, splits_parsed: list[int]
) -> None:
    seeds = [3, 1, 2]
    folders = train(laboratory, seeds=seeds, settings={"train.max_epochs": "4"})
    options: dict[str, Any] = {"seeds": seeds, "settings": {"train.max_epochs": "4"}}
    *singles, record = evaluate(laboratory, ensemble=True, **options)
    members = [single for single in singles if single.selected]
    assert [single.seed for single in members] == seeds
    assert record.ensemble == [single.weights for single in members]
    assert (record.variant, record.seed, record.selected) == (members[0].variant, 3, True)
    assert record.weights not in record.ensemble
    assert record.settings == {"train.max_epochs": 4}
    assert record.training.updates == sum(single.training.updates for single in members)
    assert record.training.parameters == sum(single.training.parameters for single in members)
    assert "|ensemble:3|" in long_signature(record.dev)
    assert "|seed:3+1+2|" in long_signature(record.dev)

    selected = [folder for folder in folders if folder.name.startswith(f"small-{record.variant}-")]
    parser = Ensemble([load_parser(folder) for folder in selected])
    for split, result in (("dev", record.dev), ("test", record.test)):
        assert_counted(result, parser, split)

    splits_parsed.clear()
    assert evaluate(laboratory, ensemble=True, **options) == [*singles, record]
    assert evaluate(laboratory, **options) == singles
    assert splits_parsed == []
    assert records_in(RESULTS / "runs")[-1] == record
    assert [find_record(str(folder), RESULTS) for folder in selected] == members


def test_what_is_not_trained_to_its_end_is_not_scored(trained: Laboratory) -> None:
    with pytest.raises(RecipeError, match=r"an ensemble needs two runs .* --seeds 5"):
        evaluate(trained, ensemble=True)
    with pytest.raises(CheckpointError, match=r"small-charlstm-seed2: not trained yet; run 'spm"):
        evaluate(trained, ensemble=True, seeds=[1, 2])
    change(FOLDERS[1], stopped_by=None)
    with pytest.raises(CheckpointError, match=r"word-charlstm-seed1: training has not ended"):
        evaluate(trained)
    (FIRST / "best" / "weights.safetensors").unlink()
    for act in (evaluate, train):
        with pytest.raises(CheckpointError, match=r"best: no weights .* Train anew with --fresh"):
            act(trained, variants=["charlstm"])
    assert not RESULTS.exists()


def test_record_says_what_was_done(laboratory: Laboratory) -> None:
    options: dict[str, Any] = {"variants": ["charlstm"], "settings": {"train.max_epochs": "8"}}
    (folder,) = train(laboratory, **options)
    (record,) = evaluate(laboratory, **options)
    bank = open_treebank("tiny-open")
    progress = json.loads((folder / "last" / "progress.json").read_text(encoding="utf-8"))
    weights = (folder / "best" / "weights.safetensors").read_bytes()
    parser = load_parser(folder)

    assert (record.lang, record.variant, record.size, record.seed) == (
        "elvish", "charlstm", "small", 1
    )  # fmt: skip
    assert record.treebank.model_dump() == {
        "name": "tiny-open",
        "track": "open",
        "language": "elvish",
        "fingerprints": {"constituents": bank.fingerprint},
        "manifest": f"own {bank.manifest.origin[1]}",
    }
    assert record.weights == hashlib.sha256(weights).hexdigest()
    (run,) = plan(laboratory, **options)
    noted = json.loads((folder / "run.json").read_text(encoding="utf-8"))
    assert record.recipe == noted == run.config.model_dump(mode="json")
    # The dev score of training and the final one are the same figure.
    assert dev_f1(record) == progress["best_score"]
    assert record.test.sentences == SIZES["test"]
    assert_counted(record.test, parser, "test")
    for split, result in (("dev", record.dev), ("test", record.test)):
        assert f"|split:{split}|" in long_signature(result)
        assert result.tokens_per_second > 0
    training = record.training
    assert (training.updates, training.epochs) == (progress["steps"], 8) == (8 * 2, 8)
    assert training.parameters == sum(p.numel() for p in parser.parameters())
    assert training.tokens_per_second > 0
    assert record.baselines == baseline_results(bank, ["brackets"])


def test_a_record_is_of_the_weights_that_were_scored(
    trained: Laboratory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where another process replaces them while they are read."""
    other, counted = FOLDERS[1] / "best", []

    def replaced(folder: Path, device: str) -> Parser:
        counted.append(folder)
        if len(counted) == 1:
            shutil.rmtree(folder / "best")
            shutil.copytree(other, folder / "best")
        return load_parser(folder, device)

    monkeypatch.setattr("spmrl_bench.experiments.score.load_parser", replaced)
    (record,) = evaluate(trained, variants=["charlstm"])
    assert len(counted) == 2
    assert record.weights == hashlib.sha256((other / WEIGHTS).read_bytes()).hexdigest()
    assert_counted(record.dev, load_parser(FIRST), "dev")


def test_the_source_and_the_accuracy_of_tags_go_into_record_and_table(
    laboratory: Laboratory,
) -> None:
    laboratory.write_base(variants={"charlstm": ["charlstm"], "tag": ["tag", "charlstm"]})
    train(laboratory)
    plain, tagged = evaluate(laboratory)
    assert "|tags:none|" in long_signature(plain.dev)
    assert "|tags:gold|" in long_signature(tagged.dev)
    settings = {"model.predict_tags": "true"}
    (folder,) = train(laboratory, variants=["charlstm"], settings=settings)
    (record,) = evaluate(laboratory, variants=["charlstm"], settings=settings)
    assert record.test is not None
    assert "learns" not in long_signature(plain.dev)
    for result in (record.dev, record.test):
        assert "|learns:tags|" in long_signature(result)
        gold = open_treebank("tiny-open").examples("dev" if result is record.dev else "test")
        parses = load_parser(folder).parse([parse.words for parse in gold])
        right, found = ([tag for each in some for tag in each.tags] for some in (gold, parses))
        accuracy = 100 * sum(map(str.__eq__, right, found)) / len(right)
        assert result.tag_accuracy == pytest.approx(accuracy)
    text = results_markdown([record], [])
    assert "| dev tags |" in " ".join(text.split())
    assert f"{record.dev.tag_accuracy:.2f}" in text


SAVED = RESULTS / "parses" / "tiny-open"


def test_the_files_score_as_the_records_say_and_are_kept(
    laboratory: Laboratory, splits_parsed: list[int]
) -> None:
    def scored(**options: Any) -> list[Record]:
        """Records of two seeds of one variant and their ensemble."""
        runs = plan(laboratory, variants=["charlstm"], seeds=[1, 2])
        splits_parsed.clear()
        return score(runs, ensemble=True, **options)

    train(laboratory, variants=["charlstm"], seeds=[1, 2])
    scored()
    assert not SAVED.exists()
    records = scored(save_parses=True)
    assert len(splits_parsed) == 6  # the parses of the first time are gone
    names = [f"small-charlstm-seed{seed}" for seed in (1, 2)]
    names.append(f"{names[0]}-ensemble-of-2")
    for name, record in zip(names, records, strict=True):
        for split, result in (("dev", record.dev), ("test", record.test)):
            files = (SAVED / f"{side}.{split}.mrg" for side in ("gold", name))
            counts = score_files(*files, load_prm("spmrl"))
            assert counts.to_columns() == result.counts("brackets").to_columns()
    assert len(list(SAVED.iterdir())) == 2 * (3 + 1)

    assert (scored(save_parses=True), splits_parsed) == (records, [])
    # Parses that are gone or of other weights are no parses of this run.
    (SAVED / "small-charlstm-seed2.dev.mrg").unlink()
    changed = SAVED / "small-charlstm-seed1.test.mrg"
    right = changed.read_text(encoding="utf-8")
    changed.write_text(right.replace("(NP ", "(PP "), encoding="utf-8")
    scored(save_parses=True)
    assert len(splits_parsed) == 4
    assert changed.read_text(encoding="utf-8") == right


WORDS = ("-LRB-", "(", "1/2", r"\*", "[x]", "ein Wort", "#", "{")


def test_both_layers_come_back_word_for_word(tmp_path: Path) -> None:
    tree = Tree.build(WORDS, ("X",) * 8, [(0, 8, "S"), (1, 3, "A-B=C")])
    several = DependencyTree.build(
        WORDS, tree.tags, [0, 1, 0, 3, 3, 8, 8, 3], ["r(x)"] * 8, roots="several"
    )
    gold = [Parse.of(tree, several)]
    saved = SavedParses(tmp_path / "new", "mine")
    saved.write("dev", gold, gold)
    for side in (0, 1):
        assert saved.read("dev", "constituents")[side][0].tree == tree
        assert saved.read("dev", "dependencies")[side][0].dependencies == several


def test_a_word_that_the_format_has_no_way_to_write_is_an_error(tmp_path: Path) -> None:
    odd = DependencyTree.build(("a\tb",), ("X",), [0], ["root"])
    with pytest.raises(TreeError, match="word 1: CoNLL cannot hold"):
        SavedParses(tmp_path, "mine").write("dev", [Parse.of(dependencies=odd)], [])
