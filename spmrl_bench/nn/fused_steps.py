"""The steps of a decoder whose actions are known, with compiled kernels between few products.

The same as :mod:`spmrl_bench.nn.known_actions`, which runs anywhere, up to rounding. A step of some
thirty states is many small operations, most of them on words that attention does not see; and
products of so few rows take as long as their weights take to read. So here

- attention, of all its layers, and the cell are a call of the kernel ``_decoder`` each;
- what a layer of attention asks with the context ``c`` of the one below, ``W c``, is the mean of
  the ``W h_t`` of the words, which are products outside of the steps; only what is asked with the
  state is one of the step, together with the cell's own product of that state;
- arrays have a row for each state, into which a step writes what the next one reads, and in the
  type that products read.

The four sums of a GRU are in the order of :mod:`spmrl_bench.nn.fused_recurrent`: the state's part
of the new state, reset, update, the input's part of the new state. The weights of the state are
turned to it. *Low* arrays have the type of the factors of products.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import accumulate, pairwise
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import linear

from spmrl_bench.errors import ArrayError
from spmrl_bench.nn import kernels
from spmrl_bench.nn.kernels import ByHand
from spmrl_bench.nn.known_actions import Known, Weights

# States of a step below which a second thread costs more than it does.
FEW = 8


def asking_words(words: Tensor, keys: Tensor, queries: Weights, size: int) -> Tensor:
    """Keys, and behind each what the layers of attention above ask more for having seen its word.

    Args:
        words: ``[B, N, d_words]``.
        keys: ``[B, N, d_attention]``.
        queries: of the layers, which read a state of width ``size`` and then a context.

    Returns:
        ``[B, N, layers * d_attention]``.
    """
    if len(queries) == 1:
        return keys
    of_contexts = torch.cat([query[:, size:] for query in queries[1:]])
    return torch.cat((keys, linear(words, of_contexts).to(keys.dtype)), dim=2)


def of_states(queries: Weights, weight: Tensor) -> Tensor:
    """What reads the last layer's state: queries, and the cell's weights of the state, turned.

    Args:
        queries: of the layers of attention.
        weight: of a GRU's state, ``[3 size, size]``.

    Returns:
        ``[layers * d_attention + 3 size, size]``.
    """
    size = weight.shape[1]
    return torch.cat([*(query[:, :size] for query in queries), weight.roll(size, 0)])


def fused_steps(
    known: Known,
    dtype: torch.dtype,
    words: Tensor,
    keys: Tensor,
    read: Tensor,
    score: Tensor,
    pushed: Tensor | None,
    queries: Weights,
    context_weight: Tensor,
    cells: Sequence[Weights],
) -> tuple[Tensor, Tensor]:
    """As :func:`~spmrl_bench.nn.known_actions.known_steps`, with the kernels.

    Raises:
        ArrayError: a tensor is of another type or shape, or the counts do not fit the rows.
    """
    _check(known, words, keys, read, score, pushed, queries, context_weight, cells)
    size = read.shape[1] // 3
    with torch.autocast("cpu", dtype, enabled=dtype != torch.float32):
        asking = asking_words(words, keys, queries, size)
    inputs = [weight for cell in cells[1:] for weight in cell[:2]]
    states = [cell[-2].roll(size, 0) for cell in cells[:-1]]
    biases = [cell[-1].roll(size) for cell in cells]
    shapes = Shapes(len(queries), keys.shape[2], size, len(cells), words.shape[2])
    work = _Steps(known, dtype, shapes, stacked=pushed is not None)
    found = ByHand.apply(
        work,
        words,
        asking,
        read,
        score,
        *([] if pushed is None else [pushed]),
        context_weight,
        *inputs,
        *states,
        of_states(queries, cells[-1][-2]),
        *biases,
    )
    return found[:, :size], found[:, size:]


def _check(
    known: Known,
    words: Tensor,
    keys: Tensor,
    read: Tensor,
    score: Tensor,
    pushed: Tensor | None,
    queries: Weights,
    context_weight: Tensor,
    cells: Sequence[Weights],
) -> None:
    """Refuse what does not fit; the kernels look at what they are given themselves."""
    check = kernels.load("_tensors").check
    counts, rows = known.counts, sum(known.counts)
    if not counts or counts[-1] < 1 or any(a < b for a, b in pairwise(counts)):
        raise ArrayError(f"counts is {counts}; sentences of a step are at least 1, and never more.")
    for name, tensor, dimensions in (("words", words, 3), ("score", score, 1), ("read", read, 2)):
        if tensor.dim() != dimensions:
            raise ArrayError(
                f"{name} has the shape {list(tensor.shape)}; it must have {dimensions} dimensions."
            )
    size, width, d_words = read.shape[1] // 3, len(score), words.shape[2]
    float32 = torch.float32
    check(words.contiguous(), "words", float32, counts[0], words.shape[1], d_words)
    check(keys.contiguous(), "keys", float32, counts[0], words.shape[1], width)
    check(read.contiguous(), "read", float32, rows, 3 * size)
    check(score.contiguous(), "score", float32, width)
    if pushed is not None:
        check(pushed.contiguous(), "pushed", float32, width)
    for layer, query in enumerate(queries):
        reads = size + d_words if layer else size
        check(query.contiguous(), f"queries[{layer}]", float32, width, reads)
    seen = len(queries) * d_words
    check(context_weight.contiguous(), "context_weight", float32, 3 * size, seen)
    for layer, cell in enumerate(cells):
        for part, weight in enumerate(cell):
            shape = (3 * size,) if part % 2 else (3 * size, size)
            check(weight.contiguous(), f"cells[{layer}][{part}]", float32, *shape)
    factors = known.state_factors
    if factors is not None:
        check(factors, "state_factors", float32, len(cells) - 1, rows, size)


class Shapes(NamedTuple):
    """How wide what is."""

    attentions: int
    """Layers of attention."""
    width: int
    """Of the sums that attention takes tanh of."""
    size: int
    """Of a recurrent layer."""
    layers: int
    """Recurrent layers."""
    d_words: int

    def asked(self, layer: int) -> int:
        """How much attention asks with the state of a recurrent layer; it asks with the last."""
        return self.attentions * self.width if layer == self.layers - 1 else 0


class _Steps:
    """One way over all steps and perhaps back."""

    def __init__(self, known: Known, dtype: torch.dtype, shapes: Shapes, *, stacked: bool) -> None:
        self.kernel = kernels.load("_decoder")
        self.known = known
        self.dtype = dtype
        self.low = dtype != torch.float32
        self.shapes = shapes
        self.stacked = stacked
        self.starts = list(accumulate(known.counts, initial=0))

    def _unpacked(self, weights: Sequence[Tensor]) -> None:
        rest = iter(weights)
        layers = range(self.shapes.layers)
        self.words, self.keys, self.read, self.score = (
            next(rest).detach().contiguous() for _ in range(4)
        )
        self.pushed = next(rest).detach() if self.stacked else None
        self.of_context = next(rest).to(self.dtype)
        of_inputs = [(next(rest), next(rest)) for _ in layers[1:]]
        self.of_inputs = [weight.to(self.dtype) for weight, _ in of_inputs]
        self.bases = [self.read, *[bias.detach() for _, bias in of_inputs]]
        self.of_states = [next(rest).to(self.dtype) for _ in layers]
        self.biases = [next(rest).detach() for _ in layers]

    def _threads(self, count: int) -> int:
        return torch.get_num_threads() if count >= FEW else 1

    def _going_on(self, step: int) -> int:
        """States of a step whose sentences take part in the next."""
        counts = self.known.counts
        return counts[step + 1] if step + 1 < len(counts) else 0

    @torch.autocast("cpu", enabled=False)  # the types are chosen here
    def forward(self, *weights: Tensor) -> Tensor:
        """States and contexts of all rows, side by side."""
        self._unpacked(weights)
        known, shapes = self.known, self.shapes
        size, layers, top = shapes.size, shapes.layers, shapes.layers - 1
        rows, asking, seen = len(self.read), shapes.asked(top), shapes.attentions * shapes.d_words
        self.alphas = torch.empty(rows, shapes.attentions, self.words.shape[1])
        self.asks = torch.empty(rows, asking)
        self.dropped = torch.empty(rows, seen, dtype=self.dtype)
        # Of each layer and row: the state before, the same as products read it, and the sums.
        self.before = [torch.empty(rows, size) for _ in range(layers)]
        self.before_low = [
            torch.empty(rows, size, dtype=self.dtype) if self.low else each for each in self.before
        ]
        for each in (*self.before, *self.before_low):
            each[: known.counts[0]] = 0
        self.gates = [torch.empty(rows, 4 * size) for _ in range(layers)]
        self.inputs = [torch.empty(rows, size, dtype=self.dtype) for _ in range(top)]
        result = torch.empty(rows, size + seen)
        # Products of few rows read weights faster so.
        of_states = [weight.t().contiguous() for weight in self.of_states]
        of_inputs = [weight.t().contiguous() for weight in (self.of_context, *self.of_inputs)]
        for step, count in enumerate(known.counts):
            at, following = self.starts[step], self.starts[step + 1]
            kept = [
                torch.mm(self.before_low[layer][at:following], of_states[layer])
                for layer in range(layers)
            ]
            threads = self._threads(count)
            self.kernel.attend(
                kept[top], asking + 3 * size, self.low, self.keys, self.words, False, known.pushed,
                known.removed, self.score, self.pushed, known.context_factors, self.asks,
                self.alphas, result, size + seen, size, self.dropped, at, count, 1, *self._widths,
                threads,
            )  # fmt: skip
            read = torch.mm(self.dropped[at:following], of_inputs[0])
            for layer in range(layers):
                lead = shapes.asked(layer)
                self.kernel.cell(
                    kept[layer], lead + 3 * size, lead, self.biases[layer], read, 3 * size,
                    self.low, self.bases[layer], 0 if layer else 3 * size, None, self.low,
                    self.gates[layer], self.before[layer], self.before[layer],
                    self.before_low[layer], result if layer == top else None, size + seen,
                    None if layer == top else self._factors(layer),
                    None if layer == top else self.inputs[layer], size, at, following, count,
                    self._going_on(step), threads,
                )  # fmt: skip
                if layer < top:
                    read = torch.mm(self.inputs[layer][at:following], of_inputs[layer + 1])
        return result

    @property
    def _widths(self) -> tuple[int, int, int, int]:
        shapes = self.shapes
        return self.words.shape[1], shapes.attentions, shapes.width, shapes.d_words

    def _factors(self, layer: int) -> Tensor | None:
        """Dropout of what the layer above this one reads."""
        factors = self.known.state_factors
        return None if factors is None else factors[layer]

    @torch.autocast("cpu", enabled=False)
    def backward(self, gradient: Tensor) -> list[Tensor]:
        """Gradients of what ``forward`` is given."""
        known, shapes, gradient = self.known, self.shapes, gradient.contiguous()
        size, layers, top = shapes.size, shapes.layers, shapes.layers - 1
        rows, asking, seen = len(self.read), shapes.asked(top), shapes.attentions * shapes.d_words
        sentences = known.counts[0]
        self.d_contexts = torch.empty(rows, seen)
        self.d_asks = torch.empty(rows, asking)
        # Of each layer what leads to what is asked with its state (the last), and to its four sums.
        self.d_sums = [
            torch.empty(rows, shapes.asked(layer) + 4 * size, dtype=self.dtype)
            for layer in range(layers)
        ]
        self.d_keys = torch.zeros_like(self.keys)
        d_score = torch.zeros(sentences, shapes.width)
        d_pushed = None if self.pushed is None else torch.zeros(sentences, shapes.width)
        carried = [torch.zeros(sentences, size) for _ in range(layers)]
        later: list[Tensor | None] = [None] * layers
        for step in range(len(known.counts) - 1, -1, -1):
            at, following, count = self.starts[step], self.starts[step + 1], known.counts[step]
            threads = self._threads(count)
            below: Tensor | None = None
            for layer in range(top, -1, -1):
                lead, d_sums = shapes.asked(layer), self.d_sums[layer]
                self.kernel.cell_back(
                    later[layer], gradient if layer == top else None, size + seen, below,
                    None if layer == top else self._factors(layer), self.low, self.gates[layer],
                    self.before[layer], carried[layer], d_sums, lead + 4 * size, lead, size, at,
                    count, self._going_on(step), threads,
                )  # fmt: skip
                weight = self.of_inputs[layer - 1] if layer else self.of_context
                below = torch.mm(d_sums[at:following, lead + size :], weight)
            self.kernel.attend_back(
                below, self.low, known.context_factors, gradient, size + seen, size, self.keys,
                self.words, known.pushed, known.removed, self.score, self.pushed, self.asks,
                self.alphas, self.d_contexts, self.d_asks, self.d_sums[top], asking + 4 * size,
                self.d_keys, d_score, d_pushed, at, count, *self._widths, threads,
            )  # fmt: skip
            if step:
                for layer in range(layers):
                    read = self.d_sums[layer][at:following, : shapes.asked(layer) + 3 * size]
                    later[layer] = torch.mm(read, self.of_states[layer])
        return [
            self._d_words(),
            self.d_keys,
            self.d_sums[0][:, shapes.asked(0) + size :].float(),
            d_score.sum(0),
            *([] if d_pushed is None else [d_pushed.sum(0)]),
            *self._d_weights(),
        ]

    # Gradients over all steps at once -------------------------------------------------

    def _d_words(self) -> Tensor:
        """That of the words; that of the keys is completed."""
        d_words = torch.zeros_like(self.words)
        counts = torch.tensor(self.known.counts)
        steps = (counts > torch.arange(len(d_words))[:, None]).sum(dim=1)
        self.kernel.spread(
            self.known.removed, self.alphas, self.d_contexts, self.d_asks,
            torch.tensor(self.starts), steps, d_words, self.d_keys, len(d_words), *self._widths,
            self._threads(len(self.read)),
        )  # fmt: skip
        return d_words

    def _d_weights(self) -> Iterator[Tensor]:
        """In the order of :meth:`_unpacked`, from that of the context on."""
        size, asked, d_sums = self.shapes.size, self.shapes.asked, self.d_sums
        yield self._outer(d_sums[0][:, asked(0) + size :], self.dropped)
        for layer in range(1, len(d_sums)):
            of_input = d_sums[layer][:, asked(layer) + size :]
            yield self._outer(of_input, self.inputs[layer - 1])
            yield _total(of_input)
        for layer, each in enumerate(d_sums):
            yield self._outer(each[:, : asked(layer) + 3 * size], self.before_low[layer])
        for layer, each in enumerate(d_sums):
            yield _total(each[:, asked(layer) : asked(layer) + 3 * size])

    @staticmethod
    def _outer(rows: Tensor, others: Tensor) -> Tensor:
        return torch.mm(rows.t(), others).float()


def _total(rows: Tensor) -> Tensor:
    return rows.sum(dim=0, dtype=torch.float32)
