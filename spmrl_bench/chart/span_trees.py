"""Best binary trees under label scores of their spans (Kitaev & Klein 2018, section 2).

A node has a label or the empty one, label 0, which stands for no constituent and scores 0. For
every cell the best label is taken; then CKY over binary splits, in double precision:

    inside(i, j) = value(i, j) + max over i < k < j of (inside(i, k) + inside(k, j))

Ties go to the lowest label, then to the leftmost split.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from spmrl_bench.chart import arrays, kernels
from spmrl_bench.errors import ArrayError


@dataclass(frozen=True, slots=True, eq=False)
class SpanTrees:
    """The best tree of each sentence of a batch, 2n - 1 nodes in pre-order."""

    cells: NDArray[np.int64]
    """[nodes] packed cell of each node, counted from the first cell of the batch."""
    labels: NDArray[np.int32]
    """[nodes]; 0 is the empty label."""
    scores: NDArray[np.float64]
    """[B] score of each tree, with the augmentation when gold labels were given."""


def best_labels(
    scores: NDArray[np.float32], gold: NDArray[np.int32] | None = None
) -> tuple[NDArray[np.float64], NDArray[np.int32]]:
    """Return the score of the best label of each cell, the empty one left out, and that label.

    Args:
        scores: float32 [cells, labels - 1]; column c scores label c + 1.
        gold: int32 [cells], the gold label of each cell, 0 where gold has no constituent; every
            other label gains 1 in its cell (the loss augmentation of Kitaev & Klein 2018).
    """
    if scores.ndim != 2 or scores.dtype != np.float32 or scores.shape[1] < 1:
        raise ArrayError(
            f"scores has dtype {scores.dtype} and shape {scores.shape}; it must be float32 "
            "[cells, labels - 1] with at least one column (label 0 has none)."
        )
    row = np.arange(len(scores))
    if gold is None:
        column = scores.argmax(axis=1)
        return scores[row, column].astype(np.float64), column.astype(np.int32) + 1
    gold = arrays.checked("gold", gold, np.int32, len(scores))
    if gold.size and (gold.min() < 0 or gold.max() > scores.shape[1]):
        cell = int(((gold < 0) | (gold > scores.shape[1])).argmax())
        raise ArrayError(f"gold[{cell}] is {gold[cell]}; labels are 0..{scores.shape[1]}.")
    own = np.flatnonzero(gold)
    others = scores.copy()
    others[own, gold[own] - 1] = -np.inf
    labels = others.argmax(axis=1).astype(np.int32) + 1
    values = others[row, labels - 1].astype(np.float64) + 1
    right = scores[own, gold[own] - 1].astype(np.float64)
    better = (right > values[own]) | ((right == values[own]) & (gold[own] < labels[own]))
    better |= np.isnan(right)  # which comes through, to be found
    values[own[better]], labels[own[better]] = right[better], gold[own[better]]
    return values, labels


def decode_spans(
    values: ArrayLike,
    labels: ArrayLike,
    lengths: ArrayLike,
    gold: ArrayLike | None = None,
    *,
    threads: int | None = None,
) -> SpanTrees:
    """Find the tree of highest score of every sentence of a batch.

    The full sentence cannot have the empty label.

    Args:
        values: float64 [cells], the score of the best label of each, as of :func:`best_labels`.
        labels: integers [cells], that label, 1 or more.
        lengths: integers [B], words of each sentence.
        gold: integers [cells] as for :func:`best_labels`, where the empty label is to gain 1 too.
        threads: how many share the sentences; the result does not depend on it.
    """
    words = arrays.checked_lengths(lengths)
    table = arrays.checked_values(values, words)
    best = arrays.checked("labels", labels, np.int32, len(table))
    offsets, nodes = arrays.cell_offsets(words), arrays.node_offsets(words)
    empty = np.zeros(len(table))
    if gold is not None:
        empty[arrays.checked("gold", gold, np.int32, len(table)) != 0] = 1
    empty[offsets[:-1] + words - 1] = -np.inf
    cells, scores = np.empty(int(nodes[-1]), dtype=np.int64), np.empty(len(words))
    kernel, inside = kernels.load("_spans"), np.maximum(empty, table)
    team = kernels.threads_for(kernel, threads, words, 8 * len(table))
    if kernel is None:
        for b, n in enumerate(words.tolist()):
            scores[b], splits = _best_splits(inside[offsets[b] : offsets[b + 1]], n)
            cells[nodes[b] : nodes[b + 1]] = offsets[b] + _tree_cells(splits, n)
    else:
        order = np.argsort(-words, kind="stable")
        kernel.decode(inside, words, offsets, nodes, cells, scores, order, team)
    found = np.where(empty >= table, 0, best).astype(np.int32)[cells]
    return SpanTrees(cells, found, scores)


# The twin of the kernel -------------------------------------------------------------------


def _best_splits(values: NDArray[np.float64], n: int) -> tuple[float, NDArray[np.int32]]:
    """Return the score of the best tree, and the best split of every span as [n, n + 1]."""
    # The same chart in both orders: the splits of [i, j) are then two contiguous runs.
    by_left, by_right = np.zeros((2, n + 1, n + 1))
    splits = np.zeros((n, n + 1), dtype=np.int32)
    for i in range(n - 1, -1, -1):
        for j in range(i + 1, n + 1):
            inside = values[arrays.cell_index(i, j, n)]
            if j > i + 1:
                sums = by_left[i, i + 1 : j] + by_right[j, i + 1 : j]
                k = int(sums.argmax())
                splits[i, j] = i + 1 + k
                inside = inside + sums[k]
            by_left[i, j] = by_right[j, i] = inside
    return float(by_left[0, n]) + 0.0, splits  # + 0.0 turns a negative zero into zero


def _tree_cells(splits: NDArray[np.int32], n: int) -> NDArray[np.int64]:
    cells = np.empty(2 * n - 1, dtype=np.int64)
    waiting = [(0, n)]
    for node in range(2 * n - 1):
        i, j = waiting.pop()
        cells[node] = arrays.cell_index(i, j, n)
        if j > i + 1:
            k = int(splits[i, j])
            waiting += [(k, j), (i, k)]
    return cells
