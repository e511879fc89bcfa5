"""Best constituents and dependencies as one structure (Zhou & Zhao 2019).

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
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from spmrl_bench.chart import arrays, kernels

Scores = NDArray[np.float64]
#: A span, its head word and whether it must have a label.
_Node = tuple[int, int, int, bool]


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


def decode_joint(
    values: ArrayLike, arcs: ArrayLike, lengths: ArrayLike, *, threads: int | None = None
) -> JointTrees:
    """Find the structure of highest score of every sentence of a batch.

    The score is the sum of the values of all nodes that have a label and of the n arcs, one of
    which comes from the root. The full sentence must have a label, and so must a dependent part of
    more than one word. A sentence of n words takes time in proportion to n^4, and each thread's
    chart 4 n^3 bytes: 17 megabytes for 160 words, 110 for 300.

    Args:
        values: float64 [cells], the largest score of a label of the cell other than the empty one.
            Weights of spans and arcs have been multiplied in.
        arcs: as of :func:`spmrl_bench.chart.dependency_trees.decode_dependencies`.
        lengths, threads: as of :func:`spmrl_bench.chart.span_trees.decode_spans`.
    """
    words = arrays.checked_lengths(lengths)
    inside = arrays.checked_values(values, words)
    table = arrays.checked_arcs(arcs, words)
    runs = arrays.cell_offsets, arrays.arc_offsets, arrays.node_offsets, arrays.starts
    offsets = [of_runs(words) for of_runs in runs]
    count = int(offsets[2][-1])
    cells, labelled = np.empty(count, dtype=np.int64), np.empty(count, dtype=np.bool_)
    heads, best = np.empty(int(offsets[3][-1]), dtype=np.int32), np.empty(len(words))
    kernel, work = kernels.load("_joint"), (words.astype(np.float64) ** 4).sum() / 12
    team = kernels.threads_for(kernel, threads, words, work)
    if kernel is None:
        for b, n in enumerate(words.tolist()):
            spans, rows, nodes, own = (slice(*each[b : b + 2]) for each in offsets)
            found = _decode(inside[spans], table[rows].reshape(n, n + 1))
            best[b], cells[nodes], labelled[nodes], heads[own] = found
            cells[nodes] += spans.start
    else:
        order, marks = np.argsort(-words, kind="stable"), labelled.view(np.uint8)
        kernel.decode(inside, table, words, *offsets, cells, marks, heads, best, order, team)
    return JointTrees(cells, labelled, heads, best)


# The twin of the kernel -------------------------------------------------------------------


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
