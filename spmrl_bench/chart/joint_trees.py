"""Best constituents and dependencies as one structure (Zhou & Zhao 2019), and how likely each is.

Trees are binary, nodes with the empty label stand for no constituent, and every node has a head
word: that of one of its two parts, on which the head word of the other part depends. With the best
label's score ``s`` of a span, words h and d in it and g outside:

    best(i, j, h) = max over i < k < j of (best(i, k, h) + best(k, j, h)) + max(s, 0)
    best(i, i + 1, i) = max(s, 0)
    best(i, j, g) = max over i <= d < j of (best(i, j, d) + min(s, 0) + arc from g to d)

where ``min(s, 0)`` takes the empty label from a dependent part, unless it is one word. Of the two
entries that the first line adds, one is that of the part with the head, the other that of the
dependent part, for which h is a word outside; it is the hook of Eisner & Satta (1999), which makes
it a matter of n^4 steps. Zhou & Zhao (2019), section 3.2, fill the same chart in n^5.

Sums are double. Ties go to the lowest root word; then, from the full sentence down, to the leftmost
split and to the lowest head word of the dependent part; a label must score more than the empty one.

A structure is as likely as the exponent of its score. Where a part that has the head has no label,
it only stands for how the parts of a constituent are put together. To count each structure once,
what depends on a head to its right is put on after all that depends on it to its left is not yet
there; that is, with sums over spans and their head word h and, where ``dep(i, j, h)`` is that of a
part [i, j) which depends on a word h outside of it:

    right(i, j, h)  = sum over h < k < j of (closed + right)(i, k, h) dep(k, j, h)
    left(i, j, h)   = sum over i < k <= h of dep(i, k, h) (closed + right + left)(k, j, h)
    closed(i, j, h) = weight(i, j) (right + left)(i, j, h)
    dep(i, j, g)    = sum over i <= d < j of closed(i, j, d) arc(g, d)

and a word is closed with its weight, or bare. What is outside is the derivative of the sum over all
structures. Each takes n^4 / 6 products, all words side by side.

Every structure has each word and one arc into it, so weights are divided by what they bring to the
best one, which makes good ones about 1. A sentence for which that is not enough is done again with
logarithms, by the twin of the kernel.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray

from spmrl_bench.chart import arrays, kernels
from spmrl_bench.chart.span_trees import SpanMarginals, shares_of_words

Scores = NDArray[np.float64]
#: A span, its head word and whether it must have a label.
_Node = tuple[int, int, int, bool]
#: Sentences with more words have no probabilities: their charts would have 32 n^3 bytes, 0.9 GB.
LONGEST = 300
# Likewise where they need logarithms, of which n^4 / 6 are kept.
_LONGEST = 100
# Words in the third power of the charts of all threads, where there are several.
_AT_ONCE = 1 << 26
# A logarithm of nothing, which has derivatives.
_NEVER = torch.tensor(-1e30, dtype=torch.double)


@dataclass(frozen=True, slots=True, eq=False)
class JointTrees:
    """The best tree, 2n - 1 nodes in pre-order, and the best heads of each sentence of a batch."""

    cells: NDArray[np.int64]
    """[nodes] packed cell of each node, counted from the first cell of the batch."""
    labelled: NDArray[np.bool_]
    """[nodes] whether the node has the best label of its cell; if not, the empty one."""
    heads: NDArray[np.int32]
    """[words] head of each word, from 1; 0 is the root."""
    scores: NDArray[np.float64]
    """[B] score of each structure."""


def decode_joint(values: ArrayLike, arcs: ArrayLike, lengths: ArrayLike) -> JointTrees:
    """Find the structure of highest score of every sentence of a batch.

    The score is the sum of the values of all nodes that have a label and of the n arcs, one of
    which comes from the root. The full sentence must have a label, and so must a dependent part of
    more than one word. A sentence of n words takes time in proportion to n^4, and each thread's
    chart 4 n^3 bytes: 17 megabytes for 160 words, 110 for 300.

    Args:
        values: float64 [cells], the largest score of a label of the cell other than the empty one.
            Weights of spans and arcs have been multiplied in.
        arcs: as of :func:`spmrl_bench.chart.dependency_trees.decode_dependencies`.
        lengths: integers [B], words of each sentence.
    """
    words = arrays.checked_lengths(lengths)
    inside = arrays.checked_values(values, words)
    table = arrays.checked_arcs(arcs, words)
    runs = arrays.cell_offsets, arrays.arc_offsets, arrays.node_offsets, arrays.starts
    offsets = [of_runs(words) for of_runs in runs]
    count = int(offsets[2][-1])
    cells, labelled = np.empty(count, dtype=np.int64), np.empty(count, dtype=np.bool_)
    heads, best = np.empty(int(offsets[3][-1]), dtype=np.int32), np.empty(len(words))
    work = (words.astype(np.float64) ** 4).sum() / 12
    kernel, order, team = kernels.for_batch("_joint", words, work)
    if kernel is None:
        for b, n in enumerate(words.tolist()):
            spans, rows, nodes, own = (slice(*each[b : b + 2]) for each in offsets)
            found = _decode(inside[spans], table[rows].reshape(n, n + 1))
            best[b], cells[nodes], labelled[nodes], heads[own] = found
            cells[nodes] += spans.start
    else:
        marks = labelled.view(np.uint8)
        kernel.decode(inside, table, words, *offsets, cells, marks, heads, best, order, team)
    return JointTrees(cells, labelled, heads, best)


@dataclass(frozen=True, slots=True, eq=False)
class JointMarginals(SpanMarginals):
    """The distribution over the structures of each sentence; NaN if it is longer than
    :data:`LONGEST`, or longer than 100 words with scores that are too far apart."""

    arcs: NDArray[np.float64]
    """[sum of n(n + 1)] of an arc, packed as the scores; of a word to itself 0."""


def joint_marginals(
    weights: ArrayLike, arcs: ArrayLike, lengths: ArrayLike, near: JointTrees | None = None
) -> JointMarginals:
    """Return how likely constituents and arcs are.

    Args:
        weights: float64 [cells], the logarithm of the sum of exponents of all label scores.
        arcs, lengths: as of :func:`decode_joint`.
        near: what that returns for about the same scores; it is asked without.
    """
    words = arrays.checked_lengths(lengths)
    logs, table = arrays.checked_values(weights, words), arrays.checked_arcs(arcs, words)
    near = near or decode_joint(logs, table, words)
    offsets, runs = arrays.cell_offsets(words), arrays.arc_offsets(words)
    rows, own = np.repeat(words + 1, words), np.arange(words.sum())
    of_rows, of_words = arrays.starts(rows)[:-1], arrays.starts(words)[:-1]
    each = shares_of_words(logs, words, near.cells) + table[of_rows + near.heads]
    totals, spans, of_arcs = np.full(len(words), np.nan), logs * np.nan, table * np.nan
    work = (words[words <= LONGEST].astype(np.float64) ** 4).sum()
    kernel, order, team = kernels.for_batch("_joint", words, work)
    if kernel is not None:
        order = order[words[order] <= LONGEST]
        team = max(1, min(team, _AT_ONCE // int(1 + words[order[:1]].sum() ** 3)))
        with np.errstate(all="ignore"):
            linear = np.exp(table - np.repeat(each, rows))
            linear[of_rows + own - np.repeat(of_words, words) + 1] = 0  # of a word to itself
            given = np.exp(logs), linear, words, offsets, runs
            kernel.sum_up(*given, spans, of_arcs, totals, order, team)
            totals = np.log(totals) + np.add.reduceat(each, of_words)
    # Each word has one head: a sum that got out of range shows.
    wrong = ~(np.abs(np.add.reduceat(of_arcs, of_rows) - 1) < 1e-6)
    for b in np.flatnonzero(np.logical_or.reduceat(wrong, of_words) | ~np.isfinite(totals)):
        cells, arc = slice(*offsets[b : b + 2]), slice(*runs[b : b + 2])
        totals[b] = spans[cells] = of_arcs[arc] = np.nan
        if (n := words[b]) <= _LONGEST:
            scores = table[arc].reshape(n, n + 1).copy()
            totals[b], spans[cells], of_arcs[arc] = _sum_up(logs[cells], scores)
    return JointMarginals(totals, np.minimum(spans, 1.0), np.minimum(of_arcs, 1.0))


# The twins of the kernels -----------------------------------------------------------------


def _decode(values: Scores, arcs: Scores) -> tuple[float, list[int], list[bool], list[int]]:
    """Return the score of one sentence, cell and label of each node, and heads."""
    n = len(arcs)
    chart = _fill_chart(values, arcs)
    roots = chart[0, n] + min(values[n - 1], 0.0) + arcs[:, 0]
    root = int(roots.argmax())
    cells, labelled, heads = [], [], [0] * n
    waiting: list[_Node] = [(0, n, root, True)]
    while waiting:
        i, j, head, required = waiting.pop()
        cell = arrays.cell_index(i, j, n)
        cells.append(cell)
        labelled.append(required or bool(values[cell] > 0))
        if j > i + 1:
            left, right = _best_parts(chart, values, arcs, i, j, head)
            heads[left[2] if right[2] == head else right[2]] = head + 1
            waiting += [right, left]
    return float(roots[root]) + 0.0, cells, labelled, heads  # + 0.0 makes a negative zero zero


def _fill_chart(values: Scores, arcs: Scores) -> Scores:
    """Return all best(i, j, w) as [n + 1, n + 1, n], for values [cells] and arcs [n, n + 1]."""
    n = len(arcs)
    chart = np.zeros((n + 1, n + 1, n))
    for i in range(n - 1, -1, -1):
        for j in range(i + 1, n + 1):
            value = values[arrays.cell_index(i, j, n)]
            words = chart[i, j]
            if j > i + 1:
                words[i:j] = (chart[i, i + 1 : j, i:j] + chart[i + 1 : j, j, i:j]).max(axis=0)
            words[i:j] += max(value, 0.0)
            dependents = words[i:j] + (min(value, 0.0) if j > i + 1 else 0.0)
            for outside in (slice(0, i), slice(j, n)):
                attached = dependents[:, None] + arcs[i:j, 1:][:, outside]
                words[outside] = attached.max(axis=0)
    return chart


def _best_parts(
    chart: Scores, values: Scores, arcs: Scores, i: int, j: int, head: int
) -> tuple[_Node, _Node]:
    """Return the left and the right part of the best tree over [i, j) with this head word."""
    n = chart.shape[2]
    split = i + 1 + int((chart[i, i + 1 : j, head] + chart[i + 1 : j, j, head]).argmax())
    left, right = (i, split) if head >= split else (split, j)
    loss = min(values[arrays.cell_index(left, right, n)], 0.0)  # one word has no choice
    scores = chart[left, right, left:right] + loss + arcs[left:right, head + 1]
    dependent = left + int(scores.argmax())
    if head >= split:
        return (i, split, dependent, split - i > 1), (split, j, head, False)
    return (i, split, head, False), (split, j, dependent, j - split > 1)


def _sum_up(weights: Scores, arcs: Scores) -> tuple[float, Scores, Scores]:
    """Return the logarithm of the sum over the structures of a sentence, and the shares of cells
    and arcs, for the logarithms of weights [cells] and arcs [n, n + 1]."""
    n = len(arcs)
    arcs[np.arange(n), np.arange(1, n + 1)] = 0.0  # of a word to itself, which may be anything
    weight, arc = (torch.from_numpy(one).requires_grad_() for one in (weights.copy(), arcs))
    first, last = np.triu_indices(n + 1, 1)
    word = torch.arange(n)
    # By width, of each left fencepost and word.
    closed, opened, ended, hung = ([arc[:0]] for _ in range(4))
    for width in range(1, n + 1):
        start = torch.arange(n + 1 - width)[:, None]
        own = weight[last - first == width][:, None]
        if width == 1:
            bare = own if n == 1 else torch.logaddexp(own, torch.zeros_like(own))
            right = left = _NEVER.expand(n, n)
            closed.append(bare.where(word == start, _NEVER))
        else:
            right, left = (
                torch.stack(
                    [a[k][: len(start)] + b[width - k][k:] for k in range(1, width)]
                ).logsumexp(dim=0)
                for a, b in ((opened, hung), (hung, ended))
            )
            closed.append(own + torch.logaddexp(right, left))
        opened.append(torch.logaddexp(closed[width], right))
        ended.append(torch.logaddexp(opened[width], left))
        outside = (word < start) | (word >= start + width)
        attached = (closed[width][:, :, None] + arc[:, 1:]).logsumexp(dim=1)
        hung.append(attached.where(outside, _NEVER))
    total = (closed[n][0] + arc[:, 0]).logsumexp(dim=0)
    cells, rows = torch.autograd.grad(total, (weight, arc))
    return total.item(), cells.numpy(), rows.numpy().ravel()
