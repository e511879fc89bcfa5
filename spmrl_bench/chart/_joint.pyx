"""Joint decoding, compiled: same arguments and same bits as in ``joint_reference.py``.

Input is trusted: ``spmrl_bench.chart.joint`` has checked it. The loops that fill a chart are those
of ``_joint.h``; all other indices go through typed memoryviews, so that a debug build checks them
(see ``_cky.pyx``). Sentences share nothing but read-only input, and each thread owns one chart,
which is as large as the longest sentence needs but takes no memory before it is used.

Only scores are kept while a chart is filled; the splits and arcs of the best structure are found
again on the way down.
"""

import numpy as np

from cython.parallel cimport prange, threadid
from libc.stdint cimport int32_t, int64_t, uint8_t

cdef extern from "_team.h" nogil:
    int openmp_team() noexcept

cdef extern from "_joint.h" nogil:
    enum: PANEL
    enum: COLUMNS
    struct joint_chart:
        Py_ssize_t n
        Py_ssize_t cells
        const double *values
        const double *arcs
        double *scores
        double *dependents
    Py_ssize_t cell_of(joint_chart chart, Py_ssize_t i, Py_ssize_t j) noexcept
    void fill_joint_chart(joint_chart chart, int lanes) noexcept
    int widest_vectors() noexcept

cdef double NO_SCORE = float("-inf")


def openmp_threads() -> int:
    """Threads that OpenMP would use here now, 0 without it; see ``_cky.pyx``."""
    return openmp_team()


def vector_lanes() -> int:
    """Numbers in the widest vectors that this build and this processor have: 2 or 4."""
    return widest_vectors()


