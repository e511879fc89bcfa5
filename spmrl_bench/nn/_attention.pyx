"""Attention between its products: every head over every sentence, forwards and backwards.

The arrays are packed halves first, ``[2, tokens, heads * half]`` for each of queries, keys and
values: a head's vectors are two pieces of ``half`` values. Tensors, *low* ones and ``threads`` are
as in ``_factored.pyx``. A head over a sentence is worked on by one thread, in float32, so the
number of threads does not change a bit. Dropout factors are those of ``_factored.masks`` for a
tensor ``[tokens, heads, longest]``, where ``longest`` is that of the batch, a multiple of the
lanes; the weights are computed again on the way back rather than kept. The twin is
``SelfAttention`` in ``encoder.py``; both agree up to rounding.
"""

from cython.parallel cimport prange
from libc.limits cimport INT_MAX
from libc.stdint cimport int64_t, uint16_t, uint64_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy, memset

from spmrl_bench.errors import ArrayError

from spmrl_bench.nn._tensors cimport MOST_THREADS, dropped_below, integers, lows, rows_of, within

cdef extern from "_attention.h":
    int LANES
    void widen(Py_ssize_t, const uint16_t *, float *) nogil
    void narrow(Py_ssize_t, const float *, uint16_t *) nogil
    void draw_mask(uint64_t, uint64_t, Py_ssize_t, unsigned int, float, float *) nogil
    void multiply(Py_ssize_t, const float *, const float *, float *) nogil
    void product(
        Py_ssize_t, Py_ssize_t, Py_ssize_t, const float *, Py_ssize_t, Py_ssize_t, const float *,
        float, float *) nogil
    void transpose(
        Py_ssize_t, Py_ssize_t, Py_ssize_t, const float *, Py_ssize_t, float *) nogil
    void softmax_rows(Py_ssize_t, Py_ssize_t, float *) nogil
    void softmax_back(Py_ssize_t, Py_ssize_t, const float *, float *) nogil


cdef struct Sizes:
    Py_ssize_t tokens
    Py_ssize_t heads
    Py_ssize_t half
    Py_ssize_t width  # of a head's vectors, a multiple of the lanes
    Py_ssize_t longest
    bint low
    float scale
    uint64_t seed
    unsigned int below  # 16 random bits below this are dropped


def lanes():
    """The number of values of which rows are multiples."""
    return LANES


cdef Py_ssize_t whole(Py_ssize_t n) noexcept nogil:
    """The next multiple of the lanes."""
    return (n + LANES - 1) // LANES * LANES


cdef Sizes sizes_of(
    starts, lengths, Py_ssize_t tokens, Py_ssize_t heads, Py_ssize_t half, Py_ssize_t longest,
    bint low, double scale, uint64_t seed, double p, int threads,
):
    """The sizes, once sentences have been found to lie side by side, none longer than longest."""
    cdef Py_ssize_t k, free_from = 0, sentences = rows_of(lengths, "lengths of attention")
    cdef const int64_t *first = integers(starts, "starts of attention", sentences)
    cdef const int64_t *length = integers(lengths, "lengths of attention", sentences)
    within("threads", threads, 1, MOST_THREADS)
    within("heads", heads, 1, INT_MAX)
    within("half", half, 1, INT_MAX)
    within("longest", longest, 0, whole(tokens))
    if longest % LANES:
        raise ArrayError(f"longest is {longest}; it must be a multiple of {LANES}.")
    for k in range(sentences):
        if not 1 <= length[k] <= longest or not free_from <= first[k] <= tokens - length[k]:
            raise ArrayError(
                f"starts[{k}] and lengths[{k}] of attention are {first[k]} and {length[k]}; a "
                f"sentence has 1 to {longest} tokens, all in {free_from}..{tokens - 1}."
            )
        free_from = first[k] + length[k]
    return Sizes(
        tokens, heads, half, whole(2 * half), longest, low, scale, seed, dropped_below(p)
    )


