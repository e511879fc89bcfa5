"""Eisner's chart and Edmonds' algorithm, compiled: the same bits as the twins in ``dependency_trees.py``.

Input is trusted, indices are checked and sentences shared among threads as in ``_spans.pyx``.
"""

import numpy as np

from cython.parallel cimport prange, threadid
from libc.stdint cimport int32_t, int64_t

cdef extern from "_joins.h" nogil:
    void fill_charts(
        const double *arcs, Py_ssize_t n, Py_ssize_t stride,
        double *right, double *left, double *arc_right, double *arc_left, double *tops,
    ) noexcept
    void merge_row(
        const double *values, const int64_t *enters, double by,
        double *into, int64_t *into_enters, Py_ssize_t count,
    ) noexcept
    cpdef int openmp_threads() noexcept

cdef double NO_SCORE = float("-inf")

# Charts of a sentence; the part from word i to word j stands at [i, j].
cdef enum:
    RIGHT, LEFT, ARC_RIGHT, ARC_LEFT, CHARTS

# What is known of a component of a growing spanning tree.
cdef enum:
    ROW  # which row of arcs is that of the arcs into it
    PARENT  # the component that it was contracted into
    HEAD  # of the arc taken into it: 1 is the first word, 0 the root
    DEPENDENT  # the word where that arc enters, from 0
    ON_PATH  # whether it is on the path; later, whether it has been entered
    FIRST  # its first word
    LAST  # its last word
    FACTS


def decode(
    const double[::1] arcs, const int32_t[::1] lengths,
    const int64_t[::1] arc_offsets, const int64_t[::1] word_offsets,
    int32_t[::1] heads, const int64_t[::1] order, int threads, bint projective,
):
    """Write the heads of the best tree of each sentence, projective or any."""
    cdef Py_ssize_t place, b, longest = lengths[order[0]] if order.shape[0] else 0
    cdef Py_ssize_t own = longest if projective else 0, other = longest - own
    # One of each for each thread; those of the other search are empty.
    cdef double[:, :, :, ::1] charts = np.empty((threads, CHARTS, own, own))
    cdef double[:, :, ::1] tops = np.empty((threads, 3, own))
    cdef int32_t[:, :, ::1] stack = np.empty((threads, own + 1, 3), dtype=np.int32)
    cdef double[:, :, ::1] values = np.empty((threads, other, other + 1))
    cdef int64_t[:, :, ::1] enters = np.empty((threads, other, other + 1), dtype=np.int64)
    cdef int32_t[:, :, ::1] parts = np.empty((threads, FACTS, 2 * other), dtype=np.int32)
    cdef int32_t[:, :, ::1] words = np.empty((threads, 3, other), dtype=np.int32)
    for place in prange(
        order.shape[0], nogil=True, schedule="dynamic", chunksize=1, num_threads=threads
    ):
        b = order[place]
        if projective:
            projective_tree(
                arcs[arc_offsets[b] : arc_offsets[b + 1]], charts[threadid()], tops[threadid()],
                stack[threadid()], heads[word_offsets[b] : word_offsets[b + 1]],
            )
        else:
            spanning_tree(
                arcs[arc_offsets[b] : arc_offsets[b + 1]], values[threadid()], enters[threadid()],
                parts[threadid()], words[threadid()], heads[word_offsets[b] : word_offsets[b + 1]],
            )


cdef inline Py_ssize_t join_at(
    const double[:, :, ::1] charts, Py_ssize_t before, Py_ssize_t i, Py_ssize_t first,
    Py_ssize_t after, Py_ssize_t j, Py_ssize_t end, Py_ssize_t gap,
) noexcept nogil:
    """The lowest k of ``first:end`` for which the part from i to k, of the chart ``before``, and
    that from k + gap to j, of the chart ``after``, have the largest sum."""
    cdef Py_ssize_t k, found = first
    cdef double value, top = NO_SCORE
    for k in range(first, end):
        value = charts[before, i, k] + charts[after, k + gap, j]
        if value > top:
            top, found = value, k
    return found


