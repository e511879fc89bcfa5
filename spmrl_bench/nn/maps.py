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

from spmrl_bench.nn.choices import Matrices


class FactoredLinear(nn.Module):
    """Two linear maps side by side: a block-diagonal matrix over ``[content ; position]``."""

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

    def init_heads(self, fans: float) -> None:
        """Draw the weights of an attention's map, see :func:`init_heads`."""
        for part in (self.content, self.position):
            nn.init.normal_(part.weight, std=math.sqrt(2 / fans))

    def _halves(self, rows: Tensor) -> tuple[Tensor, Tensor]:
        content, position = rows.chunk(2, dim=1)
        return self.content(content), self.position(position)


class FullLinear(nn.Linear):
    """One matrix over all features."""

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

    def init_heads(self, fans: float) -> None:
        """Draw the weights of an attention's map, see :func:`init_heads`."""
        nn.init.normal_(self.weight, std=math.sqrt(2 / fans))


Linear = FactoredLinear | FullLinear
KINDS: dict[Matrices, type[FactoredLinear] | type[FullLinear]] = {
    "factored": FactoredLinear,
    "full": FullLinear,
}


def init_heads(project: Linear, output: Linear, d_model: int, heads: int, d_kv: int) -> None:
    """Xavier normal over whole ``[heads, inputs, outputs]`` tensors, as in the released code.

    Version 0.2 of it does so (2018: queries, keys and values only). The heads and features of
    the tensor all count as fan, so attention starts near zero.
    """
    parts = 2 if isinstance(project, FactoredLinear) else 1
    width, kv = d_model // parts, d_kv // parts
    project.init_heads(width * kv + heads * kv)
    output.init_heads(kv * width + heads * width)
