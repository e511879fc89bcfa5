# cython: cdivision=True
"""The work of the encoder between its matrix products, in one pass over memory each.

A layer made of small tensor operations reads and writes its activations about eighty times per
step, which takes longer than the products. Token vectors are stored halves first: ``[2, tokens,
width]``, all content halves and then all position halves. Rows, and heads of attention, are divided
among threads; the same number gives the same bits. All raise an ArrayError for what does not fit.
"""

include "_tensors.pxi"

cdef extern from "_heads.h" nogil:
    void product(
        Py_ssize_t, Py_ssize_t, Py_ssize_t, Given, Py_ssize_t, Py_ssize_t, Given, float, Floats)
    void transpose(Py_ssize_t, Py_ssize_t, Py_ssize_t, Given, Py_ssize_t, Floats)
    void softmax_rows(Py_ssize_t, Py_ssize_t, Floats)
    void softmax_back(Py_ssize_t, Py_ssize_t, Given, Floats)


cdef unsigned int dropped_below(double p) except? 0xFFFFFFFF:
    """The 16 random bits below which a value is dropped with probability ``p``."""
    if not 0 <= p * 65536 + 0.5 < 65536:
        raise ArrayError(f"the probability of dropout is {p}; it must be from 0 to below 1.")
    return <unsigned int>(p * 65536 + 0.5)


cdef float factor(unsigned int below) noexcept nogil:
    """What is kept is multiplied with."""
    return 65536.0 / (65536.0 - below)


cdef Py_ssize_t whole(Py_ssize_t n) noexcept nogil:
    """The next multiple of the lanes."""
    return (n + LANES - 1) // LANES * LANES


