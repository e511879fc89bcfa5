"""The steps of a decoder of actions on the CPU, in training and in a search.

A step of some thirty states is many small operations, and products of so few rows take as long as
their weights take to read. So here attention, of all its layers, and a recurrent layer are one call
of the kernel ``_decoder`` each. What a layer of attention asks with the context of the one below is
the mean of products of the words, which are made outside of the steps. Arrays have a row for each
state, into which a step writes what the next one reads, and in the type that products read.

In training all actions are known. What runs back through the states is computed step by step; the
gradients of the weights and of the words are one product each over all steps. Rows are ordered step
by step; within a step, sentence by sentence, the longest first; those done take part no longer.

In a beam, without dropout, ``W c^m = W sum_t a^m_t h_t = sum_t a^m_t (W h_t)``: what all layers
read of a context is computed of each word once, and attention takes means of that. What they read
of the action before comes from tables. Left to each step are the products of states.

The four sums of a GRU are in the order of :mod:`spmrl_bench.nn.kernels.recurrence`; the weights of
the state are turned to it. *bf16* arrays have the type of the factors of products.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import accumulate, pairwise
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import linear, pad

from spmrl_bench.errors import ArrayError
from spmrl_bench.nn.kernels import Backward, CustomGradient, check, load, refuse, rounded_rows

Weights = Sequence[Tensor]


class GoldStates(NamedTuple):
    """What is known of all steps before the first; no gradient leads to it.

    Dropout is on what the first layer reads of the context, and on what each layer above reads.
    """

    counts: list[int]  # of sentences that take part in each step
    pushed: Tensor  # float32 [rows, N], 1 for words that have been pushed on the stack
    removed: Tensor  # bool [rows, N], for words that have been removed from it
    context_factors: Tensor | None  # [rows, d_out]
    state_factors: Tensor | None  # [layers - 1, rows, d_state]


def teacher_forced(
    gold: GoldStates,
    dtype: torch.dtype,
    words: Tensor,
    keys: Tensor,
    score: Tensor,
    pushed: Tensor | None,
    queries: Weights,
    cells: Sequence[Weights],
) -> tuple[Tensor, Tensor]:
    """Return states of the last layer ``[rows, d_state]`` and contexts ``[rows, d_out]``; raise an
    ArrayError for a tensor of another type or size, or counts that do not fit the rows.

    Args:
        dtype: of the factors of products with weights.
        words, keys: of the sentences, the longest first, ``[B, N, ...]``.
        score, pushed, queries: of attention, the first two ``[d_attention]``.
        cells: of each layer the weight of its input, what is added to that product, and the weight
            and bias of the state. The first reads the context; what is added has what it reads of
            the actions, ``[rows, 3 d_state]``.
    """
    counts, (_, read, *_) = gold.counts, cells[0]
    if not counts or counts[-1] < 1 or any(a < b for a, b in pairwise(counts)):
        raise ArrayError(f"counts is {counts}; sentences of a step are at least 1, and never more.")
    check(words, "words", counts[0], *words.shape[1:])
    check(keys, "keys", counts[0], words.shape[1], len(score))
    check(read, "read", sum(counts), read.shape[-1])
    size = read.shape[1] // 3
    with torch.autocast("cpu", dtype, enabled=dtype != torch.float32):
        asking = _asking_words(words, keys, queries, size)
    weights = [score] if pushed is None else [score, pushed]
    for number, (of_input, base, of_state, bias) in enumerate(cells, start=1):
        asked = queries if number == len(cells) else ()  # attention asks with the last state
        weights += [of_input, base, _of_states(asked, of_state), bias.roll(size)]
    for weight in weights:
        check(weight, "a weight of the decoder", *weight.shape)
    run = partial(_run, gold, dtype, len(queries), pushed is not None)
    found = CustomGradient.apply(run, words, asking, *weights)
    return found[:, :size], found[:, size:]


def _asking_words(words: Tensor, keys: Tensor, queries: Weights, size: int) -> Tensor:
    """Keys, and behind each what the layers of attention above ask more for having seen its word,
    ``[B, N, layers * d_attention]``. Queries are of a state of width ``size``, then a context."""
    if len(queries) == 1:
        return keys
    of_contexts = torch.cat([query[:, size:] for query in queries[1:]])
    return torch.cat((keys, linear(words, of_contexts).to(keys.dtype)), dim=2)


def _of_states(queries: Weights, weight: Tensor) -> Tensor:
    """Queries of a layer's state and a GRU's weights of it, ``[.. + 3 size, size]``."""
    size = weight.shape[1]
    return torch.cat([*(query[:, :size] for query in queries), weight.roll(size, 0)])


@torch.autocast("cpu", enabled=False)  # the types are chosen here
def _run(
    gold: GoldStates, dtype: torch.dtype, attentions: int, stacked: bool, *weights: Tensor
) -> tuple[Tensor, Backward]:
    """States and contexts of all rows, side by side."""
    words, keys, score, *rest = [weight.detach() for weight in weights]
    pushed = rest.pop(0) if stacked else None
    bases, biases = rest[1::4], rest[3::4]
    of_inputs, of_states = ([weight.to(dtype) for weight in rest[k::4]] for k in (0, 2))
    kernel, rows, size = load("decoder"), len(bases[0]), len(biases[0]) // 3
    counts, below = gold.counts, len(bases) - 1
    bf16, threads = dtype != torch.float32, torch.get_num_threads()
    # First row, states, and how many of their sentences take part in the next step.
    steps = list(zip(accumulate(counts, initial=0), counts, [*counts[1:], 0], strict=False))
    # How much attention asks with the state of each layer.
    asked = [0] * below + [attentions * len(score)]
    result = torch.empty(rows, size + attentions * words.shape[2])
    attention = kernel.Attention(
        bf16, attentions, keys.contiguous(), words.contiguous(), False, score.contiguous(), pushed,
        gold.pushed, gold.removed, gold.context_factors, result, size, 1, threads,
    )  # fmt: skip
    results, factors = [None] * below + [result], gold.state_factors
    cells = [
        kernel.Cell(bf16, rows, bias, base.contiguous(), None, None, *others, threads)
        for bias, base, *others in zip(
            biases, bases, results, [*([None] * below if factors is None else factors), None],
            asked, strict=True,
        )
    ]  # fmt: skip
    # Of each layer and row, as products read them: the state before, and the layer's input.
    before = [cell.low for cell in cells]
    inputs = [attention.dropped, *(cell.inputs for cell in cells[:-1])]
    # Products of few rows read weights faster so.
    turned_states, turned_inputs = (
        [weight.t().contiguous() for weight in kind] for kind in (of_states, of_inputs)
    )
    for at, count, going_on in steps:
        own = slice(at, at + count)
        pairs = zip(before, turned_states, strict=True)
        kept = [torch.mm(each[own], weight) for each, weight in pairs]
        attention.attend(kept[-1], at, count)
        for cell, of_state, read, weight in zip(cells, kept, inputs, turned_inputs, strict=True):
            cell.step(of_state, torch.mm(read[own], weight), at, count, going_on)

    @torch.autocast("cpu", enabled=False)
    def back(gradient: Tensor) -> list[Tensor]:
        gradient = gradient.contiguous()
        # Of each layer what leads to what is asked with its state (the last), and to its four sums.
        d_sums = [cell.back(None, counts[0]) for cell in cells[:-1]]
        d_sums.append(cells[-1].back(gradient, counts[0]))
        attention.back(gradient, d_sums[-1])
        pairs = list(zip(d_sums, asked, strict=True))
        d_inputs = [each[:, lead + size :] for each, lead in pairs]
        d_states = [each[:, : lead + 3 * size] for each, lead in pairs]
        later: list[Tensor | None] = [None] * len(cells)
        for at, count, going_on in reversed(steps):
            own, lower = slice(at, at + count), None
            for layer in range(len(cells) - 1, -1, -1):
                cells[layer].step_back(later[layer], lower, at, count, going_on)
                lower = torch.mm(d_inputs[layer][own], of_inputs[layer])
            attention.attend_back(lower, at, count)
            if at:
                weights = zip(d_states, of_states, strict=True)
                later = [torch.mm(each[own], weight) for each, weight in weights]
        d_words, d_keys, *found = attention.spread(torch.tensor(counts))
        found = found if stacked else found[:1]
        layers = zip(d_inputs, inputs, d_states, before, asked, strict=True)
        total = partial(torch.sum, dim=0, dtype=torch.float32)
        for number, (d_input, read, d_state, state, lead) in enumerate(layers):
            found += [
                torch.mm(d_input.t(), read).float(),
                total(d_input) if number else d_input.float(),
                torch.mm(d_state.t(), state).float(),
                total(d_state[:, lead:]),
            ]
        return [d_words, d_keys, *found]

    return result, back


class BeamDecoder:
    """The steps of hypotheses that continue each other, by a decoder outside of training."""

    @torch.no_grad()
    def __init__(self, decoder: Any, sources: tuple[Tensor, Tensor], dtype: torch.dtype) -> None:
        """Prepare an ``ActionDecoder`` for words ``[B, N, d_words]`` and keys ``[B, N,
        d_attention]``; ``dtype`` is that of the factors of the large products."""
        words, keys = sources
        for name, tensor in (("words", words), ("keys", keys), *decoder.named_parameters()):
            check(tensor, name, *tensor.shape)
        self._kernel, self._dtype = load("decoder"), dtype
        attention, (first, *above), hidden = decoder.attention, decoder.cells, decoder.hidden
        self._score = attention.score.detach()[0]
        self._pushed = None if attention.pushed is None else attention.pushed.detach()[0]
        self._size = size = decoder.scores.in_features
        queries = [query.get_parameter("weight") for query in attention.queries]
        self._attentions = len(queries)
        embedded, own = decoder.embedding.weight, decoder.embedding.embedding_dim
        # What comes of the action before.
        read_table = linear(embedded, first.weight_ih[:, :own], first.bias_ih)
        self._hidden_table = linear(embedded, hidden.weight[:, :own], hidden.bias)
        # What comes of the words: [B, N, attentions, 4 size].
        readers = torch.cat((first.weight_ih[:, own:], hidden.weight[:, own + size :]))
        of_layer = readers.view(4 * size, self._attentions, -1).transpose(0, 1).flatten(0, 1)
        shape = words.shape[:2]
        more = rounded_rows(shape.numel(), dtype) - shape.numel()
        words, keys = (
            pad(part.flatten(0, 1), (0, 0, 0, more)).unsqueeze(0)
            for part in (words.to(dtype), keys)
        )
        keys = _asking_words(words, keys, [query.to(dtype) for query in queries], size)
        self._values, self._keys = (
            found[0, : shape.numel()].unflatten(0, shape).contiguous()
            for found in (linear(words, of_layer.to(dtype)).float(), keys)
        )
        # What comes of the states; products of few rows read weights faster so.
        of_states = [_of_states((), cell.weight_hh) for cell in decoder.cells[:-1]]
        of_states.append(_of_states(queries, decoder.cells[-1].weight_hh))
        self._of_states = [self._turned(weight) for weight in of_states]
        self._of_inputs = [self._turned(cell.weight_ih) for cell in above]
        self._of_hidden = self._turned(hidden.weight[:, own : own + size])
        self._biases = [cell.bias_hh.detach().roll(size) for cell in decoder.cells]
        self._bases = [read_table, *(cell.bias_ih.detach() for cell in above)]
        self._scores = decoder.scores
        self._after: list[Tensor] = []

    def _turned(self, weight: Tensor) -> Tensor:
        return weight.to(self._dtype).t().contiguous()

    @torch.no_grad()
    def step(self, last: Tensor, parents: Tensor, stacks: tuple[Tensor, Tensor]) -> Tensor:
        """Return scores of all actions, ``[S, actions]``, of K hypotheses of each first sentence.

        ``last``, int64 ``[S]``, are the actions before, at the first step the number of actions;
        ``parents``, int64 ``[S]``, say which of the hypotheses of the step before each continues;
        ``stacks``, ``[sentences, K, N]`` each, what is on the stack and what has left it.
        """
        pushed, removed = stacks
        count, size, bf16 = len(last), self._size, self._dtype != torch.float32
        if removed.dim() != 3 or removed.shape[0] * removed.shape[1] != count:
            refuse(removed, "removed", f"[sentences, hypotheses, words] of {count} hypotheses")
        threads = torch.get_num_threads()
        # Rows beyond the hypotheses only make products as large as others; nobody reads them.
        rounded = rounded_rows(count, self._dtype)
        if self._after:
            if len(parents) != count:
                refuse(parents, "parents", f"int64 [{count}]")
            chosen = pad(parents, (0, rounded - count))
            before = [state.index_select(0, chosen) for state in self._after]
        else:
            before = [torch.zeros(rounded, size) for _ in self._biases]
        kept = [
            torch.mm(state.to(self._dtype), weight)[:count]
            for state, weight in zip(before, self._of_states, strict=True)
        ]
        # What comes of the contexts.
        read = rows = torch.empty(count, 4 * size)
        self._kernel.Attention(
            bf16, self._attentions, self._keys, self._values, True, self._score, self._pushed,
            pushed.flatten(0, 1), removed.flatten(0, 1), None, read, 0, removed.shape[1], threads,
        ).attend(kept[-1], 0, count)  # fmt: skip
        cells, which = list[Any](), pad(last, (0, rounded - count))
        for layer, of_state in enumerate(kept):
            if layer:
                rows = torch.mm(cells[-1].inputs, self._of_inputs[layer - 1])[:count]
            cell = self._kernel.Cell(
                bf16, rounded, self._biases[layer], self._bases[layer], None if layer else which,
                before[layer], None, None, of_state.shape[1] - 3 * size, threads,
            )  # fmt: skip
            cell.step(of_state, rows, 0, count, count)
            cells.append(cell)
        self._after = [cell.states for cell in cells]
        hidden = torch.mm(cells[-1].inputs, self._of_hidden).float()
        hidden[:count] += read[:, 3 * size :]
        hidden[:count] += self._hidden_table.index_select(0, last)
        scores: Tensor = self._scores(hidden.tanh_())
        return scores[:count]
