# cython: cdivision=True
"""The work of the encoder between its matrix products, in one pass over memory each.

A layer made of small tensor operations reads and writes its activations about eighty times per
step, which takes longer than the products themselves. Each method here does at once what belongs
together. Token vectors are stored halves first: ``[2, tokens, width]``, all content halves and
then all position halves, so that both halves are contiguous matrices.

Arguments are contiguous tensors, which the caller allocates (None where an optional one is
absent). Those called *bf16* are bfloat16 if ``bf16`` is true, else float32; everything else is
float32 and all sums are float32 over several lanes, which is what lets a compiler vectorise them.
Rows, and heads of attention, are divided among ``threads``; the same number gives the same bits.
The twins are the operations of torch of the encoder that is fused; they agree up to rounding.
"""

from cython.parallel cimport prange, threadid
from libc.stdint cimport INT32_MAX, int64_t, uint16_t, uint64_t
from libc.stdlib cimport free
from libc.string cimport memcpy, memset

import torch

from spmrl_bench.errors import ArrayError

from spmrl_bench.nn.kernels._tensors cimport (
    LANES, add_branch, add_rows, address, draw_mask, inverse_deviation, load, loaded, mask_back,
    multiply, narrow, norm_back, norm_sums, normalise, optional, relu_back, relu_mask, room,
    row_deviation, row_sum, store, within
)

cdef extern from "_heads.h":
    void product(
        Py_ssize_t, Py_ssize_t, Py_ssize_t, const float *, Py_ssize_t, Py_ssize_t, const float *,
        float, float *) nogil
    void transpose(
        Py_ssize_t, Py_ssize_t, Py_ssize_t, const float *, Py_ssize_t, float *) nogil
    void softmax_rows(Py_ssize_t, Py_ssize_t, float *) nogil
    void softmax_back(Py_ssize_t, Py_ssize_t, const float *, float *) nogil

cdef object FLOAT32 = torch.float32


cdef unsigned int dropped_below(double p) except? 0xFFFFFFFF:
    """The 16 random bits below which a value is dropped with probability ``p``."""
    if not 0 <= p * 65536 + 0.5 < 65536:
        raise ArrayError(f"the probability of dropout is {p}; it must be from 0 to below 1.")
    return <unsigned int>(p * 65536 + 0.5)


cdef Py_ssize_t whole(Py_ssize_t n) noexcept nogil:
    """The next multiple of the lanes."""
    return (n + LANES - 1) // LANES * LANES


