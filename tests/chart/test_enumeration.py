"""Every way to decode against the enumeration of all trees, ties included."""

from __future__ import annotations

from collections.abc import Callable
from math import comb
from typing import Any, get_args

import numpy as np
import pytest

from spmrl_bench.chart.arrays import cell_offsets, node_offsets
from tests.chart import batches, enumeration
from tests.chart import dependency_oracles as oracles
from tests.chart.batches import Batch, JointBatch, Scores, Shape
from tests.reliability.tally import Tally
from tests.twins import assert_same_bits, kernels_of, needs

CHARTS = "charts of labels against all binary trees"
ARCS = "arc scores of sentences against all dependency trees"
JOINT = "charts of spans and heads against all trees and choices of heads"
LENGTHS = [1, 2, 2, 3, 3, 3, 4, 4, 4, 4, 5, 5, 5, 5, 5, 6, 6, 6, 6, 6, 6]

of_labels = pytest.mark.parametrize("kernel", kernels_of("labels"))
of_arcs = pytest.mark.parametrize("kernel", kernels_of("dependencies"))
of_both = pytest.mark.parametrize("kernel", kernels_of("joint"))
shapes = pytest.mark.parametrize("shape", get_args(Shape))
kinds = pytest.mark.parametrize("projective", [False, True], ids=["any", "projective"])


def test_enumeration_knows_every_tree() -> None:
    """Binary trees are counted by Catalan numbers, and of joint ones each inner node chooses
    between two heads; there are n ** (n - 1) rooted trees (Cayley), and binomial(3n - 2, n - 1) / n
    projective ones."""

    def counts(every: Callable[[int], Any]) -> list[int]:
        return [len(every(n)) for n in range(1, 7)]

    assert counts(lambda n: enumeration.trees(0, n)) == [1, 1, 2, 5, 14, 42]
    assert counts(oracles.trees) == [1, 2, 9, 64, 625, 7776]
    assert counts(oracles.projective_trees) == [1, 2, 7, 30, 143, 728]
    for n in range(1, 7):
        every = enumeration.structures(n)
        assert len(every.trees) == comb(2 * n - 2, n - 1) // n * 2 ** (n - 1)
        assert len(set(zip(every.trees, every.heads, strict=True))) == len(every.trees)


def check_labels(kernel: str, batch: Batch) -> None:
    """Every tree of the batch is the one that enumeration prefers."""
    decoded, lengths = batches.decode_on(kernel, batch), batch.lengths
    for b, n in enumerate(lengths.tolist()):
        scores, _, gold = batch.sentence(b)
        table = enumeration.label_table(scores, gold, n)
        cells = batches.part(decoded.cells, node_offsets, lengths, b) - cell_offsets(lengths)[b]
        labels = batches.part(decoded.labels, node_offsets, lengths, b).tolist()
        found = decoded.scores[b], batches.spans_of(cells, n), labels
        assert found == enumeration.best_tree(table, n)


@of_labels
@pytest.mark.parametrize("gold", [False, True], ids=["plain", "augmented"])
@pytest.mark.parametrize("columns", [1, 2, 3, 9, 20])
def test_labels_are_those_of_the_best_tree(
    kernel: str, gold: bool, columns: int, tally: Tally
) -> None:
    rng, lengths = np.random.default_rng(columns), [1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 6]
    tally("R4", CHARTS).add(len(lengths))
    check_labels(kernel, batches.random_batch(rng, lengths, columns, gold=gold, ties=True))


@pytest.mark.campaign
@needs("labels")
def test_ten_thousand_charts(tally: Tally) -> None:
    """10,000 random charts with n <= 8: Cython, plain Python and enumeration agree."""
    best, alike = tally("R4", CHARTS), tally("R9", "charts decoded by the kernel and its twin")
    rng = np.random.default_rng(2018)
    for _ in range(400):
        lengths = rng.integers(1, 9, 25).tolist()
        best.add(25)
        alike.add(25)
        columns = int(rng.choice([1, 2, 3, 9, 20]))
        batch = batches.random_batch(rng, lengths, columns, gold=bool(rng.integers(2)), ties=True)
        assert_same_bits(batches.decode_on("cython", batch), batches.decode_on("python", batch))
        check_labels("cython", batch)


