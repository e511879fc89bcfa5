# cython: cdivision=True
"""A step of a decoder with attention that knows the stack, forwards and back, between its products.

Tensors of all steps have a row for each state; a call works on ``count`` of them from row ``at``
on, and state ``k`` of these belongs to sentence ``k // each``. What is computed of a sentence does
not depend on how many threads there are. All methods raise an ArrayError for what does not fit.
"""

include "_tensors.pxi"

cdef extern from "_decoder.h" nogil:
    ctypedef struct Shape:
        Py_ssize_t words, layers, width, key_step
        Py_ssize_t value_step, value_layer, value_width, context_layer
        Given score, stacked
    Py_ssize_t words_left(Py_ssize_t, const uint8_t *, int32_t *)
    void attend_row(
        const Shape *, Given, Given, Given, const int32_t *, Py_ssize_t, Floats, Floats, Floats,
        Floats)
    void attend_row_back(
        const Shape *, Given, Given, Given, const int32_t *, Py_ssize_t, Given, Given, Given,
        Floats, Floats, Floats, Floats, Floats)
    void spread_row(
        const Shape *, const int32_t *, Py_ssize_t, Given, Given, Given, Floats, Floats)

cdef enum:
    FEW = 8  # states of a step below which a second thread costs more than it does


cdef class Steps(Memory):
    """States of a decoder, row by row, of which a step works on some."""

    cdef Py_ssize_t rows, at

    cdef int begin(self, Py_ssize_t at, Py_ssize_t count) except -1:
        """Refuse a step that leads out of the rows, and return how many threads it is worth."""
        within("count", count, 0, self.rows)
        within("at", at, 0, self.rows - count)
        self.at = at
        return self.threads if count >= FEW else 1


