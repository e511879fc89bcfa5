"""Sentences of different length in one tensor, without padding.

Padding every sentence of a batch to the longest wastes arithmetic in each token-wise layer.
Here the tokens of a batch lie one after the other, ``[tokens, features]``, beside an index
that says which sentence each belongs to; only attention, which compares tokens of one
sentence, spreads them over a rectangle and back.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn


@dataclass(frozen=True)
class Ragged:
    """How the rows of a ``[tokens, ...]`` tensor divide into sentences.

    Attributes:
        lengths: int64 ``[sentences]``, tokens of each sentence.
        sentence: int64 ``[tokens]``, the sentence of each row.
        position: int64 ``[tokens]``, 0-based place of each row in its sentence.
        longest: tokens of the longest sentence.
    """

    lengths: Tensor
    sentence: Tensor
    position: Tensor
    longest: int

    @classmethod
    def of(cls, lengths: NDArray[np.int64], device: torch.device) -> Ragged:
        """The layout of sentences with these lengths, in this order."""
        starts = np.repeat(np.cumsum(lengths) - lengths, lengths)
        sentence = np.repeat(np.arange(len(lengths)), lengths)
        position = np.arange(int(lengths.sum())) - starts
        return cls(
            torch.from_numpy(lengths).to(device),
            torch.from_numpy(sentence).to(device),
            torch.from_numpy(position).to(device),
            int(lengths.max()),
        )

    @cached_property
    def slots(self) -> Tensor:
        """int64 ``[tokens]``: where each row lies in the flattened ``[sentences * longest]``."""
        return self.sentence * self.longest + self.position

    def spread(
        self, rows: Tensor, sentences: int | None = None, longest: int | None = None
    ) -> Tensor:
        """``[tokens, features]`` to ``[sentences, longest, features]``, zero where empty.

        ``sentences`` and ``longest`` may be larger than those of this layout.
        """
        high = len(self.lengths) if sentences is None else sentences
        wide = self.longest if longest is None else longest
        slots = self.slots if wide == self.longest else self.sentence * wide + self.position
        flat = rows.new_zeros(high * wide, rows.shape[1])
        return flat.index_copy(0, slots, rows).view(high, wide, -1)

    def gather(self, rectangle: Tensor) -> Tensor:
        """The inverse of :meth:`spread`."""
        return rectangle.reshape(-1, rectangle.shape[-1]).index_select(0, self.slots)

    @cached_property
    def filled(self) -> Tensor:
        """bool ``[sentences, longest]``: which cells of the rectangle hold a token."""
        columns = torch.arange(self.longest, device=self.lengths.device)
        return columns < self.lengths[:, None]

    @cached_property
    def words(self) -> Tensor:
        """int64 ``[words]``: the rows between START and STOP, the first and last of a sentence."""
        last = self.lengths.index_select(0, self.sentence) - 1
        return ((self.position > 0) & (self.position < last)).nonzero().squeeze(1)


class TokenDropout(nn.Module):
    """Dropout with a mask of its own for each token, as of ``nn.Dropout``."""

    def __init__(self, p: float) -> None:
        super().__init__()
        self.p = p

    def forward(self, rows: Tensor, layout: Ragged) -> Tensor:
        """``[tokens, features]`` to the same shape; the identity outside training."""
        return nn.functional.dropout(rows, self.p, self.training)


class SentenceDropout(nn.Module):
    """Dropout with one mask per sentence and feature, shared by all tokens of the sentence.

    Kitaev & Klein 2018 use it for embeddings, residual branches and feed-forward
    activations, so that a feature is absent from a whole sentence or not at all.
    """

    def __init__(self, p: float) -> None:
        super().__init__()
        self.p = p

    def forward(self, rows: Tensor, layout: Ragged) -> Tensor:
        """``[tokens, features]`` to the same shape; the identity outside training."""
        if not self.training or self.p == 0:
            return rows
        keep = 1 - self.p
        mask = rows.new_empty(len(layout.lengths), rows.shape[1]).bernoulli_(keep).div_(keep)
        return rows * mask.index_select(0, layout.sentence)
