"""Planted errors are among the first sentences that are listed."""

from __future__ import annotations

from spmrl_bench.treebanks.treebank import open_treebank
from tests.annotation.planted_errors import by_variation


def test_variation_over_tags_finds_many_in_a_mini_treebank() -> None:
    bank = open_treebank("german-mini")
    (found,) = by_variation(bank, "constituents", 1, nucleus="tags", context="tags").values()
    assert found[200] >= 15
