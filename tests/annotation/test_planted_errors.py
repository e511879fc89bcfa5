"""Planted errors are among the first sentences that are listed."""

from __future__ import annotations

from pathlib import Path

import pytest

from spmrl_bench.experiments.plan import make_plan
from spmrl_bench.treebanks.treebank import open_treebank
from tests.annotation.planted_errors import PlantedTreebank, by_folds, by_variation
from tests.laboratory import Laboratory


def test_errors_that_are_planted_are_trained_on_and_counted(laboratory: Laboratory) -> None:
    bank = PlantedTreebank.of(open_treebank("tiny-open"), 6, 1, "constituents")
    pairs = zip(bank._whole.examples("train"), bank.examples("train"), strict=True)
    wrong = {k for k, (right, changed) in enumerate(pairs) if right != changed}
    assert wrong == {each.sentence for each in bank.planted}
    work = make_plan(str(laboratory.recipe), variants=["charlstm"])
    found = by_folds(work, 2, Path("runs"), 1, "constituents", errors=6, jobs=1)
    assert found["suspicion"][50] == 6  # of forty sentences
    assert Path("runs/tiny-open+planted+fold2of2/small-charlstm-seed1/best").is_dir()


def test_variation_over_tags_finds_many_in_a_mini_treebank() -> None:
    bank = open_treebank("german-mini")
    (found,) = by_variation(bank, "constituents", 1, nucleus="tags", context="tags").values()
    assert found[200] >= 15


@pytest.mark.campaign
def test_parsers_that_have_not_seen_them_list_most_errors_first(tmp_path: Path) -> None:
    """Two trainings of some minutes; half of fifty within two hundred sentences is asked for."""
    settings = {"train.max_epochs": "8"}
    work = make_plan("german", treebank="german-mini", variants=["constituents"], settings=settings)
    found = by_folds(work, 2, tmp_path, 1, "constituents", device="cpu")
    assert found["suspicion"][200] >= 25
