"""Joint decoding, the same bits as the twin in ``joint_trees.py``, and sums over structures.

Input is trusted, indices are checked and sentences shared among threads as in ``_spans.pyx``. Each
thread owns one chart, which is as large as the longest sentence needs but takes no memory before
it is used. Only scores are kept while a chart is filled; the splits and arcs of the best structure
are found again on the way down.
"""

import numpy as np

from cython.parallel cimport prange, threadid
from libc.stdint cimport int32_t, int64_t, uint8_t

cdef extern from "_joint.h" nogil:
    Py_ssize_t cell_of(Py_ssize_t n, Py_ssize_t i, Py_ssize_t j) noexcept
    void fill_joint_chart(
        Py_ssize_t n, const double *values, const double *arcs, double *chart, double *dependents
    ) noexcept
    double sum_joint(
        Py_ssize_t n, const double *weights, const double *arcs, double *charts, double *spans,
        double *shares,
    ) noexcept
    cpdef int openmp_threads() noexcept

cdef double NO_SCORE = float("-inf")


def decode(
    const double[::1] values, const double[::1] arcs, const int32_t[::1] lengths,
    const int64_t[::1] cell_offsets, const int64_t[::1] arc_offsets,
    const int64_t[::1] node_offsets, const int64_t[::1] word_offsets,
    int64_t[::1] cells, uint8_t[::1] labelled, int32_t[::1] heads, double[::1] scores,
    const int64_t[::1] order, int threads,
):
    """Write the nodes, heads and score of the best structure of each sentence."""
    cdef Py_ssize_t place, b, longest = lengths[order[0]] if order.shape[0] else 0
    # One of each for each thread.
    cdef double[:, ::1] charts = np.empty((threads, longest * (longest + 1) // 2 * longest))
    cdef double[:, ::1] dependents = np.empty((threads, longest))
    cdef int32_t[:, :, ::1] stack = np.empty((threads, longest + 1, 4), dtype=np.int32)
    for place in prange(
        order.shape[0], nogil=True, schedule="dynamic", chunksize=1, num_threads=threads
    ):
        b = order[place]
        fill_joint_chart(
            lengths[b], &values[cell_offsets[b]], &arcs[arc_offsets[b]],
            &charts[threadid(), 0], &dependents[threadid(), 0],
        )
        scores[b] = best_structure(
            lengths[b], values[cell_offsets[b] : cell_offsets[b + 1]],
            arcs[arc_offsets[b] : arc_offsets[b + 1]],
            charts[threadid()], stack[threadid()], cell_offsets[b],
            cells[node_offsets[b] : node_offsets[b + 1]],
            labelled[node_offsets[b] : node_offsets[b + 1]],
            heads[word_offsets[b] : word_offsets[b + 1]],
        )


cdef double best_structure(
    Py_ssize_t n, const double[::1] values, const double[::1] arcs, const double[::1] chart,
    int32_t[:, ::1] stack, Py_ssize_t first_cell,
    int64_t[::1] cells, uint8_t[::1] labelled, int32_t[::1] heads,
) noexcept nogil:
    """Write the nodes of a sentence's best structure in pre-order, and heads; return its score."""
    cdef Py_ssize_t i, j, k, d, w, head, split, left, right, cell, node, dependent, root = 0
    cdef Py_ssize_t waiting = 1
    cdef bint required, dependent_left
    cdef double score, best, top = NO_SCORE
    cdef double loss = min(values[n - 1], 0.0)  # the full sentence must have a label
    for w in range(n):
        score = chart[(n - 1) * n + w] + loss + arcs[w * (n + 1)]
        if score > top:
            top, root = score, w
    best = top + 0.0  # turns a negative zero into zero
    heads[root] = 0
    push(stack[0], 0, n, root, True)
    for node in range(2 * n - 1):
        waiting -= 1
        i, j = stack[waiting, 0], stack[waiting, 1]
        head, required = stack[waiting, 2], stack[waiting, 3]
        cell = cell_of(n, i, j)
        cells[node] = first_cell + cell
        labelled[node] = required or values[cell] > 0
        if j - i == 1:
            continue
        split, top = i + 1, NO_SCORE
        for k in range(i + 1, j):
            score = chart[cell_of(n, i, k) * n + head] + chart[cell_of(n, k, j) * n + head]
            if score > top:
                top, split = score, k
        dependent_left = head >= split
        left, right = (i, split) if dependent_left else (split, j)
        cell = cell_of(n, left, right)
        loss = min(values[cell], 0.0)  # one word has no choice
        dependent, top = left, NO_SCORE
        for d in range(left, right):
            score = chart[cell * n + d] + loss + arcs[d * (n + 1) + head + 1]
            if score > top:
                top, dependent = score, d
        heads[dependent] = <int32_t>head + 1
        push(
            stack[waiting], split, j, head if dependent_left else dependent,
            not dependent_left and j - split > 1,
        )
        push(
            stack[waiting + 1], i, split, dependent if dependent_left else head,
            dependent_left and split - i > 1,
        )
        waiting += 2
    return best


cdef inline void push(
    int32_t[::1] place, Py_ssize_t i, Py_ssize_t j, Py_ssize_t head, bint required
) noexcept nogil:
    place[0], place[1], place[2], place[3] = <int32_t>i, <int32_t>j, <int32_t>head, required


def sum_up(
    const double[::1] weights, const double[::1] arcs, const int32_t[::1] lengths,
    const int64_t[::1] cell_offsets, const int64_t[::1] arc_offsets,
    double[::1] spans, double[::1] shares, double[::1] totals, const int64_t[::1] order,
    int threads,
):
    """Write the probabilities of spans and arcs of some sentences, and the sums over structures."""
    cdef Py_ssize_t place, b, longest = lengths[order[0]] if order.shape[0] else 0
    cdef double[:, ::1] charts = np.empty((threads, 4 * longest * (longest + 1) * longest))
    for place in prange(
        order.shape[0], nogil=True, schedule="dynamic", chunksize=1, num_threads=threads
    ):
        b = order[place]
        totals[b] = sum_joint(
            lengths[b], &weights[cell_offsets[b]], &arcs[arc_offsets[b]], &charts[threadid(), 0],
            &spans[cell_offsets[b]], &shares[arc_offsets[b]],
        )