cdef int projective_tree(
    const double[::1] arcs, double[:, :, ::1] charts, double[:, ::1] tops,
    int32_t[:, ::1] stack, int32_t[::1] heads,
) except -1 nogil:
    """Find the heads of one sentence."""
    cdef Py_ssize_t word, i, j, k, low, high, n = heads.shape[0], top = 0, waiting = 0
    cdef double value, most = NO_SCORE
    fill_charts(
        &arcs[0], n, charts.shape[2], &charts[RIGHT, 0, 0], &charts[LEFT, 0, 0],
        &charts[ARC_RIGHT, 0, 0], &charts[ARC_LEFT, 0, 0], &tops[0, 0],
    )
    for word in range(n):
        value = charts[LEFT, 0, word] + charts[RIGHT, word, n - 1] + arcs[word * (n + 1)]
        if value > most:
            most, top = value, word
    heads[top] = 0
    # Parts that wait lie side by side, and those of one word are not kept: at most n - 1.
    waiting = push(stack, waiting, 0, top, 0)
    waiting = push(stack, waiting, top, n - 1, 1)
    while waiting > 0:
        waiting -= 1
        i, j = stack[waiting, 0], stack[waiting, 1]
        if stack[waiting, 2]:  # its head is i
            k = join_at(charts, ARC_RIGHT, i, i + 1, RIGHT, j, j + 1, 0)
            heads[k] = <int32_t>i + 1
            waiting = push(stack, waiting, k, j, 1)
            low, high = i, k
        else:
            k = join_at(charts, LEFT, i, i, ARC_LEFT, j, j, 0)
            heads[k] = <int32_t>j + 1
            waiting = push(stack, waiting, i, k, 0)
            low, high = k, j
        k = join_at(charts, RIGHT, low, low, LEFT, high, high, 1)
        waiting = push(stack, waiting, low, k, 1)
        waiting = push(stack, waiting, k + 1, high, 0)
    return 0


cdef inline Py_ssize_t push(
    int32_t[:, ::1] stack, Py_ssize_t waiting, Py_ssize_t i, Py_ssize_t j, int headed_left
) noexcept nogil:
    """Let a complete part of several words wait; how many wait then."""
    if i == j:
        return waiting
    stack[waiting, 0], stack[waiting, 1], stack[waiting, 2] = <int32_t>i, <int32_t>j, headed_left
    return waiting + 1


cdef int spanning_tree(
    const double[::1] arcs, double[:, ::1] values, int64_t[:, ::1] enters,
    int32_t[:, ::1] parts, int32_t[:, ::1] words, int32_t[::1] heads,
) except -1 nogil:
    """Find the heads of one sentence."""
    cdef Py_ssize_t n = heads.shape[0]
    cdef Py_ssize_t word, head, best, last, source, new, part, target, at
    cdef Py_ssize_t count = n, depth = 1
    cdef int32_t[::1] component = words[0], after = words[1], path = words[2]
    cdef double top
    for word in range(n):
        for head in range(n + 1):
            values[word, head] = arcs[word * (n + 1) + head]
            enters[word, head] = word
        values[word, word + 1] = NO_SCORE
        component[word] = <int32_t>word
        after[word] = -1  # the next word of the same component
        parts[ROW, word] = parts[FIRST, word] = parts[LAST, word] = <int32_t>word
        parts[ON_PATH, word] = 0
    path[0], parts[ON_PATH, 0] = 0, 1
    while True:
        last = path[depth - 1]
        at = parts[ROW, last]
        best, top = 0, NO_SCORE
        for head in range(1, n + 1):
            if values[at, head] > top:
                top, best = values[at, head], head
        if best == 0:
            break  # no word is left outside
        parts[HEAD, last] = <int32_t>best
        parts[DEPENDENT, last] = <int32_t>enters[at, best]
        source = component[best - 1]
        if not parts[ON_PATH, source]:
            parts[ON_PATH, source], path[depth] = 1, <int32_t>source
            depth += 1
            continue
        new, target = count, at
        count += 1
        parts[ROW, new], parts[ON_PATH, new] = <int32_t>target, 1
        top = values[target, best]
        for head in range(n + 1):
            values[target, head] -= top
        parts[PARENT, last] = <int32_t>new
        parts[FIRST, new], parts[LAST, new] = parts[FIRST, last], parts[LAST, last]
        part = last
        while part != source:
            depth -= 1
            part = path[depth - 1]
            at = parts[ROW, part]
            merge_row(
                &values[at, 0], &enters[at, 0], values[at, parts[HEAD, part]],
                &values[target, 0], &enters[target, 0], n + 1,
            )
            parts[PARENT, part] = <int32_t>new
            after[parts[LAST, new]] = parts[FIRST, part]
            parts[LAST, new] = parts[LAST, part]
        word = parts[FIRST, new]
        while word >= 0:
            component[word] = <int32_t>new
            values[target, word + 1] = NO_SCORE
            word = after[word]
        path[depth - 1] = <int32_t>new

    last = path[0]
    parts[HEAD, last], parts[DEPENDENT, last] = 0, <int32_t>enters[parts[ROW, last], 0]
    for part in range(count):
        parts[ON_PATH, part] = 0  # now: entered by an arc of a component that it is part of
    for new in range(count - 1, -1, -1):
        if parts[ON_PATH, new]:
            continue
        word = parts[DEPENDENT, new]
        heads[word] = parts[HEAD, new]
        while word != new:
            parts[ON_PATH, word] = 1
            word = parts[PARENT, word]
    return 0