def masks(uint64_t seed, double p, out):
    """Draw dropout factors: 0 with probability ``p`` (to 16 bits), else 1 / (1 - p)."""
    cdef unsigned int below = dropped_below(p)
    cdef float scale = 65536.0 / (65536.0 - below)
    cdef Py_ssize_t values = out.numel(), most = values // 4 * 4
    cdef float rest[4]
    cdef float *target = <float *>address(out, FLOAT32, values, "out")
    with nogil:
        draw_mask(seed, 0, most, below, scale, target)
        if most < values:
            draw_mask(seed, most // 4, 4, below, scale, rest)
            memcpy(target + most, rest, (values - most) * sizeof(float))


cdef class Batch:
    """What lies between the matrix products of all layers, for the sentences of one batch.

    Args:
        lengths: int64 ``[sentences]``, the tokens of each, one at least, one sentence behind the
            other.
        tokens: rows of all arrays; those behind the last sentence have the masks of the first, and
            are left alone by attention.

    Raises:
        ArrayError: here and in all methods, a tensor or a number does not fit.
    """

    cdef Py_ssize_t sentences, tokens, longest, mask_step
    cdef bint bf16
    cdef int threads
    cdef object dtype
    cdef int64_t *starts  # of the sentences, and the end of the last
    cdef int64_t *sentence  # of each token
    # Of attention: heads, half the width of their vectors, and this width up to whole lanes.
    cdef Py_ssize_t heads, half, width
    cdef float scale
    cdef uint64_t seed
    cdef unsigned int below  # 16 random bits below this drop a weight

    def __cinit__(self, lengths, Py_ssize_t tokens, bint bf16, int threads):
        self.sentences, self.tokens, self.bf16 = lengths.numel(), tokens, bf16
        self.dtype, self.threads = torch.bfloat16 if bf16 else FLOAT32, threads
        cdef const int64_t *each = <const int64_t *>address(
            lengths, torch.int64, self.sentences, "lengths"
        )
        cdef Py_ssize_t number, row = 0, longest = 0, total = 0
        within("threads", threads, 1, 1024)  # so many can be started anywhere
        for number in range(self.sentences):
            within("a length", each[number], 1, INT32_MAX)
            longest = max(longest, each[number])
            total += each[number]
        within("tokens", tokens, total, 2 * total + 16)  # those behind only round the number
        self.starts = <int64_t *>room(2 * (self.sentences + 1 + tokens))
        self.sentence = self.starts + self.sentences + 1
        memset(self.sentence, 0, tokens * sizeof(int64_t))
        for number in range(self.sentences):
            self.starts[number] = row
            for row in range(row, row + each[number]):
                self.sentence[row] = number
            row += 1
        self.starts[self.sentences] = row
        self.longest = whole(longest)

    def __dealloc__(self):
        free(self.starts)

    cdef void *low(self, tensor, Py_ssize_t numbers, str name) except? NULL:
        return address(tensor, self.dtype, numbers, name)

    cdef float *rows(self, tensor, Py_ssize_t width, str name) except? NULL:
        within("width", width, 1, INT32_MAX)
        return <float *>address(tensor, FLOAT32, 2 * self.tokens * width, name)

    cdef float *vector(self, tensor, Py_ssize_t width, str name) except? NULL:
        return <float *>address(tensor, FLOAT32, 2 * width, name)

    cdef float *masks(self, tensor, Py_ssize_t width) except? NULL:
        """Of ``[sentences, 2 width]``, or ``[2 width]``, the same for all."""
        cdef Py_ssize_t rows = 1 if tensor.numel() == 2 * width else self.sentences
        self.mask_step = 0 if rows == 1 else 2 * width
        return <float *>address(tensor, FLOAT32, rows * 2 * width, "masks")

    # Residual branches and layer norms ------------------------------------------------------

    def norm(
        self, x, branch, bias, masks, Py_ssize_t width, gain, shift, double eps, z, stats, y, y_low
    ):
        """``y = LayerNorm(z)``, ``z = x + (branch + bias) * mask`` over both halves of a token.

        ``x``, ``z``, ``y``: [2, tokens, width]; ``branch``: the same, bf16, or absent, and then
        ``z`` is given and ``x`` not read; ``gain``, ``shift``: [2 width], and so is ``bias``;
        ``masks``: [sentences, 2 width], or [2 width] for all; both are present with ``branch``;
        ``stats`` [tokens, 2] receives mean and 1 / deviation; ``y_low``: ``y`` rounded, if bf16,
        else ``y``. ``z`` may be ``x``, or ``branch`` if that is not bf16.
        """
        cdef Py_ssize_t numbers = 2 * self.tokens * width
        cdef const float *given = self.rows(x, width, "x")
        cdef const void *added = optional(branch, self.dtype, numbers, "branch")
        cdef const float *biases = NULL if branch is None else self.vector(bias, width, "bias")
        cdef const float *factors = NULL if branch is None else self.masks(masks, width)
        cdef const float *gains = self.vector(gain, width, "gain")
        cdef const float *shifts = self.vector(shift, width, "shift")
        cdef float *sums = self.rows(z, width, "z")
        cdef float *moments = <float *>address(stats, FLOAT32, 2 * self.tokens, "stats")
        cdef float *found = self.rows(y, width, "y")
        cdef void *rounded = self.low(y_low, numbers, "y_low")
        cdef float *scratch = <float *>room(self.threads * width)
        cdef Py_ssize_t t, side, at, column
        cdef float mean, scale
        cdef int part
        for part in prange(self.threads, nogil=True, num_threads=self.threads, schedule="static"):
            for t in range(self.first(part), self.first(part + 1)):
                mean = scale = 0
                for side in range(2):
                    at, column = (side * self.tokens + t) * width, side * width
                    if added != NULL:
                        add_branch(
                            width, given + at,
                            loaded(added, at, width, self.bf16, scratch + part * width),
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
                    if self.bf16:
                        narrow(width, found + at, <uint16_t *>rounded + at)
                moments[2 * t], moments[2 * t + 1] = mean, scale
        free(scratch)

    cdef Py_ssize_t first(self, int part) noexcept nogil:
        """First row of one thread's part."""
        return self.tokens * part // self.threads

    def norm_back(self, dy, more, z, stats, masks, Py_ssize_t width, gain, dz, d_branch, sums):
        """Gradients of :meth:`norm`: of ``z`` (and so of ``x``), of the branch, of the vectors.

        ``dy`` and ``more`` (bf16, or absent) add up to the gradient of ``y``; ``dz`` may be ``dy``
        or ``z``. ``sums`` [threads, 3, 2 width], zero at the start, receives each thread's share
        of the gradients of gain, shift and bias. ``d_branch`` is bf16, or absent.
        """
        cdef Py_ssize_t numbers = 2 * self.tokens * width
        cdef const float *given = self.rows(dy, width, "dy")
        cdef const void *added = optional(more, self.dtype, numbers, "more")
        cdef const float *rows = self.rows(z, width, "z")
        cdef const float *moments = <const float *>address(
            stats, FLOAT32, 2 * self.tokens, "stats"
        )
        cdef const float *factors = NULL if d_branch is None else self.masks(masks, width)
        cdef const float *gains = self.vector(gain, width, "gain")
        cdef float *found = self.rows(dz, width, "dz")
        cdef void *below = optional(d_branch, self.dtype, numbers, "d_branch")
        cdef float *shares = <float *>address(sums, FLOAT32, self.threads * 6 * width, "sums")
        # Of a thread: a row widened, the gradient of a token, and two sums of it.
        cdef Py_ssize_t each = 3 * width + LANES, t, side, at, column
        cdef float *scratch = <float *>room(self.threads * each)
        cdef float *own
        cdef float *totals
        cdef float *share
        cdef float *target
        cdef const float *above
        cdef int part
        for part in prange(self.threads, nogil=True, num_threads=self.threads, schedule="static"):
            own, share = scratch + part * each, shares + part * 6 * width
            totals = own + 3 * width
            for t in range(self.first(part), self.first(part + 1)):
                totals[0] = totals[1] = 0
                for side in range(2):
                    at, column = (side * self.tokens + t) * width, side * width
                    above = given + at
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
                        width, given + at if added == NULL else own + width + column, rows + at,
                        moments[2 * t], moments[2 * t + 1], gains + column,
                        totals[0] / (2 * width), totals[1] / (2 * width), found + at,
                    )
                    if below != NULL:
                        target = own if self.bf16 else <float *>below + at
                        mask_back(
                            width, found + at,
                            factors + self.sentence[t] * self.mask_step + column, target,
                            share + 4 * width + column,
                        )
                        store(target, width, self.bf16, below, at)
        free(scratch)

    # The hidden layer of the feed-forward part ----------------------------------------------

    def relu_drop(self, hidden, bias, masks, Py_ssize_t width):
        """``relu(hidden + bias) * mask`` in place; ``hidden`` is bf16, [2, tokens, width].

        ``bias`` and ``masks`` are as in :meth:`norm`.
        """
        within("width", width, 1, INT32_MAX)
        cdef void *rows = self.low(hidden, 2 * self.tokens * width, "hidden")
        cdef const float *biases = self.vector(bias, width, "bias")
        cdef const float *factors = self.masks(masks, width)
        cdef float *scratch = <float *>room(self.threads * width)
        cdef float *row
        cdef Py_ssize_t t, side, at
        cdef int part
        for part in prange(self.threads, nogil=True, num_threads=self.threads, schedule="static"):
            for side in range(2):
                for t in range(self.first(part), self.first(part + 1)):
                    at = (side * self.tokens + t) * width
                    row = <float *>loaded(rows, at, width, self.bf16, scratch + part * width)
                    relu_mask(
                        width, row, biases + side * width,
                        factors + self.sentence[t] * self.mask_step + side * width,
                    )
                    store(row, width, self.bf16, rows, at)
        free(scratch)

    def relu_drop_back(self, d_hidden, hidden, double scale, Py_ssize_t width, sums):
        """Gradient through :meth:`relu_drop` in place, given its result; both bf16.

        Where the result is positive the factor was ``scale``, elsewhere the gradient is zero.
        ``sums`` [threads, 2 width], zero at the start, receives shares of the bias's gradient.
        """
        within("width", width, 1, INT32_MAX)
        cdef void *rows = self.low(d_hidden, 2 * self.tokens * width, "d_hidden")
        cdef const void *result = self.low(hidden, 2 * self.tokens * width, "hidden")
        cdef float *shares = <float *>address(sums, FLOAT32, self.threads * 2 * width, "sums")
        cdef float *scratch = <float *>room(self.threads * 2 * width)
        cdef float *own
        cdef float *row
        cdef Py_ssize_t t, side, at
        cdef int part
        for part in prange(self.threads, nogil=True, num_threads=self.threads, schedule="static"):
            own = scratch + part * 2 * width
            for side in range(2):
                for t in range(self.first(part), self.first(part + 1)):
                    at = (side * self.tokens + t) * width
                    row = <float *>loaded(rows, at, width, self.bf16, own)
                    relu_back(
                        width, loaded(result, at, width, self.bf16, own + width), scale, row,
                        shares + (2 * part + side) * width,
                    )
                    store(row, width, self.bf16, rows, at)
        free(scratch)

    # Attention: every head over every sentence ----------------------------------------------

    def attend(
        self, packed, Py_ssize_t heads, Py_ssize_t half, double scale, uint64_t seed, double p,
        context,
    ):
        """``softmax(scale q k) v`` of each head with dropout on the weights.

        A head's vectors are two pieces of ``half`` values. ``packed``: bf16 [2, tokens, 3 heads
        half], these three dimensions one after the other; ``context``: bf16 [2, tokens, heads
        half], of which only rows of sentences are written. Dropout factors are those of
        :func:`masks` for a tensor ``[tokens, heads, longest]``, where ``longest`` is the length of
        the longest sentence, up to a multiple of the lanes.
        """
        cdef void *found = self.low(context, 2 * self.tokens * heads * half, "context")
        self.over_heads(packed, NULL, heads, half, scale, seed, p, found)

    def attend_back(
        self, packed, d_context, Py_ssize_t heads, Py_ssize_t half, double scale, uint64_t seed,
        double p, d_packed,
    ):
        """The gradient of ``packed`` from that of the context; weights are computed again."""
        cdef Py_ssize_t numbers = 2 * self.tokens * heads * half
        cdef const void *above = self.low(d_context, numbers, "d_context")
        cdef void *found = self.low(d_packed, 3 * numbers, "d_packed")
        self.over_heads(packed, above, heads, half, scale, seed, p, found)

    cdef int over_heads(
        self, packed, const void *above, Py_ssize_t heads, Py_ssize_t half, double scale,
        uint64_t seed, double p, void *found,
    ) except -1:
        within("heads", heads, 1, INT32_MAX)
        within("half", half, 1, INT32_MAX)
        self.heads, self.half, self.width = heads, half, whole(2 * half)
        self.scale, self.seed, self.below = scale, seed, dropped_below(p)
        cdef const void *given = self.low(packed, 6 * self.tokens * heads * half, "packed")
        cdef Py_ssize_t each = self.longest * (6 * self.width + 3 * self.longest + 1), item
        cdef float *scratch = <float *>room(self.threads * each)
        for item in prange(
            self.sentences * heads, nogil=True, num_threads=self.threads, schedule="static",
            chunksize=1,
        ):
            self.head(item, given, above, found, scratch + threadid() * each)
        free(scratch)
        return 0

    cdef void head(
        self, Py_ssize_t item, const void *packed, const void *d_context, void *found, float *q
    ) noexcept nogil:
        """One head over one sentence: its context, or given the gradient of this, that of packed."""
        cdef Py_ssize_t h = item % self.heads, sentence = item // self.heads
        cdef Py_ssize_t start = self.starts[sentence], n = self.starts[sentence + 1] - start
        cdef Py_ssize_t np = whole(n), d = 2 * self.half, dp = self.width
        cdef Py_ssize_t vectors = self.longest * dp, square = self.longest * self.longest
        cdef float *k = q + vectors
        cdef float *v = k + vectors
        cdef float *above = v + vectors
        cdef float *turned = above + vectors
        cdef float *result = turned + vectors
        cdef float *weights = result + vectors
        cdef float *dropped = weights + square
        cdef float *d_weights = dropped + square
        cdef float *mask = d_weights + square
        self.fetch(packed, 3, h, start, n, q)
        self.fetch(packed, 3, self.heads + h, start, n, k)
        self.fetch(packed, 3, 2 * self.heads + h, start, n, v)
        transpose(n, d, dp, k, np, turned)
        product(n, np, d, q, dp, 1, turned, self.scale, weights)
        softmax_rows(n, np, weights)
        if self.below:
            self.drop(start, h, n, np, mask, weights, dropped)
        else:
            dropped = weights
        if d_context == NULL:
            product(n, dp, n, dropped, np, 1, v, 1, result)
            self.put(result, 1, h, start, n, found)
            return
        self.fetch(d_context, 1, h, start, n, above)
        transpose(n, d, dp, v, np, turned)
        product(n, np, d, above, dp, 1, turned, 1, d_weights)
        if self.below:
            self.drop(start, h, n, np, mask, d_weights, d_weights)
        product(n, dp, n, dropped, 1, np, above, 1, result)
        self.put(result, 3, 2 * self.heads + h, start, n, found)
        softmax_back(n, np, weights, d_weights)
        product(n, dp, n, d_weights, np, 1, k, self.scale, result)
        self.put(result, 3, h, start, n, found)
        product(n, dp, n, d_weights, 1, np, q, self.scale, result)
        self.put(result, 3, self.heads + h, start, n, found)

    cdef void fetch(
        self, const void *packed, Py_ssize_t parts, Py_ssize_t column, Py_ssize_t start,
        Py_ssize_t n, float *out,
    ) noexcept nogil:
        """A head's vectors of a sentence, ``[n, width]``; ``parts`` is 3 with queries and keys."""
        cdef Py_ssize_t t, side, row, half = self.half
        for t in range(n):
            for side in range(2):
                row = (side * self.tokens + start + t) * parts * self.heads + column
                load(packed, row * half, half, self.bf16, out + side * half)
            memset(out + 2 * half, 0, (self.width - 2 * half) * sizeof(float))
            out += self.width

    cdef void put(
        self, const float *rows, Py_ssize_t parts, Py_ssize_t column, Py_ssize_t start,
        Py_ssize_t n, void *packed,
    ) noexcept nogil:
        """The inverse of :meth:`fetch`."""
        cdef Py_ssize_t t, side, row, half = self.half
        for t in range(n):
            for side in range(2):
                row = (side * self.tokens + start + t) * parts * self.heads + column
                store(rows + side * half, half, self.bf16, packed, row * half)
            rows += self.width

    cdef void drop(
        self, Py_ssize_t start, Py_ssize_t head, Py_ssize_t n, Py_ssize_t width, float *mask,
        const float *weights, float *out,
    ) noexcept nogil:
        """Weights ``[n, width]`` times their dropout factors."""
        cdef Py_ssize_t i
        cdef uint64_t row
        cdef float factor = 65536.0 / (65536.0 - self.below)
        for i in range(n):
            row = (start + i) * self.heads + head
            draw_mask(self.seed, row * (self.longest // 4), width, self.below, factor, mask)
            multiply(width, weights + i * width, mask, out + i * width)
