"""What stands for a place in the sentence: a learned vector, or sines and cosines.

Kitaev & Klein 2018 (appendix A) found learned vectors to be better, so they are the default.
Both kinds are tables with a row for each place, and end with it: a longer sentence is an error.
"""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from spmrl_bench.nn.choices import PositionTable

#: The longest wave is this many times as long as the shortest, at the limit of many features.
BASE = 10000.0
# Computed at once.
_ROWS = 4096


def sinusoids(places: int, width: int, first: int = 0) -> NDArray[np.float64]:
    """The fixed table of Vaswani et al. 2017 (section 3.5), ``[places - first, width]``.

    Feature ``2 i`` of place ``p`` is ``sin(p / 10000^(2 i / width))``, feature ``2 i + 1`` the
    cosine of the same angle. The width is even.
    """
    angles = np.arange(first, places)[:, None] / BASE ** (np.arange(0, width, 2) / width)
    table = np.empty((places - first, width))
    table[:, 0::2], table[:, 1::2] = np.sin(angles), np.cos(angles)
    return table


class SinusoidalPositions(nn.Module):
    """A table like ``nn.Embedding``, which has no parameters and is not saved."""

    weight: Tensor

    def __init__(self, places: int, width: int) -> None:
        super().__init__()
        self.embedding_dim = width
        # Made before it is filled: whoever bounds what a model may take is asked first.
        table = torch.empty(places, width)
        for first in range(0, places, _ROWS):
            rows = sinusoids(min(places, first + _ROWS), width, first)
            table[first : first + _ROWS] = torch.from_numpy(rows).float()
        self.register_buffer("weight", table, persistent=False)

    def forward(self, places: Tensor) -> Tensor:
        """int64 ``[tokens]`` to ``[tokens, width]``."""
        return functional.embedding(places, self.weight)


def position_table(
    kind: PositionTable, places: int, width: int
) -> nn.Embedding | SinusoidalPositions:
    """A table of this kind; learned vectors start standard normal, as in the released code."""
    if kind == "sinusoidal":
        return SinusoidalPositions(places, width)
    return nn.Embedding(places, width)
