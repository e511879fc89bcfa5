"""Dependency decoding against the enumeration of all trees, ties included."""

from __future__ import annotations

from typing import get_args

import numpy as np
import pytest

from tests.chart import dependency_oracles as oracles
from tests.chart.batches import Scores, Shape, packed_arcs, score_of_heads, trees_on
from tests.reliability.tally import Tally
from tests.twins import kernels_of, needs

every_kernel = pytest.mark.parametrize("kernel", kernels_of("dependencies"))
LENGTHS = [1, 2, 2, 3, 3, 3, 4, 4, 4, 4, 5, 5, 5, 5, 5, 6, 6, 6, 6, 6, 6]
ARCS = "arc scores of sentences against all dependency trees"
shapes = pytest.mark.parametrize("shape", get_args(Shape))
kinds = pytest.mark.parametrize("projective", [False, True], ids=["any", "projective"])


def check(kernel: str, arcs: Scores, lengths: list[int], projective: bool) -> None:
    """What is decoded is a tree, and none of all scores more."""
    for table, heads in trees_on(kernel, arcs, lengths, projective):
        trees = oracles.projective_trees if projective else oracles.trees
        best = oracles.totals(table, trees(len(heads))).max()
        assert score_of_heads(table, heads) == pytest.approx(best, rel=1e-12, abs=1e-12)
        assert tuple(heads) in trees(len(heads))


@every_kernel
@shapes
@kinds
def test_decoding_is_the_best_of_all_trees(
    kernel: str, shape: Shape, projective: bool, tally: Tally
) -> None:
    held = tally("R4", ARCS)
    for seed in range(4):
        held.add(len(LENGTHS))
        arcs = packed_arcs(np.random.default_rng(seed), LENGTHS, shape)
        check(kernel, arcs, LENGTHS, projective)


@every_kernel
def test_ties_of_projective_trees_go_by_the_rule(kernel: str) -> None:
    for seed in range(4):
        arcs = packed_arcs(np.random.default_rng(seed), LENGTHS, "integers")
        for table, heads in trees_on(kernel, arcs, LENGTHS, projective=True):
            assert tuple(heads) == oracles.best_projective(table)


@every_kernel
@shapes
def test_spanning_trees_grow_by_the_rule(kernel: str, shape: Shape) -> None:
    lengths = [*LENGTHS, 9, 9, 14, 14]
    arcs = packed_arcs(np.random.default_rng(3), lengths, shape)
    for table, heads in trees_on(kernel, arcs, lengths, projective=False):
        assert tuple(heads) == oracles.grown_tree(table)


def test_enumeration_knows_every_tree() -> None:
    """There are n ** (n - 1) rooted trees (Cayley), and binomial(3n - 2, n - 1) / n projective."""
    assert [len(oracles.trees(n)) for n in range(1, 7)] == [1, 2, 9, 64, 625, 7776]
    assert [len(oracles.projective_trees(n)) for n in range(1, 7)] == [1, 2, 7, 30, 143, 728]


@pytest.mark.campaign
@needs("dependencies")
@kinds
def test_ten_thousand_sentences(projective: bool, tally: Tally) -> None:
    held = tally("R4", ARCS)
    rng = np.random.default_rng(1996)
    for turn in range(400):
        lengths = rng.integers(1, 7, 25).tolist()
        held.add(len(lengths))
        check("cython", packed_arcs(rng, lengths, get_args(Shape)[turn % 4]), lengths, projective)
