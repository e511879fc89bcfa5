"""One step of the cells of an LSTM or a GRU, forwards and backwards, in one pass over memory.

The matrix products of a step are made outside; here the gates are activated and the states
updated. Tensors, *low* ones and threads are as in ``_factored.pyx``. Both directions are
worked on at once. A step takes part of all sequences, longest first, so those that go on come
before those that end. What a cell carries on in float32 is an LSTM's memory and a GRU's state.
"""

from cython.parallel cimport prange
from libc.limits cimport INT_MAX
from libc.stdint cimport uint16_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy

from spmrl_bench.nn._tensors cimport MOST_THREADS, floats, lows, some_lows, within

cdef extern from "_rows.h":
    void widen(Py_ssize_t, const uint16_t *, float *) nogil
    void narrow(Py_ssize_t, const float *, uint16_t *) nogil
    void add_rows(Py_ssize_t, const float *, const float *, float *) nogil
    void lstm_forward(Py_ssize_t, float *, const float *, float *, float *) nogil
    void lstm_backward(
        Py_ssize_t, const float *, const float *, const float *, const float *, float *,
        float *) nogil
    void gru_forward(Py_ssize_t, float *, const float *, float *, float *) nogil
    void gru_backward(
        Py_ssize_t, const float *, const float *, const float *, float *, float *) nogil


cdef int check_step(
    Py_ssize_t rows, Py_ssize_t sequences, Py_ssize_t size, Py_ssize_t at, Py_ssize_t count,
    Py_ssize_t going_on, int threads,
) except -1:
    """Refuse a step that leads out of the rows or sequences."""
    within("size of a cell", size, 1, INT_MAX)
    within("count of a step", count, 0, sequences)
    within("going_on of a step", going_on, 0, count)
    within("at of a step", at, 0, rows - count - going_on)
    return within("threads", threads, 1, MOST_THREADS)


def step_forward(
    bint gru, gates, more, Py_ssize_t more_rows, bint low, states, cells, last, last_cells,
    Py_ssize_t rows, Py_ssize_t sequences, Py_ssize_t size, Py_ssize_t at, Py_ssize_t count,
    Py_ssize_t going_on, int threads,
):
    """Activate the gates of rows ``at : at + count`` and hand the new states on.

    ``gates``: low [2, rows, 4 size], sums on entry and activated on return, of the parts that
    ``_rows.h`` names; ``more``: low [2, more_rows, 4 size] (3 size of a GRU), of which the first
    ``count`` are added to the first parts of the sums, or absent. ``states`` (low) and ``cells``,
    [2, rows, size], hold the states that each step starts from: those of the first ``going_on``
    sequences are written into the rows of the next step, the others into ``last`` and
    ``last_cells``, [2, sequences, size], at the place of the sequence. A GRU's ``cells`` are its
    states, and may be the same tensors.
    """
    cdef int part
    check_step(rows, sequences, size, at, count, going_on, threads)
    if more is not None:
        within("count of a step", count, 0, more_rows)
    cdef void *sums = lows(gates, low, "gates of a step", 2, rows, 4 * size)
    cdef const void *added = some_lows(
        more, low, "more of a step", 2, more_rows, (3 if gru else 4) * size
    )
    cdef void *before = lows(states, low, "states of a step", 2, rows, size)
    cdef float *carried = floats(cells, "cells of a step", 2, rows, size)
    cdef float *ends = floats(last, "last of a step", 2, sequences, size)
    cdef float *end_cells = floats(last_cells, "last_cells of a step", 2, sequences, size)
    for part in prange(threads, nogil=True, num_threads=threads, schedule="static", chunksize=1):
        forward_part(
            gru, sums, added, more_rows, low, before, carried, ends, end_cells, rows, sequences,
            size, at, count, going_on, count * part // threads, count * (part + 1) // threads,
        )


