"""The decoder that writes the actions of a transition parser, one after the other.

Gated recurrent layers read the action before and the context that attention found, and what they
have read so far decides where attention looks next (Bahdanau et al. 2015; Zhang, Liu, Li, Zhou &
Chen 2017, sections 2 and 3). With the embedding ``y`` of the last action::

    c_i = attention(z_(i-1))        z: state of the uppermost layer
    z_i = GRU([y_(i-1); c_i], z_(i-1))
    p(y_i) = softmax over the legal actions (g(y_(i-1), z_i, c_i))

``g`` is "a non-linear function" there; here a hidden layer with tanh, as wide as the state. The
recurrent layers begin with zeros, and a symbol of its own stands for the action before the first.

In training all actions are known, so that only what passes through the recurrent state is computed
step by step (:mod:`spmrl_bench.nn.known_actions`): the part of the inputs that comes from actions,
and ``g``, are computed for all steps at once. Dropout is that of Zaremba et al. 2014: on what each
layer reads and what leaves the last, never on what a layer passes on to its own next step.
"""

from __future__ import annotations

from typing import NamedTuple, cast

import torch
from torch import Tensor, nn
from torch.nn import functional

from spmrl_bench.nn import kernels
from spmrl_bench.nn.fused_search import FusedSearch
from spmrl_bench.nn.fused_steps import fused_steps
from spmrl_bench.nn.known_actions import Known, known_steps
from spmrl_bench.nn.stack_attention import Sources, StackAttention, Stacks


class Step(NamedTuple):
    """What one step of the decoder gives, for K hypotheses of each of B sentences."""

    scores: Tensor
    """``[B, K, actions]``, of all actions, legal or not."""
    state: Tensor
    """``[layers, B, K, d_state]``, for the next step."""
    weights: Tensor
    """``[B, K, attention layers, N]``, of the words."""


class ActionDecoder(nn.Module):
    """Attention, recurrent layers and scores of actions.

    Attributes:
        actions: how many there are; their numbers are below it, and it stands for the start.
    """

    def __init__(
        self,
        attention: StackAttention,
        actions: int,
        d_action: int,
        d_state: int,
        layers: int,
        dropout: float,
    ) -> None:
        """Random weights.

        Args:
            attention: over the words.
            actions: how many there are.
            d_action: width of the embedding of an action.
            d_state: width of a recurrent layer.
            layers: how many recurrent layers there are, one at least.
            dropout: on the inputs of the layers and the output of the last.
        """
        super().__init__()
        self.attention = attention
        self.actions = actions
        self.dropout = nn.Dropout(dropout)
        self.embedding = nn.Embedding(actions + 1, d_action)
        widths = [d_action + attention.d_out, *[d_state] * (layers - 1)]
        self.cells = cast(
            "list[nn.GRUCell]", nn.ModuleList([nn.GRUCell(width, d_state) for width in widths])
        )
        self.hidden = nn.Linear(d_action + d_state + attention.d_out, d_state)
        self.scores = nn.Linear(d_state, actions)

    def start(self, sentences: int, hypotheses: int) -> Tensor:
        """The first state, ``[layers, sentences, hypotheses, d_state]``."""
        size = self.scores.in_features
        return self.scores.weight.new_zeros(len(self.cells), sentences, hypotheses, size)

    def step(self, last: Tensor, state: Tensor, sources: Sources, stacks: Stacks) -> Step:
        """One step, whose action is not known.

        Args:
            last: int64 ``[B, K]``, the actions before; ``self.actions`` at the first step.
            state: as :class:`Step` gave it, or :meth:`start`.
            sources: of the sentences.
            stacks: of the hypotheses.
        """
        embedded = self._dropped(self.embedding(last))
        context, weights = self.attention(state[-1], sources, stacks)
        read = self._read(embedded, self._dropped(context))
        after = self._states(read, state)
        return Step(self._scored(embedded, after[-1], context), torch.stack(after), weights)

    def search(self, sources: Sources, dtype: torch.dtype) -> Search | FusedSearch:
        """For the steps of a search outside of training.

        Args:
            sources: of the sentences.
            dtype: of the factors of the large products, where the kernels are used.
        """
        if self.training or not self._fused(sources):
            return Search(self, sources)
        return FusedSearch(self, sources, dtype)

    def forward(
        self, last: Tensor, steps: Tensor, sources: Sources, stacks: Stacks, dtype: torch.dtype
    ) -> Tensor:
        """Scores of all steps of known sequences, ``[steps in all, actions]``.

        Args:
            last: int64 ``[B, T]``, the action before each step.
            steps: int64 ``[B]`` on the CPU, how many each sentence has, in falling order.
            sources: of the sentences.
            stacks: before each step, in place of hypotheses: ``[B, T, N]``.
            dtype: of the factors of the large products.

        Returns:
            Scores of the first step of every sentence, of the second of every sentence that has
            one, and so on.
        """
        rows, counts = step_rows(steps)
        rows = rows.to(last.device)
        embedded = self._dropped(self.embedding(last.flatten().index_select(0, rows)))
        first = self.cells[0]
        own = embedded.shape[1]
        known = Known(
            counts,
            stacks.pushed.flatten(0, 1).index_select(0, rows),
            stacks.removed.flatten(0, 1).index_select(0, rows),
            self._factors(len(rows), self.attention.d_out),
            self._factors(len(self.cells) - 1, len(rows), self.scores.in_features),
        )
        steps_of = fused_steps if self._fused(sources) else known_steps
        states, contexts = steps_of(
            known,
            dtype,
            *sources,
            functional.linear(embedded, first.weight_ih[:, :own], first.bias_ih),
            self.attention.score[0],
            None if self.attention.pushed is None else self.attention.pushed[0],
            [query.get_parameter("weight") for query in self.attention.queries],
            first.weight_ih[:, own:],
            [_of_state(first), *[_of_input(cell) + _of_state(cell) for cell in self.cells[1:]]],
        )
        return self._scored(embedded, states, contexts)

    def _fused(self, sources: Sources) -> bool:
        return kernels.usable(sources.words) and kernels.usable(self.scores.weight)

    def _factors(self, *shape: int) -> Tensor | None:
        """Dropout of these features; None where there is none."""
        p = self.dropout.p
        if not self.training or p == 0 or 0 in shape:
            return None
        weight = self.scores.weight
        if kernels.usable(weight):
            return kernels.dropout_factors(torch.Size(shape), p)
        return weight.new_empty(shape).bernoulli_(1 - p).div_(1 - p)

    def _dropped(self, rows: Tensor) -> Tensor:
        factors = self._factors(*rows.shape)
        return rows if factors is None else rows * factors

    def _read(self, embedded: Tensor, context: Tensor) -> Tensor:
        """What the first layer reads, ``[B, K, 3 d_state]``."""
        cell = self.cells[0]
        return functional.linear(
            torch.cat((embedded, context), dim=2), cell.weight_ih, cell.bias_ih
        )

    def _states(self, read: Tensor, state: Tensor | list[Tensor]) -> list[Tensor]:
        """The states of all layers after a step, each ``[B, K, d_state]``."""
        after: list[Tensor] = []
        for number, (cell, before) in enumerate(zip(self.cells, state, strict=True)):
            if number:
                read = functional.linear(self._dropped(after[-1]), cell.weight_ih, cell.bias_ih)
            kept = functional.linear(before, cell.weight_hh, cell.bias_hh)
            after.append(_gru(read, kept, before))
        return after

    def _scored(self, embedded: Tensor, state: Tensor, context: Tensor) -> Tensor:
        """``g``, of ``[..., width]`` each."""
        known = torch.cat((embedded, self._dropped(state), self._dropped(context)), dim=-1)
        result: Tensor = self.scores(self.hidden(known).tanh())
        return result


