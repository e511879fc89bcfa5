"""The decoder that writes the actions of a transition parser, with attention that knows the stack.

Gated recurrent layers read the action before and the context that attention found, and what they
have read so far decides where attention looks next (Bahdanau et al. 2015; Zhang, Liu, Li, Zhou &
Chen 2017, D17-1175, sections 2 and 3). With the embedding ``y`` of the last action::

    c_i = attention(z_(i-1))        z: state of the uppermost layer
    z_i = GRU([y_(i-1); c_i], z_(i-1))
    p(y_i) = softmax over the legal actions (g(y_(i-1), z_i, c_i))

``g`` is "a non-linear function" there; here a hidden layer with tanh, as wide as the state. The
recurrent layers begin with zeros, and a symbol of its own stands for the action before the first.
Attention is told which words have been pushed on the stack (``s``) and which removed (``r``), and
looks several times, each time knowing what it saw before. With encoded words ``h_t`` and the
context ``c^m`` of layer ``m``::

    e^1_t = v . tanh(W^1 z            + U h_t + s_t S)
    e^m_t = v . tanh(W^m [z; c^(m-1)] + U h_t + s_t S)         m > 1
    a^m_t = softmax over the words that have not been removed (e^m_t)
    c^m   = sum_t a^m_t h_t                                    c = [c^1; ...; c^l]

``U``, ``S`` and ``v`` have no number of a layer there, and are shared. Dropout (Zaremba et al.
2014) is on what each layer reads and what leaves the last, never on what a layer passes on to its
own next step. Nothing here knows what an action does.
"""

from __future__ import annotations

from typing import Annotated, Any, NamedTuple

import torch
from pydantic import Field
from torch import Tensor, nn
from torch.nn import functional

from spmrl_bench.nn import kernels
from spmrl_bench.nn.kernels.decoder import GoldStates, teacher_forced
from spmrl_bench.nn.settings import Rate, Settings, Width


class Sources(NamedTuple):
    """The encoded words of B sentences, as attention reads them at every step."""

    words: Tensor  # [B, N, d_words], zero beyond a sentence
    keys: Tensor  # [B, N, d_attention], U h_t


class Stacks(NamedTuple):
    """What has become of the words in K states of each of B sentences."""

    pushed: Tensor  # float32 [B, K, N], 1 for words that have been pushed on the stack
    removed: Tensor  # bool [B, K, N], for those removed from it, and beyond a sentence


class StackAttention(nn.Module):
    """Layers of additive attention over the words, with contexts ``d_out`` wide together."""

    def __init__(self, config: ActionDecoder.Config, d_words: int) -> None:
        super().__init__()
        size, layers = config.d_attention, config.attention_layers
        self.d_out = layers * d_words
        self.key = nn.Linear(d_words, size, bias=False)
        widths = [config.d_hidden, *[config.d_hidden + d_words] * (layers - 1)]
        self.queries = nn.ModuleList([nn.Linear(width, size, bias=False) for width in widths])
        self.score = nn.Parameter(nn.init.normal_(torch.empty(1, size), std=size**-0.5))
        self.pushed: nn.Parameter | None = None
        if config.pushed_words:
            self.pushed = nn.Parameter(nn.init.normal_(torch.empty(1, size), std=size**-0.5))

    def sources(self, words: Tensor) -> Sources:
        """Return what all steps read of the words ``[B, N, d_words]``."""
        return Sources(words.contiguous(), self.key(words))

    def forward(self, states: Tensor, sources: Sources, stacks: Stacks) -> tuple[Tensor, Tensor]:
        """Return contexts ``[B, K, d_out]`` and weights ``[B, K, layers, N]``.

        In each of the ``states`` ``[B, K, d_hidden]`` at least one word must not have been removed.
        """
        contexts, weights = list[Tensor](), list[Tensor]()
        for layer in self.queries:
            query = layer(torch.cat((states, *contexts[-1:]), dim=2))
            # Only the products with weights may be of bfloat16 numbers.
            with torch.autocast(states.device.type, enabled=False):
                sums = sources.keys.unsqueeze(1) + query.unsqueeze(2)
                if self.pushed is not None:
                    sums.addcmul_(stacks.pushed.unsqueeze(3), self.pushed)
                energies = sums.tanh_() @ self.score[0]
                weights.append(energies.masked_fill(stacks.removed, -torch.inf).softmax(dim=2))
                contexts.append(weights[-1] @ sources.words)
        return torch.cat(contexts, dim=2), torch.stack(weights, dim=2)


