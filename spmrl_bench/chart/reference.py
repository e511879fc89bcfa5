"""The chart decoder in plain Python: oracle of the compiled kernel and its fallback.

For every cell the best label (a maximum over the columns, label 0 competing with the constant
score 0), then CKY over binary splits:

    inside(i, j) = label(i, j) + max over i < k < j of (inside(i, k) + inside(k, j))

Scores are float32 and sums are double, added in exactly this order; ``_cky.pyx`` does the
same additions, so both return the same bits. Ties go to the lowest label, then to the
leftmost split. Decoding follows Kitaev & Klein (2018), section 2, the augmentation their
margin loss.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from spmrl_bench.chart.packing import cell_index


def label_maxima(
    scores: NDArray[np.float32],
    gold: NDArray[np.int32] | None,
    values: NDArray[np.float64],
    labels: NDArray[np.int32] | None,
    threads: int,
) -> bool:
    """Best (augmented) score and label, the empty one left out, of cells of any sentences.

    ``scores`` [cells, labels - 1], ``gold`` [cells]; outputs are ``values`` and, unless they are
    None, ``labels`` [cells]. Returns False, and they mean nothing, where a score may be NaN or
    infinite.
    """
    if not np.isfinite(scores).all():
        return False
    table = scores.astype(np.float64)
    if gold is not None:
        table += np.arange(1, table.shape[1] + 1) != gold[:, None]
    column = table.argmax(axis=1)
    values[:] = table[np.arange(len(table)), column]
    if labels is not None:
        labels[:] = column + 1
    return True


def find_labels(
    scores: NDArray[np.float32],
    gold: NDArray[np.int32] | None,
    values: NDArray[np.float64],
    cells: NDArray[np.int64],
    labels: NDArray[np.int32],
    threads: int,
) -> None:
    """Replace ``labels`` [some], where they are not the empty one, by the best of the ``cells``.

    The other arguments are those of ``label_maxima``, ``values`` what it found.
    """
    found = np.empty_like(labels)
    label_maxima(scores[cells], None if gold is None else gold[cells], values[cells], found, 1)
    np.copyto(labels, found, where=labels != 0)


def decode_maxima(
    values: NDArray[np.float64],
    best_labels: NDArray[np.int32],
    lengths: NDArray[np.int32],
    gold: NDArray[np.int32] | None,
    cell_offsets: NDArray[np.int64],
    node_offsets: NDArray[np.int64],
    cells: NDArray[np.int64],
    labels: NDArray[np.int32],
    best: NDArray[np.float64],
    order: NDArray[np.int64],
    threads: int,
) -> None:
    """Decode the sentences ``order`` of a batch into ``cells``, ``labels`` and ``best``.

    ``values`` and ``best_labels`` [cells] are what ``label_maxima`` found for the whole batch;
    after lengths and gold come the offsets of cells and nodes [B + 1]. Outputs are the packed cell
    and the label of each node [sum(2n - 1)], and the score of each tree [B]. ``threads`` is for
    the compiled kernel: Python would only take turns.
    """
    for b in order.tolist():
        n = int(lengths[b])
        rows = slice(cell_offsets[b], cell_offsets[b + 1])
        empty = np.zeros(n * (n + 1) // 2)
        if gold is not None:
            empty += gold[rows] != 0
        empty[n - 1] = -np.inf  # the full sentence may not be empty
        best[b], splits = best_splits(np.maximum(empty, values[rows]), n)
        within = tree_cells(splits, n)
        nodes = slice(node_offsets[b], node_offsets[b + 1])
        cells[nodes] = cell_offsets[b] + within
        labels[nodes] = np.where(empty >= values[rows], 0, best_labels[rows])[within]


def best_splits(values: NDArray[np.float64], n: int) -> tuple[float, NDArray[np.int32]]:
    """Score of the best tree over cell values [cells], and the best split of every span.

    The splits come as [n, n + 1], entry (i, j) for span [i, j); one-word spans hold 0.
    """
    # The same chart in both orders: the splits of [i, j) are then two contiguous runs.
    by_left = np.zeros((n + 1, n + 1))
    by_right = np.zeros((n + 1, n + 1))
    splits = np.zeros((n, n + 1), dtype=np.int32)
    for i in range(n - 1, -1, -1):
        for j in range(i + 1, n + 1):
            inside = values[cell_index(i, j, n)]
            if j > i + 1:
                sums = by_left[i, i + 1 : j] + by_right[j, i + 1 : j]
                k = int(sums.argmax())
                splits[i, j] = i + 1 + k
                inside = inside + sums[k]
            by_left[i, j] = by_right[j, i] = inside
    return float(by_left[0, n]) + 0.0, splits  # + 0.0 turns a negative zero into zero


def tree_cells(splits: NDArray[np.int32], n: int) -> NDArray[np.int64]:
    """Cells of the binarised tree in pre-order [2n - 1], given the best split of every span."""
    cells = np.empty(2 * n - 1, dtype=np.int64)
    waiting = [(0, n)]
    for node in range(2 * n - 1):
        i, j = waiting.pop()
        cells[node] = cell_index(i, j, n)
        if j > i + 1:
            k = int(splits[i, j])
            waiting.append((k, j))
            waiting.append((i, k))
    return cells
