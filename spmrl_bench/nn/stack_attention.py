"""Attention that knows the stack: what a transition parser looks at before each action.

A decoder that writes the actions of a parse looks back at the encoded words. What matters there
depends on the state of the parser, which a plain sequence-to-sequence network does not see. Zhang,
Liu, Li, Zhou & Chen 2017 (D17-1175, section 3) tell it which words have been pushed on the stack
(``s``) and which have been removed from it (``r``), and let it look several times, each time
knowing what it saw before. With the decoder's state ``z``, the encoded words ``h_t`` and the
context ``c^m`` of layer ``m``::

    e^1_t = v . tanh(W^1 z            + U h_t + s_t S)
    e^m_t = v . tanh(W^m [z; c^(m-1)] + U h_t + s_t S)         m > 1
    a^m_t = softmax over the words that have not been removed (e^m_t)
    c^m   = sum_t a^m_t h_t                                    c = [c^1; ...; c^l]

``U``, ``S`` and ``v`` have no number of a layer there, and are shared. ``U h_t`` is the same at
every step and computed once. Without ``s``, ``r`` and with one layer this is the attention of
Bahdanau et al. 2015, and the parser a plain sequence-to-sequence network.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor, nn


class Sources(NamedTuple):
    """The encoded words of B sentences, as attention reads them at every step."""

    words: Tensor
    """``[B, N, d_words]``, zero beyond a sentence."""
    keys: Tensor
    """``[B, N, d_attention]``, ``U h_t``."""


class Stacks(NamedTuple):
    """What has become of the words in K states of each of B sentences."""

    pushed: Tensor
    """float32 ``[B, K, N]``, 1 for words that have been pushed on the stack."""
    removed: Tensor
    """bool ``[B, K, N]``, for words that have been removed from it, and beyond a sentence."""


class StackAttention(nn.Module):
    """Layers of additive attention over the words of a sentence.

    Attributes:
        d_out: width of the context, that of all layers side by side.
    """

    def __init__(
        self, d_words: int, d_state: int, d_attention: int, layers: int, *, pushed: bool
    ) -> None:
        """Random weights.

        Args:
            d_words: width of an encoded word.
            d_state: width of the decoder's state.
            d_attention: width of the sums that tanh is taken of.
            layers: how many contexts there are, one at least.
            pushed: whether words on the stack are told from those that wait.
        """
        super().__init__()
        self.d_out = layers * d_words
        self.key = nn.Linear(d_words, d_attention, bias=False)
        widths = [d_state, *[d_state + d_words] * (layers - 1)]
        self.queries = nn.ModuleList([nn.Linear(w, d_attention, bias=False) for w in widths])
        self.score = nn.Parameter(torch.empty(1, d_attention))
        nn.init.normal_(self.score, std=d_attention**-0.5)
        self.pushed: nn.Parameter | None = None
        if pushed:
            self.pushed = nn.Parameter(torch.empty(1, d_attention))
            nn.init.normal_(self.pushed, std=d_attention**-0.5)

    def sources(self, words: Tensor) -> Sources:
        """What all steps read of the words ``[B, N, d_words]``."""
        return Sources(words.contiguous(), self.key(words))

    def forward(self, states: Tensor, sources: Sources, stacks: Stacks) -> tuple[Tensor, Tensor]:
        """Contexts ``[B, K, d_out]`` and weights ``[B, K, layers, N]``.

        Args:
            states: of the decoder, ``[B, K, d_state]``.
            sources: of the sentences.
            stacks: of the states; in each at least one word must not have been removed.
        """
        contexts: list[Tensor] = []
        weights = []
        pushed = self.pushed
        for query in self.queries:
            asked = query(torch.cat((states, *contexts[-1:]), dim=2))
            energies = _activated(sources.keys, asked, stacks.pushed, pushed) @ self.score[0]
            found = energies.masked_fill(stacks.removed, -torch.inf).softmax(dim=2)
            weights.append(found)
            contexts.append(found @ sources.words)
        return torch.cat(contexts, dim=2), torch.stack(weights, dim=2)


def _activated(keys: Tensor, asked: Tensor, stacked: Tensor, pushed: Tensor | None) -> Tensor:
    """``tanh(keys + asked + s S)``, ``[B, K, N, d_attention]``."""
    sums = keys.unsqueeze(1) + asked.unsqueeze(2)
    if pushed is not None:
        sums.addcmul_(stacked.unsqueeze(3), pushed)
    return sums.tanh_()
