"""The work of the encoder between its matrix products, in one pass over memory each.

A layer made of small tensor operations reads and writes its activations about eighty times per
step, which takes longer than the products themselves. Each kernel here does at once what
belongs together. Token vectors are stored halves first: ``[2, tokens, width]``, all content
halves and then all position halves, so that both halves are contiguous matrices.

Arguments are contiguous tensors (None where an optional one is absent), which the callers in
``spmrl_bench.nn`` allocate; what they are is looked at first (``_tensors.pyx``). Those called *low*
are bfloat16 if ``low`` is true, else float32; everything else is float32 and all sums are float32
over several lanes, which is what lets a compiler vectorise them. Rows are divided among ``threads``
in fixed parts, so the same number of threads gives the same bits. The twins are the operations of
torch in ``spmrl_bench/nn/encoder.py`` and ``lexical.py``; they agree up to rounding.
"""

from cython.parallel cimport prange
from libc.limits cimport INT_MAX
from libc.stdint cimport INT64_MAX, int64_t, uint16_t, uint64_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy

from spmrl_bench.errors import ArrayError

from spmrl_bench.nn._tensors cimport (
    MOST_THREADS, dropped_below, floats, indices, integers, lows, rows_of, some_floats, some_lows,
    within
)

cdef extern from "_rows.h":
    void widen(Py_ssize_t, const uint16_t *, float *) nogil
    void narrow(Py_ssize_t, const float *, uint16_t *) nogil
    float row_sum(Py_ssize_t, const float *) nogil
    float row_deviation(Py_ssize_t, const float *, float) nogil
    float inverse_deviation(float, Py_ssize_t, double) nogil
    void add_branch(
        Py_ssize_t, const float *, const float *, const float *, const float *, float *) nogil
    void normalise(
        Py_ssize_t, const float *, float, float, const float *, const float *, float *) nogil
    void add_rows(Py_ssize_t, const float *, const float *, float *) nogil
    void norm_sums(
        Py_ssize_t, const float *, const float *, float, float, const float *, float *, float *,
        float *) nogil
    void norm_back(
        Py_ssize_t, const float *, const float *, float, float, const float *, float, float,
        float *) nogil
    void mask_back(Py_ssize_t, const float *, const float *, float *, float *) nogil
    void relu_mask(Py_ssize_t, float *, const float *, const float *) nogil
    void relu_back(Py_ssize_t, const float *, float, float *, float *) nogil
    void draw_mask(uint64_t, uint64_t, Py_ssize_t, unsigned int, float, float *) nogil

cdef Py_ssize_t part_start(Py_ssize_t rows, int part, int threads) noexcept nogil:
    """First row of one thread's part."""
    return rows * part // threads


cdef const float *row_of(
    const void *array, Py_ssize_t at, Py_ssize_t n, bint low, float *scratch
) noexcept nogil:
    """``n`` values from position ``at`` as floats, widened into ``scratch`` if need be."""
    if not low:
        return <const float *>array + at
    widen(n, <const uint16_t *>array + at, scratch)
    return scratch


cdef void store(
    void *array, Py_ssize_t at, Py_ssize_t n, bint low, const float *values
) noexcept nogil:
    """The inverse of ``row_of``."""
    if low:
        narrow(n, values, <uint16_t *>array + at)
    elif <float *>array + at != values:
        memcpy(<float *>array + at, values, n * sizeof(float))


cdef const int64_t *sentences_of(sentence, masks, Py_ssize_t tokens) except? NULL:
    """Which row of the masks is a token's; where there are none, nobody asks."""
    if masks is None:
        return integers(sentence, "sentence", tokens)
    return indices(sentence, "sentence", tokens, 0, rows_of(masks, "masks"))


cdef const float *masks_of(masks, Py_ssize_t width) except? NULL:
    """Of float32 [sentences, width], or None."""
    return NULL if masks is None else floats(masks, "masks", rows_of(masks, "masks"), width)


cdef int check_sizes(Py_ssize_t tokens, Py_ssize_t width, int threads) except -1:
    within("tokens", tokens, 0, INT64_MAX)
    within("width", width, 1, INT_MAX)
    return within("threads", threads, 1, MOST_THREADS)


