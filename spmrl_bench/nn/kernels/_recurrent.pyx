# cython: cdivision=True
"""One step of the cells of an LSTM or a GRU, forwards and backwards, in one pass over memory.

The matrix products of a step are made outside; here the gates are activated and the states
updated, of both directions at once. Sequences are worked on longest first, so those that go on come
before those that end. What a cell carries on in float32 is an LSTM's memory and a GRU's state.
"""

include "_tensors.pxi"

cdef enum:
    FEW = 64  # sequences of a step below which a second thread costs more than it does


cdef class Cells(Memory):
    """The cells of a layer over all steps, in both directions.

    ``gates`` are bf16 ``[2, rows, 4 size]``, sums on entry and activated on return, of the parts
    that ``_rows.h`` names; ``threads`` are those of steps of many sequences.
    """

    cdef readonly object states  # bf16 [2, rows, size], which each step starts from, at first zero
    cdef readonly object last  # [2, sequences, size], of each sequence after its last step
    cdef bint gru
    cdef Py_ssize_t sequences, size, rows
    cdef void *gates
    cdef void *low
    cdef Floats cells, ends, cell_ends

    def __cinit__(self, bint gru, bint bf16, Py_ssize_t sequences, gates, int threads):
        cdef Py_ssize_t rows = gates.shape[1], size = gates.shape[2] // 4
        within("sequences", sequences, 1, rows)
        within("size", size, 1, INT32_MAX)
        self.prepare(bf16, threads, [gates])
        self.gru, self.sequences, self.size, self.rows = gru, sequences, size, rows
        self.gates = address(gates, self.dtype, 8 * rows * size, "gates")
        self.states = torch.empty(2, rows, size, dtype=self.dtype)
        cells = self.states if gru and not bf16 else torch.empty(2, rows, size)
        self.states[:, :sequences] = cells[:, :sequences] = 0
        self.last = torch.empty(2, sequences, size)
        ends = self.last if gru else torch.empty_like(self.last)
        self.held += [cells, ends]
        self.low = address(self.states, self.dtype, 2 * rows * size, "states")
        self.cells = floats(cells, 2 * rows * size, "cells")
        self.ends = floats(self.last, 2 * sequences * size, "last")
        self.cell_ends = floats(ends, 2 * sequences * size, "last cells")
        self.take_room(9 * size)

    cdef int threads_of(self, Py_ssize_t at, Py_ssize_t count, Py_ssize_t going_on) except -1:
        """How many threads work on a step, which must not lead out of the rows or sequences."""
        within("count", count, 0, self.sequences)
        within("going_on", going_on, 0, count)
        within("at", at, 0, self.rows - count - going_on)
        return self.threads if count >= FEW else 1

    cdef Floats after(
        self, Py_ssize_t side, Py_ssize_t row, Py_ssize_t k, Py_ssize_t count, bint goes_on
    ) noexcept nogil:
        """Where a sequence's cells stand after a step: in the row of its next, or behind all."""
        if goes_on:
            return self.cells + (row + count) * self.size
        return self.cell_ends + (side * self.sequences + k) * self.size

    def forward(self, more, Py_ssize_t at, Py_ssize_t count, Py_ssize_t going_on):
        """Activate the gates of rows ``at : at + count`` and hand the new states on: those of the
        first ``going_on`` sequences to the rows of the next step, the others to their places.

        ``more``, bf16 [2, count or more, 4 size] (3 size of a GRU) or absent, is added to the sums.
        """
        cdef Py_ssize_t size = self.size, added = (3 if self.gru else 4) * size  # to the sums
        cdef Py_ssize_t item, side, k, row, read = 0
        cdef int threads = self.threads_of(at, count, going_on)
        cdef void *products = NULL
        cdef Floats scratch, sums, state
        if more is not None:
            read = more.shape[1]
            within("products of a step", read, count, INT32_MAX)
            products = address(more, self.dtype, 2 * read * added, "more")
        for item in prange(2 * count, nogil=True, num_threads=threads, schedule="static"):
            side, k, scratch = item // count, item % count, self.mine()
            row, state = side * self.rows + at + k, scratch + 8 * size
            sums = <Floats>loaded(self.gates, row * 4 * size, 4 * size, self.bf16, scratch)
            if read:
                add_rows(
                    added, sums,
                    loaded(products, (side * read + k) * added, added, self.bf16, scratch + 4 * size),
                    sums,
                )
            (gru_forward if self.gru else lstm_forward)(
                size, sums, self.cells + row * size,
                self.after(side, row, k, count, k < going_on), state,
            )
            store(sums, 4 * size, self.bf16, self.gates, row * 4 * size)
            if k < going_on:
                store(state, size, self.bf16, self.low, (row + count) * size)
            else:
                store(state, size, False, self.ends, (side * self.sequences + k) * size)

    def backward(self, d_states, d_cells, Py_ssize_t at, Py_ssize_t count, Py_ssize_t going_on):
        """Turn the activated gates of a step into the gradients of their sums, in place.

        ``d_states`` and ``d_cells`` [2, sequences, size], of a GRU to be added up, hold the
        gradients of the states after the step; ``d_cells`` is replaced by that of those before.
        """
        cdef Py_ssize_t numbers = 2 * self.sequences * self.size, size = self.size
        cdef Py_ssize_t item, side, k, row, sequence
        cdef int threads = self.threads_of(at, count, going_on)
        cdef Given of_states = floats(d_states, numbers, "d_states")
        cdef Floats of_cells = floats(d_cells, numbers, "d_cells")
        cdef Floats active, gradient
        for item in prange(2 * count, nogil=True, num_threads=threads, schedule="static"):
            side, k, active = item // count, item % count, self.mine()
            row, sequence = side * self.rows + at + k, (side * self.sequences + k) * size
            load(self.gates, row * 4 * size, 4 * size, self.bf16, active)
            gradient = active + 4 * size if self.bf16 else <Floats>self.gates + row * 4 * size
            if self.gru:
                gru_backward(
                    size, active, self.cells + row * size, of_states + sequence,
                    of_cells + sequence, gradient,
                )
            else:
                lstm_backward(
                    size, active, self.cells + row * size,
                    self.after(side, row, k, count, k < going_on), of_states + sequence,
                    of_cells + sequence, gradient,
                )
            store(gradient, 4 * size, self.bf16, self.gates, row * 4 * size)
