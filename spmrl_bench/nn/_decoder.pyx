"""A step of a decoder with attention that knows the stack, forwards and back, between its products.

Addresses, *low* arrays and threads are as in ``_factored.pyx``. Arrays of all steps have a row for
each state; a call works on ``count`` of them from row ``at`` on, and state ``k`` of these belongs
to sentence ``k // each``. What is computed of a sentence does not depend on how many threads there
are. ``fused_steps.py`` and ``fused_search.py`` call this; the twins are ``known_actions.py`` and
:meth:`ActionDecoder.step`.
"""

from cython.parallel cimport prange
from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy, memset

cdef extern from "_rows.h":
    void widen(Py_ssize_t, const uint16_t *, float *) nogil
    void narrow(Py_ssize_t, const float *, uint16_t *) nogil
    void add_rows(Py_ssize_t, const float *, const float *, float *) nogil
    void multiply(Py_ssize_t, const float *, const float *, float *) nogil
    void gru_forward(Py_ssize_t, float *, const float *, float *, float *) nogil
    void gru_backward(
        Py_ssize_t, const float *, const float *, const float *, float *, float *) nogil

cdef extern from "_decoder.h":
    ctypedef struct Attention:
        Py_ssize_t words
        Py_ssize_t layers
        Py_ssize_t width
        Py_ssize_t key_step
        Py_ssize_t value_step
        Py_ssize_t value_layer
        Py_ssize_t value_width
        Py_ssize_t context_layer
        const float *score
        const float *stacked
    Py_ssize_t words_left(Py_ssize_t, const uint8_t *, int32_t *) nogil
    void attend_row(
        const Attention *, const float *, const float *, const float *, const int32_t *,
        Py_ssize_t, float *, float *, float *, float *) nogil
    void attend_row_back(
        const Attention *, const float *, const float *, const float *, const int32_t *,
        Py_ssize_t, const float *, const float *, const float *, float *, float *, float *,
        float *, float *) nogil
    void spread_row(
        const Attention *, const int32_t *, Py_ssize_t, const float *, const float *,
        const float *, float *, float *) nogil


cdef void load(
    const void *array, Py_ssize_t at, Py_ssize_t n, bint low, float *to
) noexcept nogil:
    """``n`` values from position ``at`` as floats."""
    if low:
        widen(n, <const uint16_t *>array + at, to)
    else:
        memcpy(to, <const float *>array + at, n * sizeof(float))


cdef void store(
    const float *values, Py_ssize_t n, bint low, void *array, Py_ssize_t at
) noexcept nogil:
    """The inverse of ``load``."""
    if low:
        narrow(n, values, <uint16_t *>array + at)
    else:
        memcpy(<float *>array + at, values, n * sizeof(float))


cdef Attention shape_of(
    Py_ssize_t words, Py_ssize_t layers, Py_ssize_t width, Py_ssize_t value_width, bint summed,
    size_t score, size_t stacked,
) noexcept nogil:
    """Layers either have their own values and one context, or share them and each has its own."""
    cdef Attention at
    at.words, at.layers, at.width, at.key_step = words, layers, width, layers * width
    at.value_width = value_width
    at.value_step = layers * value_width if summed else value_width
    at.value_layer = value_width if summed else 0
    at.context_layer = 0 if summed else value_width
    at.score, at.stacked = <const float *>score, <const float *>stacked
    return at


# ---- attention ---------------------------------------------------------------------------


def attend(
    size_t asked, Py_ssize_t asked_step, bint low, size_t keys, size_t values, bint summed,
    size_t pushed, size_t removed, size_t score, size_t stacked, size_t factors, size_t asks,
    size_t alphas, size_t contexts, Py_ssize_t context_step, Py_ssize_t context_start,
    size_t dropped, Py_ssize_t at, Py_ssize_t count, Py_ssize_t each, Py_ssize_t words,
    Py_ssize_t layers, Py_ssize_t width, Py_ssize_t value_width, int threads,
):
    """All layers of attention of ``count`` states.

    ``asked``: low [count, asked_step], of which the first [layers width] are what the states ask;
    ``keys``: [sentences, words, layers width], of each word its key, then what each layer above the
    first asks more for its weight in the layer below; ``values``: [sentences, words, value_width],
    or with ``summed`` [sentences, words, layers, value_width]; ``pushed``, ``removed`` (uint8):
    [rows, words]; ``score``, ``stacked``: [width], ``stacked`` may be absent; ``asks`` receives
    [rows, layers, width], what was asked in all, ``alphas`` [rows, layers, words]; ``contexts``:
    [rows, context_step] receives, from column ``context_start`` on, [layers, value_width], or with
    ``summed`` their sum. ``dropped``: low [rows, layers value_width], absent with ``summed``,
    receives contexts times ``factors`` (the same shape, or absent).
    """
    cdef Attention shape = shape_of(words, layers, width, value_width, summed, score, stacked)
    cdef int part
    with nogil:
        for part in prange(threads, num_threads=threads, schedule="static", chunksize=1):
            attend_part(
                &shape, <const void *>asked, asked_step, low, <const float *>keys,
                <const float *>values, <const float *>pushed, <const uint8_t *>removed,
                <const float *>factors, <float *>asks, <float *>alphas,
                <float *>contexts + context_start, context_step, <void *>dropped, at, each,
                count * part // threads, count * (part + 1) // threads,
            )


