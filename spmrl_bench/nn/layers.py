"""Layers that encoders and scorers are made of: linear maps, norms, positions; random weights.

In a factored map a token vector is ``[content ; position]``, two halves of equal width, which
never share a matrix (Kitaev & Klein 2018, section 4). In a full map every feature reaches every
other. Both have the same methods, so that an encoder is made of either.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from typing import Literal

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.modules.module import (
    register_module_buffer_registration_hook,
    register_module_parameter_registration_hook,
)

from spmrl_bench.errors import RecipeError

#: Whether the halves of a token vector, content and position, have matrices of their own.
Matrices = Literal["factored", "full"]
#: The usual layer norm, or that of the code released with Kitaev & Klein 2018.
Norm = Literal["usual", "released"]
#: Random weights of all layers: as each starts, or by one rule.
Initialisation = Literal["usual", "glorot-normal", "glorot-uniform"]

#: Layers whose weights are so many matrices, one below the other.
GATES = {nn.LSTM: 4, nn.LSTMCell: 4, nn.GRU: 3, nn.GRUCell: 3}
#: Numbers of the largest table of sines and cosines, which no file holds.
LARGEST_TABLE = 1 << 25
# What a tensor counts beside its numbers: a million small ones take long to make.
_TENSOR = 1000


@contextmanager
def at_most(numbers: float, error: Exception) -> Iterator[None]:
    """Within it, modules are made of so many numbers in all, or the error is raised before any of
    what is too much is drawn."""

    def take(module: nn.Module, name: str, tensor: Tensor | None) -> None:
        nonlocal numbers
        numbers -= _TENSOR + (0 if tensor is None else tensor.numel())
        if numbers < 0:
            raise error

    with (
        register_module_parameter_registration_hook(take),
        register_module_buffer_registration_hook(take),
    ):
        yield


class FactoredLinear(nn.Module):
    """Two linear maps side by side: a block-diagonal matrix over ``[content ; position]``."""

    parts = 2

    def __init__(self, inputs: int, outputs: int, *, bias: bool) -> None:
        super().__init__()
        self.content = nn.Linear(inputs // 2, outputs // 2, bias=bias)
        self.position = nn.Linear(inputs // 2, outputs // 2, bias=bias)

    def forward(self, rows: Tensor) -> Tensor:
        """``[tokens, inputs]`` to ``[tokens, outputs]``."""
        return self.to_heads(rows, 1).flatten(1)

    def to_heads(self, rows: Tensor, heads: int) -> Tensor:
        """``[tokens, inputs]`` to ``[tokens, heads, outputs / heads]``, each head in two halves."""
        content, position = rows.chunk(2, dim=1)
        halves = self.content(content), self.position(position)
        return torch.cat([half.view(len(rows), heads, -1) for half in halves], dim=2)

    def from_heads(self, per_head: Tensor) -> Tensor:
        """``[tokens, heads, inputs / heads]`` to ``[tokens, outputs]``."""
        halves = per_head.unflatten(2, (2, -1)).transpose(1, 2)
        return self.forward(halves.reshape(len(per_head), -1))

    def head_matrices(self, heads: int) -> tuple[Tensor, ...]:
        """The weights of a map to heads, for each half ``[heads, width of it, inputs / 2]``."""
        halves = (self.content, self.position)
        return tuple(half.weight.unflatten(0, (heads, -1)) for half in halves)


class FullLinear(nn.Linear):
    """One matrix over all features."""

    parts = 1

    def to_heads(self, rows: Tensor, heads: int) -> Tensor:
        return self.forward(rows).view(len(rows), heads, -1)

    def from_heads(self, per_head: Tensor) -> Tensor:
        return self.forward(per_head.flatten(1))

    def head_matrices(self, heads: int) -> tuple[Tensor, ...]:
        return (self.weight.unflatten(0, (heads, -1)),)


Linear = FactoredLinear | FullLinear
LINEAR: Mapping[Matrices, type[Linear]] = {"factored": FactoredLinear, "full": FullLinear}


def init_heads(linear: Linear, heads: int, d_kv: int, *, back: bool = False) -> None:
    """Draw an attention's map to heads, or back from them, Xavier normal, with the fans of whole
    ``[heads, inputs, outputs]`` tensors, so that attention starts near zero (the released code)."""
    kv = d_kv // linear.parts
    for weight in linear.parameters():
        width = weight.shape[0 if back else 1]
        nn.init.normal_(weight, std=math.sqrt(2 / (width * kv + heads * (width if back else kv))))


class ReleasedLayerNorm(nn.LayerNorm):
    """``(x - mean) / (s + 0.001) * weight + bias``, ``s`` the unbiased standard deviation."""

    def __init__(self, width: int) -> None:
        if width < 2:
            raise ValueError(f"width is {width}; an unbiased deviation needs 2 features or more")
        super().__init__(width, eps=1e-3)

    def forward(self, rows: Tensor) -> Tensor:
        rows = rows.to(self.weight.dtype)
        centred = rows - rows.mean(dim=-1, keepdim=True)
        # Unlike that of torch.std, the gradient of a norm is finite where all features are equal.
        length = torch.linalg.vector_norm(centred, dim=-1, keepdim=True)
        deviation = length / math.sqrt(rows.shape[-1] - 1)
        return centred / (deviation + self.eps) * self.weight + self.bias


def layer_norm(width: int, form: Norm = "usual") -> nn.LayerNorm:
    return ReleasedLayerNorm(width) if form == "released" else nn.LayerNorm(width)


class SinusoidalPositions(nn.Module):
    """The table of Vaswani et al. 2017 (section 3.5), without parameters and not saved: feature
    ``2 i`` of place ``p`` is ``sin(p / 10000^(2 i / width))``, feature ``2 i + 1`` the cosine."""

    weight: Tensor

    def __init__(self, places: int, width: int) -> None:
        super().__init__()
        if places > LARGEST_TABLE // width:
            raise RecipeError(
                f"max_positions = {places} makes a sinusoidal table of more than {LARGEST_TABLE} "
                f"numbers; of this width it can have {LARGEST_TABLE // width} rows"
            )
        angles = np.arange(places)[:, None] / 10000.0 ** (np.arange(0, width, 2) / width)
        table = np.stack((np.sin(angles), np.cos(angles)), axis=2, dtype=np.float32)
        rows = torch.from_numpy(table.reshape(places, -1))
        self.register_buffer("weight", rows, persistent=False)

    def forward(self, places: Tensor) -> Tensor:
        return functional.embedding(places, self.weight)


@torch.no_grad()
def initialise(
    module: nn.Module, rule: Initialisation, kept: Collection[nn.Parameter] = ()
) -> None:
    """Draw the weights of a module anew, in place; nothing if ``usual``.

    Zhang et al. 2017 (section 4) draw all weights from a normal distribution with mean 0 whose
    *variance* they print as ``sqrt(6 / (rows + columns))`` (``glorot-normal``). That is the *bound*
    of the uniform distribution of Glorot & Bengio 2010 (formula 16), which they probably mean
    (``glorot-uniform``). Of more than two axes the last two count. Rows of an embedding that are
    zero stay so, biases become zero; other vectors stay, and what is ``kept``.
    """
    if rule == "usual":
        return
    left = set(map(id, kept))
    for part in module.modules():
        gates = next((n for cell, n in GATES.items() if isinstance(part, cell)), 1)
        for name, weight in part.named_parameters(recurse=False):
            if id(weight) not in left and name.startswith("bias"):
                weight.zero_()
            elif id(weight) not in left and weight.dim() >= 2:
                bound = math.sqrt(6 / (weight.shape[-2] // gates + weight.shape[-1]))
                unseen = isinstance(part, nn.Embedding) & (weight == 0).all(dim=-1, keepdim=True)
                if rule == "glorot-normal":
                    weight.normal_(std=math.sqrt(bound))
                else:
                    weight.uniform_(-bound, bound)
                weight.masked_fill_(unseen, 0)
