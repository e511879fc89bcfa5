"""The hidden layer of the span scorer for many spans, in one pass over memory.

Addresses and threads are as in ``_factored.pyx``; the twin is ``SpanScorer.hidden``.
"""

from cython.parallel cimport prange
from libc.stdint cimport int64_t

cdef extern from "_rows.h":
    float row_sum(Py_ssize_t, const float *) nogil
    float row_deviation(Py_ssize_t, const float *, float) nogil
    float inverse_deviation(float, Py_ssize_t, double) nogil
    void difference(Py_ssize_t, const float *, const float *, const float *, float *) nogil
    void normalise_relu(Py_ssize_t, float *, float, float, const float *, const float *) nogil


def hidden(
    size_t projected, size_t start, size_t end, Py_ssize_t spans, Py_ssize_t width, size_t bias,
    size_t gain, size_t shift, double eps, size_t out, int threads,
):
    """``relu(LayerNorm(projected[end] - projected[start] + bias))``, float32 [spans, width].

    ``start``, ``end``: int64 [spans], rows of ``projected``, which the caller guarantees.
    """
    cdef int part
    with nogil:
        for part in prange(threads, num_threads=threads, schedule="static", chunksize=1):
            hidden_part(
                <const float *>projected, <const int64_t *>start, <const int64_t *>end,
                spans * part // threads, spans * (part + 1) // threads, width,
                <const float *>bias, <const float *>gain, <const float *>shift, eps,
                <float *>out,
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
