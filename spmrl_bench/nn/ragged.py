"""Sentences of different length in one tensor, one token after the other, ``[tokens, features]``;
only attention, which compares tokens of one sentence, pads them to a rectangle and back."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn


@dataclass(frozen=True)
class Ragged:
    """How the rows of a ``[tokens, ...]`` tensor divide into sentences; indices are int64."""

    lengths: Tensor
    """``[sentences]``, tokens of each."""
    sentence: Tensor
    """``[tokens]``, that of each row."""
    position: Tensor
    """``[tokens]``, place of each row in its sentence, from 0."""
    longest: int

    @classmethod
    def of(cls, lengths: NDArray[np.int64], device: torch.device) -> Ragged:
        sentence = np.repeat(np.arange(len(lengths)), lengths)
        position = np.arange(len(sentence)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        first, second, third = map(torch.from_numpy, (lengths, sentence, position))
        return cls(first.to(device), second.to(device), third.to(device), int(lengths.max()))

    def pad(self, rows: Tensor, sentences: int | None = None, longest: int | None = None) -> Tensor:
        """``[tokens, features]`` to ``[sentences, longest, features]`` or more, 0 elsewhere."""
        high, wide = sentences or len(self.lengths), longest or self.longest
        flat = rows.new_zeros(high * wide, rows.shape[1])
        return flat.index_copy(0, self.cells(wide), rows).view(high, wide, -1)

    def unpad(self, rectangle: Tensor) -> Tensor:
        """The inverse of :meth:`pad`, from a rectangle that may be larger than this layout's."""
        cells = self.cells(rectangle.shape[1])
        return rectangle.reshape(-1, rectangle.shape[-1]).index_select(0, cells)

    def cells(self, longest: int) -> Tensor:
        """int64 ``[tokens]``: where each row lies in a flattened ``[sentences * longest]``."""
        return self.sentence * longest + self.position

    @cached_property
    def mask(self) -> Tensor:
        """bool ``[sentences, longest]``: which cells of the rectangle hold a token."""
        columns = torch.arange(self.longest, device=self.lengths.device)
        return columns < self.lengths[:, None]

    @cached_property
    def words(self) -> Tensor:
        """int64 ``[words]``: the rows between START and STOP, the first and last of a sentence."""
        last = self.lengths.index_select(0, self.sentence) - 1
        return ((self.position > 0) & (self.position < last)).nonzero().squeeze(1)


class SentenceDropout(nn.Module):
    """Dropout with one mask per sentence and feature, shared by its tokens."""

    def __init__(self, p: float) -> None:
        super().__init__()
        self.p = p

    def forward(self, rows: Tensor, layout: Ragged) -> Tensor:
        if not self.training or self.p == 0:
            return rows
        keep = 1 - self.p
        mask = rows.new_empty(len(layout.lengths), rows.shape[1]).bernoulli_(keep).div_(keep)
        return rows * mask.index_select(0, layout.sentence)