cdef void attend_part(
    const Attention *shape, const void *asked, Py_ssize_t asked_step, bint low, const float *keys,
    const float *values, const float *pushed, const uint8_t *removed, const float *factors,
    float *asks, float *alphas, float *contexts, Py_ssize_t context_step, void *dropped,
    Py_ssize_t at, Py_ssize_t each, Py_ssize_t first, Py_ssize_t end,
) noexcept nogil:
    cdef Py_ssize_t words = shape.words, asking = shape.key_step, k, row, sentence, count
    cdef Py_ssize_t wide = shape.layers * shape.value_width
    cdef float *scratch = <float *>malloc((shape.width + words + wide) * sizeof(float))
    cdef float *factored = scratch + shape.width + words
    cdef int32_t *places = <int32_t *>malloc((words + 1) * sizeof(int32_t))
    cdef float *context
    for k in range(first, end):
        row, sentence = at + k, k // each
        load(asked, k * asked_step, asking, low, asks + row * asking)
        count = words_left(words, removed + row * words, places)
        context = contexts + row * context_step
        attend_row(
            shape, keys + sentence * words * shape.key_step,
            values + sentence * words * shape.value_step, pushed + row * words, places, count,
            asks + row * asking, alphas + row * shape.layers * words, context, scratch,
        )
        if dropped != NULL:
            if factors != NULL:
                multiply(wide, context, factors + row * wide, factored)
                context = factored
            store(context, wide, low, dropped, row * wide)
    free(places)
    free(scratch)


def attend_back(
    size_t d_dropped, bint low, size_t factors, size_t gradient, Py_ssize_t gradient_step,
    Py_ssize_t gradient_start, size_t keys, size_t values, size_t pushed, size_t removed,
    size_t score, size_t stacked, size_t asks, size_t alphas, size_t d_contexts, size_t d_asks,
    size_t d_sums, Py_ssize_t d_sums_step, size_t d_keys, size_t d_score, size_t d_stacked,
    Py_ssize_t at, Py_ssize_t count, Py_ssize_t words, Py_ssize_t layers, Py_ssize_t width,
    Py_ssize_t value_width, int threads,
):
    """The way back of ``attend`` without ``summed``, with one state for each sentence.

    ``d_dropped``: low [count, layers value_width], of ``dropped``; ``gradient``: [rows,
    gradient_step], from column ``gradient_start`` on that of the contexts. ``d_contexts`` [rows,
    layers value_width] receives their gradient in all and ``d_asks`` [rows, layers width] that of
    what was asked, also the first columns of ``d_sums``, low [rows, d_sums_step]. Added to are
    ``d_keys``, like ``keys``, for the keys alone, and ``d_score`` and ``d_stacked`` [sentences,
    width].
    """
    cdef Attention shape = shape_of(words, layers, width, value_width, False, score, stacked)
    cdef int part
    with nogil:
        for part in prange(threads, num_threads=threads, schedule="static", chunksize=1):
            attend_back_part(
                &shape, <const void *>d_dropped, low, <const float *>factors,
                <const float *>gradient + gradient_start, gradient_step, <const float *>keys,
                <const float *>values, <const float *>pushed, <const uint8_t *>removed,
                <const float *>asks, <const float *>alphas, <float *>d_contexts, <float *>d_asks,
                <void *>d_sums, d_sums_step, <float *>d_keys, <float *>d_score,
                <float *>d_stacked, at, count * part // threads, count * (part + 1) // threads,
            )


