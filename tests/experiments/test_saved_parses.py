"""Parses that are kept when runs are scored: the record's figures come out again, in all parts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from spmrl_bench.errors import RecipeError, TreeError
from spmrl_bench.experiments import run
from spmrl_bench.experiments.breakdowns import breakdowns, check_breakdowns
from spmrl_bench.experiments.plan import make_plan
from spmrl_bench.leaderboard.formats import Table
from spmrl_bench.leaderboard.record import Record
from spmrl_bench.leaderboard.saved_parses import SavedParses
from spmrl_bench.scoring import load_prm, score_files
from spmrl_bench.trees import Parse
from spmrl_bench.trees.dependencies import DependencyTree
from spmrl_bench.trees.tree import Tree
from tests.experiments.running import RESULTS, RUNS, plan, train
from tests.laboratory import Laboratory

SAVED = RESULTS / "parses" / "tiny-open"
WAYS = ("length", "label", "span")


def scored(laboratory: Laboratory, **options: Any) -> list[Record]:
    """Records of two seeds of one variant and their ensemble, with the parses kept."""
    work = plan(laboratory, variants=["charlstm"], seeds=[1, 2])
    return run.evaluate(work, runs_dir=RUNS, results_dir=RESULTS, ensemble=True, **options)


def test_the_files_score_as_the_records_say(
    laboratory: Laboratory, splits_parsed: list[int]
) -> None:
    train(laboratory, variants=["charlstm"], seeds=[1, 2])
    scored(laboratory)
    assert not SAVED.exists()
    splits_parsed.clear()
    records = scored(laboratory, save_parses=True, jobs=1)
    assert len(splits_parsed) == 6  # the parses of the first time are gone
    names = [f"small-charlstm-seed{seed}" for seed in (1, 2)]
    names.append(f"{names[0]}-ensemble-of-2")
    for name, record in zip(names, records, strict=True):
        for split, result in (("dev", record.dev), ("test", record.test)):
            files = (SAVED / f"{side}.{split}.mrg" for side in ("gold", name))
            counts = score_files(*files, load_prm("spmrl"))
            assert counts.to_columns() == result.metrics["brackets"].counts
    assert len(list(SAVED.iterdir())) == 2 * (3 + 1)


def test_runs_whose_parses_are_kept_are_not_scored_again(
    laboratory: Laboratory, splits_parsed: list[int]
) -> None:
    train(laboratory, variants=["charlstm"], seeds=[1, 2])
    first = scored(laboratory, save_parses=True)
    splits_parsed.clear()
    assert scored(laboratory, save_parses=True) == first
    assert splits_parsed == []
    (SAVED / "small-charlstm-seed2.dev.mrg").unlink()
    scored(laboratory, save_parses=True)
    assert len(splits_parsed) == 2
    # Parses of other weights are no parses of this run.
    changed = SAVED / "small-charlstm-seed1.test.mrg"
    right = changed.read_text(encoding="utf-8")
    changed.write_text(right.replace("(NP ", "(PP "), encoding="utf-8")
    scored(laboratory, save_parses=True)
    assert len(splits_parsed) == 4
    assert changed.read_text(encoding="utf-8") == right


def test_parts_add_up_to_the_table(laboratory: Laboratory) -> None:
    work = plan(laboratory, variants=["charlstm", "word-charlstm"], seeds=[1, 2])
    train(laboratory, variants=["charlstm", "word-charlstm"], seeds=[1, 2])
    records = run.evaluate(
        work, runs_dir=RUNS, results_dir=RESULTS, ensemble=True, save_parses=True
    )
    found = breakdowns(work, records, WAYS, runs_dir=RUNS, results_dir=RESULTS)
    selected = [record for record in records if record.test is not None]
    singles, ensemble = selected[:2], selected[2]
    assert len(found.tables) == 2 * len(WAYS)
    for number, table in enumerate(found.tables):
        assert f"tiny-open, test, {ensemble.variant} by {WAYS[number // 2]}" in table.title
        alone = number % 2 == 0
        figures = [figure(record) for record in (singles if alone else [ensemble])]
        every = next(row for row in table.rows if row[0] == "all")
        assert float(every[-1].split()[0]) == pytest.approx(sum(figures) / len(figures), abs=0.006)
        assert int(every[1]) == golden(table)


def figure(record: Record) -> float:
    return float(record.test.metrics["brackets"].figures["f1"] or 0)


def golden(table: Table) -> int:
    """The brackets of gold in the parts of a table together."""
    return sum(int(row[1]) for row in table.rows if row[0] not in ("all", "unlabelled"))


def test_a_label_that_one_run_made_up_has_a_row() -> None:
    from spmrl_bench.experiments.breakdowns import _table
    from spmrl_bench.scoring.metric import BreakdownRow

    ends = [BreakdownRow("all", 2, 3, 4, 4), BreakdownRow("unlabelled", 2, 4, 4, 4)]
    one = [BreakdownRow("NP", 2, 3, 4, 4), *ends]
    other = [BreakdownRow("NP", 2, 3, 4, 3), BreakdownRow("XP", 1, 0, 0, 1), *ends]
    table = _table("", "label", [one, other])
    assert [list(row) for row in table.rows] == [
        ["NP", "4", "75.00 ± 0.00", "87.50 ± 17.68", "80.36 ± 7.58"],
        ["XP", "0", "n/a", "0.00", "0.00"],
        ["all", "4", "75.00 ± 0.00", "75.00 ± 0.00", "75.00 ± 0.00"],
        ["unlabelled", "4", "100.00 ± 0.00", "100.00 ± 0.00", "100.00 ± 0.00"],
    ]


def test_parsers_without_brackets_have_no_parts() -> None:
    work = make_plan("german", treebank="german-mini", variants=["dependencies"])
    with pytest.raises(RecipeError, match=r"--by .*variant dependencies is scored by attachment"):
        check_breakdowns(work)


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
