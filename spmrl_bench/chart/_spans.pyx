"""CKY, compiled: the same bits as the twin in ``span_trees.py``, which has checked the input.

Outside the loop of ``_joins.h`` every index goes through a typed memoryview, so that a debug build
(SPMRL_BENCH_BOUNDS_CHECKS=1, see setup.py) checks them all. Sentences share nothing but read-only
input and disjoint parts of the output, and each needs only the chart and the stack that its thread
owns: with OpenMP the threads take the next sentence as they get free.

Only values are kept while the chart is filled; the splits of the few nodes of the best tree are
found again on the way down.
"""

import numpy as np

from cython.parallel cimport prange, threadid
from libc.stdint cimport int32_t, int64_t

cdef extern from "_joins.h" nogil:
    void fill_spans(double *inside, double *tops, Py_ssize_t n) noexcept
    void sum_inside(
        const double *weights, const double *scales, double *closed, double *open, double *sums,
        Py_ssize_t n,
    ) noexcept
    void sum_outside(
        const double *weights, const double *scales, const double *closed, const double *open,
        double *outside, double *of_sum, double *found, Py_ssize_t n,
    ) noexcept
    cpdef int openmp_threads() noexcept

cdef double NO_SCORE = float("-inf")


def decode(
    const double[::1] values, const int32_t[::1] lengths,
    const int64_t[::1] cell_offsets, const int64_t[::1] node_offsets,
    int64_t[::1] cells, double[::1] scores, const int64_t[::1] order, int threads,
):
    """Write the cells and the score of the best tree of each sentence."""
    cdef Py_ssize_t place, b, longest = lengths[order[0]] if order.shape[0] else 0
    # One of each for each thread.
    cdef double[:, ::1] inside = np.empty((threads, longest * (longest + 1) // 2))
    cdef double[:, ::1] tops = np.empty((threads, longest + 1))
    cdef int32_t[:, :, ::1] stack = np.empty((threads, longest + 1, 2), dtype=np.int32)
    for place in prange(
        order.shape[0], nogil=True, schedule="dynamic", chunksize=1, num_threads=threads
    ):
        b = order[place]
        scores[b] = best_tree(
            values[cell_offsets[b] : cell_offsets[b + 1]], cell_offsets[b], inside[threadid()],
            tops[threadid()], stack[threadid()], cells[node_offsets[b] : node_offsets[b + 1]], lengths[b],
        )


cdef double best_tree(
    const double[::1] values, Py_ssize_t first, double[::1] inside, double[::1] tops,
    int32_t[:, ::1] stack, int64_t[::1] cells, Py_ssize_t n,
) noexcept nogil:
    """Write the cells of one sentence's best tree in pre-order; return its score."""
    cdef Py_ssize_t cell, i, j, k, split, row, right, node, waiting = 1
    cdef double value, top
    for cell in range(values.shape[0]):
        inside[cell] = values[cell]
    fill_spans(&inside[0], &tops[0], n)
    stack[0, 0], stack[0, 1] = 0, <int32_t>n
    for node in range(2 * n - 1):
        waiting -= 1
        i, j = stack[waiting, 0], stack[waiting, 1]
        row = i * n - i * (i - 1) // 2 - i - 1  # cell of [i, k) is row + k
        cells[node] = first + row + j
        if j - i > 1:
            split, top = i + 1, NO_SCORE
            right = row + n - i - 1 + j  # cell of [k, j), for k from i + 1 on
            for k in range(i + 1, j):
                value = inside[row + k] + inside[right]
                right += n - k - 1
                if value > top:
                    top, split = value, k
            stack[waiting, 0], stack[waiting, 1] = <int32_t>split, <int32_t>j
            stack[waiting + 1, 0], stack[waiting + 1, 1] = <int32_t>i, <int32_t>split
            waiting += 2
    return inside[n - 1] + 0.0  # turns a negative zero into zero


def sum_up(
    const double[::1] weights, const double[::1] scales, const int32_t[::1] lengths,
    const int64_t[::1] cell_offsets, const int64_t[::1] word_offsets,
    double[::1] found, double[::1] totals, const int64_t[::1] order, int threads,
):
    """Write the probability of each cell, and the scaled sum over the trees of each sentence."""
    cdef Py_ssize_t place, b, first, longest = lengths[order[0]] if order.shape[0] else 0
    # One of each for each thread: sums of closed and of open parts, and outside.
    cdef double[:, :, ::1] charts = np.empty((threads, 3, longest * (longest + 1) // 2))
    cdef double[:, ::1] sums = np.empty((threads, 2 * longest + 2))
    for place in prange(
        order.shape[0], nogil=True, schedule="dynamic", chunksize=1, num_threads=threads
    ):
        b = order[place]
        first = cell_offsets[b]
        sum_inside(
            &weights[first], &scales[word_offsets[b]], &charts[threadid(), 0, 0],
            &charts[threadid(), 1, 0], &sums[threadid(), 0], lengths[b],
        )
        sum_outside(
            &weights[first], &scales[word_offsets[b]], &charts[threadid(), 0, 0],
            &charts[threadid(), 1, 0], &charts[threadid(), 2, 0], &sums[threadid(), 0],
            &found[first], lengths[b],
        )
        totals[b] = charts[threadid(), 0, lengths[b] - 1]