def forward(
    packed, starts, lengths, Py_ssize_t tokens, Py_ssize_t heads, Py_ssize_t half,
    Py_ssize_t longest, bint low, double scale, uint64_t seed, double p, context, int threads,
):
    """``softmax(scale q k) v`` of each head with dropout on the weights.

    ``packed``: low [2, tokens, 3 heads half], these three dimensions one after the other;
    ``starts``, ``lengths``: int64 [sentences], in the order of the tokens; ``context``: low
    [2, tokens, heads half], of which only rows of sentences are written.
    """
    cdef int part, failed = 0
    cdef Sizes sizes = sizes_of(
        starts, lengths, tokens, heads, half, longest, low, scale, seed, p, threads
    )
    cdef Py_ssize_t sentences = len(lengths)
    cdef const void *given = lows(packed, low, "packed of attention", 2, tokens, 3 * heads * half)
    cdef const int64_t *first = integers(starts, "starts of attention", sentences)
    cdef const int64_t *length = integers(lengths, "lengths of attention", sentences)
    cdef void *found = lows(context, low, "context of attention", 2, tokens, heads * half)
    for part in prange(threads, nogil=True, num_threads=threads, schedule="static", chunksize=1):
        failed += forward_part(&sizes, given, first, length, sentences, found, part, threads)
    if failed:
        raise MemoryError


def backward(
    packed, d_context, starts, lengths, Py_ssize_t tokens, Py_ssize_t heads, Py_ssize_t half,
    Py_ssize_t longest, bint low, double scale, uint64_t seed, double p, d_packed, int threads,
):
    """The gradient of ``packed`` from that of the context; as ``forward`` otherwise."""
    cdef int part, failed = 0
    cdef Sizes sizes = sizes_of(
        starts, lengths, tokens, heads, half, longest, low, scale, seed, p, threads
    )
    cdef Py_ssize_t sentences = len(lengths), width = heads * half
    cdef const void *given = lows(packed, low, "packed of attention", 2, tokens, 3 * width)
    cdef const void *above = lows(d_context, low, "d_context of attention", 2, tokens, width)
    cdef const int64_t *first = integers(starts, "starts of attention", sentences)
    cdef const int64_t *length = integers(lengths, "lengths of attention", sentences)
    cdef void *found = lows(d_packed, low, "d_packed of attention", 2, tokens, 3 * width)
    for part in prange(threads, nogil=True, num_threads=threads, schedule="static", chunksize=1):
        failed += backward_part(
            &sizes, given, above, first, length, sentences, found, part, threads
        )
    if failed:
        raise MemoryError


cdef void fetch(
    const Sizes *sizes, const void *packed, Py_ssize_t parts, Py_ssize_t column, Py_ssize_t start,
    Py_ssize_t n, float *out,
) noexcept nogil:
    """A head's vectors of a sentence, ``[n, width]``, from ``[2, tokens, parts, heads, half]``."""
    cdef Py_ssize_t t, side, source, half = sizes.half
    for t in range(n):
        for side in range(2):
            source = (
                ((side * sizes.tokens + start + t) * parts * sizes.heads + column) * half
            )
            if sizes.low:
                widen(half, <const uint16_t *>packed + source, out + side * half)
            else:
                memcpy(out + side * half, <const float *>packed + source, half * sizeof(float))
        memset(out + 2 * half, 0, (sizes.width - 2 * half) * sizeof(float))
        out += sizes.width


cdef void put(
    const Sizes *sizes, const float *rows, Py_ssize_t parts, Py_ssize_t column, Py_ssize_t start,
    Py_ssize_t n, void *packed,
) noexcept nogil:
    """The inverse of ``fetch``."""
    cdef Py_ssize_t t, side, target, half = sizes.half
    for t in range(n):
        for side in range(2):
            target = (
                ((side * sizes.tokens + start + t) * parts * sizes.heads + column) * half
            )
            if sizes.low:
                narrow(half, rows + side * half, <uint16_t *>packed + target)
            else:
                memcpy(<float *>packed + target, rows + side * half, half * sizeof(float))
        rows += sizes.width