def decode(
    const double[::1] values,
    const double[::1] arcs,
    const int32_t[::1] lengths,
    const int64_t[::1] cell_offsets,
    const int64_t[::1] arc_offsets,
    const int64_t[::1] node_offsets,
    const int64_t[::1] word_offsets,
    int64_t[::1] cells,
    uint8_t[::1] labelled,
    int32_t[::1] node_heads,
    int32_t[::1] heads,
    double[::1] best,
    const int64_t[:] order,
    int threads,
    int lanes=0,
):
    """Decode the sentences ``order`` of a batch, with vectors of ``lanes``, 0 for the widest."""
    cdef Py_ssize_t place, longest = 0
    for place in range(order.shape[0]):
        longest = max(longest, lengths[order[place]])
    cdef int vectors = lanes if lanes else widest_vectors()
    cdef Py_ssize_t panels = (longest + PANEL - 1) // PANEL
    # One row for each thread.
    cdef double[:, ::1] charts = np.empty(
        (threads, panels * PANEL * (longest * (longest + 1) // 2))
    )
    cdef double[:, ::1] packed_arcs = np.empty((threads, panels * PANEL * longest))
    cdef double[:, ::1] dependents = np.empty((threads, COLUMNS * longest))
    cdef int32_t[:, :, ::1] stack = np.empty((threads, longest + 1, 4), dtype=np.int32)
    for place in prange(
        order.shape[0], nogil=True, schedule="dynamic", chunksize=1, num_threads=threads
    ):
        decode_sentence(
            values, arcs, lengths, cell_offsets, arc_offsets, node_offsets, word_offsets, cells,
            labelled, node_heads, heads, best, order[place], vectors, charts, packed_arcs,
            dependents, stack, threadid(),
        )


cdef int decode_sentence(
    const double[::1] values,
    const double[::1] arcs,
    const int32_t[::1] lengths,
    const int64_t[::1] cell_offsets,
    const int64_t[::1] arc_offsets,
    const int64_t[::1] node_offsets,
    const int64_t[::1] word_offsets,
    int64_t[::1] cells,
    uint8_t[::1] labelled,
    int32_t[::1] node_heads,
    int32_t[::1] heads,
    double[::1] best,
    Py_ssize_t b,
    int lanes,
    double[:, ::1] charts,
    double[:, ::1] packed_arcs,
    double[:, ::1] dependents,
    int32_t[:, :, ::1] stack,
    Py_ssize_t thread,
) except -1 nogil:
    """Decode sentence ``b``."""
    cdef Py_ssize_t w, d, root = 0, n = lengths[b]
    cdef Py_ssize_t first_cell = cell_offsets[b], first_arc = arc_offsets[b]
    cdef double loss, score, top = NO_SCORE
    cdef joint_chart chart
    chart.n = n
    chart.cells = n * (n + 1) // 2
    chart.values = &values[first_cell]
    chart.arcs = &packed_arcs[thread, 0]
    chart.scores = &charts[thread, 0]
    chart.dependents = &dependents[thread, 0]
    for w in range((n + PANEL - 1) // PANEL * PANEL):
        for d in range(n):
            # No word governs itself, and behind the last one there is none.
            packed_arcs[thread, (w // PANEL * n + d) * PANEL + w % PANEL] = (
                arcs[first_arc + d * (n + 1) + w + 1] if w < n and w != d else 0.0
            )
    fill_joint_chart(chart, lanes)
    loss = min(values[first_cell + n - 1], 0.0)  # the full sentence must carry a label
    for w in range(n):
        score = (
            charts[thread, place_of(chart, 0, n, w)] + loss + arcs[first_arc + w * (n + 1)]
        )
        if score > top:
            top = score
            root = w
    best[b] = top + 0.0  # turns a negative zero into zero
    heads[word_offsets[b] + root] = 0
    trace_back(
        chart, values, arcs, first_cell, first_arc, charts, stack, thread, root,
        node_offsets[b], word_offsets[b], cells, labelled, node_heads, heads,
    )
    return 0


cdef inline Py_ssize_t place_of(
    joint_chart chart, Py_ssize_t i, Py_ssize_t j, Py_ssize_t w
) noexcept nogil:
    """Where entry (i, j, w) of a chart lies."""
    return (w // PANEL * chart.cells + cell_of(chart, i, j)) * PANEL + w % PANEL


cdef int trace_back(
    joint_chart chart,
    const double[::1] values,
    const double[::1] arcs,
    Py_ssize_t first_cell,
    Py_ssize_t first_arc,
    double[:, ::1] charts,
    int32_t[:, :, ::1] stack,
    Py_ssize_t thread,
    Py_ssize_t root,
    Py_ssize_t first_node,
    Py_ssize_t first_word,
    int64_t[::1] cells,
    uint8_t[::1] labelled,
    int32_t[::1] node_heads,
    int32_t[::1] heads,
) except -1 nogil:
    """Write the nodes of one sentence's best structure in pre-order, and its arcs."""
    cdef Py_ssize_t i, j, k, d, head, split, left, right, cell, node, dependent
    cdef Py_ssize_t waiting = 1
    cdef bint required, dependent_left
    cdef double score, top, loss
    push(stack, thread, 0, 0, chart.n, root, True)
    for node in range(first_node, first_node + 2 * chart.n - 1):
        waiting -= 1
        i = stack[thread, waiting, 0]
        j = stack[thread, waiting, 1]
        head = stack[thread, waiting, 2]
        required = stack[thread, waiting, 3]
        cell = first_cell + cell_of(chart, i, j)
        cells[node] = cell
        labelled[node] = required or values[cell] > 0
        node_heads[node] = <int32_t>head + 1
        if j - i == 1:
            continue
        split = i + 1
        top = NO_SCORE
        for k in range(i + 1, j):
            score = (
                charts[thread, place_of(chart, i, k, head)]
                + charts[thread, place_of(chart, k, j, head)]
            )
            if score > top:
                top = score
                split = k
        dependent_left = head >= split
        left, right = (i, split) if dependent_left else (split, j)
        loss = min(values[first_cell + cell_of(chart, left, right)], 0.0)  # one word has no choice
        dependent = left
        top = NO_SCORE
        for d in range(left, right):
            score = (
                charts[thread, place_of(chart, left, right, d)]
                + loss
                + arcs[first_arc + d * (chart.n + 1) + head + 1]
            )
            if score > top:
                top = score
                dependent = d
        heads[first_word + dependent] = <int32_t>head + 1
        push(
            stack, thread, waiting, split, j, head if dependent_left else dependent,
            not dependent_left and j - split > 1,
        )
        push(
            stack, thread, waiting + 1, i, split, dependent if dependent_left else head,
            dependent_left and split - i > 1,
        )
        waiting += 2
    return 0


cdef inline void push(
    int32_t[:, :, ::1] stack,
    Py_ssize_t thread,
    Py_ssize_t place,
    Py_ssize_t i,
    Py_ssize_t j,
    Py_ssize_t head,
    bint required,
) noexcept nogil:
    stack[thread, place, 0] = <int32_t>i
    stack[thread, place, 1] = <int32_t>j
    stack[thread, place, 2] = <int32_t>head
    stack[thread, place, 3] = required
