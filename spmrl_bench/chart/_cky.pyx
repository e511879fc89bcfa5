"""The chart decoder, compiled: same arguments and same bits as in ``reference.py``.

Input is trusted: ``spmrl_bench.chart`` has checked it. Outside the two loops of ``_loops.h``
every index goes through a typed memoryview, so a debug build (SPMRL_BENCH_BOUNDS_CHECKS=1, see
setup.py) checks them all. Sentences share nothing but read-only input and disjoint parts of the
output, and each one needs only the chart, the row and the stack that its thread owns: with
OpenMP the threads of a team take the next sentence as they get free.

Only values are kept while the chart is filled; the splits of the few nodes of the best tree are
found again on the way down.
"""

import numpy as np

from cython.parallel cimport prange, threadid
from libc.stdint cimport int32_t, int64_t

cdef extern from "_loops.h" nogil:
    bint cell_maxima(
        const float *scores, Py_ssize_t cells, Py_ssize_t columns, double *maxima
    ) noexcept
    float row_maximum(const float *scores, Py_ssize_t count) noexcept
    Py_ssize_t next_column(
        const float *scores, Py_ssize_t column, Py_ssize_t columns, float limit
    ) noexcept
    void best_sums(double *inside, double *tops, Py_ssize_t n) noexcept

cdef extern from "_openmp.h" nogil:
    int openmp_team() noexcept

cdef double NO_SCORE = float("-inf")


def openmp_threads() -> int:
    """Threads that OpenMP would use here now, or 0 where the kernel was built without it.

    The number is that of the environment variable OMP_NUM_THREADS, else that of the processors,
    unless the program has set another: ``torch.set_num_threads`` does where both run on the
    same OpenMP library.
    """
    return openmp_team()


def label_maxima(
    const float[:, ::1] scores,
    const int32_t[::1] gold,  # or None
    double[::1] values,
    int32_t[::1] labels,  # or None
    int threads,
):
    """Best score and label, the empty label left out, of every cell of a block."""
    cdef bint augmented = gold is not None, labelled = labels is not None
    cdef Py_ssize_t cells = scores.shape[0]
    cdef int part, doubtful = 0
    if cells == 0:
        return True
    for part in prange(threads, nogil=True, schedule="static", chunksize=1, num_threads=threads):
        doubtful += maxima_of_part(
            scores, gold, augmented, labelled, values, labels,
            cells * part // threads, cells * (part + 1) // threads,
        )
    return doubtful == 0


cdef int maxima_of_part(
    const float[:, ::1] scores,
    const int32_t[::1] gold,
    bint augmented,
    bint labelled,
    double[::1] values,
    int32_t[::1] labels,
    Py_ssize_t first,
    Py_ssize_t end,
) except -1 nogil:
    """Do cells ``first:end``; whether a score of them may be NaN or infinite."""
    cdef Py_ssize_t cell, gold_column = -1
    cdef double bonus = 1.0 if augmented else 0.0
    if first == end:
        return 0
    cdef bint finite = cell_maxima(&scores[first, 0], end - first, scores.shape[1], &values[first])
    for cell in range(first, end):
        if augmented:
            gold_column = gold[cell] - 1
            if gold_column < 0:
                values[cell] += bonus
            else:
                values[cell] = best_score(scores, cell, gold_column, bonus)
        if labelled:
            labels[cell] = label_of(scores, cell, gold_column, bonus, values[cell])
    return not finite


def find_labels(
    const float[:, ::1] scores,
    const int32_t[::1] gold,  # or None
    const double[::1] values,
    const int64_t[::1] cells,
    int32_t[::1] labels,
    int threads,
):
    """Replace ``labels``, where they are not the empty one, by the best of the ``cells``."""
    cdef bint augmented = gold is not None
    cdef Py_ssize_t node
    for node in prange(cells.shape[0], nogil=True, schedule="static", num_threads=threads):
        if labels[node] != 0:
            labels[node] = label_of(
                scores, cells[node], gold[cells[node]] - 1 if augmented else -1,
                1.0 if augmented else 0.0, values[cells[node]],
            )


cdef inline double best_score(
    const float[:, ::1] scores, Py_ssize_t cell, Py_ssize_t gold_column, double bonus
) noexcept nogil:
    """The largest score of a cell's labels but 0, where all but gold's gain ``bonus``."""
    cdef Py_ssize_t columns = scores.shape[1]
    cdef const float *row = &scores[cell, 0]
    return max(
        <double>row[gold_column],
        <double>max(
            row_maximum(row, gold_column),
            row_maximum(row + gold_column + 1, columns - gold_column - 1),
        ) + bonus,
    )


