"""The oracle of chart decoding: write down every binary tree and take the best.

Nothing here is shared with the decoder: no dynamic program, no packed index formula. Ties are
resolved by one rule that needs neither: among the best labelled trees, the one whose sequence
"label of the node, then where it splits", read in pre-order, is smallest.
"""

from __future__ import annotations

import functools
import itertools

import numpy as np
from numpy.typing import NDArray

Span = tuple[int, int]
Answer = tuple[float, list[Span], list[int]]


def spans(n: int) -> list[Span]:
    """The spans of ``n`` words in the order of their cells."""
    return [(i, j) for i in range(n) for j in range(i + 1, n + 1)]


@functools.cache
def trees(i: int, j: int) -> list[tuple[Span, ...]]:
    """All binary trees over [i, j) as pre-order nodes, those that split further left first."""
    if j == i + 1:
        return [((i, j),)]
    return [
        ((i, j), *left, *right)
        for k in range(i + 1, j)
        for left in trees(i, k)
        for right in trees(k, j)
    ]


@functools.cache
def _tree_matrix(n: int) -> NDArray[np.float64]:
    """[trees, cells], 1 where the tree has the cell's span."""
    return np.array([[float(span in tree) for span in spans(n)] for tree in trees(0, n)])


def label_table(
    scores: NDArray[np.float32], gold: NDArray[np.int32] | None, n: int
) -> NDArray[np.float64]:
    """Score of every label in every cell of a sentence [cells, labels], as a tree adds it."""
    table = np.zeros((len(scores), scores.shape[1] + 1))
    for cell, span in enumerate(spans(n)):
        for label in range(table.shape[1]):
            if label > 0:
                table[cell, label] = scores[cell, label - 1]
            if gold is not None and label != gold[cell]:
                table[cell, label] += 1
        if span == (0, n):
            table[cell, 0] = -np.inf
    return table


def best_tree(table: NDArray[np.float64], n: int) -> Answer:
    """Best tree by enumeration of trees; labels of different nodes cannot disturb each other."""
    values = [max(row) for row in table.tolist()]
    labels = [row.index(max(row)) for row in table.tolist()]
    totals = _tree_matrix(n) @ values
    winner = int(np.argmax(totals))  # the first of the best
    nodes = list(trees(0, n)[winner])
    where = dict(zip(spans(n), labels, strict=True))
    return float(totals[winner]), nodes, [where[node] for node in nodes]


def best_labelled_tree(table: NDArray[np.float64], n: int) -> Answer:
    """Best tree by enumeration of trees and of every way to label each of them."""
    where = {span: cell for cell, span in enumerate(spans(n))}
    assignments = _assignments(table.shape[1], 2 * n - 1)
    answers = []
    for tree in trees(0, n):
        rows = table[[where[span] for span in tree]]
        totals = rows[np.arange(len(tree)), assignments].sum(axis=1)
        for winner in np.flatnonzero(totals == totals.max()):
            labels = assignments[winner].tolist()
            answers.append((-float(totals[winner]), list(zip(tree, labels, strict=True))))
    total, labelled = min(answers)
    return -total, [span for span, _ in labelled], [label for _, label in labelled]


@functools.cache
def _assignments(labels: int, nodes: int) -> NDArray[np.int64]:
    """[labels ** nodes, nodes]: every way to label a tree."""
    return np.array(list(itertools.product(range(labels), repeat=nodes)))
