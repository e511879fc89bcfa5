"""Layer norms: the usual one, and that of the code released with Kitaev & Klein 2018.

They differ in what a vector is divided by. For vectors of some width the two are close to each
other, but weights that were trained with one do not work with the other.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from spmrl_bench.nn.choices import LayerNormForm

RELEASED_EPSILON = 1e-3


class ReleasedLayerNorm(nn.Module):
    """``(x - mean) / (s + eps) * weight + bias``, ``s`` the unbiased standard deviation.

    The usual form divides by ``sqrt(variance + 1e-5)`` with the biased variance.
    """

    def __init__(self, width: int, eps: float = RELEASED_EPSILON) -> None:
        super().__init__()
        if width < 2:
            raise ValueError(f"width is {width}; an unbiased deviation needs 2 features or more")
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(width))
        self.bias = nn.Parameter(torch.zeros(width))

    def forward(self, rows: Tensor) -> Tensor:
        """``[tokens, width]`` to the same shape, in the numbers of the weights."""
        rows = rows.to(self.weight.dtype)
        centred = rows - rows.mean(dim=-1, keepdim=True)
        # Unlike that of torch.std, the gradient of a norm is finite where all features are equal.
        length = torch.linalg.vector_norm(centred, dim=-1, keepdim=True)
        deviation = length / math.sqrt(rows.shape[-1] - 1)
        return centred / (deviation + self.eps) * self.weight + self.bias


def layer_norm(width: int, form: LayerNormForm = "usual") -> nn.LayerNorm | ReleasedLayerNorm:
    """The layer norm of this form over ``width`` features."""
    return ReleasedLayerNorm(width) if form == "released" else nn.LayerNorm(width)
