"""A step of a decoder with attention that knows the stack, forwards and back, between its products.

Tensors, *low* ones and threads are as in ``_factored.pyx``. Tensors of all steps have a row for
each state; a call works on ``count`` of them from row ``at`` on, and state ``k`` of these belongs
to sentence ``k // each``. What is computed of a sentence does not depend on how many threads there
are. ``fused_steps.py`` and ``fused_search.py`` call this; the twins are ``known_actions.py`` and
:meth:`ActionDecoder.step`.
"""

from cython.parallel cimport prange
from libc.limits cimport INT_MAX
from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy, memset

from spmrl_bench.errors import ArrayError

from spmrl_bench.nn._tensors cimport (
    MOST_THREADS, flags, floats, indices, integers, lows, rows_of, some_floats, some_lows, within
)

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
    const float *score, const float *stacked,
) except *:
    """Layers either have their own values and one context, or share them and each has its own."""
    cdef Attention at
    for number in (words, layers, width, value_width):
        within("a size of attention", number, 1, INT_MAX)
    at.words, at.layers, at.width, at.key_step = words, layers, width, layers * width
    at.value_width = value_width
    at.value_step = layers * value_width if summed else value_width
    at.value_layer = value_width if summed else 0
    at.context_layer = 0 if summed else value_width
    at.score, at.stacked = score, stacked
    return at


cdef int check_step(
    Py_ssize_t at, Py_ssize_t count, Py_ssize_t rows, int threads, str name
) except -1:
    """Refuse a step that leads out of the rows."""
    if not 0 <= count <= rows or not 0 <= at <= rows - count:
        raise ArrayError(f"rows {at} to {at + count} of {name} are asked for; it has {rows}.")
    return within("threads", threads, 1, MOST_THREADS)


# ---- attention ---------------------------------------------------------------------------


