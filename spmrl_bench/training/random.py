"""Independent random streams from one seed.

Each stream (weights, data order, UNK replacement, dropout, substitution) is a pure function of
the seed and of where training is, so a resumed run draws what an uninterrupted one would, and
using more numbers in one place does not shift another.
"""

from __future__ import annotations

import enum

import numpy as np
import torch


class Stream(enum.IntEnum):
    """What a stream is for; the numbers are part of what a seed means, so never renumber."""

    WEIGHTS = 0
    ORDER = 1
    UNK = 2
    DROPOUT = 3
    SUBSTITUTION = 4
    SUBSET = 5


def generator(seed: int, stream: Stream, *place: int) -> np.random.Generator:
    """NumPy generator of a stream at a place such as ``(epoch, batch)``."""
    return np.random.default_rng([seed, int(stream), *place])


def seed_torch(seed: int, stream: Stream, *place: int) -> None:
    """Start torch's default generators at a stream's place."""
    torch.manual_seed(int(generator(seed, stream, *place).integers(2**62)))