cdef class Attention(Steps):
    """All layers of attention of all states.

    Args:
        keys: ``[sentences, words, layers width]``, of each word its key, then what each layer
            above the first asks more for its weight in the layer below.
        values: ``[sentences, words, value_width]``, which all layers share; or with ``summed``
            ``[sentences, words, layers value_width]``, and then their contexts are summed.
        score, stacked: ``[width]``; ``stacked`` may be absent.
        pushed, removed: ``[rows, words]``, the latter bool; each state must have a word left.
        factors: ``[rows, layers value_width]`` or absent.
        contexts: ``[rows, ..]`` receives, from column ``start`` on, ``[layers, value_width]``, or
            with ``summed`` their sum. The caller keeps it as long as it calls :meth:`attend`.
        each: states of a sentence in a step.
    """

    cdef readonly object dropped  # bf16, contexts times factors; absent with summed
    cdef Shape shape
    cdef Py_ssize_t sentences, wide, context_step, start, each, asked_step, d_sums_step, steps
    cdef const uint8_t *removed
    cdef const int64_t *counts
    cdef Given keys, values, pushed, factors, gradient
    cdef Floats asks  # of each row, [layers width]: what was asked in all
    cdef Floats alphas  # of each row, [layers, words]
    cdef Floats contexts, d_contexts, d_asks, d_keys, d_score, d_stacked, d_values
    cdef void *dropped_at
    cdef void *d_sums
    cdef const void *given  # of the step, what is asked or the gradient of what was dropped
    cdef tuple gradients  # of values, keys, score and stacked

    def __cinit__(
        self, bint bf16, Py_ssize_t layers, keys, values, bint summed, score, stacked, pushed,
        removed, factors, contexts, Py_ssize_t start, Py_ssize_t each, int threads,
    ):
        cdef Py_ssize_t rows = removed.shape[0], words = removed.shape[1], width = score.numel()
        cdef Py_ssize_t value_width = values.shape[2] // (layers if summed and layers else 1)
        cdef Py_ssize_t wide = layers * value_width
        for number in (layers, width, words, value_width, each):
            within("a size of attention", number, 1, INT32_MAX)
        self.prepare(bf16, threads, [keys, values, score, stacked, pushed, removed, factors])
        self.rows, self.sentences, self.wide, self.each = rows, keys.shape[0], wide, each
        self.context_step, self.start = contexts.shape[1], start
        within("start", start, 0, self.context_step - (value_width if summed else wide))
        self.shape.words, self.shape.layers, self.shape.width = words, layers, width
        self.shape.key_step = layers * width
        self.shape.value_step = wide if summed else value_width
        self.shape.value_width, self.shape.value_layer = value_width, value_width if summed else 0
        self.shape.context_layer = 0 if summed else value_width
        self.shape.score = floats(score, width, "score")
        self.shape.stacked = optional(stacked, width, "stacked")
        self.keys = floats(keys, self.sentences * words * self.shape.key_step, "keys")
        self.values = floats(values, self.sentences * words * self.shape.value_step, "values")
        self.pushed = floats(pushed, rows * words, "pushed")
        self.removed = <uint8_t *>address(removed, torch.bool, rows * words, "removed")
        self.factors = optional(factors, rows * wide, "factors")
        self.asks = self.new(rows * self.shape.key_step)
        self.alphas = self.new(rows * layers * words)
        # Not held, since the gradient of the result holds this.
        self.contexts = floats(contexts, rows * self.context_step, "contexts")
        if not summed:
            self.dropped = torch.empty(rows, wide, dtype=self.dtype)
            self.dropped_at = address(self.dropped, self.dtype, rows * wide, "dropped")
        self.take_room(width + 2 * words + wide)

    cdef int begin(self, Py_ssize_t at, Py_ssize_t count) except -1:
        within("sentences of a step", (count + self.each - 1) // self.each, 0, self.sentences)
        return Steps.begin(self, at, count)

    def attend(self, asked, Py_ssize_t at, Py_ssize_t count):
        """``asked``: bf16 [count, ..], of which the first [layers width] are what states ask."""
        cdef int threads = self.begin(at, count)
        cdef Py_ssize_t k, without_words = 0
        self.asked_step = asked.shape[1]
        within("layers width", self.shape.key_step, 1, self.asked_step)
        self.given = address(asked, self.dtype, count * self.asked_step, "asked")
        for k in prange(count, nogil=True, num_threads=threads, schedule="static"):
            without_words += self.attend_state(k, self.mine())
        if without_words:
            raise ArrayError(
                f"removed leaves no word to {without_words} of {count} states; each must have one "
                "to look at."
            )

    cdef Py_ssize_t attend_state(self, Py_ssize_t k, Floats scratch) noexcept nogil:
        """Return whether no word is left."""
        cdef Py_ssize_t words = self.shape.words, asking = self.shape.key_step, wide = self.wide
        cdef Py_ssize_t row = self.at + k, sentence = k // self.each
        cdef Floats factored = scratch + self.shape.width + words
        cdef int32_t *places = <int32_t *>(factored + wide)
        cdef Py_ssize_t count = words_left(words, self.removed + row * words, places)
        cdef Floats context = self.contexts + row * self.context_step + self.start
        load(self.given, k * self.asked_step, asking, self.bf16, self.asks + row * asking)
        attend_row(
            &self.shape, self.keys + sentence * words * asking,
            self.values + sentence * words * self.shape.value_step, self.pushed + row * words,
            places, count, self.asks + row * asking,
            self.alphas + row * self.shape.layers * words, context, scratch,
        )
        if self.dropped_at != NULL:
            if self.factors != NULL:
                multiply(wide, context, self.factors + row * wide, factored)
                context = factored
            store(context, wide, self.bf16, self.dropped_at, row * wide)
        return count == 0

    def back(self, gradient, d_sums):
        """Take the gradient of ``contexts``, without ``summed`` and where ``each`` is 1; that of
        what was asked goes to the first columns of ``d_sums``, bf16 [rows, ..]."""
        cdef Py_ssize_t rows = self.rows, sentences = self.sentences, words = self.shape.words
        cdef Py_ssize_t width = self.shape.width, asking = self.shape.key_step
        within("layers whose contexts are summed", self.shape.value_layer, 0, 0)
        within("each", self.each, 1, 1)
        self.d_sums_step = d_sums.shape[1]
        within("layers width", asking, 1, self.d_sums_step)
        self.d_sums = address(d_sums, self.dtype, rows * self.d_sums_step, "d_sums")
        self.d_contexts, self.d_asks = self.new(rows * self.wide), self.new(rows * asking)
        d_values = torch.zeros(sentences, words, self.shape.value_width)
        d_keys = torch.zeros(sentences, words, asking)
        d_score, d_stacked = torch.zeros(2, sentences, width)
        self.d_values = floats(d_values, sentences * words * self.shape.value_width, "d_values")
        self.d_keys = floats(d_keys, sentences * words * asking, "d_keys")
        self.d_score = floats(d_score, sentences * width, "d_score")
        if self.shape.stacked != NULL:
            self.d_stacked = floats(d_stacked, sentences * width, "d_stacked")
        self.held += [gradient, d_sums]
        self.gradients = d_values, d_keys, d_score, d_stacked
        self.gradient = floats(gradient, rows * self.context_step, "gradient")

    cdef int check_back(self) except -1:
        if self.gradient == NULL:
            raise ArrayError("gradient is absent; back must take it first.")
        return 0

    def attend_back(self, d_dropped, Py_ssize_t at, Py_ssize_t count):
        """``d_dropped``: bf16 [count, layers value_width]."""
        cdef int threads = self.begin(at, count)
        cdef Py_ssize_t k
        self.check_back()
        self.given = address(d_dropped, self.dtype, count * self.wide, "d_dropped")
        for k in prange(count, nogil=True, num_threads=threads, schedule="static"):
            self.attend_back_state(k, self.mine())

    cdef void attend_back_state(self, Py_ssize_t k, Floats scratch) noexcept nogil:
        cdef Py_ssize_t words = self.shape.words, asking = self.shape.key_step, wide = self.wide
        cdef Py_ssize_t row = self.at + k, width = self.shape.width
        cdef int32_t *places = <int32_t *>(scratch + width + words)
        cdef Py_ssize_t count = words_left(words, self.removed + row * words, places)
        cdef Floats d_context = self.d_contexts + row * wide
        load(self.given, k * wide, wide, self.bf16, d_context)
        if self.factors != NULL:
            multiply(wide, d_context, self.factors + row * wide, d_context)
        add_rows(wide, d_context, self.gradient + row * self.context_step + self.start, d_context)
        attend_row_back(
            &self.shape, self.keys + k * words * asking,
            self.values + k * words * self.shape.value_step, self.pushed + row * words, places,
            count, self.asks + row * asking, self.alphas + row * self.shape.layers * words,
            d_context, self.d_asks + row * asking, self.d_keys + k * words * asking,
            self.d_score + k * width,
            NULL if self.d_stacked == NULL else self.d_stacked + k * width, scratch,
        )
        store(self.d_asks + row * asking, asking, self.bf16, self.d_sums, row * self.d_sums_step)

    def spread(self, counts):
        """Return the gradients of values, keys, score and stacked, after the way back of all steps,
        whose sentences ``counts``, int64, says."""
        cdef Py_ssize_t step, sentence, rows = 0, before = self.sentences
        cdef int threads = self.begin(0, min(self.rows, self.sentences))
        self.check_back()
        self.steps = counts.numel()
        self.counts = <int64_t *>address(counts, torch.int64, self.steps, "counts")
        for step in range(self.steps):
            within("a count", self.counts[step], 0, before)
            before = self.counts[step]
            rows += before
        within("the sum of counts", rows, self.rows, self.rows)
        for sentence in prange(
            self.sentences, nogil=True, num_threads=threads, schedule="static", chunksize=1
        ):
            self.spread_sentence(sentence, <int32_t *>self.mine())
        d_values, d_keys, d_score, d_stacked = self.gradients
        return d_values, d_keys, d_score.sum(0), d_stacked.sum(0)

    cdef void spread_sentence(self, Py_ssize_t sentence, int32_t *places) noexcept nogil:
        cdef Py_ssize_t words = self.shape.words, asking = self.shape.key_step
        cdef Py_ssize_t step, row, at = 0, count
        for step in range(self.steps):
            if self.counts[step] <= sentence:
                break
            row = at + sentence
            at += self.counts[step]
            count = words_left(words, self.removed + row * words, places)
            spread_row(
                &self.shape, places, count, self.alphas + row * self.shape.layers * words,
                self.d_contexts + row * self.wide, self.d_asks + row * asking,
                self.d_values + sentence * words * self.shape.value_step,
                self.d_keys + sentence * words * asking,
            )


cdef class Cell(Steps):
    """A recurrent layer, a GRU, of all states.

    Args:
        bias: ``[3 size]``, of the state's part of the sums (new, reset, update).
        base: added to the input's part (reset, update, new): ``[3 size]`` for all states; ``[rows,
            3 size]``; or with ``which``, int64 ``[rows]``, the rows of a table that it names.
        before: ``[rows, size]``, the states before each step, and new ones get rows of their own;
            or absent, and then those of the first step are zero, and new ones go to the rows of
            the next step.
        result: ``[rows, ..]``, whose first columns receive all new states; or absent. The caller
            keeps it as long as it calls :meth:`step`.
        factors: ``[rows, size]`` or absent.
        lead: column at which the sums begin in what :meth:`step` is given and gives back.
    """

    cdef readonly object states, low  # [rows, size], those handed on, and the same, bf16
    cdef readonly object inputs  # bf16 [rows, size], all new states, times factors
    cdef bint onward, read_bf16
    cdef Py_ssize_t size, base_step, result_step, lead, sentences, d_sums_step
    cdef Py_ssize_t count, going_on, kept_step, read_step  # of the step
    cdef const int64_t *which
    cdef Given bias, base, before, factors, above
    cdef Floats gates  # [rows, 4 size], what ``gru_forward`` makes of the sums
    cdef Floats after, result
    cdef Floats carried  # to the state past the gates, of each sentence
    cdef void *low_at
    cdef void *inputs_at
    cdef void *d_sums
    cdef const void *kept  # of the step, or the gradient through the next one
    cdef const void *read  # of the step, or the gradient from the layer above

    def __cinit__(
        self, bint bf16, Py_ssize_t rows, bias, base, which, before, result, factors,
        Py_ssize_t lead, int threads,
    ):
        cdef Py_ssize_t size = bias.numel() // 3, k
        cdef Py_ssize_t base_rows = base.shape[0] if base.dim() == 2 else 1
        within("size", size, 1, INT32_MAX)
        within("lead", lead, 0, INT32_MAX)
        within("rows", rows, 0, INT32_MAX)
        self.prepare(bf16, threads, [bias, base, which, before, factors])
        self.rows, self.size, self.lead, self.onward = rows, size, lead, before is None
        self.bias = floats(bias, 3 * size, "bias")
        self.base = floats(base, base_rows * 3 * size, "base")
        self.base_step = 3 * size if base.dim() == 2 else 0
        if which is not None:
            self.which = <int64_t *>address(which, torch.int64, rows, "which")
            for k in range(rows):
                within("a number of which", self.which[k], 0, base_rows - 1)
        elif self.base_step:
            within("rows of base", base_rows, rows, rows)
        self.before = optional(before, rows * size, "before")
        if result is not None:
            self.result_step = result.shape[1]
            within("size", size, 1, self.result_step)
            self.result = floats(result, rows * self.result_step, "result")
        self.factors = optional(factors, rows * size, "factors")
        self.gates = self.new(rows * 4 * size)
        self.states = torch.zeros(rows, size)
        self.low = self.states.to(self.dtype)  # the same where not bf16
        self.inputs = torch.zeros(rows, size, dtype=self.dtype)
        self.after = floats(self.states, rows * size, "states")
        self.low_at = address(self.low, self.dtype, rows * size, "low")
        self.inputs_at = address(self.inputs, self.dtype, rows * size, "inputs")
        if self.onward:
            self.before = self.after
        self.take_room(5 * size)

    cdef int start(self, Py_ssize_t at, Py_ssize_t count, Py_ssize_t going_on) except -1:
        within("going_on", going_on, 0, count)
        within("rows of the next step", going_on if self.onward else 0, 0, self.rows - at - count)
        self.count, self.going_on = count, going_on
        return self.begin(at, count)

    def step(self, kept, read, Py_ssize_t at, Py_ssize_t count, Py_ssize_t going_on):
        """One step of ``count`` states, of which the first ``going_on`` are handed on; ``kept``,
        bf16 [count, ..], has the state's part of the sums from column ``lead`` on, ``read``,
        [count, ..], bf16 or float32, begins with the input's part."""
        cdef int threads = self.start(at, count, going_on)
        cdef Py_ssize_t k
        self.kept_step, self.read_step = kept.shape[1], read.shape[1]
        within("lead", self.lead, 0, self.kept_step - 3 * self.size)
        within("3 size", 3 * self.size, 3, self.read_step)
        self.read_bf16 = read.dtype is not FLOAT32
        self.kept = address(kept, self.dtype, count * self.kept_step, "kept")
        self.read = address(
            read, self.dtype if self.read_bf16 else FLOAT32, count * self.read_step, "read"
        )
        for k in prange(count, nogil=True, num_threads=threads, schedule="static"):
            self.step_state(k, self.mine())

    cdef void step_state(self, Py_ssize_t k, Floats scratch) noexcept nogil:
        cdef Py_ssize_t size = self.size, row = self.at + k
        cdef Py_ssize_t of_base = row if self.which == NULL else self.which[row]
        cdef Py_ssize_t following = row + self.count if self.onward else row
        cdef Floats fresh = scratch + 3 * size, state = fresh + size
        cdef Floats sums = self.gates + row * 4 * size
        load(self.kept, k * self.kept_step + self.lead, 3 * size, self.bf16, sums)
        add_rows(3 * size, sums, self.bias, sums)
        load(self.read, k * self.read_step, 3 * size, self.read_bf16, scratch)
        add_rows(3 * size, scratch, self.base + of_base * self.base_step, scratch)
        add_rows(2 * size, sums + size, scratch, sums + size)
        memcpy(sums + 3 * size, scratch + 2 * size, size * sizeof(float))
        gru_forward(size, sums, self.before + row * size, fresh, state)
        if k < self.going_on:
            memcpy(self.after + following * size, state, size * sizeof(float))
            if self.bf16:
                store(state, size, True, self.low_at, following * size)
        if self.result != NULL:
            memcpy(self.result + row * self.result_step, state, size * sizeof(float))
        if self.factors != NULL:
            multiply(size, state, self.factors + row * size, state)
        store(state, size, self.bf16, self.inputs_at, row * size)

    def back(self, above, Py_ssize_t sentences):
        """Take ``above``, the gradient of ``result``, or absent; no step has more sentences. Return
        bf16 [rows, lead + 4 size], for the gradients of the four sums from column ``lead`` on."""
        within("sentences", sentences, 1, self.rows)
        if above is not None:
            within("size", self.size, 1, self.result_step)
            self.above = floats(above, self.rows * self.result_step, "above")
        self.sentences, self.d_sums_step = sentences, self.lead + 4 * self.size
        d_sums = torch.empty(self.rows, self.d_sums_step, dtype=self.dtype)
        self.d_sums = address(d_sums, self.dtype, self.rows * self.d_sums_step, "d_sums")
        carried = torch.zeros(sentences, self.size)
        self.held += [above, d_sums, carried]
        self.carried = floats(carried, sentences * self.size, "carried")
        return d_sums

    def step_back(self, later, below, Py_ssize_t at, Py_ssize_t count, Py_ssize_t going_on):
        """Of the gradient of a new state, ``later``, bf16 [going_on, size], comes through the sums
        of the next step, and ``below``, bf16 [count, size] or absent, from ``inputs``."""
        cdef int threads = self.start(at, count, going_on)
        cdef Py_ssize_t k
        if self.carried == NULL:
            raise ArrayError("back must come first.")
        within("count", count, 0, self.sentences)
        self.kept = self.read = NULL
        if going_on:
            self.kept = address(later, self.dtype, going_on * self.size, "later")
        if below is not None:
            self.read = address(below, self.dtype, count * self.size, "below")
        for k in prange(count, nogil=True, num_threads=threads, schedule="static"):
            self.step_back_state(k, self.mine())

    cdef void step_back_state(self, Py_ssize_t k, Floats scratch) noexcept nogil:
        cdef Py_ssize_t size = self.size, row = self.at + k
        cdef Floats added = scratch + 4 * size, own = self.carried + k * size
        if k < self.going_on:
            load(self.kept, k * size, size, self.bf16, added)
            add_rows(size, own, added, own)
        if self.read != NULL:
            load(self.read, k * size, size, self.bf16, added)
            if self.factors != NULL:
                multiply(size, added, self.factors + row * size, added)
            add_rows(size, own, added, own)
        memset(added, 0, size * sizeof(float))
        if self.above != NULL:
            memcpy(added, self.above + row * self.result_step, size * sizeof(float))
        gru_backward(
            size, self.gates + row * 4 * size, self.before + row * size, added, own, scratch
        )
        store(scratch, 4 * size, self.bf16, self.d_sums, row * self.d_sums_step + self.lead)
