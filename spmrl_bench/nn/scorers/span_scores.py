"""Label scores of spans from fencepost vectors.

A span ``[i, j)`` is the difference of its two fenceposts, scored by a small network
``W2 relu(LayerNorm(W1 (f_j - f_i) + b1)) + b2`` (Kitaev & Klein 2018, section 2, after
Stern et al. 2017). Since ``W1`` is linear it is applied once per fencepost and the results
are subtracted: ``n + 1`` products for a sentence instead of ``n (n + 1) / 2``.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor, nn
from torch.nn import functional

from spmrl_bench.nn.kernels import by_rounded_rows
from spmrl_bench.nn.layers import Norm, layer_norm
from spmrl_bench.nn.settings import Settings, Width

# Cells scored at once without a gradient: they fit a CPU's cache, or keep a GPU busy.
BLOCK = 1024
GPU_BLOCK = 1 << 16


def fenceposts(encoded: Tensor, left: Tensor, block: int = 2) -> Tensor:
    """Fencepost vectors ``[fenceposts, d_out]`` from encoded tokens: the forward part of the token
    on its left, rows of which are ``left``, then the backward part of the next. The first half of
    each ``block`` of features is the forward part."""
    forward, backward = encoded.unflatten(1, (-1, 2, block // 2)).unbind(2)
    parts = (forward.index_select(0, left), backward.index_select(0, left + 1))
    return torch.cat(parts, dim=1).flatten(1)


class SpanScorer(nn.Module):
    """Scores of all labels but the empty one, whose score is zero (Gaddy et al. 2018)."""

    class Config(Settings):
        """Settings of the span scorer."""

        d_hidden: Width
        """Width of the hidden layer."""
        layer_norm: Norm = "usual"
        """As of the encoder ``attention``."""

    def __init__(self, config: Config, d_model: int, labels: int) -> None:
        """``labels`` counts the empty one too."""
        super().__init__()
        self.first = nn.Linear(d_model, config.d_hidden)
        self.norm = layer_norm(config.d_hidden, config.layer_norm)
        self.second = nn.Linear(config.d_hidden, labels - 1)

    def project(self, posts: Tensor) -> Tensor:
        """The linear part of the first layer, ``[fenceposts, d_hidden]``, without bias."""
        return by_rounded_rows(lambda rows: functional.linear(rows, self.first.weight), posts)

    def hidden(self, projected: Tensor, start: Tensor, end: Tensor) -> Tensor:
        """Hidden layer ``[spans, d_hidden]`` of the spans between rows of ``projected``."""
        # In place: a block stays in the cache.
        difference = projected.index_select(0, end).sub_(projected.index_select(0, start))
        return self.norm(difference.add_(self.first.bias)).relu_()

    @torch.no_grad()
    def blocks(self, projected: Tensor, start: Tensor, end: Tensor) -> Iterator[Tensor]:
        """Scores ``[some spans, labels - 1]`` of many spans, in order."""
        size = BLOCK if projected.device.type == "cpu" else GPU_BLOCK
        for from_rows, to_rows in zip(start.split(size), end.split(size), strict=True):
            yield by_rounded_rows(self.second, self.hidden(projected, from_rows, to_rows))

    def chosen_scores(
        self, projected: Tensor, start: Tensor, end: Tensor, labels: Tensor
    ) -> Tensor:
        """Score ``[spans]`` of one label (1 or higher) for each span, with a gradient."""
        hidden = self.hidden(projected, start, end)
        weights = self.second.weight.index_select(0, labels - 1)
        return (hidden * weights).sum(dim=1) + self.second.bias.index_select(0, labels - 1)