cdef inline int32_t label_of(
    const float[:, ::1] scores, Py_ssize_t cell, Py_ssize_t gold_column, double bonus, double top
) noexcept nogil:
    """The lowest label whose score, with ``bonus`` for all but gold's, is their maximum ``top``."""
    # The sums with the bonus are equal for scores that differ by less than a double shows
    # beside 1; so the search is for scores near the best, and the sum of each decides.
    cdef Py_ssize_t columns = scores.shape[1]
    cdef float limit = <float>(top - bonus - 1e-6 * bonus)
    cdef Py_ssize_t column = next_column(&scores[cell, 0], 0, columns, limit)
    while column < columns:
        if <double>scores[cell, column] + (0.0 if column == gold_column else bonus) == top:
            return <int32_t>column + 1
        column = next_column(&scores[cell, 0], column + 1, columns, limit)
    return 0  # no score equals their maximum: there is a NaN among them


def decode_maxima(
    const double[::1] values,
    const int32_t[::1] best_labels,
    const int32_t[::1] lengths,
    const int32_t[::1] gold,  # or None
    const int64_t[::1] cell_offsets,
    const int64_t[::1] node_offsets,
    int64_t[::1] cells,
    int32_t[::1] labels,
    double[::1] best,
    const int64_t[:] order,
    int threads,
):
    """Decode the sentences ``order`` of a batch from what ``label_maxima`` found."""
    cdef bint augmented = gold is not None
    cdef Py_ssize_t place, longest = 0
    for place in range(order.shape[0]):
        longest = max(longest, lengths[order[place]])
    # One row for each thread. inside: packed cells, the score of the best tree over each span.
    cdef double[:, ::1] inside = np.empty((threads, longest * (longest + 1) // 2))
    cdef double[:, ::1] tops = np.empty((threads, longest))
    cdef int32_t[:, :, ::1] stack = np.empty((threads, longest + 1, 2), dtype=np.int32)
    for place in prange(
        order.shape[0], nogil=True, schedule="dynamic", chunksize=1, num_threads=threads
    ):
        decode_from_maxima(
            values, best_labels, gold, augmented, lengths, cell_offsets, node_offsets, cells,
            labels, best, order[place], inside, tops, stack, threadid(),
        )


cdef int decode_from_maxima(
    const double[::1] values,
    const int32_t[::1] best_labels,
    const int32_t[::1] gold,
    bint augmented,
    const int32_t[::1] lengths,
    const int64_t[::1] cell_offsets,
    const int64_t[::1] node_offsets,
    int64_t[::1] cells,
    int32_t[::1] labels,
    double[::1] best,
    Py_ssize_t b,
    double[:, ::1] inside,
    double[:, ::1] tops,
    int32_t[:, :, ::1] stack,
    Py_ssize_t thread,
) except -1 nogil:
    """Decode sentence ``b``."""
    cdef Py_ssize_t cell, node, n = lengths[b]
    cdef Py_ssize_t first = cell_offsets[b]
    for cell in range(n * (n + 1) // 2):
        inside[thread, cell] = values[first + cell]
        if cell != n - 1:
            inside[thread, cell] = max(
                inside[thread, cell], 1.0 if augmented and gold[first + cell] else 0.0
            )
    best_sums(&inside[thread, 0], &tops[thread, 0], n)
    best[b] = inside[thread, n - 1] + 0.0  # turns a negative zero into zero
    trace_back(first, n, inside, stack, thread, node_offsets[b], cells)
    for node in range(node_offsets[b], node_offsets[b + 1]):
        cell = cells[node]
        if cell != first + n - 1 and values[cell] <= (1.0 if augmented and gold[cell] else 0.0):
            labels[node] = 0
        else:
            labels[node] = best_labels[cell]
    return 0


cdef int trace_back(
    Py_ssize_t first_cell,
    Py_ssize_t n,
    double[:, ::1] inside,
    int32_t[:, :, ::1] stack,
    Py_ssize_t thread,
    Py_ssize_t first_node,
    int64_t[::1] cells,
) except -1 nogil:
    """Write the cells of one sentence's best tree in pre-order."""
    cdef Py_ssize_t i, j, k, split, row, right, node
    cdef Py_ssize_t waiting = 1
    cdef double value, top
    stack[thread, 0, 0] = 0
    stack[thread, 0, 1] = <int32_t>n
    for node in range(first_node, first_node + 2 * n - 1):
        waiting -= 1
        i = stack[thread, waiting, 0]
        j = stack[thread, waiting, 1]
        row = i * n - i * (i - 1) // 2 - i - 1  # cell of [i, k) is row + k
        cells[node] = first_cell + row + j
        if j - i > 1:
            split = i + 1
            top = NO_SCORE
            right = row + n - i - 1 + j  # cell of [k, j), for k from i + 1 on
            for k in range(i + 1, j):
                value = inside[thread, row + k] + inside[thread, right]
                right += n - k - 1
                if value > top:
                    top = value
                    split = k
            stack[thread, waiting, 0] = <int32_t>split
            stack[thread, waiting, 1] = <int32_t>j
            stack[thread, waiting + 1, 0] = <int32_t>i
            stack[thread, waiting + 1, 1] = <int32_t>split
            waiting += 2
    return 0