def masks(uint64_t seed, double p, out):
    """Dropout factors: 0 with probability ``p`` (to 16 bits), else 1 / (1 - p).

    ``out``: [values].
    """
    cdef unsigned int below = dropped_below(p)
    cdef float scale = 65536.0 / (65536.0 - below)
    cdef Py_ssize_t values = rows_of(out, "out of masks")
    cdef Py_ssize_t whole = values // 4 * 4
    cdef float rest[4]
    cdef float *target = floats(out, "out of masks", values)
    with nogil:
        draw_mask(seed, 0, whole, below, scale, target)
        if whole < values:
            draw_mask(seed, whole // 4, 4, below, scale, rest)
            memcpy(target + whole, rest, (values - whole) * sizeof(float))


# ---- residual branches and layer norms ---------------------------------------------------


def residual_norm(
    x, branch, bint low, bias, masks, sentence, Py_ssize_t tokens, Py_ssize_t width, gain, shift,
    double eps, z, stats, y, y_low, int threads,
):
    """``y = LayerNorm(z)``, ``z = x + (branch + bias) * mask`` over both halves of a token.

    ``x``, ``z``, ``y``: [2, tokens, width]; ``branch``: the same, low, or absent, and then
    ``z`` is given and ``x`` not read; ``gain``, ``shift``: [2 width], and so is ``bias``, which is
    absent with ``branch``; ``masks``: [sentences, 2 width] or absent; ``sentence``: int64 [tokens];
    ``stats`` [tokens, 2] receives mean and 1 / deviation; ``y_low``: ``y`` rounded, if low, else
    ``y``. ``z`` may be ``x``, or ``branch`` if that is not low.
    """
    cdef int part
    check_sizes(tokens, width, threads)
    if (branch is None) != (bias is None):
        raise ArrayError("bias of residual_norm must be there where branch is, and only there.")
    cdef const float *rows = floats(x, "x of residual_norm", 2, tokens, width)
    cdef const void *added = some_lows(branch, low, "branch of residual_norm", 2, tokens, width)
    cdef const float *biases = some_floats(bias, "bias of residual_norm", 2 * width)
    cdef const float *factors = masks_of(masks, 2 * width)
    cdef const int64_t *of_token = sentences_of(sentence, masks, tokens)
    cdef const float *gains = floats(gain, "gain of residual_norm", 2 * width)
    cdef const float *shifts = floats(shift, "shift of residual_norm", 2 * width)
    cdef float *sums = floats(z, "z of residual_norm", 2, tokens, width)
    cdef float *moments = floats(stats, "stats of residual_norm", tokens, 2)
    cdef float *found = floats(y, "y of residual_norm", 2, tokens, width)
    cdef void *rounded = lows(y_low, low, "y_low of residual_norm", 2, tokens, width)
    for part in prange(threads, nogil=True, num_threads=threads, schedule="static", chunksize=1):
        residual_norm_part(
            rows, added, low, biases, factors, of_token, tokens, width, gains, shifts, eps, sums,
            moments, found, rounded,
            part_start(tokens, part, threads), part_start(tokens, part + 1, threads),
        )


cdef void residual_norm_part(
    const float *x, const void *branch, bint low, const float *bias, const float *masks,
    const int64_t *sentence, Py_ssize_t tokens, Py_ssize_t width, const float *gain,
    const float *shift, double eps, float *z, float *stats, float *y, void *y_low,
    Py_ssize_t first, Py_ssize_t last,
) noexcept nogil:
    cdef float *scratch = <float *>malloc(4 * width * sizeof(float))
    cdef float *ones = scratch + 2 * width
    cdef const float *mask
    cdef Py_ssize_t t, side, k, at
    cdef float mean, scale
    for k in range(2 * width):
        ones[k] = 1
    for t in range(first, last):
        mean = 0
        for side in range(2):
            at = (side * tokens + t) * width
            if branch != NULL:
                mask = masks + sentence[t] * 2 * width if masks != NULL else ones
                add_branch(
                    width, x + at, row_of(branch, at, width, low, scratch),
                    bias + side * width, mask + side * width, z + at,
                )
            mean += row_sum(width, z + at)
        mean /= 2 * width
        scale = 0
        for side in range(2):
            scale += row_deviation(width, z + (side * tokens + t) * width, mean)
        scale = inverse_deviation(scale, 2 * width, eps)
        for side in range(2):
            at = (side * tokens + t) * width
            normalise(
                width, z + at, mean, scale, gain + side * width, shift + side * width, y + at
            )
            if low:
                narrow(width, y + at, <uint16_t *>y_low + at)
        stats[2 * t] = mean
        stats[2 * t + 1] = scale
    free(scratch)


def residual_norm_back(
    dy, more, bint low, z, stats, masks, sentence, Py_ssize_t tokens, Py_ssize_t width, gain, dz,
    d_branch, sums, int threads,
):
    """Gradients of ``residual_norm``: of ``z`` (and so of ``x``), of the branch, of the vectors.

    ``dy`` and ``more`` (low, or absent) add up to the gradient of ``y``; ``dz`` may be ``dy``
    or ``z``. ``sums`` [threads, 3, 2 width], zero at the start, receives each thread's share
    of the gradients of gain, shift and bias. ``d_branch`` is low, or absent.
    """
    cdef int part
    check_sizes(tokens, width, threads)
    cdef const float *given = floats(dy, "dy of residual_norm_back", 2, tokens, width)
    cdef const void *added = some_lows(more, low, "more of residual_norm_back", 2, tokens, width)
    cdef const float *rows = floats(z, "z of residual_norm_back", 2, tokens, width)
    cdef const float *moments = floats(stats, "stats of residual_norm_back", tokens, 2)
    cdef const float *factors = masks_of(masks, 2 * width)
    cdef const int64_t *of_token = sentences_of(sentence, masks, tokens)
    cdef const float *gains = floats(gain, "gain of residual_norm_back", 2 * width)
    cdef float *found = floats(dz, "dz of residual_norm_back", 2, tokens, width)
    cdef void *below = some_lows(
        d_branch, low, "d_branch of residual_norm_back", 2, tokens, width
    )
    cdef float *shares = floats(sums, "sums of residual_norm_back", threads, 3, 2 * width)
    for part in prange(threads, nogil=True, num_threads=threads, schedule="static", chunksize=1):
        residual_norm_back_part(
            given, added, low, rows, moments, factors, of_token, tokens, width, gains, found, below,
            shares + part * 6 * width,
            part_start(tokens, part, threads), part_start(tokens, part + 1, threads),
        )


cdef void residual_norm_back_part(
    const float *dy, const void *more, bint low, const float *z, const float *stats,
    const float *masks, const int64_t *sentence, Py_ssize_t tokens, Py_ssize_t width,
    const float *gain, float *dz, void *d_branch, float *sums,
    Py_ssize_t first, Py_ssize_t last,
) noexcept nogil:
    cdef float *scratch = <float *>malloc(6 * width * sizeof(float))
    cdef float *whole = scratch + 2 * width
    cdef float *ones = scratch + 4 * width
    cdef const float *mask
    cdef const float *given
    cdef float *target
    cdef float totals[2]
    cdef Py_ssize_t t, side, k, at, column
    for k in range(2 * width):
        ones[k] = 1
    for t in range(first, last):
        totals[0] = totals[1] = 0
        for side in range(2):
            at = (side * tokens + t) * width
            column = side * width
            given = dy + at
            if more != NULL:
                add_rows(width, given, row_of(more, at, width, low, scratch), whole + column)
                given = whole + column
            norm_sums(
                width, given, z + at, stats[2 * t], stats[2 * t + 1], gain + column,
                sums + column, sums + 2 * width + column, totals,
            )
        for side in range(2):
            at = (side * tokens + t) * width
            column = side * width
            given = dy + at
            if more != NULL:
                given = whole + column
            norm_back(
                width, given, z + at, stats[2 * t], stats[2 * t + 1], gain + column,
                totals[0] / (2 * width), totals[1] / (2 * width), dz + at,
            )
            if d_branch != NULL:
                mask = masks + sentence[t] * 2 * width if masks != NULL else ones
                target = scratch if low else <float *>d_branch + at
                mask_back(width, dz + at, mask + column, target, sums + 4 * width + column)
                store(d_branch, at, width, low, target)
    free(scratch)


# ---- the hidden layer of the feed-forward part -------------------------------------------


def relu_drop(
    hidden, bint low, bias, masks, sentence, Py_ssize_t tokens, Py_ssize_t width, int threads
):
    """``relu(hidden + bias) * mask`` in place; ``hidden`` is low, [2, tokens, width].

    ``bias``, ``masks`` and ``sentence`` are as in ``residual_norm``.
    """
    cdef int part
    check_sizes(tokens, width, threads)
    cdef void *rows = lows(hidden, low, "hidden of relu_drop", 2, tokens, width)
    cdef const float *biases = floats(bias, "bias of relu_drop", 2 * width)
    cdef const float *factors = masks_of(masks, 2 * width)
    cdef const int64_t *of_token = sentences_of(sentence, masks, tokens)
    for part in prange(threads, nogil=True, num_threads=threads, schedule="static", chunksize=1):
        relu_drop_part(
            rows, low, biases, factors, of_token, tokens, width,
            part_start(tokens, part, threads), part_start(tokens, part + 1, threads),
        )


cdef void relu_drop_part(
    void *hidden, bint low, const float *bias, const float *masks, const int64_t *sentence,
    Py_ssize_t tokens, Py_ssize_t width, Py_ssize_t first, Py_ssize_t last,
) noexcept nogil:
    cdef float *scratch = <float *>malloc(3 * width * sizeof(float))
    cdef float *ones = scratch + width
    cdef const float *mask
    cdef float *row
    cdef Py_ssize_t t, side, k, at
    for k in range(2 * width):
        ones[k] = 1
    for side in range(2):
        for t in range(first, last):
            at = (side * tokens + t) * width
            mask = masks + sentence[t] * 2 * width if masks != NULL else ones
            row = <float *>row_of(hidden, at, width, low, scratch)
            relu_mask(width, row, bias + side * width, mask + side * width)
            store(hidden, at, width, low, row)
    free(scratch)


def relu_drop_back(
    d_hidden, hidden, bint low, double scale, Py_ssize_t tokens, Py_ssize_t width, sums,
    int threads,
):
    """Gradient through ``relu_drop`` in place, given its result; both low.

    Where the result is positive the factor was ``scale``, elsewhere the gradient is zero.
    ``sums`` [threads, 2 width], zero at the start, receives shares of the bias's gradient.
    """
    cdef int part
    check_sizes(tokens, width, threads)
    cdef void *rows = lows(d_hidden, low, "d_hidden of relu_drop_back", 2, tokens, width)
    cdef const void *result = lows(hidden, low, "hidden of relu_drop_back", 2, tokens, width)
    cdef float *shares = floats(sums, "sums of relu_drop_back", threads, 2 * width)
    for part in prange(threads, nogil=True, num_threads=threads, schedule="static", chunksize=1):
        relu_drop_back_part(
            rows, result, low, scale, tokens, width, shares + part * 2 * width,
            part_start(tokens, part, threads), part_start(tokens, part + 1, threads),
        )


cdef void relu_drop_back_part(
    void *d_hidden, const void *hidden, bint low, float scale, Py_ssize_t tokens,
    Py_ssize_t width, float *sums, Py_ssize_t first, Py_ssize_t last,
) noexcept nogil:
    cdef float *scratch = <float *>malloc(2 * width * sizeof(float))
    cdef float *row
    cdef Py_ssize_t t, side, at
    for side in range(2):
        for t in range(first, last):
            at = (side * tokens + t) * width
            row = <float *>row_of(d_hidden, at, width, low, scratch)
            relu_back(
                width, row_of(hidden, at, width, low, scratch + width), scale, row,
                sums + side * width,
            )
            store(d_hidden, at, width, low, row)
    free(scratch)