cdef void drop(
    const Sizes *sizes, Py_ssize_t start, Py_ssize_t head, Py_ssize_t n, Py_ssize_t width,
    float *mask, const float *weights, float *out,
) noexcept nogil:
    """Weights ``[n, width]`` times their dropout factors."""
    cdef Py_ssize_t i
    cdef uint64_t row
    cdef float factor = 65536.0 / (65536.0 - sizes.below)
    for i in range(n):
        row = (start + i) * sizes.heads + head
        draw_mask(sizes.seed, row * (sizes.longest // 4), width, sizes.below, factor, mask)
        multiply(width, weights + i * width, mask, out + i * width)


cdef int forward_part(
    const Sizes *sizes, const void *packed, const int64_t *starts, const int64_t *lengths,
    Py_ssize_t sentences, void *context, int part, int threads,
) noexcept nogil:
    """Every ``threads``-th head, from ``part`` on; neighbours take about as long.

    0, or 1 where there is no memory.
    """
    cdef Py_ssize_t d = 2 * sizes.half, dp = sizes.width, item, h, start, n, np
    cdef float *q = <float *>malloc(
        (3 * sizes.longest * dp + dp * sizes.longest + sizes.longest * (sizes.longest + 1))
        * sizeof(float)
    )
    if q == NULL:
        return 1
    cdef float *k = q + sizes.longest * dp
    cdef float *v = k + sizes.longest * dp
    cdef float *turned = v + sizes.longest * dp
    cdef float *weights = turned + dp * sizes.longest
    cdef float *mask = weights + sizes.longest * sizes.longest
    for item in range(sentences * sizes.heads):
        if item % threads != part:
            continue
        start, n, h = starts[item // sizes.heads], lengths[item // sizes.heads], item % sizes.heads
        np = whole(n)
        fetch(sizes, packed, 3, h, start, n, q)
        fetch(sizes, packed, 3, sizes.heads + h, start, n, k)
        fetch(sizes, packed, 3, 2 * sizes.heads + h, start, n, v)
        transpose(n, d, dp, k, np, turned)
        product(n, np, d, q, dp, 1, turned, sizes.scale, weights)
        softmax_rows(n, np, weights)
        if sizes.below:
            drop(sizes, start, h, n, np, mask, weights, weights)
        product(n, dp, n, weights, np, 1, v, 1, q)
        put(sizes, q, 1, h, start, n, context)
    free(q)
    return 0


cdef int backward_part(
    const Sizes *sizes, const void *packed, const void *d_context, const int64_t *starts,
    const int64_t *lengths, Py_ssize_t sentences, void *d_packed, int part, int threads,
) noexcept nogil:
    cdef Py_ssize_t d = 2 * sizes.half, dp = sizes.width, item, h, start, n, np
    cdef Py_ssize_t vectors = sizes.longest * dp, square = sizes.longest * sizes.longest
    cdef float *q = <float *>malloc((6 * vectors + 3 * square + sizes.longest) * sizeof(float))
    if q == NULL:
        return 1
    cdef float *k = q + vectors
    cdef float *v = k + vectors
    cdef float *above = v + vectors
    cdef float *turned = above + vectors
    cdef float *result = turned + vectors
    cdef float *weights = result + vectors
    cdef float *dropped = weights + square
    cdef float *d_weights = dropped + square
    cdef float *mask = d_weights + square
    for item in range(sentences * sizes.heads):
        if item % threads != part:
            continue
        start, n, h = starts[item // sizes.heads], lengths[item // sizes.heads], item % sizes.heads
        np = whole(n)
        fetch(sizes, packed, 3, h, start, n, q)
        fetch(sizes, packed, 3, sizes.heads + h, start, n, k)
        fetch(sizes, packed, 3, 2 * sizes.heads + h, start, n, v)
        fetch(sizes, d_context, 1, h, start, n, above)
        transpose(n, d, dp, k, np, turned)
        product(n, np, d, q, dp, 1, turned, sizes.scale, weights)
        softmax_rows(n, np, weights)
        transpose(n, d, dp, v, np, turned)
        product(n, np, d, above, dp, 1, turned, 1, d_weights)
        if sizes.below:
            drop(sizes, start, h, n, np, mask, weights, dropped)
            drop(sizes, start, h, n, np, mask, d_weights, d_weights)
            product(n, dp, n, dropped, 1, np, above, 1, result)
        else:
            product(n, dp, n, weights, 1, np, above, 1, result)
        put(sizes, result, 3, 2 * sizes.heads + h, start, n, d_packed)
        softmax_back(n, np, weights, d_weights)
        product(n, dp, n, d_weights, np, 1, k, sizes.scale, result)
        put(sizes, result, 3, h, start, n, d_packed)
        product(n, dp, n, d_weights, 1, np, q, sizes.scale, result)
        put(sizes, result, 3, sizes.heads + h, start, n, d_packed)
    free(q)
    return 0
