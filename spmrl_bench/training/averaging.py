"""A moving average of the weights, to be scored and kept in place of the last ones.

Steps at a steady rate wander around a good place, and the mean of where they were lies nearer to
it than the last of them (Polyak & Juditsky 1992). The mean here moves along: after step ``t`` it is
``d * mean + (1 - d) * weights`` with ``d = min(decay, (t + 1) / (t + 10))``, so that the random
weights of the start are forgotten soon however slow the decay is.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import nn


class WeightAverage:
    """The average of the weights of a module while it is trained.

    Attributes:
        means: of each weight, by its name in the module.
    """

    def __init__(self, module: nn.Module, decay: float) -> None:
        self.decay = decay
        self._weights = dict(module.named_parameters())
        self.means = {name: weight.detach().clone() for name, weight in self._weights.items()}

    @torch.no_grad()
    def update(self, step: int) -> None:
        """Take in the weights after an optimiser step, the first of which is 1."""
        share = 1 - min(self.decay, (step + 1) / (step + 10))
        torch._foreach_lerp_(list(self.means.values()), list(self._weights.values()), share)

    @contextmanager
    def in_place(self) -> Iterator[None]:
        """While this is open the module has the average, and its own weights again after it."""
        self._exchange()
        try:
            yield
        finally:
            self._exchange()

    @torch.no_grad()
    def _exchange(self) -> None:
        for name, weight in self._weights.items():
            own = weight.clone()
            weight.copy_(self.means[name])
            self.means[name].copy_(own)
