"""Probabilities of spans and arcs, and the k best trees, against all trees written down."""

from __future__ import annotations

import functools
from itertools import chain, combinations, pairwise, product
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from spmrl_bench.chart.arrays import arc_offsets, cell_offsets
from spmrl_bench.chart.dependency_trees import arc_marginals
from spmrl_bench.chart.joint_trees import decode_joint, joint_marginals
from spmrl_bench.chart.k_best import k_best_heads, k_best_spans, k_best_structures
from spmrl_bench.chart.span_trees import span_marginals
from spmrl_bench.errors import ArrayError, NotFiniteError
from tests.chart import dependency_oracles as oracles
from tests.chart import enumeration
from tests.chart.enumeration import Span, spans
from tests.twins import kernels_of, running_on, with_threads

#: How far apart scores are, and charts of each.
SPREADS, CHARTS = (0.3, 2.0, 9.0, 40.0), 60


@functools.cache
def constituents(i: int, j: int) -> list[frozenset[Span]]:
    """The trees over [i, j) with one constituent there, or a bare word, as sets of spans."""
    if j == i + 1:
        return [frozenset(), frozenset([(i, j)])]
    return [tree | {(i, j)} for tree in sequences(i, j, 2)]


@functools.cache
def sequences(i: int, j: int, least: int) -> list[frozenset[Span]]:
    """All ways to divide [i, j) into so many constituents and bare words, or more."""
    found = list(constituents(i, j)) if least < 2 else []
    for k in range(i + 1, j):
        rest = sequences(k, j, least - 1)
        found += [first | other for first in constituents(i, k) for other in rest]
    return found


def span_trees(n: int) -> NDArray[np.float64]:
    """[trees, cells], 1 where the tree has the span; a sentence is a constituent."""
    trees = [tree for tree in constituents(0, n) if (0, n) in tree]
    assert len(set(trees)) == len(trees)
    return np.array([[float(span in tree) for span in spans(n)] for tree in trees])


@functools.cache
def structures(n: int) -> list[tuple[frozenset[Span], frozenset[Span]]]:
    """All joint structures of a sentence: spans, and arcs as words from 0 with heads from 1. Nodes
    of the oracle's binary trees that need no label may have one, and then several are one."""
    found = {}
    known = enumeration.structures(n)
    for tree, heads in zip(known.trees, known.heads, strict=True):
        required = {(node.i, node.j) for node in tree if node.required}
        free = [(node.i, node.j) for node in tree if not node.required]
        for some in chain.from_iterable(combinations(free, k) for k in range(len(free) + 1)):
            found[frozenset({*required, *some}), frozenset(enumerate(heads))] = None
    return [*found]


def arc_trees(n: int, projective: bool) -> NDArray[np.float64]:
    """[trees, arcs], 1 where the tree has the arc, packed."""
    trees = oracles.projective_trees(n) if projective else oracles.trees(n)
    rows = np.zeros((len(trees), n, n + 1))
    for row, heads in zip(rows, trees, strict=True):
        row[np.arange(n), list(heads)] = 1
    return rows.reshape(len(trees), -1)


