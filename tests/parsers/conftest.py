"""Sentences that tests of several kinds of parsers learn and parse."""

from __future__ import annotations

import pytest

from spmrl_bench.treebanks.treebank import open_treebank
from spmrl_bench.trees.parse import Parse


@pytest.fixture(scope="session")
def sentences() -> list[Parse]:
    """Thirty short ones of the German mini treebank, in both layers, some with sub-heads."""
    every = open_treebank("german-mini").examples("train", ["constituents", "dependencies"])
    return [each for each in every[:80] if len(each) < 14][:30]