cdef void attend_back_part(
    const Attention *shape, const void *d_dropped, bint low, const float *factors,
    const float *gradient, Py_ssize_t gradient_step, const float *keys, const float *values,
    const float *pushed, const uint8_t *removed, const float *asks, const float *alphas,
    float *d_contexts, float *d_asks, void *d_sums, Py_ssize_t d_sums_step, float *d_keys,
    float *d_score, float *d_stacked, Py_ssize_t at, Py_ssize_t first, Py_ssize_t end,
) noexcept nogil:
    cdef Py_ssize_t words = shape.words, asking = shape.key_step, width = shape.width, k, row
    cdef Py_ssize_t count, wide = shape.layers * shape.value_width
    cdef float *scratch = <float *>malloc((width + words) * sizeof(float))
    cdef int32_t *places = <int32_t *>malloc((words + 1) * sizeof(int32_t))
    cdef float *d_context
    for k in range(first, end):
        row = at + k
        d_context = d_contexts + row * wide
        load(d_dropped, k * wide, wide, low, d_context)
        if factors != NULL:
            multiply(wide, d_context, factors + row * wide, d_context)
        add_rows(wide, d_context, gradient + row * gradient_step, d_context)
        count = words_left(words, removed + row * words, places)
        attend_row_back(
            shape, keys + k * words * shape.key_step, values + k * words * shape.value_step,
            pushed + row * words, places, count, asks + row * asking,
            alphas + row * shape.layers * words, d_context, d_asks + row * asking,
            d_keys + k * words * shape.key_step, d_score + k * width,
            NULL if d_stacked == NULL else d_stacked + k * width, scratch,
        )
        store(d_asks + row * asking, asking, low, d_sums, row * d_sums_step)
    free(places)
    free(scratch)


def spread(
    size_t removed, size_t alphas, size_t d_contexts, size_t d_asks, size_t starts, size_t steps,
    size_t d_values, size_t d_keys, Py_ssize_t sentences, Py_ssize_t words, Py_ssize_t layers,
    Py_ssize_t width, Py_ssize_t value_width, int threads,
):
    """What all steps together add to the gradients of values, and of keys but for the keys proper.

    ``starts``: int64, the first row of each step; ``steps``: int64 [sentences]. The other arrays
    are those of ``attend_back``; ``d_values`` [sentences, words, value_width] is added to.
    """
    cdef Attention shape = shape_of(words, layers, width, value_width, False, 0, 0)
    cdef int part
    with nogil:
        for part in prange(threads, num_threads=threads, schedule="static", chunksize=1):
            spread_part(
                &shape, <const uint8_t *>removed, <const float *>alphas,
                <const float *>d_contexts, <const float *>d_asks, <const int64_t *>starts,
                <const int64_t *>steps, <float *>d_values, <float *>d_keys, sentences, part,
                threads,
            )


cdef void spread_part(
    const Attention *shape, const uint8_t *removed, const float *alphas, const float *d_contexts,
    const float *d_asks, const int64_t *starts, const int64_t *steps, float *d_values,
    float *d_keys, Py_ssize_t sentences, int part, int threads,
) noexcept nogil:
    """Every ``threads``-th sentence, from ``part`` on."""
    cdef Py_ssize_t words = shape.words, sentence, step, row, count
    cdef int32_t *places = <int32_t *>malloc((words + 1) * sizeof(int32_t))
    for sentence in range(sentences):
        if sentence % threads != part:
            continue
        for step in range(steps[sentence]):
            row = starts[step] + sentence
            count = words_left(words, removed + row * words, places)
            spread_row(
                shape, places, count, alphas + row * shape.layers * words,
                d_contexts + row * shape.layers * shape.value_width,
                d_asks + row * shape.key_step, d_values + sentence * words * shape.value_step,
                d_keys + sentence * words * shape.key_step,
            )
    free(places)


# ---- the recurrent cell ------------------------------------------------------------------


def cell(
    size_t kept, Py_ssize_t kept_step, Py_ssize_t kept_start, size_t kept_bias, size_t read,
    Py_ssize_t read_step, bint read_low, size_t base, Py_ssize_t base_step, size_t which,
    bint low, size_t gates, size_t before, size_t after, size_t after_low, size_t result,
    Py_ssize_t result_step, size_t factors, size_t inputs, Py_ssize_t size, Py_ssize_t at,
    Py_ssize_t following, Py_ssize_t count, Py_ssize_t going_on, int threads,
):
    """One step of a GRU for ``count`` states.

    ``kept``: low [count, kept_step], from column ``kept_start`` on the states' part of the sums
    (new, reset, update), without ``kept_bias`` [3 size]; ``read``: [count, read_step], low if
    ``read_low``, begins with the input's part (reset, update, new); ``base``: [.., base_step], is
    added to it, the row ``which`` (int64 [count]) names, or without that of ``at`` on; with a
    ``base_step`` of 0 all have the same. ``gates`` [rows, 4 size] receives what ``gru_forward``
    makes of the sums. ``before``: [.., size] from row ``at`` on; the first ``going_on`` new states
    are written to ``after`` and, rounded, to ``after_low`` from row ``following`` on (these may be
    the same array), all to the first columns of ``result`` [rows, result_step], if it is there, and
    times ``factors`` ([rows, size], or absent) to ``inputs``, low [rows, size], if that is.
    """
    cdef int part
    with nogil:
        for part in prange(threads, num_threads=threads, schedule="static", chunksize=1):
            cell_part(
                <const void *>kept, kept_step, kept_start, <const float *>kept_bias,
                <const void *>read, read_step, read_low, <const float *>base, base_step,
                <const int64_t *>which, low, <float *>gates, <const float *>before,
                <float *>after, <void *>after_low, <float *>result, result_step,
                <const float *>factors, <void *>inputs, size, at, following, going_on,
                count * part // threads, count * (part + 1) // threads,
            )


