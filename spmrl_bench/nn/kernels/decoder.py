"""The steps of a decoder of actions on the CPU, in training and in a search.

A step of some thirty states is many small operations, most of them on words that attention does not
see; and products of so few rows take as long as their weights take to read. So here

- attention, of all its layers, and the cell are a call of the kernel ``_decoder`` each;
- what a layer of attention asks with the context ``c`` of the one below, ``W c``, is the mean of
  the ``W h_t`` of the words, which are products outside of the steps; only what is asked with the
  state is one of the step, together with the cell's own product of that state;
- arrays have a row for each state, into which a step writes what the next one reads, and in the
  type that products read.

In training all actions are known. What runs back through the states is computed step by step; the
gradients of the weights and of the words are one product each over all steps. Sentences that are
done take part no longer. Rows are ordered step by step; within a step, sentence by sentence, the
longest first.

A beam of K asks ``2 n K`` times for a sentence of ``n`` words, each time with a context of a few
thousand features, and most of the arithmetic would be products of contexts with weights. But a
context is a mean of the words, and without dropout a product of a mean is the mean of products::

    W c^m = W sum_t a^m_t h_t = sum_t a^m_t (W h_t)

So what the first recurrent layer, the hidden layer of the scores and the next layer of attention
read of a context are computed of each word once, and attention takes means of these. What they read
of the action before comes from tables. Left to each step are the products of states.

The four sums of a GRU are in the order of :mod:`spmrl_bench.nn.kernels.recurrent`: the state's part
of the new state, reset, update, the input's part of the new state. The weights of the state are
turned to it. *bf16* arrays have the type of the factors of products.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import accumulate, pairwise
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import linear, pad

from spmrl_bench.errors import ArrayError
from spmrl_bench.nn.kernels import CustomGradient, check, load, refuse, rounded_rows

Weights = Sequence[Tensor]


class GoldStates(NamedTuple):
    """What is known of all steps before the first; no gradient leads to it."""

    counts: list[int]
    """Sentences that take part in each step, which never grow."""
    pushed: Tensor
    """float32 ``[rows, N]``, 1 for words that have been pushed on the stack."""
    removed: Tensor
    """bool ``[rows, N]``, for words that have been removed from it."""
    context_factors: Tensor | None
    """Dropout on what the first layer reads of the context, ``[rows, d_out]``."""
    state_factors: Tensor | None
    """Dropout on what each layer above reads, ``[layers - 1, rows, d_state]``."""


def teacher_forced(
    gold: GoldStates,
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
    """Return states of the last layer ``[rows, d_state]`` and contexts ``[rows, d_out]``.

    Args:
        gold: of the steps.
        dtype: of the factors of products with weights.
        words, keys: of the sentences, the longest first, ``[B, N, ...]``.
        read: what the first layer reads of the actions, ``[rows, 3 d_state]``, with its bias.
        score, pushed: of attention, ``[d_attention]``.
        queries: of its layers.
        context_weight: of the first recurrent layer, ``[3 d_state, d_out]``.
        cells: of each layer the weight and bias of the state, and above the first before them those
            of its input.

    Raises:
        ArrayError: a tensor is of another type or size, or the counts do not fit the rows.
    """
    counts = gold.counts
    if not counts or counts[-1] < 1 or any(a < b for a, b in pairwise(counts)):
        raise ArrayError(f"counts is {counts}; sentences of a step are at least 1, and never more.")
    check(words, "words", counts[0], *words.shape[1:])
    check(keys, "keys", counts[0], words.shape[1], len(score))
    check(read, "read", sum(counts), read.shape[-1])
    size = read.shape[1] // 3
    with torch.autocast("cpu", dtype, enabled=dtype != torch.float32):
        asking = _asking_words(words, keys, queries, size)
    work = DecoderPass(gold, dtype, len(queries), len(cells), stacked=pushed is not None)
    weights = [
        *([] if pushed is None else [pushed]),
        context_weight,
        *(weight for cell in cells[1:] for weight in cell[:2]),
        *(cell[-2].roll(size, 0) for cell in cells[:-1]),
        _of_states(queries, cells[-1][-2]),
        *(cell[-1].roll(size) for cell in cells),
    ]
    for weight in weights:
        check(weight, "a weight of the decoder", *weight.shape)
    found = CustomGradient.apply(work, words, asking, read, score, *weights)
    return found[:, :size], found[:, size:]


def _asking_words(words: Tensor, keys: Tensor, queries: Weights, size: int) -> Tensor:
    """Keys, and behind each what the layers of attention above ask more for having seen its word.

    From ``[B, N, ...]``, and queries of a state of width ``size`` and then a context, to ``[B, N,
    layers * d_attention]``.
    """
    if len(queries) == 1:
        return keys
    of_contexts = torch.cat([query[:, size:] for query in queries[1:]])
    return torch.cat((keys, linear(words, of_contexts).to(keys.dtype)), dim=2)


def _of_states(queries: Weights, weight: Tensor) -> Tensor:
    """Queries of the last layer's state and a GRU's weights of it, ``[.. + 3 size, size]``."""
    size = weight.shape[1]
    return torch.cat([*(query[:, :size] for query in queries), weight.roll(size, 0)])


class DecoderPass:
    """One way over all steps of known actions, and perhaps back."""

    def __init__(
        self, gold: GoldStates, dtype: torch.dtype, attentions: int, layers: int, *, stacked: bool
    ) -> None:
        self.gold = gold
        self.dtype = dtype
        self.bf16 = dtype != torch.float32
        self.attentions = attentions
        self.layers = layers
        self.stacked = stacked
        self.starts = list(accumulate(gold.counts, initial=0))
        self.going_on = [
            *gold.counts[1:],
            0,
        ]  # states of a step whose sentences take part in the next

    def _unpack(self, weights: Sequence[Tensor]) -> None:
        rest = iter(weights)
        layers = range(self.layers)
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
        self.size = self.read.shape[1] // 3
        self.seen = self.attentions * self.words.shape[2]
        #: How much attention asks with the state of each layer; it asks with the last.
        self.asked = [0] * (self.layers - 1) + [self.attentions * len(self.score)]

    @torch.autocast("cpu", enabled=False)  # the types are chosen here
    def forward(self, *weights: Tensor) -> Tensor:
        """States and contexts of all rows, side by side."""
        self._unpack(weights)
        gold, kernel, size, rows = self.gold, load("decoder"), self.size, len(self.read)
        layers, top, threads = range(self.layers), self.layers - 1, torch.get_num_threads()
        result = torch.empty(rows, size + self.seen)
        self.attention = kernel.Attention(
            self.bf16, self.attentions, self.keys, self.words, False, self.score, self.pushed,
            gold.pushed, gold.removed, gold.context_factors, result, size, 1, threads,
        )  # fmt: skip
        self.dropped = self.attention.dropped
        # Of each layer and row: the state before, as products read it, and the layer's input.
        before = [torch.empty(rows, size) for _ in layers]
        self.before = [each.to(self.dtype) for each in before]  # the same where not bf16
        for each in (*before, *self.before):
            each[: gold.counts[0]] = 0
        self.inputs = [torch.empty(rows, size, dtype=self.dtype) for _ in layers[1:]]
        factors = [None] * top if gold.state_factors is None else gold.state_factors
        self.cells = [
            kernel.Cell(
                self.bf16, self.biases[layer], self.bases[layer], None,
                before[layer], before[layer], self.before[layer],
                result if layer == top else None, None if layer == top else factors[layer],
                None if layer == top else self.inputs[layer], self.asked[layer], threads,
            )
            for layer in layers
        ]  # fmt: skip
        # Products of few rows read weights faster so.
        of_states = [weight.t().contiguous() for weight in self.of_states]
        of_inputs = [weight.t().contiguous() for weight in (self.of_context, *self.of_inputs)]
        for step, count in enumerate(gold.counts):
            at, following = self.starts[step], self.starts[step + 1]
            pairs = zip(self.before, of_states, strict=True)
            kept = [torch.mm(states[at:following], weight) for states, weight in pairs]
            self.attention.attend(kept[top], at, count)
            for layer, inputs in enumerate((self.dropped, *self.inputs)):
                read = torch.mm(inputs[at:following], of_inputs[layer])
                self.cells[layer].step(kept[layer], read, at, count, self.going_on[step])
        return result

    @torch.autocast("cpu", enabled=False)
    def backward(self, gradient: Tensor) -> list[Tensor]:
        """Gradients of what ``forward`` is given."""
        size, top, counts = self.size, self.layers - 1, self.gold.counts
        gradient = gradient.contiguous()
        # Of each layer what leads to what is asked with its state (the last), and to its four sums.
        self.d_sums = [
            cell.back(gradient if layer == top else None, counts[0])
            for layer, cell in enumerate(self.cells)
        ]
        self.attention.back(gradient, self.d_sums[top])
        later: list[Tensor | None] = [None] * self.layers
        for step in range(len(counts) - 1, -1, -1):
            at, following, count = self.starts[step], self.starts[step + 1], counts[step]
            below: Tensor | None = None
            for layer in range(top, -1, -1):
                self.cells[layer].step_back(later[layer], below, at, count, self.going_on[step])
                weight = self.of_inputs[layer - 1] if layer else self.of_context
                of_input = self.d_sums[layer][at:following, self.asked[layer] + size :]
                below = torch.mm(of_input, weight)
            self.attention.attend_back(below, at, count)
            if step:
                for layer, asked in enumerate(self.asked):
                    of_state = self.d_sums[layer][at:following, : asked + 3 * size]
                    later[layer] = torch.mm(of_state, self.of_states[layer])
        d_words, d_keys, d_score, d_pushed = self.attention.spread(torch.tensor(counts))
        return [
            d_words,
            d_keys,
            self.d_sums[0][:, self.asked[0] + size :].float(),
            d_score,
            *([d_pushed] if self.stacked else []),
            *self._d_weights(),
        ]

    def _d_weights(self) -> Iterator[Tensor]:
        """In the order of :meth:`_unpack`, from that of the context on."""
        size, pairs = self.size, list(zip(self.d_sums, self.asked, strict=True))
        of_inputs = [each[:, asked + size :] for each, asked in pairs]
        of_states = [each[:, : asked + 3 * size] for each, asked in pairs]
        yield _outer(of_inputs[0], self.dropped)
        for of_input, inputs in zip(of_inputs[1:], self.inputs, strict=True):
            yield _outer(of_input, inputs)
            yield _total(of_input)
        for of_state, before in zip(of_states, self.before, strict=True):
            yield _outer(of_state, before)
        for of_state, asked in zip(of_states, self.asked, strict=True):
            yield _total(of_state[:, asked:])


def _outer(rows: Tensor, others: Tensor) -> Tensor:
    return torch.mm(rows.t(), others).float()


def _total(rows: Tensor) -> Tensor:
    return rows.sum(dim=0, dtype=torch.float32)


class BeamDecoder:
    """The steps of hypotheses that continue each other, by a decoder outside of training."""

    @torch.no_grad()
    def __init__(self, decoder: Any, sources: tuple[Tensor, Tensor], dtype: torch.dtype) -> None:
        """Prepare for words ``[B, N, d_words]`` and keys ``[B, N, d_attention]``.

        The decoder is an ``ActionDecoder``; ``dtype`` is that of the factors of the large products.

        Raises:
            ArrayError: a weight, or what there is of the words, is not float32 on the CPU.
        """
        given = (("words", sources[0]), ("keys", sources[1]), *decoder.named_parameters())
        for name, tensor in given:
            check(tensor, name, *tensor.shape)
        self._kernel = load("decoder")
        self._dtype, self._bf16 = dtype, dtype != torch.float32
        attention, cells = decoder.attention, list(decoder.cells)
        self._score = attention.score.detach()[0]
        self._pushed = None if attention.pushed is None else attention.pushed.detach()[0]
        self._layers = len(cells)
        self._size = size = decoder.scores.in_features
        self._attentions, self._width = len(attention.queries), attention.score.shape[1]
        queries = [query.get_parameter("weight") for query in attention.queries]
        embedded, own = decoder.embedding.weight, decoder.embedding.embedding_dim
        first, hidden = cells[0], decoder.hidden
        # What comes of the action before.
        self._read_table = linear(embedded, first.weight_ih[:, :own], first.bias_ih)
        self._hidden_table = linear(embedded, hidden.weight[:, :own], hidden.bias)
        # What comes of the words: [B, N, attentions, 4 size].
        readers = torch.cat((first.weight_ih[:, own:], hidden.weight[:, own + size :]))
        of_layer = readers.view(4 * size, self._attentions, -1).transpose(0, 1).flatten(0, 1)
        shape = sources[0].shape[:2]
        more = rounded_rows(shape.numel(), dtype) - shape.numel()
        words, keys = (
            pad(part.flatten(0, 1), (0, 0, 0, more)).unsqueeze(0)
            for part in (sources[0].to(dtype), sources[1])
        )
        rounded = [query.to(dtype) for query in queries]
        self._values, self._keys = (
            found[0, : shape.numel()].unflatten(0, shape).contiguous()
            for found in (
                linear(words, of_layer.to(dtype)).float(),
                _asking_words(words, keys, rounded, size),
            )
        )
        # What comes of the states; products of few rows read weights faster so.
        self._of_states = [
            self._turned(weight)
            for weight in (
                *(cell.weight_hh.roll(size, 0) for cell in cells[:-1]),
                _of_states(queries, cells[-1].weight_hh),
            )
        ]
        self._biases = [cell.bias_hh.detach().roll(size) for cell in cells]
        self._of_inputs = [self._turned(cell.weight_ih) for cell in cells[1:]]
        self._bases = [self._read_table, *(cell.bias_ih.detach() for cell in cells[1:])]
        self._of_hidden = self._turned(hidden.weight[:, own : own + size])
        self._scores = decoder.scores
        self._after: list[Tensor] = []

    def _turned(self, weight: Tensor) -> Tensor:
        return weight.to(self._dtype).t().contiguous()

    @torch.no_grad()
    def step(self, last: Tensor, parents: Tensor, stacks: tuple[Tensor, Tensor]) -> Tensor:
        """Return scores of all actions, ``[S, actions]``, of K hypotheses of each first sentence.

        Args:
            last: int64 ``[S]``, the action before; the number of actions at the first step.
            parents: int64 ``[S]``, which of the hypotheses of the step before each continues.
            stacks: what is on the stack and what has left it, ``[sentences, K, N]`` each.

        Raises:
            ArrayError: a tensor is of another type or size, or the action before does not exist.
        """
        pushed, removed = stacks
        count, size, top, bf16 = len(last), self._size, self._layers - 1, self._bf16
        if removed.dim() != 3 or removed.shape[0] * removed.shape[1] != count:
            refuse(removed, "removed", f"[sentences, hypotheses, words] of {count} hypotheses")
        asking, wide, threads = self._attentions * self._width, 4 * size, torch.get_num_threads()
        # Rows beyond the hypotheses only make products as large as others; nobody reads them.
        rounded = rounded_rows(count, self._dtype)
        if self._after:
            if len(parents) != count:
                refuse(parents, "parents", f"int64 [{count}]")
            chosen = pad(parents, (0, rounded - count))
            before = [state.index_select(0, chosen) for state in self._after]
        else:
            before = [torch.zeros(rounded, size) for _ in range(self._layers)]
        after = [torch.zeros(rounded, size) for _ in before]
        after_bf16 = [state.to(self._dtype) for state in after]  # the same where not bf16
        kept = [
            torch.mm(state.to(self._dtype), weight)[:count]
            for state, weight in zip(before, self._of_states, strict=True)
        ]
        # What comes of the contexts.
        read = torch.empty(count, wide)
        self._kernel.Attention(
            bf16, self._attentions, self._keys, self._values, True, self._score, self._pushed,
            pushed.flatten(0, 1), removed.flatten(0, 1), None, read, 0, removed.shape[1], threads,
        ).attend(kept[top], 0, count)  # fmt: skip
        rows = read
        for layer in range(self._layers):
            if layer:
                rows = torch.mm(after_bf16[layer - 1], self._of_inputs[layer - 1])[:count]
            self._kernel.Cell(
                bf16, self._biases[layer], self._bases[layer], None if layer else last,
                before[layer][:count], after[layer][:count], after_bf16[layer][:count], None, None,
                None, asking if layer == top else 0, threads,
            ).step(kept[layer], rows, 0, count, count)  # fmt: skip
        self._after = after
        hidden = torch.mm(after_bf16[top], self._of_hidden).float()
        hidden[:count] += read[:, 3 * size :]
        hidden[:count] += self._hidden_table.index_select(0, last)
        scores: Tensor = self._scores(hidden.tanh_())
        return scores[:count]
