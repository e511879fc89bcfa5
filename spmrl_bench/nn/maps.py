"""Linear maps of token vectors: through one matrix, or content and position by themselves.

In a factored map a token vector is ``[content ; position]``, two halves of equal width, which
never share a matrix (Kitaev & Klein 2018, section 4). In a full map every feature reaches every
other. Both offer the same, so that an encoder is made of either.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn import functional

from spmrl_bench.nn.choices import AttentionStart, Matrices

#: Standard deviation of the attention's weights in version 0.2 of the released code.
UNIFORM_DEVIATION = 0.02


class FactoredLinear(nn.Module):
    """Two linear maps side by side: a block-diagonal matrix over ``[content ; position]``."""

    parts = 2

    def __init__(self, inputs: int, outputs: int, *, bias: bool) -> None:
        super().__init__()
        self.content = nn.Linear(inputs // 2, outputs // 2, bias=bias)
        self.position = nn.Linear(inputs // 2, outputs // 2, bias=bias)

    def forward(self, rows: Tensor) -> Tensor:
        """``[tokens, inputs]`` to ``[tokens, outputs]``."""
        return torch.cat(self._halves(rows), dim=1)

    def to_heads(self, rows: Tensor, heads: int) -> Tensor:
        """``[tokens, inputs]`` to ``[tokens, heads, outputs / heads]``, each head in two halves."""
        content, position = (half.view(len(rows), heads, -1) for half in self._halves(rows))
        return torch.cat((content, position), dim=2)

    def from_heads(self, per_head: Tensor) -> Tensor:
        """``[tokens, heads, inputs / heads]`` to ``[tokens, outputs]``."""
        tokens, heads, width = per_head.shape
        halves = per_head.view(tokens, heads, 2, width // 2).transpose(1, 2)
        return self.forward(halves.reshape(tokens, -1))

    def head_matrices(self, heads: int) -> tuple[Tensor, ...]:
        """The weights of a map to heads, for each half ``[heads, width of it, inputs / 2]``."""
        parts = (self.content.weight, self.position.weight)
        return tuple(weight.unflatten(0, (heads, -1)) for weight in parts)

    def init_heads(self, fans: float) -> None:
        """Draw the weights of an attention's map, see :func:`init_heads`."""
        for part in (self.content, self.position):
            nn.init.normal_(part.weight, std=math.sqrt(2 / fans))

    def _halves(self, rows: Tensor) -> tuple[Tensor, Tensor]:
        content, position = rows.chunk(2, dim=1)
        return self.content(content), self.position(position)


class FullLinear(nn.Linear):
    """One matrix over all features."""

    parts = 1

    def __init__(self, inputs: int, outputs: int, *, bias: bool) -> None:
        super().__init__(inputs, outputs, bias=bias)

    def to_heads(self, rows: Tensor, heads: int) -> Tensor:
        """``[tokens, inputs]`` to ``[tokens, heads, outputs / heads]``."""
        return self.forward(rows).view(len(rows), heads, -1)

    def to_heads_of_two(self, first: Tensor, second: Tensor, heads: int, of_first: int) -> Tensor:
        """As :meth:`to_heads`, but the first ``of_first`` heads read ``first``, the others
        ``second``; for maps without bias."""
        border = of_first * (self.out_features // heads)
        parts = (
            functional.linear(first, self.weight[:border]),
            functional.linear(second, self.weight[border:]),
        )
        return torch.cat(parts, dim=1).view(len(second), heads, -1)

    def from_heads(self, per_head: Tensor) -> Tensor:
        """``[tokens, heads, inputs / heads]`` to ``[tokens, outputs]``."""
        return self.forward(per_head.flatten(1))

    def head_matrices(self, heads: int) -> tuple[Tensor, ...]:
        """The weights of a map to heads, one part of ``[heads, width of a head, inputs]``."""
        return (self.weight.unflatten(0, (heads, -1)),)

    def init_heads(self, fans: float) -> None:
        """Draw the weights of an attention's map, see :func:`init_heads`."""
        nn.init.normal_(self.weight, std=math.sqrt(2 / fans))


class SplitLinear(nn.Module):
    """Two linear maps side by side, of the first features and of the last ones, with biases.

    Args:
        inputs: how many features are the first and how many the last.
        outputs: likewise.
    """

    def __init__(self, inputs: tuple[int, int], outputs: tuple[int, int]) -> None:
        super().__init__()
        self.widths = inputs
        self.first = nn.Linear(inputs[0], outputs[0])
        self.last = nn.Linear(inputs[1], outputs[1])

    def forward(self, rows: Tensor) -> Tensor:
        """``[tokens, inputs]`` to ``[tokens, outputs]``."""
        first, last = rows.split(self.widths, dim=1)
        return torch.cat((self.first(first), self.last(last)), dim=1)


Linear = FactoredLinear | FullLinear
KINDS: dict[Matrices, type[FactoredLinear] | type[FullLinear]] = {
    "factored": FactoredLinear,
    "full": FullLinear,
}


def init_heads(
    project: Linear,
    output: Linear,
    d_model: int,
    heads: int,
    d_kv: int,
    start: AttentionStart = "usual",
) -> None:
    """Draw the weights of an attention's maps to the heads and back.

    ``usual``: Xavier normal over whole ``[heads, inputs, outputs]`` tensors, whose heads and
    features all count as fan, so that attention starts near zero. ``released``: so too, but the map
    back stays as :class:`torch.nn.Linear` begins, uniform within ``1 / sqrt(inputs)``, as in the
    code of 2018. ``version-0.2``: all uniform with the standard deviation 0.02, as there.
    """
    if start == "version-0.2":
        bound = math.sqrt(3) * UNIFORM_DEVIATION
        for weight in (*project.parameters(), *output.parameters()):
            nn.init.uniform_(weight, -bound, bound)
        return
    into, back = head_fans(d_model, heads, d_kv, project.parts)
    project.init_heads(into)
    if start == "usual":
        output.init_heads(back)


def head_fans(d_model: int, heads: int, d_kv: int, parts: int) -> tuple[int, int]:
    """Fans of a map from ``d_model`` to heads, and of one back, of so many parts."""
    width, kv = d_model // parts, d_kv // parts
    return width * kv + heads * kv, kv * width + heads * width
