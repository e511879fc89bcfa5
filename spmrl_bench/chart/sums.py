"""Shares of parts in sums over all structures: the derivatives of the logarithms of the sums.

What is called the outside pass is the backward pass of any program that sums up (Eisner 2016,
Inside-Outside and Forward-Backward Algorithms Are Just Backprop).
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import reduce
from operator import add

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor


def sum_of(parts: Iterable[Tensor]) -> Tensor:
    """Return the sum of one tensor or more."""
    return reduce(add, parts)


def shares_of(log_sums: Tensor, *weights: Tensor) -> list[NDArray[np.float64]]:
    """Return how much of the sums [B] is that of the structures with each weight."""
    gradients = torch.autograd.grad(log_sums.sum(), weights)
    return [(own * of).detach().numpy() for own, of in zip(weights, gradients, strict=True)]