def attend(
    asked, Py_ssize_t asked_step, bint low, keys, values, bint summed, pushed, removed, score,
    stacked, factors, asks, alphas, contexts, Py_ssize_t context_step, Py_ssize_t context_start,
    dropped, Py_ssize_t at, Py_ssize_t count, Py_ssize_t each, Py_ssize_t words,
    Py_ssize_t layers, Py_ssize_t width, Py_ssize_t value_width, int threads,
):
    """All layers of attention of ``count`` states.

    ``asked``: low [count, asked_step], of which the first [layers width] are what the states ask;
    ``keys``: [sentences, words, layers width], of each word its key, then what each layer above the
    first asks more for its weight in the layer below; ``values``: [sentences, words, value_width],
    or with ``summed`` [sentences, words, layers value_width]; ``pushed``, ``removed`` (bool):
    [rows, words], and a word must be left; ``score``, ``stacked``: [width], ``stacked`` may be
    absent; ``asks`` receives [rows, layers width], what was asked in all, ``alphas``
    [rows, layers, words]; ``contexts``: [rows, context_step] receives, from column
    ``context_start`` on, [layers, value_width], or with ``summed`` their sum. ``dropped``: low
    [rows, layers value_width], absent with ``summed``, receives contexts times ``factors`` (the
    same shape, or absent).
    """
    cdef int part
    cdef Py_ssize_t rows = rows_of(removed, "removed of attend"), without_words = 0
    cdef Py_ssize_t sentences = rows_of(keys, "keys of attend"), wide = layers * value_width
    cdef Attention shape = shape_of(
        words, layers, width, value_width, summed, floats(score, "score of attend", width),
        some_floats(stacked, "stacked of attend", width),
    )
    cdef const void *given = lows(asked, low, "asked of attend", count, asked_step)
    cdef const float *of_words = floats(keys, "keys of attend", sentences, words, layers * width)
    cdef const float *content = floats(
        values, "values of attend", sentences, words, wide if summed else value_width
    )
    cdef const float *on_stack = floats(pushed, "pushed of attend", rows, words)
    cdef const uint8_t *gone = flags(removed, "removed of attend", rows, words)
    cdef const float *factor = some_floats(factors, "factors of attend", rows, wide)
    cdef float *in_all = floats(asks, "asks of attend", rows, layers * width)
    cdef float *weights = floats(alphas, "alphas of attend", rows, layers, words)
    cdef float *found = floats(contexts, "contexts of attend", rows, context_step)
    cdef void *kept = some_lows(dropped, low, "dropped of attend", rows, wide)
    check_step(at, count, rows, threads, "removed of attend")
    within("each of attend", each, 1, INT_MAX)
    within("count / each, sentences of keys of attend,", (count + each - 1) // each, 0, sentences)
    within("layers width of attend", layers * width, 1, asked_step)
    cdef Py_ssize_t of_context = value_width if summed else wide
    within("context_start of attend", context_start, 0, context_step - of_context)
    if summed and dropped is not None:
        raise ArrayError("dropped of attend must be absent where contexts are summed.")
    for part in prange(threads, nogil=True, num_threads=threads, schedule="static", chunksize=1):
        without_words += attend_part(
            &shape, given, asked_step, low, of_words, content, on_stack, gone, factor, in_all,
            weights, found + context_start, context_step, kept, at, each,
            count * part // threads, count * (part + 1) // threads,
        )
    if without_words:
        raise ArrayError(
            f"removed of attend leaves no word to {without_words} of {count} states; each must "
            "have one to look at."
        )


cdef Py_ssize_t attend_part(
    const Attention *shape, const void *asked, Py_ssize_t asked_step, bint low, const float *keys,
    const float *values, const float *pushed, const uint8_t *removed, const float *factors,
    float *asks, float *alphas, float *contexts, Py_ssize_t context_step, void *dropped,
    Py_ssize_t at, Py_ssize_t each, Py_ssize_t first, Py_ssize_t end,
) noexcept nogil:
    """States ``first:end``; how many of them have no word left."""
    cdef Py_ssize_t words = shape.words, asking = shape.key_step, k, row, sentence, count
    cdef Py_ssize_t wide = shape.layers * shape.value_width, without_words = 0
    cdef float *scratch = <float *>malloc((shape.width + words + wide) * sizeof(float))
    cdef float *factored = scratch + shape.width + words
    cdef int32_t *places = <int32_t *>malloc((words + 1) * sizeof(int32_t))
    cdef float *context
    for k in range(first, end):
        row, sentence = at + k, k // each
        load(asked, k * asked_step, asking, low, asks + row * asking)
        count = words_left(words, removed + row * words, places)
        without_words += count == 0
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
    return without_words


def attend_back(
    d_dropped, bint low, factors, gradient, Py_ssize_t gradient_step, Py_ssize_t gradient_start,
    keys, values, pushed, removed, score, stacked, asks, alphas, d_contexts, d_asks, d_sums,
    Py_ssize_t d_sums_step, d_keys, d_score, d_stacked, Py_ssize_t at, Py_ssize_t count,
    Py_ssize_t words, Py_ssize_t layers, Py_ssize_t width, Py_ssize_t value_width, int threads,
):
    """The way back of ``attend`` without ``summed``, with one state for each sentence.

    ``d_dropped``: low [count, layers value_width], of ``dropped``; ``gradient``: [rows,
    gradient_step], from column ``gradient_start`` on that of the contexts. ``d_contexts`` [rows,
    layers value_width] receives their gradient in all and ``d_asks`` [rows, layers width] that of
    what was asked, also the first columns of ``d_sums``, low [rows, d_sums_step]. Added to are
    ``d_keys``, like ``keys``, for the keys alone, and ``d_score`` and ``d_stacked`` [sentences,
    width].
    """
    cdef int part
    cdef Py_ssize_t rows = rows_of(removed, "removed of attend_back"), asking = layers * width
    cdef Py_ssize_t sentences = rows_of(keys, "keys of attend_back"), wide = layers * value_width
    cdef Attention shape = shape_of(
        words, layers, width, value_width, False, floats(score, "score of attend_back", width),
        some_floats(stacked, "stacked of attend_back", width),
    )
    if (stacked is None) != (d_stacked is None):
        raise ArrayError("d_stacked of attend_back must be there where stacked is, and only there.")
    cdef const void *of_dropped = lows(d_dropped, low, "d_dropped of attend_back", count, wide)
    cdef const float *factor = some_floats(factors, "factors of attend_back", rows, wide)
    cdef const float *above = floats(gradient, "gradient of attend_back", rows, gradient_step)
    cdef const float *of_words = floats(keys, "keys of attend_back", sentences, words, asking)
    cdef const float *content = floats(
        values, "values of attend_back", sentences, words, value_width
    )
    cdef const float *on_stack = floats(pushed, "pushed of attend_back", rows, words)
    cdef const uint8_t *gone = flags(removed, "removed of attend_back", rows, words)
    cdef const float *in_all = floats(asks, "asks of attend_back", rows, asking)
    cdef const float *weights = floats(alphas, "alphas of attend_back", rows, layers, words)
    cdef float *of_contexts = floats(d_contexts, "d_contexts of attend_back", rows, wide)
    cdef float *of_asks = floats(d_asks, "d_asks of attend_back", rows, asking)
    cdef void *of_sums = lows(d_sums, low, "d_sums of attend_back", rows, d_sums_step)
    cdef float *of_keys = floats(d_keys, "d_keys of attend_back", sentences, words, asking)
    cdef float *of_score = floats(d_score, "d_score of attend_back", sentences, width)
    cdef float *of_stacked = some_floats(
        d_stacked, "d_stacked of attend_back", sentences, width
    )
    check_step(at, count, rows, threads, "removed of attend_back")
    within("count, sentences of keys of attend_back,", count, 0, sentences)
    within("gradient_start of attend_back", gradient_start, 0, gradient_step - wide)
    within("layers width of attend_back", asking, 1, d_sums_step)
    for part in prange(threads, nogil=True, num_threads=threads, schedule="static", chunksize=1):
        attend_back_part(
            &shape, of_dropped, low, factor, above + gradient_start, gradient_step, of_words,
            content, on_stack, gone, in_all, weights, of_contexts, of_asks, of_sums, d_sums_step,
            of_keys, of_score, of_stacked, at, count * part // threads,
            count * (part + 1) // threads,
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
    removed, alphas, d_contexts, d_asks, starts, steps, d_values, d_keys, Py_ssize_t sentences,
    Py_ssize_t words, Py_ssize_t layers, Py_ssize_t width, Py_ssize_t value_width, int threads,
):
    """What all steps together add to the gradients of values, and of keys but for the keys proper.

    ``starts``: int64, the first row of each step; ``steps``: int64 [sentences]. The others are
    those of ``attend_back``; ``d_values`` [sentences, words, value_width] is added to.
    """
    cdef int part
    cdef Py_ssize_t rows = rows_of(removed, "removed of spread"), sentence, step
    cdef Py_ssize_t most = rows_of(starts, "starts of spread")
    cdef Attention shape = shape_of(words, layers, width, value_width, False, NULL, NULL)
    check_step(0, rows, rows, threads, "spread")
    cdef const uint8_t *gone = flags(removed, "removed of spread", rows, words)
    cdef const float *weights = floats(alphas, "alphas of spread", rows, layers, words)
    cdef const float *of_contexts = floats(
        d_contexts, "d_contexts of spread", rows, layers * value_width
    )
    cdef const float *of_asks = floats(d_asks, "d_asks of spread", rows, layers * width)
    cdef const int64_t *first = integers(starts, "starts of spread", most)
    cdef const int64_t *taken = indices(steps, "steps of spread", sentences, 0, most + 1)
    for sentence in range(sentences):
        for step in range(taken[sentence]):
            if not 0 <= first[step] < rows - sentence:
                raise ArrayError(
                    f"starts[{step}] of spread is {first[step]}; with sentence {sentence} the row "
                    f"must be below {rows}."
                )
    cdef float *of_values = floats(d_values, "d_values of spread", sentences, words, value_width)
    cdef float *of_keys = floats(d_keys, "d_keys of spread", sentences, words, layers * width)
    for part in prange(threads, nogil=True, num_threads=threads, schedule="static", chunksize=1):
        spread_part(
            &shape, gone, weights, of_contexts, of_asks, first, taken, of_values, of_keys,
            sentences, part, threads,
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


cdef const float *check_base(
    base, Py_ssize_t step, Py_ssize_t size, Py_ssize_t at, Py_ssize_t count, which
) except? NULL:
    """What is added to all states alike, or has a row for each, or for what each names."""
    if step == 0:
        if which is not None:
            raise ArrayError("which of cell must be absent where base_step is 0.")
        return floats(base, "base of cell", 3 * size)
    cdef Py_ssize_t rows = rows_of(base, "base of cell")
    within("base_step of cell", step, 3 * size, INT_MAX)
    if which is None:
        check_step(at, count, rows, 1, "base of cell")
    else:
        indices(which, "which of cell", count, 0, rows)
    return floats(base, "base of cell", rows, step)


def cell(
    kept, Py_ssize_t kept_step, Py_ssize_t kept_start, kept_bias, read, Py_ssize_t read_step,
    bint read_low, base, Py_ssize_t base_step, which, bint low, gates, before, after, after_low,
    result, Py_ssize_t result_step, factors, inputs, Py_ssize_t size, Py_ssize_t at,
    Py_ssize_t following, Py_ssize_t count, Py_ssize_t going_on, int threads,
):
    """One step of a GRU for ``count`` states.

    ``kept``: low [count, kept_step], from column ``kept_start`` on the states' part of the sums
    (new, reset, update), without ``kept_bias`` [3 size]; ``read``: [count, read_step], low if
    ``read_low``, begins with the input's part (reset, update, new); ``base``: [.., base_step], is
    added to it, the row ``which`` (int64 [count]) names, or without that of ``at`` on; with a
    ``base_step`` of 0 all have the same [3 size]. ``gates`` [rows, 4 size] receives what
    ``gru_forward`` makes of the sums. ``before``: [.., size] from row ``at`` on; the first
    ``going_on`` new states are written to ``after`` and, rounded, to ``after_low`` from row
    ``following`` on (the latter is the former if not low; the former may be ``before``), all to the
    first columns of ``result`` [rows, result_step], if it is there, and times ``factors`` ([rows,
    size], or absent) to ``inputs``, low [rows, size], if that is.
    """
    cdef int part
    cdef Py_ssize_t rows = rows_of(gates, "gates of cell")
    cdef Py_ssize_t rows_before = rows_of(before, "before of cell")
    cdef Py_ssize_t rows_after = rows_of(after, "after of cell")
    within("size of cell", size, 1, INT_MAX)
    cdef const void *own = lows(kept, low, "kept of cell", count, kept_step)
    cdef const float *bias = floats(kept_bias, "kept_bias of cell", 3 * size)
    cdef const void *given = lows(read, read_low, "read of cell", count, read_step)
    cdef const float *added = check_base(base, base_step, size, at, count, which)
    cdef const int64_t *named = NULL
    if which is not None:
        named = integers(which, "which of cell", count)
    cdef float *sums = floats(gates, "gates of cell", rows, 4 * size)
    cdef const float *first = floats(before, "before of cell", rows_before, size)
    cdef float *then = floats(after, "after of cell", rows_after, size)
    cdef void *rounded = lows(after_low, low, "after_low of cell", rows_after, size)
    cdef float *found = NULL
    if result is not None:
        within("result_step of cell", result_step, size, INT_MAX)
        found = floats(result, "result of cell", rows, result_step)
    cdef const float *factor = some_floats(factors, "factors of cell", rows, size)
    cdef void *passed = some_lows(inputs, low, "inputs of cell", rows, size)
    check_step(at, count, rows, threads, "gates of cell")
    check_step(at, count, rows_before, threads, "before of cell")
    within("going_on of cell", going_on, 0, count)
    check_step(following, going_on, rows_after, threads, "after of cell")
    within("kept_start of cell", kept_start, 0, kept_step - 3 * size)
    within("read_step of cell", read_step, 3 * size, INT_MAX)
    if then == first and going_on and following < at + count:
        raise ArrayError(
            f"following of cell is {following}; where after is before, it must be at least "
            f"{at + count}, lest states be replaced that are still to be read."
        )
    for part in prange(threads, nogil=True, num_threads=threads, schedule="static", chunksize=1):
        cell_part(
            own, kept_step, kept_start, bias, given, read_step, read_low, added, base_step, named,
            low, sums, first, then, rounded, found, result_step, factor, passed, size, at,
            following, going_on, count * part // threads, count * (part + 1) // threads,
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
    later, above, Py_ssize_t above_step, below, factors, bint low, gates, before, carried, d_sums,
    Py_ssize_t d_sums_step, Py_ssize_t d_sums_start, Py_ssize_t size, Py_ssize_t at,
    Py_ssize_t count, Py_ssize_t going_on, int threads,
):
    """The way back of ``cell``.

    The gradient of a new state has up to three parts: ``later``, low [going_on, size], through the
    sums of the next step, absent where none goes on; ``above``, [rows, above_step], begins with
    that of ``result``; ``below``, low [count, size], that of ``inputs``. The last two may be
    absent. ``carried`` [sentences, size] is what reaches the state past the gates, and updated.
    ``d_sums``: low [rows, d_sums_step] receives from column ``d_sums_start`` on those of the four
    sums of ``gates``.
    """
    cdef int part
    cdef Py_ssize_t rows = rows_of(gates, "gates of cell_back")
    cdef Py_ssize_t sentences = rows_of(carried, "carried of cell_back")
    within("size of cell_back", size, 1, INT_MAX)
    cdef const void *through = NULL
    if going_on:
        through = lows(later, low, "later of cell_back", going_on, size)
    cdef const float *over = NULL
    if above is not None:
        within("above_step of cell_back", above_step, size, INT_MAX)
        over = floats(above, "above of cell_back", rows, above_step)
    cdef const void *under = some_lows(below, low, "below of cell_back", count, size)
    cdef const float *factor = some_floats(factors, "factors of cell_back", rows, size)
    cdef const float *active = floats(gates, "gates of cell_back", rows, 4 * size)
    cdef const float *first = floats(before, "before of cell_back", rows, size)
    cdef float *past = floats(carried, "carried of cell_back", sentences, size)
    cdef void *sums = lows(d_sums, low, "d_sums of cell_back", rows, d_sums_step)
    check_step(at, count, rows, threads, "gates of cell_back")
    within("count, rows of carried of cell_back,", count, 0, sentences)
    within("going_on of cell_back", going_on, 0, count)
    within("d_sums_start of cell_back", d_sums_start, 0, d_sums_step - 4 * size)
    for part in prange(threads, nogil=True, num_threads=threads, schedule="static", chunksize=1):
        cell_back_part(
            through, over, above_step, under, factor, low, active, first, past, sums, d_sums_step,
            d_sums_start, size, at, going_on,
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
