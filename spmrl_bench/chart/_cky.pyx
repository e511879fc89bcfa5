"""The chart decoder, compiled: same arguments and same bits as ``reference.decode_batch``.

Input is trusted: ``spmrl_bench.chart`` has checked it. Every index goes through a typed
memoryview, so a debug build (SPMRL_BENCH_BOUNDS_CHECKS=1, see setup.py) checks them all.
Sentences share nothing but read-only input and disjoint parts of the output, and each one
needs only the two charts and the stack that it is handed.

Maxima run over several independent lanes because a compiler may not reorder comparisons of
floats, and so vectorises no plain maximum. Only values are kept while the chart is filled;
the labels and splits of the few nodes of the best tree are found again on the way down.
"""

import numpy as np

from libc.stdint cimport int32_t, int64_t

cdef double NO_SCORE = float("-inf")

cdef enum:
    LANES = 8


def decode_batch(
    const float[:, ::1] scores,
    const int32_t[::1] lengths,
    const int32_t[::1] gold,  # or None
    const int64_t[::1] cell_offsets,
    const int64_t[::1] node_offsets,
    int64_t[::1] cells,
    int32_t[::1] labels,
    double[::1] best,
):
    """Decode every sentence of a batch into ``cells``, ``labels`` and ``best``."""
    cdef bint augmented = gold is not None
    cdef Py_ssize_t b, longest = 0
    for b in range(lengths.shape[0]):
        longest = max(longest, lengths[b])
    # The same chart in both orders: by_left[i, j] and by_right[j, i] are the score of the best
    # tree over [i, j), and the splits of a span are then two contiguous runs.
    cdef double[:, ::1] by_left = np.empty((longest + 1, longest + 1))
    cdef double[:, ::1] by_right = np.empty((longest + 1, longest + 1))
    cdef int32_t[:, ::1] stack = np.empty((longest + 1, 2), dtype=np.int32)
    with nogil:
        for b in range(lengths.shape[0]):
            fill_labels(scores, gold, augmented, cell_offsets[b], lengths[b], by_left)
            fill_splits(lengths[b], by_left, by_right)
            trace_back(
                scores, gold, augmented, cell_offsets[b], lengths[b], by_left, by_right,
                stack, node_offsets[b], cells, labels,
            )
            best[b] = by_left[0, lengths[b]] + 0.0  # turns a negative zero into zero


cdef int fill_labels(
    const float[:, ::1] scores,
    const int32_t[::1] gold,
    bint augmented,
    Py_ssize_t first_cell,
    Py_ssize_t n,
    double[:, ::1] by_left,
) except -1 nogil:
    """Put the best label score of every span of one sentence into ``by_left``."""
    cdef Py_ssize_t i, j, column, lane, part, start, stop, gold_column
    cdef Py_ssize_t cell = first_cell
    cdef Py_ssize_t columns = scores.shape[1]
    cdef double bonus = 1.0 if augmented else 0.0
    cdef double value
    cdef float score
    cdef float[LANES] top
    for i in range(n):
        for j in range(i + 1, n + 1):
            gold_column = columns
            if augmented and gold[cell] > 0:
                gold_column = gold[cell] - 1
            for lane in range(LANES):
                top[lane] = <float>NO_SCORE
            # The columns before and after gold's, which alone gets no bonus.
            for part in range(2):
                start = 0 if part == 0 else gold_column + 1
                stop = gold_column if part == 0 else columns
                column = start
                while column + LANES <= stop:
                    for lane in range(LANES):
                        score = scores[cell, column + lane]
                        top[lane] = score if score > top[lane] else top[lane]
                    column += LANES
                while column < stop:
                    score = scores[cell, column]
                    top[0] = score if score > top[0] else top[0]
                    column += 1
            for lane in range(1, LANES):
                top[0] = top[lane] if top[lane] > top[0] else top[0]
            # Rounding is monotone: the maximum may be taken before the bonus is added.
            value = <double>top[0] + bonus
            if gold_column < columns and scores[cell, gold_column] > value:
                value = scores[cell, gold_column]
            if j - i < n:
                value = max(value, empty_score(augmented, gold_column < columns))
            by_left[i, j] = value
            cell += 1
    return 0


cdef inline double empty_score(bint augmented, bint gold_has_label) noexcept nogil:
    """Score of label 0: it gains the bonus where gold has a constituent."""
    return 1.0 if augmented and gold_has_label else 0.0


cdef int fill_splits(
    Py_ssize_t n, double[:, ::1] by_left, double[:, ::1] by_right
) except -1 nogil:
    """Turn the label scores in ``by_left`` into scores of best trees, in both charts."""
    cdef Py_ssize_t i, j, k, lane
    cdef double total
    cdef double[LANES] top
    for i in range(n - 1, -1, -1):
        by_right[i + 1, i] = by_left[i, i + 1]
        for j in range(i + 2, n + 1):
            for lane in range(LANES):
                top[lane] = NO_SCORE
            k = i + 1
            while k + LANES <= j:
                for lane in range(LANES):
                    total = by_left[i, k + lane] + by_right[j, k + lane]
                    top[lane] = total if total > top[lane] else top[lane]
                k += LANES
            while k < j:
                total = by_left[i, k] + by_right[j, k]
                top[0] = total if total > top[0] else top[0]
                k += 1
            for lane in range(1, LANES):
                top[0] = top[lane] if top[lane] > top[0] else top[0]
            by_left[i, j] += top[0]
            by_right[j, i] = by_left[i, j]
    return 0


cdef int trace_back(
    const float[:, ::1] scores,
    const int32_t[::1] gold,
    bint augmented,
    Py_ssize_t first_cell,
    Py_ssize_t n,
    double[:, ::1] by_left,
    double[:, ::1] by_right,
    int32_t[:, ::1] stack,
    Py_ssize_t first_node,
    int64_t[::1] cells,
    int32_t[::1] labels,
) except -1 nogil:
    """Write the nodes of one sentence's best tree in pre-order."""
    cdef Py_ssize_t i, j, k, split, cell, column, node
    cdef Py_ssize_t waiting = 1
    cdef int32_t gold_label, label
    cdef double value, top
    stack[0, 0] = 0
    stack[0, 1] = <int32_t>n
    for node in range(first_node, first_node + 2 * n - 1):
        waiting -= 1
        i = stack[waiting, 0]
        j = stack[waiting, 1]
        cell = first_cell + i * n - i * (i - 1) // 2 + (j - i - 1)

        gold_label = gold[cell] if augmented else 0
        label = 0
        top = NO_SCORE if j - i == n else empty_score(augmented, gold_label > 0)
        for column in range(scores.shape[1]):
            value = scores[cell, column]
            if augmented and column + 1 != gold_label:
                value += 1.0
            if value > top:
                top = value
                label = <int32_t>column + 1
        cells[node] = cell
        labels[node] = label

        if j - i > 1:
            split = i + 1
            top = NO_SCORE
            for k in range(i + 1, j):
                value = by_left[i, k] + by_right[j, k]
                if value > top:
                    top = value
                    split = k
            stack[waiting, 0] = <int32_t>split
            stack[waiting, 1] = <int32_t>j
            stack[waiting + 1, 0] = <int32_t>i
            stack[waiting + 1, 1] = <int32_t>split
            waiting += 2
    return 0