cdef void cell_part(
    const void *kept, Py_ssize_t kept_step, Py_ssize_t kept_start, const float *kept_bias,
    const void *read, Py_ssize_t read_step, bint read_low, const float *base, Py_ssize_t base_step,
    const int64_t *which, bint low, float *gates, const float *before, float *after,
    void *after_low, float *result, Py_ssize_t result_step, const float *factors, void *inputs,
    Py_ssize_t size, Py_ssize_t at, Py_ssize_t following, Py_ssize_t going_on, Py_ssize_t first,
    Py_ssize_t end,
) noexcept nogil:
    cdef float *scratch = <float *>malloc(5 * size * sizeof(float))
    cdef float *addend = scratch
    cdef float *fresh = scratch + 3 * size
    cdef float *state = scratch + 4 * size
    cdef float *sums
    cdef Py_ssize_t k, row
    for k in range(first, end):
        row = at + k
        sums = gates + row * 4 * size
        load(kept, k * kept_step + kept_start, 3 * size, low, sums)
        add_rows(3 * size, sums, kept_bias, sums)
        load(read, k * read_step, 3 * size, read_low, addend)
        add_rows(
            3 * size, addend,
            base + (which[k] if which != NULL else row) * base_step, addend,
        )
        add_rows(2 * size, sums + size, addend, sums + size)
        memcpy(sums + 3 * size, addend + 2 * size, size * sizeof(float))
        gru_forward(size, sums, before + row * size, fresh, state)
        if k < going_on:
            memcpy(after + (following + k) * size, state, size * sizeof(float))
            if low:
                narrow(size, state, <uint16_t *>after_low + (following + k) * size)
        if result != NULL:
            memcpy(result + row * result_step, state, size * sizeof(float))
        if inputs != NULL:
            if factors != NULL:
                multiply(size, state, factors + row * size, state)
            store(state, size, low, inputs, row * size)
    free(scratch)


def cell_back(
    size_t later, size_t above, Py_ssize_t above_step, size_t below, size_t factors, bint low,
    size_t gates, size_t before, size_t carried, size_t d_sums, Py_ssize_t d_sums_step,
    Py_ssize_t d_sums_start, Py_ssize_t size, Py_ssize_t at, Py_ssize_t count,
    Py_ssize_t going_on, int threads,
):
    """The way back of ``cell``.

    The gradient of a new state has up to three parts: ``later``, low [going_on, size], through the
    sums of the next step; ``above``, [rows, above_step], begins with that of ``result``; ``below``,
    low [count, size], that of ``inputs``. The last two may be absent. ``carried`` [sentences, size]
    is what reaches the state past the gates, and updated. ``d_sums``: low [rows, d_sums_step]
    receives from column ``d_sums_start`` on those of the four sums of ``gates``.
    """
    cdef int part
    with nogil:
        for part in prange(threads, num_threads=threads, schedule="static", chunksize=1):
            cell_back_part(
                <const void *>later, <const float *>above, above_step, <const void *>below,
                <const float *>factors, low, <const float *>gates, <const float *>before,
                <float *>carried, <void *>d_sums, d_sums_step, d_sums_start, size, at, going_on,
                count * part // threads, count * (part + 1) // threads,
            )


cdef void cell_back_part(
    const void *later, const float *above, Py_ssize_t above_step, const void *below,
    const float *factors, bint low, const float *gates, const float *before, float *carried,
    void *d_sums, Py_ssize_t d_sums_step, Py_ssize_t d_sums_start, Py_ssize_t size,
    Py_ssize_t at, Py_ssize_t going_on, Py_ssize_t first, Py_ssize_t end,
) noexcept nogil:
    cdef float *scratch = <float *>malloc(5 * size * sizeof(float))
    cdef float *added = scratch + 4 * size
    cdef float *own
    cdef Py_ssize_t k, row
    for k in range(first, end):
        row = at + k
        own = carried + k * size
        if k < going_on:
            load(later, k * size, size, low, added)
            add_rows(size, own, added, own)
        if below != NULL:
            load(below, k * size, size, low, added)
            if factors != NULL:
                multiply(size, added, factors + row * size, added)
            add_rows(size, own, added, own)
        if above != NULL:
            memcpy(added, above + row * above_step, size * sizeof(float))
        else:
            memset(added, 0, size * sizeof(float))
        gru_backward(size, gates + row * 4 * size, before + row * size, added, own, scratch)
        store(scratch, 4 * size, low, d_sums, row * d_sums_step + d_sums_start)
    free(scratch)
