"""Joint decoding in plain Python: oracle of the compiled kernel and its fallback.

In a span of two parts the head word of one depends on that of the other, so that a binary tree
and the part that has the head, chosen at each of its nodes, make a dependency tree. With the best
label's score ``s`` of a span, words h and d in it and g outside:

    best(i, j, h) = max over i < k < j of (best(i, k, h) + best(k, j, h)) + max(s, 0)
    best(i, i + 1, i) = max(s, 0)
    best(i, j, g) = max over i <= d < j of (best(i, j, d) + min(s, 0) + arc from g to d)

where ``min(s, 0)`` takes the empty label from a dependent part, unless it is one word. Of the two
entries that the first line adds, one is that of the part with the head, the other that of the
dependent part, for which h is a word outside; it is the hook of Eisner & Satta (1999), which makes
it a matter of n^4 steps. Zhou & Zhao (2019), section 3.2, fill the same chart in n^5.

Sums are double, added in exactly this order, and ``_joint.h`` does the same additions, so that
both return the same bits. Ties go to the lowest root, then node by node to the leftmost split
and to the lowest head word of the dependent part; a label must score more than the empty one.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from spmrl_bench.chart.packing import cell_index

#: A span, its head word and whether it must carry a label.
_Node = tuple[int, int, int, bool]


def decode(
    values: NDArray[np.float64],
    arcs: NDArray[np.float64],
    lengths: NDArray[np.int32],
    cell_offsets: NDArray[np.int64],
    arc_offsets: NDArray[np.int64],
    node_offsets: NDArray[np.int64],
    word_offsets: NDArray[np.int64],
    cells: NDArray[np.int64],
    labelled: NDArray[np.uint8],
    node_heads: NDArray[np.int32],
    heads: NDArray[np.int32],
    best: NDArray[np.float64],
    order: NDArray[np.int64],
    threads: int,
) -> None:
    """Decode the sentences ``order`` of a batch.

    ``values`` [cells] and ``arcs`` [sum(n(n + 1))] are those of
    :func:`spmrl_bench.chart.joint.decode_joint`; after the lengths come the offsets [B + 1] of
    cells, arcs, nodes and words. Outputs are the arrays of
    :class:`spmrl_bench.chart.decoded.JointDecoded`. ``threads`` is for the compiled kernel.
    """
    for b in order.tolist():
        n = int(lengths[b])
        inside = values[cell_offsets[b] : cell_offsets[b + 1]]
        table = arcs[arc_offsets[b] : arc_offsets[b + 1]].reshape(n, n + 1)
        chart = fill_chart(inside, table, n)
        roots = chart[0, n] + min(inside[n - 1], 0.0) + table[:, 0]
        root = int(roots.argmax())
        best[b] = roots[root] + 0.0  # turns a negative zero into zero
        governors = heads[word_offsets[b] : word_offsets[b + 1]]
        governors[root] = 0
        waiting: list[_Node] = [(0, n, root, True)]
        for node in range(node_offsets[b], node_offsets[b + 1]):
            i, j, head, required = waiting.pop()
            cell = cell_index(i, j, n)
            cells[node] = cell_offsets[b] + cell
            labelled[node] = required or inside[cell] > 0
            node_heads[node] = head + 1
            if j > i + 1:
                left, right = best_parts(chart, inside, table, i, j, head)
                governors[left[2] if right[2] == head else right[2]] = head + 1
                waiting += [right, left]


def fill_chart(
    values: NDArray[np.float64], arcs: NDArray[np.float64], n: int
) -> NDArray[np.float64]:
    """All best(i, j, w) as [n + 1, n + 1, n], for values [cells] and arcs [n, n + 1]."""
    chart = np.zeros((n + 1, n + 1, n))
    for i in range(n - 1, -1, -1):
        for j in range(i + 1, n + 1):
            value = values[cell_index(i, j, n)]
            words = chart[i, j]
            if j > i + 1:
                words[i:j] = (chart[i, i + 1 : j, i:j] + chart[i + 1 : j, j, i:j]).max(axis=0)
            words[i:j] += max(value, 0.0)
            dependents = words[i:j] + (min(value, 0.0) if j > i + 1 else 0.0)
            for outside in (slice(0, i), slice(j, n)):
                governed = dependents[:, None] + arcs[i:j, 1:][:, outside]
                words[outside] = governed.max(axis=0)
    return chart


def best_parts(
    chart: NDArray[np.float64],
    values: NDArray[np.float64],
    arcs: NDArray[np.float64],
    i: int,
    j: int,
    head: int,
) -> tuple[_Node, _Node]:
    """The left and the right part of the best tree over [i, j) with this head word."""
    n = chart.shape[2]
    split = i + 1 + int((chart[i, i + 1 : j, head] + chart[i + 1 : j, j, head]).argmax())
    left, right = (i, split) if head >= split else (split, j)
    loss = min(values[cell_index(left, right, n)], 0.0)  # one word has no choice
    scores = chart[left, right, left:right] + loss + arcs[left:right, head + 1]
    dependent = left + int(scores.argmax())
    if head >= split:
        return (i, split, dependent, split - i > 1), (split, j, head, False)
    return (i, split, head, False), (split, j, dependent, j - split > 1)