class ActionDecoder(nn.Module):
    """Attention, recurrent layers and scores of actions, the number of which is the start's own."""

    class Config(Settings):
        """Settings of the decoder of a transition parser (Zhang et al. 2017)."""

        d_hidden: Width
        """Width of the recurrent layers."""
        layers: Annotated[int, Field(ge=1, le=1000)]
        """Recurrent layers."""
        d_action: Width
        """Width of the embedding of an action."""
        d_attention: Width
        """Width of the sums that additive attention takes the tanh of."""
        dropout: Rate
        """Dropout of the inputs of the layers and of the output of the last."""
        attention_layers: Annotated[int, Field(ge=1, le=1000)] = 3
        """Attention over the words before an action, each layer with the result of the last."""
        pushed_words: bool = True
        """Whether attention knows which words have been pushed on the stack (vector s)."""
        removed_words: bool = True
        """Whether attention leaves out the words removed from the stack (vector r)."""

    def __init__(self, config: Config, d_words: int, actions: int) -> None:
        super().__init__()
        size = config.d_hidden
        self.attention = StackAttention(config, d_words)
        self.dropout = config.dropout
        self.embedding = nn.Embedding(actions + 1, config.d_action)
        widths = [config.d_action + self.attention.d_out, *[size] * (config.layers - 1)]
        self.cells: Any = nn.ModuleList([nn.GRUCell(width, size) for width in widths])
        self.hidden = nn.Linear(config.d_action + size + self.attention.d_out, size)
        self.scores = nn.Linear(size, actions)

    def start(self, sentences: int, hypotheses: int) -> Tensor:
        """The first state, ``[layers, sentences, hypotheses, d_hidden]``."""
        size = self.scores.in_features
        return self.scores.weight.new_zeros(len(self.cells), sentences, hypotheses, size)

    def step(
        self, last: Tensor, state: Tensor, sources: Sources, stacks: Stacks
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Return scores ``[B, K, actions]``, the next state and ``[B, K, layers, N]`` weights.

        ``last``: int64 ``[B, K]``, the actions before; the number of actions at the first step.
        """
        embedded = self._dropped(self.embedding(last))
        after, context, weights = self._advanced(embedded, state, sources, stacks)
        return self._scored(embedded, after[-1], context), after, weights

    def forward(
        self, last: Tensor, steps: Tensor, sources: Sources, stacks: Stacks, dtype: torch.dtype
    ) -> Tensor:
        """Return the scores of known sequences, ``[steps in all, actions]``, all first steps first.

        ``last``, int64 ``[B, T]``, are the actions before each step, and ``stacks``, ``[B, T, N]``,
        what they led to; ``steps``, int64 ``[B]`` on the CPU, is how many each sentence has, in
        falling order; ``dtype`` is that of the factors of the products of states and contexts.
        """
        taking_part = steps > torch.arange(int(steps[0]))[:, None]
        number, sentence = taking_part.nonzero(as_tuple=True)
        rows = (sentence * len(taking_part) + number).to(last.device)
        embedded = self._dropped(self.embedding(last.flatten().index_select(0, rows)))
        before = Stacks(*(part.flatten(0, 1).index_select(0, rows) for part in stacks))
        fits = all(kernels.usable(part, "decoder") for part in (embedded, sources.words))
        run = self._with_kernels if fits else self._step_by_step
        counts: list[int] = taking_part.sum(dim=1).tolist()
        states, contexts = run(embedded, counts, sources, before, dtype)
        return self._scored(embedded, states, contexts)

    def _step_by_step(
        self, rows: Tensor, counts: list[int], sources: Sources, stacks: Stacks, dtype: torch.dtype
    ) -> tuple[Tensor, Tensor]:
        """Return states of the last layer ``[rows, d_hidden]`` and contexts ``[rows, d_out]``."""
        state, states, contexts = self.start(counts[0], 1), list[Tensor](), list[Tensor]()
        parts = (part.unsqueeze(1).split(counts) for part in (rows, *stacks))
        with torch.autocast(rows.device.type, torch.bfloat16, enabled=dtype == torch.bfloat16):
            for last, pushed, removed in zip(*parts, strict=True):
                if len(last) < state.shape[1]:  # some sentences are done
                    state = state[:, : len(last)]
                    sources = Sources(*(part[: len(last)] for part in sources))
                state, context, _ = self._advanced(last, state, sources, Stacks(pushed, removed))
                states.append(state[-1, :, 0])
                contexts.append(context[:, 0])
        return torch.cat(states), torch.cat(contexts)

    def _with_kernels(
        self, rows: Tensor, counts: list[int], sources: Sources, stacks: Stacks, dtype: torch.dtype
    ) -> tuple[Tensor, Tensor]:
        (first, *others), own = self.cells, rows.shape[1]
        of_context = self._factors(len(rows), self.attention.d_out)
        of_states = self._factors(len(others), len(rows), self.scores.in_features)
        gold, pushed = GoldStates(counts, *stacks, of_context, of_states), self.attention.pushed
        read = functional.linear(rows, first.weight_ih[:, :own], first.bias_ih)
        above = [(cell.weight_ih, cell.bias_ih, cell.weight_hh, cell.bias_hh) for cell in others]
        return teacher_forced(
            gold,
            dtype,
            *sources,
            self.attention.score[0],
            None if pushed is None else pushed[0],
            [layer.get_parameter("weight") for layer in self.attention.queries],
            [(first.weight_ih[:, own:], read, first.weight_hh, first.bias_hh), *above],
        )

    def _advanced(
        self, embedded: Tensor, state: Tensor, sources: Sources, stacks: Stacks
    ) -> tuple[Tensor, Tensor, Tensor]:
        """The next state, and the context and the weights of attention before it."""
        context, weights = self.attention(state[-1], sources, stacks)
        read = torch.cat((embedded, self._dropped(context)), dim=2)
        after = list[Tensor]()
        for cell, before in zip(self.cells, state, strict=True):
            after.append(_gru(cell, self._dropped(after[-1]) if after else read, before))
        return torch.stack(after), context, weights

    def _factors(self, *shape: int) -> Tensor | None:
        """Dropout of so many features with the kernels; None where there is none."""
        if not self.training or self.dropout == 0 or 0 in shape:
            return None
        return kernels.dropout_factors(torch.Size(shape), self.dropout)

    def _dropped(self, rows: Tensor) -> Tensor:
        if not kernels.usable(rows, "decoder"):
            return functional.dropout(rows, self.dropout, self.training)
        return rows if (factors := self._factors(*rows.shape)) is None else rows * factors

    def _scored(self, embedded: Tensor, state: Tensor, context: Tensor) -> Tensor:
        read = torch.cat((embedded, self._dropped(state), self._dropped(context)), dim=-1)
        return self.scores(self.hidden(read).tanh())


def _gru(cell: nn.GRUCell, rows: Tensor, before: Tensor) -> Tensor:
    """The state after a step, by torch's equations, in the type of the state before."""
    read = functional.linear(rows, cell.weight_ih, cell.bias_ih).to(before.dtype)
    kept = functional.linear(before, cell.weight_hh, cell.bias_hh).to(before.dtype)
    size = before.shape[-1]
    gates = (read[..., : 2 * size] + kept[..., : 2 * size]).sigmoid()
    reset, update = gates.chunk(2, dim=-1)
    candidate = torch.addcmul(read[..., 2 * size :], reset, kept[..., 2 * size :]).tanh()
    return torch.lerp(candidate, before, update)


class StepwiseDecoder:
    """Steps of hypotheses that continue each other, without a gradient."""

    def __init__(self, decoder: ActionDecoder, sources: Sources) -> None:
        self._decoder, self._sources = decoder, sources
        self._state: Tensor | None = None

    @torch.no_grad()
    def step(self, last: Tensor, parents: Tensor, stacks: Stacks) -> Tensor:
        """As of :meth:`spmrl_bench.nn.kernels.decoder.BeamDecoder.step`."""
        shape = stacks.removed.shape[:2]
        if self._state is None:
            state = self._decoder.start(*shape)
        else:
            state = self._state.index_select(1, parents).unflatten(1, shape)
        sources = Sources(*(part[: shape[0]] for part in self._sources))
        scores, state, _ = self._decoder.step(last.view(shape), state, sources, stacks)
        self._state = state.flatten(1, 2)
        return scores.flatten(0, 1)