def check_arcs(kernel: str, arcs: Scores, lengths: list[int], projective: bool) -> None:
    """What is decoded is a tree, and none of all scores more."""
    for table, heads in batches.trees_on(kernel, arcs, lengths, projective):
        trees = oracles.projective_trees if projective else oracles.trees
        best = oracles.totals(table, trees(len(heads))).max()
        assert batches.score_of_heads(table, heads) == pytest.approx(best, rel=1e-12, abs=1e-12)
        assert tuple(heads) in trees(len(heads))


@of_arcs
@shapes
@kinds
def test_heads_are_those_of_the_best_tree(
    kernel: str, shape: Shape, projective: bool, tally: Tally
) -> None:
    held = tally("R4", ARCS)
    for seed in range(4):
        held.add(len(LENGTHS))
        arcs = batches.packed_arcs(np.random.default_rng(seed), LENGTHS, shape)
        check_arcs(kernel, arcs, LENGTHS, projective)


@of_arcs
def test_ties_of_projective_trees_go_by_the_rule(kernel: str) -> None:
    for seed in range(4):
        arcs = batches.packed_arcs(np.random.default_rng(seed), LENGTHS, "integers")
        for table, heads in batches.trees_on(kernel, arcs, LENGTHS, projective=True):
            assert tuple(heads) == oracles.best_projective(table)


@of_arcs
@shapes
def test_spanning_trees_grow_by_the_rule(kernel: str, shape: Shape) -> None:
    lengths = [*LENGTHS, 9, 9, 14, 14]
    arcs = batches.packed_arcs(np.random.default_rng(3), lengths, shape)
    for table, heads in batches.trees_on(kernel, arcs, lengths, projective=False):
        assert tuple(heads) == oracles.grown_tree(table)


@pytest.mark.campaign
@needs("dependencies")
@kinds
def test_ten_thousand_sentences(projective: bool, tally: Tally) -> None:
    held = tally("R4", ARCS)
    rng = np.random.default_rng(1996)
    for turn in range(400):
        lengths = rng.integers(1, 7, 25).tolist()
        held.add(len(lengths))
        arcs = batches.packed_arcs(rng, lengths, get_args(Shape)[turn % 4])
        check_arcs("cython", arcs, lengths, projective)


def check_both(kernel: str, batch: JointBatch, *, ties: bool) -> None:
    """Every score is the best of all; of integers, the structure is the one that is preferred."""
    decoded = batches.joint_on(kernel, batch)
    for b, n in enumerate(batch.lengths.tolist()):
        alone, found = batch.sentence(b), batches.of_sentence(decoded, batch.lengths, b)
        every = enumeration.structures(n)
        scores = every.scores(alone.values, alone.arcs)
        assert found.scores[0] == pytest.approx(scores.max(), abs=1e-9)
        assert batches.score_of(found, alone) == pytest.approx(scores.max(), abs=1e-9)
        if ties:
            best = int(scores.argmax())
            assert batches.spans_of(found.cells, n) == [
                (node.i, node.j) for node in every.trees[best]
            ]
            assert tuple(found.heads.tolist()) == every.heads[best]


@of_both
@pytest.mark.parametrize("ties", [False, True], ids=["floats", "integers"])
def test_joint_structures_are_the_best_of_all(kernel: str, ties: bool, tally: Tally) -> None:
    """1,000 charts of each kind for the compiled kernel, 200 for the twin."""
    rng = np.random.default_rng(20 if ties else 19)
    times = 4 if kernel == "python" else 20
    lengths = [1, 2, 2, *[3] * 4, *[4] * 6, *[5] * 17, *[6] * 20] * times
    tally("R6", JOINT).add(len(lengths))
    check_both(kernel, batches.random_joint(rng, lengths, ties=ties), ties=ties)


@pytest.mark.campaign
@needs("joint")
def test_five_thousand_charts(tally: Tally) -> None:
    """5,000 charts with n <= 7: the kernel, plain Python and enumeration agree."""
    best, alike = tally("R6", JOINT), tally("R9", "joint charts decoded by kernels and their twin")
    rng = np.random.default_rng(2019)
    for turn in range(200):
        ties = bool(turn % 2)
        batch = batches.random_joint(rng, rng.integers(1, 8, 25).tolist(), ties=ties)
        best.add(25)
        alike.add(25)
        check_both("cython", batch, ties=ties)
        assert_same_bits(batches.joint_on("cython", batch), batches.joint_on("python", batch))
