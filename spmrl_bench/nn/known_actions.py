"""The steps of a decoder whose actions are known, with a gradient written by hand.

In training every action is known, but each state still depends on the one before, so the decoder
of :mod:`spmrl_bench.nn.action_decoder` goes through its steps one by one. Recorded by torch, each
step would leave a gradient of every weight and of all encoded words, to be added up. Here only
what runs back through the states is computed step by step; the gradients of the weights and of
the words are one product each over all steps. Sentences that are done take part no longer.

The steps are those of :meth:`ActionDecoder.step`, with the same result and gradient up to
rounding. Rows are ordered step by step; within a step, sentence by sentence, the longest first.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import linear

from spmrl_bench.nn.kernels import ByHand

Weights = Sequence[Tensor]


class Known(NamedTuple):
    """What is known of all steps before the first; no gradient leads to it.

    Attributes:
        counts: sentences that take part in each step, which never grow.
        pushed: float32 ``[rows, N]``, see :class:`~spmrl_bench.nn.stack_attention.Stacks`.
        removed: bool ``[rows, N]``.
        context_factors: dropout on what the first layer reads of the context, ``[rows, d_out]``.
        state_factors: on what each layer above reads, ``[layers - 1, rows, d_state]``.
    """

    counts: list[int]
    pushed: Tensor
    removed: Tensor
    context_factors: Tensor | None
    state_factors: Tensor | None


def known_steps(
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
    """States of the last layer ``[rows, d_state]`` and contexts ``[rows, d_out]`` after each step.

    Args:
        known: of the steps.
        dtype: of the factors of products with weights.
        words, keys: of the sentences, the longest first, ``[B, N, ...]``.
        read: what the first layer reads of the actions, ``[rows, 3 d_state]``, with its bias.
        score, pushed: of attention, ``[d_attention]``.
        queries: of its layers.
        context_weight: of the first recurrent layer, ``[3 d_state, d_out]``.
        cells: of each layer the weight and bias of the state, and above the first before them those
            of its input.
    """
    work = _Steps(known, dtype, len(queries), pushed is not None)
    flat = [weight for cell in cells for weight in cell]
    stacked = [] if pushed is None else [pushed]
    found = ByHand.apply(work, words, keys, read, score, *stacked, *queries, context_weight, *flat)
    width = read.shape[1] // 3
    return found[:, :width], found[:, width:]


class _Steps:
    """One way over all steps and perhaps back."""

    def __init__(self, known: Known, dtype: torch.dtype, attentions: int, stacked: bool) -> None:
        self.known = known
        self.dtype = dtype
        self.attentions = attentions
        self.stacked = stacked
        starts = accumulate(known.counts, initial=0)
        self.places = [slice(at, at + n) for at, n in zip(starts, known.counts, strict=False)]

    def _unpacked(self, weights: Sequence[Tensor]) -> None:
        rest = iter(weights)
        self.words, self.keys, self.read, self.score = (next(rest) for _ in range(4))
        self.pushed = next(rest) if self.stacked else None
        self.queries = [next(rest).to(self.dtype) for _ in range(self.attentions)]
        self.context_weight = next(rest).to(self.dtype)
        cells = list(rest)
        self.cells = [[weight.to(self.dtype) for weight in cells[:2]]]
        self.cells += [
            [w.to(self.dtype) for w in cells[k : k + 4]] for k in range(2, len(cells), 4)
        ]

    def _times(self, rows: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
        return linear(rows.to(self.dtype), weight, bias).to(self.read.dtype)

    @torch.autocast("cpu", enabled=False)  # the types are chosen here
    def forward(self, *weights: Tensor) -> Tensor:
        """States and contexts of all rows, side by side."""
        self._unpacked(weights)
        known, size = self.known, self.read.shape[1] // 3
        rows, d_words = len(self.read), self.words.shape[2]
        layers, attentions = len(self.cells), self.attentions
        new = self.read.new_empty
        self.alphas = new(attentions, rows, self.words.shape[1])
        self.asked = new(attentions, rows, self.keys.shape[2])
        self.contexts = new(rows, attentions * d_words)
        # Of each layer and row: the state before, and what its cell computed.
        self.before = new(layers, rows, size)
        self.gates = new(layers, rows, 4 * size)
        self.inputs = new(max(0, layers - 1), rows, size)
        last = new(rows, size)
        state = [self.read.new_zeros(known.counts[0], size) for _ in range(layers)]
        for number, (count, place) in enumerate(zip(known.counts, self.places, strict=True)):
            if number and count < len(state[0]):
                state = [each[:count] for each in state]
            for layer, each in enumerate(state):
                self.before[layer, place] = each
            self._attend(state[-1], place, count)
            context = self.contexts[place]
            if known.context_factors is not None:
                context = context * known.context_factors[place]
            read = self._times(context, self.context_weight) + self.read[place]
            for layer in range(layers):
                cell = self.cells[layer]
                if layer:
                    below = state[layer - 1]
                    if known.state_factors is not None:
                        below = below * known.state_factors[layer - 1, place]
                    self.inputs[layer - 1, place] = below
                    read = self._times(below, cell[0], cell[1])
                kept = self._times(state[layer], cell[-2], cell[-1])
                state[layer] = _cell(read, kept, state[layer], self.gates[layer, place])
            last[place] = state[-1]
        return torch.cat((last, self.contexts), dim=1)

    def _attend(self, state: Tensor, place: slice, count: int) -> None:
        """All layers of attention of one step."""
        width = self.words.shape[2]
        words, keys = self.words[:count], self.keys[:count]
        asks = state
        for layer, query in enumerate(self.queries):
            asked = self.asked[layer, place]
            asked.copy_(self._times(asks, query))
            energies = self._active(keys, asked, place) @ self.score
            alpha = energies.masked_fill_(self.known.removed[place], -torch.inf).softmax(dim=1)
            self.alphas[layer, place] = alpha
            context = torch.bmm(alpha.unsqueeze(1), words).squeeze(1)
            self.contexts[place, layer * width : (layer + 1) * width] = context
            asks = torch.cat((state, context), dim=1)

    def _active(self, keys: Tensor, asked: Tensor, place: slice) -> Tensor:
        """``tanh(keys + asked + s S)``, ``[count, N, d_attention]``."""
        sums = keys + asked.unsqueeze(1)
        if self.pushed is not None:
            sums.addcmul_(self.known.pushed[place].unsqueeze(2), self.pushed)
        return sums.tanh_()

    @torch.autocast("cpu", enabled=False)
    def backward(self, gradient: Tensor) -> list[Tensor]:
        """Gradients of what :func:`known_steps` is given, from ``words`` on."""
        known, size = self.known, self.read.shape[1] // 3
        layers = len(self.cells)
        d_contexts = gradient[:, size:].clone()
        d_read = torch.empty_like(self.read)
        # Of each layer what leads to its input's sums (above the first) and to its state's sums.
        d_inputs = self.read.new_empty(layers - 1, *self.read.shape)
        d_kept = self.read.new_empty(layers, *self.read.shape)
        d_asked = torch.empty_like(self.asked)
        self.d_keys = torch.zeros_like(self.keys)
        self.d_score = torch.zeros_like(self.score)
        self.d_pushed = None if self.pushed is None else torch.zeros_like(self.pushed)
        carried = [self.read.new_zeros(0, size) for _ in range(layers)]
        for count, place in zip(reversed(known.counts), reversed(self.places), strict=True):
            carried = [_grown(each, count) for each in carried]
            above = carried[-1] + gradient[place, :size]
            for layer in range(layers - 1, -1, -1):
                d_sums, kept, back = _cell_back(
                    above, self.before[layer, place], self.gates[layer, place]
                )
                d_kept[layer, place] = kept
                cell = self.cells[layer]
                carried[layer] = back + self._times(kept, cell[-2].t())
                if layer:
                    d_inputs[layer - 1, place] = d_sums
                    below = self._times(d_sums, cell[0].t())
                    if known.state_factors is not None:
                        below = below * known.state_factors[layer - 1, place]
                    above = carried[layer - 1] + below
                else:
                    d_read[place] = d_sums
                    of_context = self._times(d_sums, self.context_weight.t())
                    if known.context_factors is not None:
                        of_context = of_context * known.context_factors[place]
                    d_contexts[place] += of_context
            carried[-1] = carried[-1] + self._attend_back(d_contexts, d_asked, place, count)
        return [
            self._d_words(d_contexts),
            self.d_keys,
            d_read,
            self.d_score,
            *([] if self.d_pushed is None else [self.d_pushed]),
            *self._d_queries(d_asked),
            *self._d_cells(d_read, d_inputs, d_kept),
        ]

    def _attend_back(self, d_contexts: Tensor, d_asked: Tensor, place: slice, count: int) -> Tensor:
        """The gradient of the state that attention asked with."""
        width, size = self.words.shape[2], self.before.shape[2]
        words, keys = self.words[:count], self.keys[:count]
        d_state = self.read.new_zeros(count, size)
        for layer in range(self.attentions - 1, -1, -1):
            d_context = d_contexts[place, layer * width : (layer + 1) * width]
            alpha = self.alphas[layer, place]
            d_alpha = torch.bmm(words, d_context.unsqueeze(2)).squeeze(2)
            d_energies = alpha * (d_alpha - (alpha * d_alpha).sum(dim=1, keepdim=True))
            asked = d_asked[layer, place]
            asked.copy_(self._energies_back(d_energies, layer, place, keys))
            d_asks = self._times(asked, self.queries[layer].t())
            d_state += d_asks[:, :size]
            if layer:
                d_contexts[place, (layer - 1) * width : layer * width] += d_asks[:, size:]
        return d_state

    def _energies_back(self, d_energies: Tensor, layer: int, place: slice, keys: Tensor) -> Tensor:
        """The gradient of what was asked; those of keys, ``S`` and ``v`` are added up."""
        active = self._active(keys, self.asked[layer, place], place)
        flat = active.flatten(0, 1)
        self.d_score += d_energies.flatten() @ flat
        sums = active.square_().neg_().add_(1).mul_(self.score).mul_(d_energies.unsqueeze(2))
        self.d_keys[: len(sums)] += sums
        if self.d_pushed is not None:
            self.d_pushed += self.known.pushed[place].flatten().to(sums.dtype) @ sums.flatten(0, 1)
        return sums.sum(dim=1)

    # Gradients over all steps at once -------------------------------------------------

    def _by_sentence(self, rows: Tensor) -> Tensor:
        """``[rows, width]`` to ``[B, T, width]``, zero behind the last step of a sentence."""
        counts = self.known.counts
        spread = rows.new_zeros(len(counts), counts[0], rows.shape[1])
        for number, (count, place) in enumerate(zip(counts, self.places, strict=True)):
            spread[number, :count] = rows[place]
        return spread.transpose(0, 1)

    def _d_words(self, d_contexts: Tensor) -> Tensor:
        width = self.words.shape[2]
        total = torch.zeros_like(self.words)
        for layer in range(self.attentions):
            alphas = self._by_sentence(self.alphas[layer])
            d_context = self._by_sentence(d_contexts[:, layer * width : (layer + 1) * width])
            total += torch.bmm(alphas.transpose(1, 2), d_context)
        return total

    def _d_queries(self, d_asked: Tensor) -> Iterator[Tensor]:
        width, state = self.words.shape[2], self.before[-1]
        for layer in range(self.attentions):
            below = self.contexts[:, (layer - 1) * width : layer * width] if layer else state[:, :0]
            yield self._outer(d_asked[layer], torch.cat((state, below), dim=1))

    def _d_cells(self, d_read: Tensor, d_inputs: Tensor, d_kept: Tensor) -> Iterator[Tensor]:
        factors = self.known.context_factors
        yield self._outer(d_read, self.contexts if factors is None else self.contexts * factors)
        for layer in range(len(self.cells)):
            if layer:
                yield self._outer(d_inputs[layer - 1], self.inputs[layer - 1])
                yield d_inputs[layer - 1].sum(dim=0)
            yield self._outer(d_kept[layer], self.before[layer])
            yield d_kept[layer].sum(dim=0)

    def _outer(self, rows: Tensor, others: Tensor) -> Tensor:
        return torch.mm(rows.t().to(self.dtype), others.to(self.dtype)).to(self.read.dtype)


def _grown(rows: Tensor, count: int) -> Tensor:
    """The rows, and zeros behind them for sentences that were done later."""
    missing = count - len(rows)
    return torch.cat((rows, rows.new_zeros(missing, rows.shape[1]))) if missing else rows


def _cell(read: Tensor, kept: Tensor, before: Tensor, gates: Tensor) -> Tensor:
    """The state of a GRU after a step; ``gates`` takes r, z, n and the state's part of n."""
    size = before.shape[1]
    both = gates[:, : 2 * size]
    torch.add(read[:, : 2 * size], kept[:, : 2 * size], out=both)
    both.sigmoid_()
    reset, update, candidate, own = gates.split(size, dim=1)
    own.copy_(kept[:, 2 * size :])
    torch.addcmul(read[:, 2 * size :], reset, own, out=candidate)
    candidate.tanh_()
    return torch.lerp(candidate, before, update)


def _cell_back(d_after: Tensor, before: Tensor, gates: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Gradients of the input's sums and of the state's sums, and of the state itself directly."""
    reset, update, candidate, own = gates.chunk(4, dim=1)
    d_candidate = d_after * (1 - update) * (1 - candidate * candidate)
    d_update = d_after * (before - candidate) * update * (1 - update)
    d_reset = d_candidate * own * reset * (1 - reset)
    d_read = torch.cat((d_reset, d_update, d_candidate), dim=1)
    d_kept = torch.cat((d_reset, d_update, d_candidate * reset), dim=1)
    return d_read, d_kept, d_after * update