class Search:
    """Steps of hypotheses that continue each other."""

    def __init__(self, decoder: ActionDecoder, sources: Sources) -> None:
        self._decoder = decoder
        self._sources = sources
        self._state: Tensor | None = None

    @torch.no_grad()
    def step(self, last: Tensor, parents: Tensor, stacks: Stacks) -> Tensor:
        """Scores of all actions, ``[S, actions]``, of K hypotheses of each of the first sentences.

        Args:
            last: int64 ``[S]``, the action before; the number of actions at the first step.
            parents: int64 ``[S]``, which of the hypotheses of the step before each continues.
            stacks: of the hypotheses, ``[sentences, K, N]``.
        """
        shape = stacks.removed.shape[:2]
        if self._state is None:
            state = self._decoder.start(*shape)
        else:
            state = self._state.index_select(1, parents).unflatten(1, shape)
        sources = Sources(*(part[: shape[0]] for part in self._sources))
        step = self._decoder.step(last.view(shape), state, sources, stacks)
        self._state = step.state.flatten(1, 2)
        return step.scores.flatten(0, 1)


def _of_input(cell: nn.GRUCell) -> list[Tensor]:
    return [cell.get_parameter("weight_ih"), cell.get_parameter("bias_ih")]


def _of_state(cell: nn.GRUCell) -> list[Tensor]:
    return [cell.get_parameter("weight_hh"), cell.get_parameter("bias_hh")]


def step_rows(steps: Tensor) -> tuple[Tensor, list[int]]:
    """Where the steps of sentences are in ``[B, T]``, flattened, step after step.

    Args:
        steps: int64 ``[B]``, how many each sentence has, in falling order.

    Returns:
        int64 ``[steps in all]``, and how many sentences take part in each step.
    """
    longest = int(steps[0])
    taking_part = steps > torch.arange(longest)[:, None]
    number, sentence = taking_part.nonzero(as_tuple=True)
    counts: list[int] = taking_part.sum(dim=1).tolist()
    return sentence * longest + number, counts


def _gru(read: Tensor, kept: Tensor, before: Tensor) -> Tensor:
    """The state of a GRU after a step, from the parts of its sums (torch's order and equations).

    Args:
        read: what its weights make of the input, ``[..., 3 size]``, with the bias.
        kept: what they make of the state, likewise.
        before: the state, ``[..., size]``.
    """
    size = before.shape[-1]
    gates = (read[..., : 2 * size] + kept[..., : 2 * size]).sigmoid()
    reset, update = gates.chunk(2, dim=-1)
    candidate = torch.addcmul(read[..., 2 * size :], reset, kept[..., 2 * size :]).tanh()
    return torch.lerp(candidate, before, update)
