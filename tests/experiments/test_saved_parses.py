"""Parses that are kept when runs are scored: the record's figures come out again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from spmrl_bench.errors import TreeError
from spmrl_bench.leaderboard.record import Record
from spmrl_bench.leaderboard.saved_parses import SavedParses
from spmrl_bench.scoring import load_prm, score_files
from spmrl_bench.trees import Parse
from spmrl_bench.trees.dependencies import DependencyTree
from spmrl_bench.trees.tree import Tree
from tests.experiments.running import RESULTS, plan, score, train
from tests.laboratory import Laboratory

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
            assert counts.to_columns() == result.metrics["brackets"].counts
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