def masks(uint64_t seed, double p, *shape):
    """Draw dropout factors: 0 with probability ``p`` (to 16 bits), else 1 / (1 - p)."""
    cdef unsigned int below = dropped_below(p)
    found = torch.empty(shape)
    cdef Py_ssize_t values = found.numel(), most = values // 4 * 4
    cdef float rest[4]
    cdef Floats target = floats(found, values, "masks")
    with nogil:
        draw_mask(seed, 0, most, below, factor(below), target)
        if most < values:
            draw_mask(seed, most // 4, 4, below, factor(below), rest)
            memcpy(target + most, rest, (values - most) * sizeof(float))
    return found


cdef class Batch(Memory):
    """What lies between the matrix products of all layers, for the sentences of one batch.

    ``lengths``, int64 ``[sentences]``, are the tokens of each, one at least; ``tokens`` are the
    rows of all arrays, of which those behind the last sentence have the masks of the first and are
    left alone by attention. Without ``keep`` norms write over what they are given.
    """

    cdef bint keep
    cdef Py_ssize_t sentences, tokens, longest, mask_step
    cdef int64_t *starts  # of the sentences, and the end of the last
    cdef int64_t *sentence  # of each token
    # Of attention: heads, half the width of their vectors, and this width up to whole lanes.
    cdef Py_ssize_t heads, half, width
    cdef float scale
    cdef uint64_t seed
    cdef unsigned int below  # 16 random bits below this drop a weight

    def __cinit__(self, lengths, Py_ssize_t tokens, bint bf16, bint keep, int threads):
        cdef Py_ssize_t sentences = lengths.numel(), number, token, longest = 0, total = 0
        cdef const int64_t *each = <int64_t *>address(lengths, torch.int64, sentences, "lengths")
        self.prepare(bf16, threads, [])
        self.sentences, self.tokens, self.keep = sentences, tokens, keep
        for number in range(sentences):
            within("a length", each[number], 1, INT32_MAX)
            longest = max(longest, each[number])
            total += each[number]
        within("tokens", tokens, total, 2 * total + 16)  # those behind only round the number
        places = torch.zeros(sentences + 1 + tokens, dtype=torch.int64)
        self.held.append(places)
        self.starts = <int64_t *>address(places, torch.int64, sentences + 1 + tokens, "places")
        self.sentence = self.starts + sentences + 1
        for number in range(sentences):
            self.starts[number + 1] = self.starts[number] + each[number]
            for token in range(self.starts[number], self.starts[number + 1]):
                self.sentence[token] = number
        self.longest = whole(longest)

    cdef void *low(self, tensor, Py_ssize_t width, str name) except? NULL:
        return address(tensor, self.dtype, 2 * self.tokens * width, name)

    cdef Floats rows(self, tensor, Py_ssize_t width, str name) except? NULL:
        return floats(tensor, 2 * self.tokens * width, name)

    cdef Floats masks(self, tensor, Py_ssize_t width) except? NULL:
        """Of ``[sentences, 2 width]``, or ``[2 width]``, the same for all."""
        cdef Py_ssize_t rows = 1 if tensor.numel() == 2 * width else self.sentences
        self.mask_step = 0 if rows == 1 else 2 * width
        return floats(tensor, rows * 2 * width, "masks")

    cdef Py_ssize_t first(self, int part) noexcept nogil:
        """First row of one thread's part."""
        return self.tokens * part // self.threads

    # Residual branches and layer norms ------------------------------------------------------

    def norm(self, x, branch, bias, masks, gain, shift, double eps):
        """Return ``y = LayerNorm(z)``, ``z = x + (branch + bias) * mask`` of both halves together,
        ``y`` rounded, bf16, and for the way back ``z``, and the mean and 1 / deviation of each
        token, [tokens, 2].

        ``x``: [2, tokens, width]; ``branch``: the same, bf16; ``masks``: [sentences, 2 width], or
        [2 width] for all; ``bias``, ``gain``, ``shift``: [2 width]. Without branch, bias and masks
        ``z`` is ``x``.
        """
        cdef Py_ssize_t width = x.shape[2], t, side, at, column
        cdef float mean, scale
        cdef int part
        z = x  # nobody needs it any more
        if branch is not None and self.keep:
            z = torch.empty_like(x) if self.bf16 else branch
        y = torch.empty_like(x) if self.keep or branch is None else z
        y_low = torch.empty_like(x, dtype=self.dtype) if self.bf16 else y
        stats = torch.empty(self.tokens, 2)
        cdef Given given = self.rows(x, width, "x")
        cdef Given gains = floats(gain, 2 * width, "gain")
        cdef Given shifts = floats(shift, 2 * width, "shift")
        cdef Given biases = NULL, factors = NULL
        cdef const void *added = NULL
        if branch is not None:
            added, factors = self.low(branch, width, "branch"), self.masks(masks, width)
            biases = floats(bias, 2 * width, "bias")
        cdef Floats sums = self.rows(z, width, "z")
        cdef Floats found = self.rows(y, width, "y")
        cdef void *rounded = self.low(y_low, width, "y rounded")
        cdef Floats moments = floats(stats, 2 * self.tokens, "stats")
        self.take_room(width)
        for part in prange(self.threads, nogil=True, num_threads=self.threads, schedule="static"):
            for t in range(self.first(part), self.first(part + 1)):
                mean = scale = 0
                for side in range(2):
                    at, column = (side * self.tokens + t) * width, side * width
                    if added != NULL:
                        add_branch(
                            width, given + at,
                            loaded(added, at, width, self.bf16, self.mine()),
                            biases + column,
                            factors + self.sentence[t] * self.mask_step + column, sums + at,
                        )
                    mean = mean + row_sum(width, sums + at)
                mean = mean / (2 * width)
                for side in range(2):
                    at = (side * self.tokens + t) * width
                    scale = scale + row_deviation(width, sums + at, mean)
                scale = inverse_deviation(scale, 2 * width, eps)
                for side in range(2):
                    at, column = (side * self.tokens + t) * width, side * width
                    normalise(
                        width, sums + at, mean, scale, gains + column, shifts + column, found + at
                    )
                    store(found + at, width, self.bf16, rounded, at)
                moments[2 * t], moments[2 * t + 1] = mean, scale
        return y, y_low, z, stats

    def norm_back(self, dy, more, z, stats, masks, gain):
        """Turn ``dy``, the gradient of :meth:`norm`, to which ``more``, bf16 or absent, is added,
        into that of ``z``, and so of ``x``. Return the gradients of gain, shift and bias, [3, 2
        width], and with ``masks`` that of the branch, which may lie where ``more`` did."""
        cdef Py_ssize_t width = dy.shape[2], t, side, at, column
        d_branch = None
        if masks is not None:
            d_branch = torch.empty_like(dy, dtype=self.dtype) if more is None else more
        sums = torch.zeros(self.threads, 3, 2 * width)
        cdef Floats found = self.rows(dy, width, "dy")
        cdef Given rows = self.rows(z, width, "z")
        cdef Given moments = floats(stats, 2 * self.tokens, "stats")
        cdef Given gains = floats(gain, 2 * width, "gain")
        cdef Given factors = NULL if masks is None else self.masks(masks, width)
        cdef const void *added = NULL if more is None else self.low(more, width, "more")
        cdef void *below = NULL if masks is None else self.low(d_branch, width, "branch")
        cdef Floats shares = floats(sums, self.threads * 6 * width, "sums")
        cdef Floats own, totals, share, target
        cdef Given above
        cdef int part
        # Of a thread: a row widened, the gradient of a token, and two sums of it.
        self.take_room(3 * width + LANES)
        for part in prange(self.threads, nogil=True, num_threads=self.threads, schedule="static"):
            own, share = self.mine(), shares + part * 6 * width
            totals = own + 3 * width
            for t in range(self.first(part), self.first(part + 1)):
                totals[0] = totals[1] = 0
                for side in range(2):
                    at, column = (side * self.tokens + t) * width, side * width
                    above = found + at
                    if added != NULL:
                        target = own + width + column
                        add_rows(width, above, loaded(added, at, width, self.bf16, own), target)
                        above = target
                    norm_sums(
                        width, above, rows + at, moments[2 * t], moments[2 * t + 1],
                        gains + column, share + column, share + 2 * width + column, totals,
                    )
                for side in range(2):
                    at, column = (side * self.tokens + t) * width, side * width
                    norm_back(
                        width, found + at if added == NULL else own + width + column, rows + at,
                        moments[2 * t], moments[2 * t + 1], gains + column,
                        totals[0] / (2 * width), totals[1] / (2 * width), found + at,
                    )
                    if below != NULL:
                        target = own if self.bf16 else <Floats>below + at
                        mask_back(
                            width, found + at,
                            factors + self.sentence[t] * self.mask_step + column, target,
                            share + 4 * width + column,
                        )
                        store(target, width, self.bf16, below, at)
        return sums.sum(0), d_branch

    # The hidden layer of the feed-forward part ----------------------------------------------

    def relu_drop(self, hidden, bias, masks):
        """``relu(hidden + bias) * mask`` in place; ``hidden`` is bf16, [2, tokens, width]."""
        cdef Py_ssize_t width = hidden.shape[2], row, side, at
        cdef void *rows = self.low(hidden, width, "hidden")
        cdef Given biases = floats(bias, 2 * width, "bias")
        cdef Given factors = self.masks(masks, width)
        cdef Floats values
        self.take_room(width)
        for row in prange(
            2 * self.tokens, nogil=True, num_threads=self.threads, schedule="static"
        ):
            side, at = row // self.tokens, row * width
            values = <Floats>loaded(rows, at, width, self.bf16, self.mine())
            relu_mask(
                width, values, biases + side * width,
                factors + self.sentence[row % self.tokens] * self.mask_step + side * width,
            )
            store(values, width, self.bf16, rows, at)

    def relu_drop_back(self, d_hidden, hidden, double p):
        """Gradient through :meth:`relu_drop` in place, given its result; both bf16. Where that is
        positive the factor was that of probability ``p``. Return the gradient of the bias."""
        cdef Py_ssize_t width = hidden.shape[2], t, side, at
        cdef float kept = factor(dropped_below(p))
        sums = torch.zeros(self.threads, 2 * width)
        cdef void *rows = self.low(d_hidden, width, "d_hidden")
        cdef const void *result = self.low(hidden, width, "hidden")
        cdef Floats shares = floats(sums, self.threads * 2 * width, "sums")
        cdef Floats own, row
        cdef int part
        self.take_room(2 * width)
        for part in prange(self.threads, nogil=True, num_threads=self.threads, schedule="static"):
            own = self.mine()
            for side in range(2):
                for t in range(self.first(part), self.first(part + 1)):
                    at = (side * self.tokens + t) * width
                    row = <Floats>loaded(rows, at, width, self.bf16, own)
                    relu_back(
                        width, loaded(result, at, width, self.bf16, own + width), kept, row,
                        shares + (2 * part + side) * width,
                    )
                    store(row, width, self.bf16, rows, at)
        return sums.sum(0)

    # Attention: every head over every sentence ----------------------------------------------

    def attend(
        self, packed, Py_ssize_t heads, double scale, uint64_t seed, double p, d_context=None
    ):
        """Return ``softmax(scale q k) v`` of each head with dropout on the weights; or, given its
        gradient, ``d_context``, that of ``packed``.

        A head's vectors are two pieces of ``half`` values. ``packed``: bf16 [2, tokens, 3 heads
        half]; the result is bf16 [2, tokens, heads half], zero behind the sentences. Dropout
        factors are those of :func:`masks` for a tensor ``[tokens, heads, longest]``, the length of
        the longest sentence up to a multiple of the lanes.
        """
        within("heads", heads, 1, INT32_MAX)
        self.heads, self.half = heads, packed.shape[2] // (3 * heads)
        within("half", self.half, 1, INT32_MAX)
        self.width = whole(2 * self.half)
        self.scale, self.seed, self.below = scale, seed, dropped_below(p)
        cdef Py_ssize_t wide = heads * self.half, item
        cdef void *given = self.low(packed, 3 * wide, "packed")
        cdef void *above = NULL
        if d_context is not None:
            above = self.low(d_context, wide, "d_context")
        found = torch.empty(2, self.tokens, wide if above == NULL else 3 * wide, dtype=self.dtype)
        found[:, self.starts[self.sentences] :] = 0
        cdef void *target = self.low(found, found.shape[2], "found")
        self.take_room(self.longest * (6 * self.width + 3 * self.longest + 1))
        for item in prange(
            self.sentences * heads, nogil=True, num_threads=self.threads, schedule="static",
            chunksize=1,
        ):
            self.head(item, given, above, target, self.mine())
        return found

    cdef void head(
        self, Py_ssize_t item, void *packed, void *d_context, void *found, Floats q
    ) noexcept nogil:
        """One head over one sentence: its context, or given the gradient of this, that of packed."""
        cdef Py_ssize_t h = item % self.heads, sentence = item // self.heads
        cdef Py_ssize_t start = self.starts[sentence], n = self.starts[sentence + 1] - start
        cdef Py_ssize_t np = whole(n), d = 2 * self.half, dp = self.width
        cdef Py_ssize_t vectors = self.longest * dp, square = self.longest * self.longest, part
        cdef Floats k = q + vectors, v = k + vectors, above = v + vectors
        cdef Floats turned = above + vectors, result = turned + vectors
        cdef Floats weights = result + vectors, dropped = weights + square
        cdef Floats d_weights = dropped + square, mask = d_weights + square
        for part in range(3):
            self.move(False, packed, 3, part * self.heads + h, start, n, q + part * vectors)
        transpose(n, d, dp, k, np, turned)
        product(n, np, d, q, dp, 1, turned, self.scale, weights)
        softmax_rows(n, np, weights)
        if self.below:
            self.drop(start, h, n, np, mask, weights, dropped)
        else:
            dropped = weights
        if d_context == NULL:
            product(n, dp, n, dropped, np, 1, v, 1, result)
            self.move(True, found, 1, h, start, n, result)
            return
        self.move(False, d_context, 1, h, start, n, above)
        transpose(n, d, dp, v, np, turned)
        product(n, np, d, above, dp, 1, turned, 1, d_weights)
        if self.below:
            self.drop(start, h, n, np, mask, d_weights, d_weights)
        product(n, dp, n, dropped, 1, np, above, 1, result)
        self.move(True, found, 3, 2 * self.heads + h, start, n, result)
        softmax_back(n, np, weights, d_weights)
        product(n, dp, n, d_weights, np, 1, k, self.scale, result)
        self.move(True, found, 3, h, start, n, result)
        product(n, dp, n, d_weights, 1, np, q, self.scale, result)
        self.move(True, found, 3, self.heads + h, start, n, result)

    cdef void move(
        self, bint back, void *packed, Py_ssize_t parts, Py_ssize_t column, Py_ssize_t start,
        Py_ssize_t n, Floats rows,
    ) noexcept nogil:
        """A head's vectors of a sentence into ``[n, width]``, with zeros behind each, or back;
        ``parts`` is 3 where values stand beside queries and keys."""
        cdef Py_ssize_t t, side, place, half = self.half
        for t in range(n):
            for side in range(2):
                place = (side * self.tokens + start + t) * parts * self.heads + column
                if back:
                    store(rows + side * half, half, self.bf16, packed, place * half)
                else:
                    load(packed, place * half, half, self.bf16, rows + side * half)
            if not back:
                memset(rows + 2 * half, 0, (self.width - 2 * half) * sizeof(float))
            rows += self.width

    cdef void drop(
        self, Py_ssize_t start, Py_ssize_t head, Py_ssize_t n, Py_ssize_t width, Floats mask,
        Given weights, Floats out,
    ) noexcept nogil:
        """Weights ``[n, width]`` times their dropout factors."""
        cdef Py_ssize_t i
        cdef uint64_t row
        for i in range(n):
            row = (start + i) * self.heads + head
            draw_mask(self.seed, row * (self.longest // 4), width, self.below, factor(self.below), mask)
            multiply(width, weights + i * width, mask, out + i * width)
