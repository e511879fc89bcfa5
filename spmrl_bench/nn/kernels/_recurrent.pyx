# cython: cdivision=True
"""One step of the cells of an LSTM or a GRU, forwards and backwards, in one pass over memory.

The matrix products of a step are made outside; here the gates are activated and the states
updated. Tensors and *bf16* ones are as in ``_encoder.pyx``. Both directions are worked on at once.
A step takes part of all sequences, longest first, so those that go on come before those that end.
What a cell carries on in float32 is an LSTM's memory and a GRU's state.
"""

from cython.parallel cimport prange, threadid
from libc.stdint cimport INT32_MAX
from libc.stdlib cimport free
from libc.string cimport memcpy

import torch

from spmrl_bench.nn.kernels._tensors cimport (
    add_rows, address, gru_backward, gru_forward, load, loaded, lstm_backward, lstm_forward, room,
    store, within
)

cdef object FLOAT32 = torch.float32

cdef enum:
    FEW = 64  # sequences of a step below which a second thread costs more than it does


cdef class Cells:
    """The cells of a layer over all steps, in both directions.

    Args:
        gru: whether they are those of a GRU.
        bf16: whether the arrays called so are bfloat16.
        sequences, size: how many there are, and how wide a state is.
        gates: bf16 ``[2, rows, 4 size]``, sums on entry and activated on return, of the parts that
            ``_rows.h`` names.
        more: bf16, in which the products of each step stand, see :meth:`forward`.
        states, cells: bf16 and float32 ``[2, rows, size]``, which each step starts from. A GRU's
            cells are its states, and may be the same tensor.
        last, last_cells: float32 ``[2, sequences, size]``, of each sequence after its last step.
        threads: of steps of many sequences.

    Raises:
        ArrayError: here and in all methods, a tensor or a number does not fit.
    """

    cdef bint gru, bf16
    cdef Py_ssize_t sequences, size, rows, room_for_more
    cdef void *gates
    cdef const void *more
    cdef void *states
    cdef float *cells
    cdef float *last
    cdef float *last_cells
    cdef int threads
    cdef float *scratch
    cdef tuple held  # whose addresses these are

    def __cinit__(
        self, bint gru, bint bf16, Py_ssize_t sequences, Py_ssize_t size, gates, more, states,
        cells, last, last_cells, int threads,
    ):
        within("sequences", sequences, 1, INT32_MAX)
        within("size", size, 1, INT32_MAX)
        within("threads", threads, 1, 1024)
        self.gru, self.bf16, self.sequences, self.size = gru, bf16, sequences, size
        self.rows, self.room_for_more = cells.numel() // (2 * size), more.numel()
        self.threads = threads
        cdef Py_ssize_t each = 2 * self.rows * size, ends = 2 * sequences * size
        dtype = torch.bfloat16 if bf16 else FLOAT32
        self.gates = address(gates, dtype, 4 * each, "gates")
        self.more = address(more, dtype, self.room_for_more, "more")
        self.states = address(states, dtype, each, "states")
        self.cells = <float *>address(cells, FLOAT32, each, "cells")
        self.last = <float *>address(last, FLOAT32, ends, "last")
        self.last_cells = <float *>address(last_cells, FLOAT32, ends, "last_cells")
        self.held = (gates, more, states, cells, last, last_cells)
        self.scratch = <float *>room(threads * 9 * size)

    def __dealloc__(self):
        free(self.scratch)

    cdef int threads_of(self, Py_ssize_t at, Py_ssize_t count, Py_ssize_t going_on) except -1:
        """How many threads work on a step, which must not lead out of the rows or sequences."""
        within("count", count, 0, self.sequences)
        within("going_on", going_on, 0, count)
        within("at", at, 0, self.rows - count - going_on)
        return self.threads if count >= FEW else 1

    def forward(self, Py_ssize_t at, Py_ssize_t count, Py_ssize_t going_on, Py_ssize_t read):
        """Activate the gates of rows ``at : at + count`` and hand the new states on.

        ``more``, read as [2, read, 4 size] (3 size of a GRU), is added to the first parts of the
        sums, if there is ``read``. The states of the first ``going_on`` sequences are written into
        the rows of the next step, the others to the places of their sequences.
        """
        cdef Py_ssize_t size = self.size, added = (3 if self.gru else 4) * size  # to the sums
        cdef Py_ssize_t item, side, k, row, sequence
        cdef int threads = self.threads_of(at, count, going_on)
        within("read", read, count if read else 0, self.room_for_more // (2 * added))
        cdef float *scratch
        cdef float *sums
        cdef float *after
        for item in prange(2 * count, nogil=True, num_threads=threads, schedule="static"):
            side, k, scratch = item // count, item % count, self.scratch + threadid() * 9 * size
            row, sequence = side * self.rows + at + k, side * self.sequences + k
            sums = <float *>loaded(self.gates, row * 4 * size, 4 * size, self.bf16, scratch)
            if read:
                add_rows(
                    added, sums,
                    loaded(self.more, (side * read + k) * added, added, self.bf16, scratch + 4 * size),
                    sums,
                )
            if k < going_on:  # the row of the next step
                after = self.cells + (row + count) * size
            else:
                after = self.last_cells + sequence * size
            (gru_forward if self.gru else lstm_forward)(
                size, sums, self.cells + row * size, after, scratch + 8 * size
            )
            store(sums, 4 * size, self.bf16, self.gates, row * 4 * size)
            if k < going_on:
                store(scratch + 8 * size, size, self.bf16, self.states, (row + count) * size)
            else:
                memcpy(self.last + sequence * size, scratch + 8 * size, size * sizeof(float))

    def backward(self, d_states, d_cells, Py_ssize_t at, Py_ssize_t count, Py_ssize_t going_on):
        """Turn the activated gates of a step into the gradients of their sums, in place.

        ``d_states`` and ``d_cells`` [2, sequences, size] hold the gradients of the states after
        the step; ``d_cells`` is replaced by that of the cells before it. The gradients of a GRU's
        states are the sums of both.
        """
        cdef Py_ssize_t numbers = 2 * self.sequences * self.size, size = self.size
        cdef Py_ssize_t item, side, k, row, sequence
        cdef int threads = self.threads_of(at, count, going_on)
        cdef const float *of_states = <const float *>address(d_states, FLOAT32, numbers, "d_states")
        cdef float *of_cells = <float *>address(d_cells, FLOAT32, numbers, "d_cells")
        cdef float *active
        cdef float *gradient
        cdef const float *after
        for item in prange(2 * count, nogil=True, num_threads=threads, schedule="static"):
            side, k, active = item // count, item % count, self.scratch + threadid() * 9 * size
            row, sequence = side * self.rows + at + k, (side * self.sequences + k) * size
            load(self.gates, row * 4 * size, 4 * size, self.bf16, active)
            gradient = active + 4 * size if self.bf16 else <float *>self.gates + row * 4 * size
            if self.gru:
                gru_backward(
                    size, active, self.cells + row * size, of_states + sequence,
                    of_cells + sequence, gradient,
                )
            else:
                if k < going_on:
                    after = self.cells + (row + count) * size
                else:
                    after = self.last_cells + sequence
                lstm_backward(
                    size, active, self.cells + row * size, after, of_states + sequence,
                    of_cells + sequence, gradient,
                )
            store(gradient, 4 * size, self.bf16, self.gates, row * 4 * size)
