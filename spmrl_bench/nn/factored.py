"""Factored self-attention: content and position never share a matrix.

A token vector is ``[content ; position]``, two halves of equal width. Every linear map of a
layer acts on each half by itself; the halves meet in two places only: the attention weights
(the two query-key products are added before the softmax) and the layer norms, which run over
the whole vector. Source: Kitaev & Klein 2018, section 4.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn
from torch.nn import functional

from spmrl_bench.nn import fused_encoder, kernels
from spmrl_bench.nn.precision import FLOAT32, Precision, products
from spmrl_bench.nn.ragged import Ragged, SentenceDropout


class FactoredLinear(nn.Module):
    """Two linear maps side by side: a block-diagonal matrix over ``[content ; position]``."""

    def __init__(self, inputs: int, outputs: int, *, bias: bool) -> None:
        super().__init__()
        self.content = nn.Linear(inputs // 2, outputs // 2, bias=bias)
        self.position = nn.Linear(inputs // 2, outputs // 2, bias=bias)

    def forward(self, rows: Tensor) -> tuple[Tensor, Tensor]:
        """``[tokens, inputs]`` to the two halves, each ``[tokens, outputs / 2]``."""
        content, position = rows.chunk(2, dim=1)
        return self.content(content), self.position(position)


class FactoredAttention(nn.Module):
    """Multi-head attention with per-head queries, keys and values of two halves.

    For head ``h`` the weight of token ``j`` at token ``i`` is
    ``softmax_j((q_i^c . k_j^c + q_i^p . k_j^p) / sqrt(d_kv))``; the same weights average the
    content and the position values. Concatenating the halves of each head makes both sums
    one dot product.
    """

    def __init__(self, d_model: int, heads: int, d_kv: int, dropout: float) -> None:
        super().__init__()
        self.heads = heads
        self.d_kv = d_kv
        self.dropout = dropout
        self.project = FactoredLinear(d_model, 3 * heads * d_kv, bias=False)
        self.output = FactoredLinear(heads * d_kv, d_model, bias=False)
        # Xavier normal over whole [heads, inputs, outputs] tensors, as in version 0.2 of the
        # released code (2018: queries, keys and values only): the heads and features of the
        # tensor all count as fan, so attention starts near zero.
        half, width = d_kv // 2, d_model // 2
        for linear, fans in (
            (self.project, width * half + heads * half),
            (self.output, half * width + heads * width),
        ):
            for part in (linear.content, linear.position):
                nn.init.normal_(part.weight, std=math.sqrt(2 / fans))

    def forward(self, rows: Tensor, layout: Ragged, slots: Tensor, filled: Tensor) -> Tensor:
        """``[tokens, d_model]`` to ``[tokens, d_model]``.

        Args:
            rows: token vectors.
            layout: which rows form a sentence.
            slots: ``layout.slots()``.
            filled: ``layout.filled()``; keys outside it get no weight.
        """
        tokens, half = rows.shape[0], self.d_kv // 2
        content, position = self.project(rows)
        halves = (
            content.view(tokens, 3 * self.heads, half),
            position.view(tokens, 3 * self.heads, half),
        )
        joined = torch.cat(halves, dim=2).view(tokens, -1)
        spread = layout.spread(joined, slots)
        query, key, value = spread.view(*spread.shape[:2], 3, self.heads, self.d_kv).permute(
            2, 0, 3, 1, 4
        )
        context = functional.scaled_dot_product_attention(
            query,
            key,
            value,
            attn_mask=filled[:, None, None, :],
            dropout_p=self.dropout if self.training else 0.0,
        )
        back = layout.gather(context.transpose(1, 2).flatten(2), slots)
        per_head = back.view(tokens, self.heads, 2, half).transpose(1, 2)
        return torch.cat(self.output(per_head.reshape(tokens, -1)), dim=1)


class FactoredLayer(nn.Module):
    """Attention and feed-forward sublayers, each ``LayerNorm(x + dropout(sublayer(x)))``."""

    def __init__(
        self,
        d_model: int,
        heads: int,
        d_kv: int,
        d_ff: int,
        *,
        attention_dropout: float,
        residual_dropout: float,
        relu_dropout: float,
    ) -> None:
        super().__init__()
        self.attention = FactoredAttention(d_model, heads, d_kv, attention_dropout)
        self.expand = FactoredLinear(d_model, d_ff, bias=True)
        self.contract = FactoredLinear(d_ff, d_model, bias=True)
        self.relu_dropout = SentenceDropout(relu_dropout)
        self.residual_dropout = SentenceDropout(residual_dropout)
        self.attention_norm = nn.LayerNorm(d_model)
        self.feed_forward_norm = nn.LayerNorm(d_model)

    def forward(self, rows: Tensor, layout: Ragged, slots: Tensor, filled: Tensor) -> Tensor:
        """``[tokens, d_model]`` to ``[tokens, d_model]``."""
        attended = self.attention(rows, layout, slots, filled)
        rows = self.attention_norm(rows + self.residual_dropout(attended, layout))
        hidden = torch.cat(self.expand(rows), dim=1).relu_()
        contracted = torch.cat(self.contract(self.relu_dropout(hidden, layout)), dim=1)
        return self.feed_forward_norm(rows + self.residual_dropout(contracted, layout))


class FactoredEncoder(nn.Module):
    """A stack of factored layers over ``[content ; position]`` inputs.

    The position half starts as one learned vector per place in the sentence; START is place
    0, so a sentence of ``n`` words needs ``n + 2`` rows of the table. A layer norm over the
    joined input follows the released code of the paper, which the text does not mention.
    """

    def __init__(
        self,
        d_model: int,
        layers: int,
        heads: int,
        d_kv: int,
        d_ff: int,
        max_positions: int,
        *,
        attention_dropout: float,
        residual_dropout: float,
        relu_dropout: float,
        precision: Precision = FLOAT32,
    ) -> None:
        super().__init__()
        self.precision = precision
        self.positions = nn.Embedding(max_positions, d_model // 2)
        self.input_norm = nn.LayerNorm(d_model)
        self.layers = nn.ModuleList(
            FactoredLayer(
                d_model,
                heads,
                d_kv,
                d_ff,
                attention_dropout=attention_dropout,
                residual_dropout=residual_dropout,
                relu_dropout=relu_dropout,
            )
            for _ in range(layers)
        )
        self.low_weights: dict[Tensor, Tensor] | None = None

    @contextmanager
    def steady_weights(self) -> Iterator[None]:
        """Within it nobody changes the weights, so that they are rounded to bfloat16 only once.

        They cannot be kept for longer: fused optimisers change weights without leaving a trace
        in their version number.
        """
        self.low_weights = {}
        try:
            yield
        finally:
            self.low_weights = None

    def forward(self, content: Tensor, layout: Ragged) -> Tensor:
        """Content ``[tokens, d_model / 2]`` to encoded tokens ``[tokens, d_model]``."""
        if kernels.usable(content):
            return fused_encoder.encode(self, content, layout)
        joined = torch.cat((content, self.positions(layout.position)), dim=1)
        rows = self.input_norm(joined)
        slots, filled = layout.slots(), layout.filled()
        with products(self.precision, content.device):
            for layer in self.layers:
                rows = layer(rows, layout, slots, filled)
        return rows.to(content.dtype)
