"""Best binary trees under label scores of their spans, and how likely each span is.

In the best tree (Kitaev & Klein 2018, section 2) a node has a label or the empty one, label 0,
which stands for no constituent and scores 0. For every cell the best label is taken; then CKY over
binary splits, in double precision:

    inside(i, j) = value(i, j) + max over i < k < j of (inside(i, k) + inside(k, j))

Ties go to the lowest label, then to the leftmost split.

A tree is as likely as the exponent of the sum of its weights. Where it has no label, a binary tree
only stands for how the parts of a constituent are put together, in many ways for one constituent
of several parts. To count each tree once, the parts of a span are put together from the right:

    sum(i, j)    = sum over i < k < j of closed(i, k) open(k, j)
    closed(i, j) = weight(i, j) sum(i, j)               a constituent, or a bare word
    open(i, j)   = closed(i, j) + sum(i, j)             one part or several

and the outside sums are the derivatives of closed(0, n) (Eisner 2016, Inside-Outside and
Forward-Backward Algorithms Are Just Backprop).

Sums are multiplied, not logarithms added, which takes no exponent of a sum. They stay in range as
each word is divided by what the words of a good tree bring, so that good trees are near 1. A
sentence for which that is not enough is done again with logarithms, by the twin of the kernel.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray

from spmrl_bench.chart import arrays, kernels
from spmrl_bench.errors import ArrayError

_Vector = NDArray[np.float64]
_STEPS = 1024.0


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
    values: ArrayLike, labels: ArrayLike, lengths: ArrayLike, gold: ArrayLike | None = None
) -> SpanTrees:
    """Find the tree of highest score of every sentence of a batch.

    The full sentence cannot have the empty label.

    Args:
        values: float64 [cells], the score of the best label of each, as of :func:`best_labels`.
        labels: integers [cells], that label, 1 or more.
        lengths: integers [B], words of each sentence.
        gold: integers [cells] as for :func:`best_labels`, where the empty label is to gain 1 too.
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
    inside = np.maximum(empty, table)
    kernel, order, team = kernels.for_batch("_spans", words, 8 * len(table))
    if kernel is None:
        for b, n in enumerate(words.tolist()):
            scores[b], splits = _best_splits(inside[offsets[b] : offsets[b + 1]], n)
            cells[nodes[b] : nodes[b + 1]] = offsets[b] + _tree_cells(splits, n)
    else:
        kernel.decode(inside, words, offsets, nodes, cells, scores, order, team)
    found = np.where(empty >= table, 0, best).astype(np.int32)[cells]
    return SpanTrees(cells, found, scores)


@dataclass(frozen=True, slots=True, eq=False)
class SpanMarginals:
    """The distribution over the trees of each sentence of a batch."""

    log_partition: NDArray[np.float64]
    """[B] logarithm of the sum over all trees: a tree with the score s has exp(s - it)."""
    probabilities: NDArray[np.float64]
    """[cells] of a constituent over the span, in natural numbers from 0 to 1."""


def span_marginals(
    weights: ArrayLike, lengths: ArrayLike, near: NDArray[np.int64] | None = None
) -> SpanMarginals:
    """Return how likely constituents are.

    The whole sentence is one, any other span may be; a word may be bare.

    Args:
        weights: float64 [cells], the logarithm of the sum of exponents of all label scores.
        lengths: integers [B], words of each sentence.
        near: int64 [nodes], cells of trees that are about the best, as of :func:`decode_spans`,
            which is asked without.
    """
    words = arrays.checked_lengths(lengths)
    logs = arrays.checked_values(weights, words)
    if not len(words):
        return SpanMarginals(np.empty(0), logs)
    offsets, first = arrays.cell_offsets(words), arrays.starts(words)
    if near is None:
        near = decode_spans(logs, np.ones(len(logs), np.int32), words).cells
    shares = shares_of_words(logs, words, near)
    found, totals = np.empty(len(logs)), np.full(len(words), np.nan)
    kernel, order, team = kernels.for_batch("_spans", words, 20 * len(logs))
    if kernel is not None:
        with np.errstate(all="ignore"):
            linear, scales = np.exp(logs), np.exp(-shares)
            kernel.sum_up(linear, scales, words, offsets, first, found, totals, order, team)
            totals = np.log(totals) + np.add.reduceat(shares, first[:-1])
    sums = np.add.reduceat(found, offsets[:-1])
    for b in np.flatnonzero(~(np.isfinite(totals) & np.isfinite(sums))).tolist():
        own = slice(offsets[b], offsets[b + 1])
        totals[b], found[own] = _sum_up(logs[own], int(words[b]))
    return SpanMarginals(totals, np.minimum(found, 1.0))


def shares_of_words(logs: _Vector, words: NDArray[np.int32], near: NDArray[np.int64]) -> _Vector:
    """Return what each word brings to a tree: of each node its weight, divided by its words."""
    sentence = np.repeat(np.arange(len(words)), 2 * words - 1)
    start, width = _places(near - arrays.cell_offsets(words)[sentence], words[sentence])
    begin = arrays.starts(words)[sentence] + start
    # A bare word, and no label, weigh as much as a score of 0.
    # They are rounded to what adds up without error, whatever other sentences there are.
    each = np.round(np.maximum(logs[near], 0.0) / width * _STEPS) / _STEPS
    size = int(words.sum()) + 1
    steps = np.bincount(begin, each, size) - np.bincount(begin + width, each, size)
    shares: _Vector = np.cumsum(steps[:-1])
    return shares


def _places(
    cells: NDArray[np.int64], n: NDArray[np.int32]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the left fenceposts and the widths of cells of sentences of ``n`` words."""
    twice = 2.0 * n + 1
    start = ((twice - np.sqrt(twice**2 - 8.0 * cells)) / 2).astype(np.int64)
    return start, cells - arrays.cell_index(start, start, n.astype(np.int64))


# The twins of the kernels -----------------------------------------------------------------


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


def _sum_up(weights: _Vector, n: int) -> tuple[float, _Vector]:
    """Return the logarithm of the sum over trees and the probabilities of cells of a sentence."""
    weight = torch.from_numpy(weights.copy()).requires_grad_()
    first, last = np.triu_indices(n + 1, 1)
    # By width, of each left fencepost.
    closed, opened = [weight[:0]], [weight[:0]]
    for width in range(1, n + 1):
        own, starts = weight[last - first == width], n - width + 1
        if width == 1:  # with nothing below it, or bare
            closed.append(own if n == 1 else torch.logaddexp(own, torch.zeros_like(own)))
            opened.append(closed[1])
            continue
        parts = [closed[k][:starts] + opened[width - k][k:] for k in range(1, width)]
        sums = torch.stack(parts).logsumexp(dim=0)
        closed.append(own + sums)
        opened.append(torch.logaddexp(closed[width], sums))
    (found,) = torch.autograd.grad(closed[n].sum(), weight)
    return closed[n].item(), found.numpy()