def summed(
    trees: NDArray[np.float64], scores: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Of charts [charts, parts]: logarithms of the sums over trees, and the shares of parts."""
    totals = scores @ trees.T
    best = totals.max(axis=1)
    each = np.exp(totals - best[:, None])
    partition = each.sum(axis=1)
    return best + np.log(partition), each @ trees / partition[:, None]


@pytest.mark.parametrize("n", range(1, 7))
@pytest.mark.parametrize("kernel", kernels_of("labels"))
def test_spans_have_their_share_of_all_trees(kernel: str, n: int) -> None:
    trees, random = span_trees(n), np.random.default_rng(n)
    counts = [1, 4, 24, 176, 1440, 12608]
    assert len(trees) == counts[n - 1]
    charts = CHARTS if kernel == "cython" else 4
    for spread in SPREADS:
        scores = random.normal(size=(charts, trees.shape[1])) * spread
        partition, shares = summed(trees, scores)
        with running_on(kernel):
            found = span_marginals(scores.ravel(), [n] * charts)
        np.testing.assert_allclose(found.log_partition, partition, rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(found.probabilities, shares.ravel(), atol=1e-9)


@pytest.mark.parametrize("projective", [False, True], ids=["any", "projective"])
def test_arcs_have_their_share_of_all_trees(projective: bool) -> None:
    random = np.random.default_rng(3)
    sizes = range(1, 7 if projective else 6)
    for spread in SPREADS[:3]:
        charts = [random.normal(size=(20, n * (n + 1))) * spread for n in sizes]
        # Sentences of all lengths together, in any order.
        rows = [(n, row) for n, chart in zip(sizes, charts, strict=True) for row in chart]
        order = random.permutation(len(rows))
        lengths = [rows[k][0] for k in order]
        partition, shares = arc_marginals(
            np.concatenate([rows[k][1] for k in order]), lengths, projective=projective
        )
        parts = list(pairwise(arc_offsets(lengths).tolist()))
        place = {int(k): at for at, k in enumerate(order)}
        for first, (n, chart) in enumerate(zip(sizes, charts, strict=True)):
            totals, wanted = summed(arc_trees(n, projective), chart)
            for row in range(20):
                at = place[20 * first + row]
                assert partition[at] == pytest.approx(totals[row], rel=1e-9, abs=1e-9)
                np.testing.assert_allclose(shares[slice(*parts[at])], wanted[row], atol=1e-9)


@pytest.mark.parametrize(
    ("n", "count"),
    [
        *((1, 1), (2, 8), (3, 88), (4, 1184), (5, 17792)),
        pytest.param(6, 286208, marks=pytest.mark.campaign),
    ],
)
@pytest.mark.parametrize("kernel", kernels_of("joint"))
def test_joint_structures_have_their_share_of_all(kernel: str, n: int, count: int) -> None:
    every, random = structures(n), np.random.default_rng(n)
    assert len({*every}) == len(every) == count
    cells, arcs = n * (n + 1) // 2, n * (n + 1)
    rows = np.zeros((count, cells + arcs))
    for row, (nodes, pairs) in zip(rows, every, strict=True):
        row[[spans(n).index(node) for node in nodes]] = 1
        row[[cells + word * (n + 1) + head for word, head in pairs]] = 1
    for spread in SPREADS:
        scores = random.normal(size=(4, cells + arcs)) * spread
        partition, shares = summed(rows, scores)
        with running_on(kernel):
            found = joint_marginals(scores[:, :cells].ravel(), scores[:, cells:].ravel(), [n] * 4)
        np.testing.assert_allclose(found.log_partition, partition, rtol=1e-12, atol=1e-10)
        np.testing.assert_allclose(found.probabilities, shares[:, :cells].ravel(), atol=1e-9)
        np.testing.assert_allclose(found.arcs, shares[:, cells:].ravel(), atol=1e-9)


def check_best(found: list[tuple[float, Any]], every: dict[Any, float], k: int) -> None:
    """Scores and trees are the k best of all, and no tree is there twice."""
    best = sorted(every.values(), reverse=True)[:k]
    scores, trees = zip(*found, strict=True)
    np.testing.assert_allclose(scores, best, atol=1e-12)
    assert len({*trees}) == len(trees)
    np.testing.assert_allclose([every[tree] for tree in trees], best, atol=1e-12)


@pytest.mark.parametrize(("n", "labels"), [(1, 3), (2, 3), (3, 3), (4, 2), (5, 1), (6, 1)])
@pytest.mark.parametrize("k", [1, 2, 7, 100])
def test_the_k_best_labelled_trees_are_those_of_all(n: int, labels: int, k: int) -> None:
    scores = np.random.default_rng(n).normal(size=(n * (n + 1) // 2, labels))
    every = {
        tuple(zip(cells.tolist(), names, strict=True)): scores[cells, names].sum()
        for cells in map(np.flatnonzero, span_trees(n))
        for names in product(range(labels), repeat=len(cells))
    }
    found = k_best_spans(scores, n, k)
    rows = [
        (score, tuple(sorted((spans(n).index((i, j)), label - 1) for i, j, label in tree)))
        for score, tree in found
    ]
    check_best(rows, every, k)
    assert all(tree == sorted(tree, key=lambda row: (row[0], -row[1])) for _, tree in found)


@pytest.mark.parametrize(
    ("n", "labels"),
    [(1, 3), (2, 3), (3, 2), (4, 1), (5, 1), pytest.param(6, 1, marks=pytest.mark.campaign)],
)
def test_the_k_best_structures_are_those_of_all(n: int, labels: int) -> None:
    random = np.random.default_rng(n)
    scores, arcs = random.normal(size=(n * (n + 1) // 2, labels)), random.normal(size=(n, n + 1))
    every = {
        frozenset({*zip(nodes, names, strict=True), *heads}): scores[cells, names].sum()
        + sum(arcs[arc] for arc in heads)
        for nodes, heads in structures(n)
        for cells in [[spans(n).index(node) for node in nodes]]
        for names in product(range(labels), repeat=len(cells))
    }
    for k in (1, 2, 7, 100):
        found = k_best_structures(scores, arcs, k)
        parts = [
            (score, frozenset({*(((i, j), name - 1) for i, j, name in tree), *enumerate(heads)}))
            for score, tree, heads in found
        ]
        check_best(parts, every, k)
        assert all(tree == sorted(tree, key=lambda row: (row[0], -row[1])) for _, tree, _ in found)


@pytest.mark.parametrize("projective", [False, True], ids=["any", "projective"])
@pytest.mark.parametrize("k", [1, 2, 7, 100])
def test_the_k_best_heads_are_those_of_all(projective: bool, k: int) -> None:
    for n in range(1, 6):
        arcs = np.random.default_rng(n).normal(size=(n, n + 1)) * 3
        trees = arc_trees(n, projective)
        heads = map(tuple, trees.reshape(-1, n, n + 1).argmax(axis=2).tolist())
        every = dict(zip(heads, trees @ arcs.ravel(), strict=True))
        found = k_best_heads(arcs, k, projective=projective)
        check_best([(score, tuple(own)) for score, own in found], every, k)


def test_sentences_do_not_depend_on_their_batch_or_on_threads() -> None:
    random = np.random.default_rng(5)
    lengths = [7, 1, 30, 2, 55, 16]
    offsets = cell_offsets(lengths)
    scores = random.normal(size=int(offsets[-1])) * 3
    with with_threads(3):
        together = span_marginals(scores, lengths)
    for b, (low, high) in enumerate(pairwise(offsets.tolist())):
        alone = span_marginals(scores[low:high], lengths[b : b + 1])
        assert alone.log_partition[0] == together.log_partition[b]
        assert (alone.probabilities == together.probabilities[low:high]).all()


@pytest.mark.parametrize("scale", [0.0, 1.0, 30.0, -30.0, 1e5])
def test_long_sentences_and_scores_that_are_far_apart(scale: float) -> None:
    n, random = 120, np.random.default_rng(7)
    scores = random.normal(size=n * (n + 1) // 2) * max(scale, 0) + min(scale, 0)
    found = span_marginals(scores, [n])
    assert np.isfinite(found.log_partition).all()
    assert found.probabilities.min() >= 0
    assert found.probabilities.max() <= 1
    assert found.probabilities[n - 1] == pytest.approx(1)  # the whole sentence
    arcs = random.normal(size=n * (n + 1)) * min(abs(scale), 20)
    for projective in (True, False):
        totals, shares = arc_marginals(arcs, [n], projective=projective)
        assert np.isfinite(totals).all()
        np.testing.assert_allclose(shares.reshape(n, n + 1).sum(axis=1), 1, atol=1e-6)


def test_what_has_no_probability_is_no_number() -> None:
    wanting_each_other = np.zeros((4, 5))
    for word in range(4):
        wanting_each_other[word, (word ^ 1) + 1] = 60.0
    both = np.concatenate([wanting_each_other.ravel(), np.zeros(6)])
    totals, shares = arc_marginals(both, [4, 2], projective=False)
    assert np.isnan(totals[0])
    assert np.isnan(shares[:20]).all()
    assert totals[1] == pytest.approx(np.log(2))
    for bad in (np.nan, np.inf):
        with pytest.raises(NotFiniteError):
            span_marginals([bad], [1])
        with pytest.raises(NotFiniteError):
            arc_marginals([bad, 0.0], [1], projective=True)
    with pytest.raises(ArrayError, match="the batch needs 3"):
        span_marginals([0.0], [2])
    assert span_marginals([], []).probabilities.size == 0
    assert arc_marginals([], [], projective=True)[1].size == 0
    far = np.zeros(2 * 301 * 302)
    # Too far apart for products, of which only logarithms have the sum.
    scores, apart = np.split(np.random.default_rng(1).normal(size=165) * 1e4, [55])
    joint = joint_marginals(scores, apart, [10])
    assert joint.log_partition[0] == pytest.approx(decode_joint(scores, apart, [10]).scores[0])
    np.testing.assert_allclose(joint.arcs.reshape(10, 11).sum(axis=1), 1, atol=1e-9)
    joint = joint_marginals(
        np.concatenate((far[: 301 * 151], [0.5])), far[: 301 * 302 + 2], [301, 1]
    )
    assert np.isnan(joint.log_partition[0])  # longer than is told
    assert joint.probabilities[-1] == 1
