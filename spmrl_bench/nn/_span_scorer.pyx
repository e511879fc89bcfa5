"""The hidden layer of the span scorer for many spans, in one pass over memory.

Tensors and threads are as in ``_factored.pyx``; the twin is ``SpanScorer.hidden``.
"""

from cython.parallel cimport prange
from libc.stdint cimport int64_t

from spmrl_bench.nn._tensors cimport MOST_THREADS, floats, indices, rows_of, within

cdef extern from "_rows.h":
    float row_sum(Py_ssize_t, const float *) nogil
    float row_deviation(Py_ssize_t, const float *, float) nogil
    float inverse_deviation(float, Py_ssize_t, double) nogil
    void difference(Py_ssize_t, const float *, const float *, const float *, float *) nogil
    void normalise_relu(Py_ssize_t, float *, float, float, const float *, const float *) nogil


def hidden(
    projected, start, end, Py_ssize_t spans, Py_ssize_t width, bias, gain, shift, double eps, out,
    int threads,
):
    """``relu(LayerNorm(projected[end] - projected[start] + bias))``, float32 [spans, width].

    ``projected``: [rows, width]; ``start``, ``end``: int64 [spans], rows of it; ``bias``, ``gain``,
    ``shift``: [width]; ``out``: [at least spans, width].
    """
    cdef int part
    cdef Py_ssize_t rows = rows_of(projected, "projected of hidden")
    cdef Py_ssize_t room = rows_of(out, "out of hidden")
    cdef const float *posts = floats(projected, "projected of hidden", rows, width)
    cdef const int64_t *first = indices(start, "start of hidden", spans, 0, rows)
    cdef const int64_t *last = indices(end, "end of hidden", spans, 0, rows)
    cdef const float *added = floats(bias, "bias of hidden", width)
    cdef const float *factor = floats(gain, "gain of hidden", width)
    cdef const float *moved = floats(shift, "shift of hidden", width)
    cdef float *found = floats(out, "out of hidden", room, width)
    within("spans, rows of out of hidden,", spans, 0, room)
    within("threads", threads, 1, MOST_THREADS)
    for part in prange(threads, nogil=True, num_threads=threads, schedule="static", chunksize=1):
        hidden_part(
            posts, first, last, spans * part // threads, spans * (part + 1) // threads, width,
            added, factor, moved, eps, found,
        )


cdef void hidden_part(
    const float *projected, const int64_t *start, const int64_t *end, Py_ssize_t first,
    Py_ssize_t last, Py_ssize_t width, const float *bias, const float *gain, const float *shift,
    double eps, float *out,
) noexcept nogil:
    cdef Py_ssize_t k
    cdef float mean, scale
    cdef float *row
    for k in range(first, last):
        row = out + k * width
        difference(width, projected + end[k] * width, projected + start[k] * width, bias, row)
        mean = row_sum(width, row) / width
        scale = inverse_deviation(row_deviation(width, row, mean), width, eps)
        normalise_relu(width, row, mean, scale, gain, shift)