cdef void forward_part(
    bint gru, void *gates, const void *more, Py_ssize_t more_rows, bint low, void *states,
    float *cells, float *last, float *last_cells, Py_ssize_t rows, Py_ssize_t sequences,
    Py_ssize_t size, Py_ssize_t at, Py_ssize_t count, Py_ssize_t going_on, Py_ssize_t first,
    Py_ssize_t end,
) noexcept nogil:
    cdef float *scratch = <float *>malloc(9 * size * sizeof(float))
    cdef float *addend = scratch + 4 * size
    cdef float *state = scratch + 8 * size
    cdef float *sums
    cdef float *after
    cdef Py_ssize_t side, k, row, following, offset
    cdef Py_ssize_t added = (3 if gru else 4) * size
    for side in range(2):
        for k in range(first, end):
            row = side * rows + at + k
            following = side * rows + at + count + k  # of the next step
            if low:
                sums = scratch
                widen(4 * size, <uint16_t *>gates + row * 4 * size, sums)
            else:
                sums = <float *>gates + row * 4 * size
            if more != NULL:
                offset = (side * more_rows + k) * added
                if low:
                    widen(added, <const uint16_t *>more + offset, addend)
                    add_rows(added, sums, addend, sums)
                else:
                    add_rows(added, sums, <const float *>more + offset, sums)
            if k < going_on:
                after = cells + following * size
            else:
                after = last_cells + (side * sequences + k) * size
            if gru:
                gru_forward(size, sums, cells + row * size, after, state)
            else:
                lstm_forward(size, sums, cells + row * size, after, state)
            if low:
                narrow(4 * size, sums, <uint16_t *>gates + row * 4 * size)
            if k >= going_on:
                memcpy(last + (side * sequences + k) * size, state, size * sizeof(float))
            elif low:
                narrow(size, state, <uint16_t *>states + following * size)
            else:
                memcpy(<float *>states + following * size, state, size * sizeof(float))
    free(scratch)


def step_backward(
    bint gru, gates, bint low, cells, last_cells, d_states, d_cells, Py_ssize_t rows,
    Py_ssize_t sequences, Py_ssize_t size, Py_ssize_t at, Py_ssize_t count, Py_ssize_t going_on,
    int threads,
):
    """Turn the activated gates of a step into the gradients of their sums, in place.

    ``d_states`` and ``d_cells`` [2, sequences, size] hold the gradients of the states after the
    step; ``d_cells`` is replaced by that of the cells before it. The gradients of a GRU's states
    are the sums of both.
    """
    cdef int part
    check_step(rows, sequences, size, at, count, going_on, threads)
    cdef void *active = lows(gates, low, "gates of a step", 2, rows, 4 * size)
    cdef const float *carried = floats(cells, "cells of a step", 2, rows, size)
    cdef const float *ends = floats(last_cells, "last_cells of a step", 2, sequences, size)
    cdef const float *of_states = floats(d_states, "d_states of a step", 2, sequences, size)
    cdef float *of_cells = floats(d_cells, "d_cells of a step", 2, sequences, size)
    for part in prange(threads, nogil=True, num_threads=threads, schedule="static", chunksize=1):
        backward_part(
            gru, active, low, carried, ends, of_states, of_cells, rows, sequences, size, at, count,
            going_on, count * part // threads, count * (part + 1) // threads,
        )


cdef void backward_part(
    bint gru, void *gates, bint low, const float *cells, const float *last_cells,
    const float *d_states, float *d_cells, Py_ssize_t rows, Py_ssize_t sequences, Py_ssize_t size,
    Py_ssize_t at, Py_ssize_t count, Py_ssize_t going_on, Py_ssize_t first, Py_ssize_t end,
) noexcept nogil:
    cdef float *active = <float *>malloc(8 * size * sizeof(float))
    cdef float *gradient = active + 4 * size
    cdef const float *after
    cdef Py_ssize_t side, k, row, sequence
    for side in range(2):
        for k in range(first, end):
            row = side * rows + at + k
            sequence = side * sequences + k
            if low:
                widen(4 * size, <uint16_t *>gates + row * 4 * size, active)
            else:
                memcpy(active, <float *>gates + row * 4 * size, 4 * size * sizeof(float))
                gradient = <float *>gates + row * 4 * size
            if gru:
                gru_backward(
                    size, active, cells + row * size, d_states + sequence * size,
                    d_cells + sequence * size, gradient,
                )
            else:
                if k < going_on:
                    after = cells + (side * rows + at + count + k) * size
                else:
                    after = last_cells + sequence * size
                lstm_backward(
                    size, active, cells + row * size, after, d_states + sequence * size,
                    d_cells + sequence * size, gradient,
                )
            if low:
                narrow(4 * size, gradient, <uint16_t *>gates + row * 4 * size)
    free(active)
