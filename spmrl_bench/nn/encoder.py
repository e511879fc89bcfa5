"""The self-attentive encoder: content and position of each token, seen through attention layers.

In the factored encoder of Kitaev & Klein 2018 (section 4) content and position never share a
matrix. They meet in two places only: the attention weights (the two query-key products are added
before the softmax) and the layer norms, which run over the whole vector. The other encoders of
the paper differ from it in how position enters, or in the matrices.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager

import torch
from torch import Tensor, nn
from torch.nn import functional

from spmrl_bench.nn import fused_encoder, kernels
from spmrl_bench.nn.choices import (
    AttentionScale,
    AttentionStart,
    ForwardFeatures,
    LayerNormForm,
    Matrices,
    PositionInput,
    PositionTable,
)
from spmrl_bench.nn.encoder_kinds import content_width
from spmrl_bench.nn.limits import OPEN, Limit
from spmrl_bench.nn.maps import KINDS, FullLinear, init_heads
from spmrl_bench.nn.norms import layer_norm as norm_of
from spmrl_bench.nn.positions import position_table as table_of
from spmrl_bench.nn.precision import FLOAT32, Precision, products
from spmrl_bench.nn.ragged import Ragged, SentenceDropout
from spmrl_bench.nn.token_encoder import TokenEncoder


class AttentionHeads(nn.Module):
    """The heads of self-attention, each of which asks from every token of a sentence.

    For head ``h`` the weight of token ``j`` at token ``i`` is
    ``softmax_j(q_i . k_j / sqrt(d_kv))``, or with ``sqrt(d_model)`` in the released code. With
    factored maps queries, keys and values have two halves, so that ``q_i . k_j`` is
    ``q_i^c . k_j^c + q_i^p . k_j^p``; the same weights average the content and the position
    values.
    """

    def __init__(
        self,
        d_model: int,
        heads: int,
        d_kv: int,
        dropout: float,
        matrices: Matrices = "factored",
        scale: AttentionScale = "d_kv",
    ) -> None:
        super().__init__()
        self.heads = heads
        self.d_kv = d_kv
        self.dropout = dropout
        self.factor = 1 / math.sqrt(d_model if scale == "d_model" else d_kv)
        linear = KINDS[matrices]
        self.project = linear(d_model, 3 * heads * d_kv, bias=False)

    def contexts(
        self,
        rows: Tensor,
        layout: Ragged,
        limit: Limit = OPEN,
        asking: Tensor | None = None,
    ) -> Tensor:
        """What each head finds for each token, ``[tokens, heads, d_kv]``.

        Args:
            rows: token vectors.
            layout: which rows form a sentence.
            limit: of what the attention may use.
            asking: ``[tokens, d_model]`` from which queries and keys are computed in place of
                ``rows``, which give the values all the same; with full matrices only.
        """
        if asking is None:
            joined = self.project.to_heads(rows, 3 * self.heads)
        else:
            assert isinstance(self.project, FullLinear)
            joined = self.project.to_heads_of_two(asking, rows, 3 * self.heads, 2 * self.heads)
        spread = layout.spread(joined.flatten(1))
        query, key, value = spread.view(*spread.shape[:2], 3, self.heads, self.d_kv).permute(
            2, 0, 3, 1, 4
        )
        context = functional.scaled_dot_product_attention(
            limit.queries(query),
            key,
            value,
            attn_mask=limit.pairs(layout),
            dropout_p=self.dropout if self.training else 0.0,
            scale=self.factor,
        )
        back = layout.gather(context.transpose(1, 2).flatten(2))
        return back.view(len(rows), self.heads, self.d_kv)

    def weights_of_each(self, rows: Tensor, layout: Ragged) -> list[Tensor]:
        """Of each sentence of ``n`` tokens the weights ``[heads, n, n]``, without any limit."""
        query, key, _ = self.project.to_heads(rows, 3 * self.heads).transpose(0, 1).chunk(3)
        lengths = layout.lengths.tolist()
        pairs = zip(query.split(lengths, dim=1), key.split(lengths, dim=1), strict=True)
        return [(q @ k.transpose(1, 2) * self.factor).softmax(dim=2) for q, k in pairs]


class SelfAttention(AttentionHeads):
    """Multi-head attention over the tokens of a sentence; the heads are joined by a matrix."""

    def __init__(
        self,
        d_model: int,
        heads: int,
        d_kv: int,
        dropout: float,
        matrices: Matrices = "factored",
        scale: AttentionScale = "d_kv",
        start: AttentionStart = "usual",
    ) -> None:
        super().__init__(d_model, heads, d_kv, dropout, matrices, scale)
        self.output = KINDS[matrices](heads * d_kv, d_model, bias=False)
        init_heads(self.project, self.output, d_model, heads, d_kv, start)

    def forward(
        self,
        rows: Tensor,
        layout: Ragged,
        limit: Limit = OPEN,
        asking: Tensor | None = None,
    ) -> Tensor:
        """``[tokens, d_model]`` to ``[tokens, d_model]``, see :meth:`contexts`."""
        return self.output.from_heads(self.contexts(rows, layout, limit, asking))


class EncoderLayer(nn.Module):
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
        matrices: Matrices = "factored",
        attention_scale: AttentionScale = "d_kv",
        layer_norm: LayerNormForm = "usual",
        start: AttentionStart = "usual",
    ) -> None:
        super().__init__()
        self.attention = SelfAttention(
            d_model, heads, d_kv, attention_dropout, matrices, attention_scale, start
        )
        linear = KINDS[matrices]
        self.expand = linear(d_model, d_ff, bias=True)
        self.contract = linear(d_ff, d_model, bias=True)
        self.relu_dropout = SentenceDropout(relu_dropout)
        self.residual_dropout = SentenceDropout(residual_dropout)
        self.attention_norm = norm_of(d_model, layer_norm)
        self.feed_forward_norm = norm_of(d_model, layer_norm)

    def forward(
        self,
        rows: Tensor,
        layout: Ragged,
        limit: Limit = OPEN,
        asking: Tensor | None = None,
    ) -> Tensor:
        """``[tokens, d_model]`` to ``[tokens, d_model]``, see :class:`SelfAttention`."""
        attended = self.attention(rows, layout, limit, asking)
        rows = self.attention_norm(rows + self.residual_dropout(attended, layout))
        hidden = self.expand(rows).relu_()
        contracted = self.contract(self.relu_dropout(hidden, layout))
        return self.feed_forward_norm(rows + self.residual_dropout(contracted, layout))


class Encoder(TokenEncoder):
    """A stack of layers over content and position.

    The position starts as one vector per place in the sentence, learned unless the table is
    sinusoidal; START is place 0, so a sentence of ``n`` words needs ``n + 2`` rows of the table.
    It is joined to the content as the second half of a token vector, or added to it, both of full
    width then. With the matrices of the layers this gives four encoders (Kitaev & Klein 2018,
    sections 3 and 4):

    ==============  ============  =================================================
    position        matrices      in the paper
    ==============  ============  =================================================
    concatenated    factored      the factored encoder
    added           full          the unfactored one
    concatenated    full          concatenation alone
    added           factored      the control: sparse matrices, mixed content
    ==============  ============  =================================================

    A layer norm over the input follows the released code of the paper, which the text does not
    mention; ``input_norm`` leaves it out.

    In position-only layers (section 3) queries and keys come from the rows of the position table
    alone, as they are before they are added to the content and normalised. In the released code
    these rows have a dropout of their own, whose rate is 0 there; here they have none.

    The forward features of a token are the even ones, as the paper says, or the first half of them
    (``forward_features``), as the released code has it where the position is added. There the
    CharLSTM's states after the last character are in the first half of the content and those after
    the first one in the other, so with ``first`` a span takes each from one side, with ``even``
    both from both.
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
        matrices: Matrices = "factored",
        position: PositionInput = "concatenated",
        position_table: PositionTable = "learned",
        position_only_layers: Collection[int] = (),
        attention_scale: AttentionScale = "d_kv",
        layer_norm: LayerNormForm = "usual",
        input_norm: bool = True,
        window: int | None = None,
        relaxed: bool = False,
        forward_features: ForwardFeatures = "even",
        start: AttentionStart = "usual",
    ) -> None:
        super().__init__(d_model, precision, 2 if forward_features == "even" else d_model)
        self.added = position == "added"
        # Whether content and position stay apart; the kernels are made for this.
        self.halves = matrices == "factored" and not self.added
        self.content_width = content_width(d_model, position)
        self.fused = self.halves and layer_norm == "usual" and input_norm
        self.position_only = frozenset(position_only_layers)
        if self.position_only and not (self.added and matrices == "full"):
            raise ValueError(
                "position-only layers need an added position and full matrices, not "
                f"position = '{position}' and matrices = '{matrices}'"
            )
        if absent := {number for number in self.position_only if not 0 <= number < layers}:
            raise ValueError(f"position-only layer {min(absent)}: {_allowed(layers)}")
        self.positions = table_of(position_table, max_positions, content_width(d_model, position))
        self.input_norm = norm_of(d_model, layer_norm) if input_norm else nn.Identity()
        self.layers = nn.ModuleList(
            EncoderLayer(
                d_model,
                heads,
                d_kv,
                d_ff,
                attention_dropout=attention_dropout,
                residual_dropout=residual_dropout,
                relu_dropout=relu_dropout,
                matrices=matrices,
                attention_scale=attention_scale,
                layer_norm=layer_norm,
                start=start,
            )
            for _ in range(layers)
        )
        if start == "version-0.2":  # which makes one layer and copies it, all its weights
            for layer in self.layers[1:]:
                layer.load_state_dict(self.layers[0].state_dict())
        # What training begins with, and ends with too, unless :meth:`limit` is called.
        self.limits = (OPEN if window is None else Limit(window=window, relaxed=relaxed),) * layers
        self.low_weights: dict[Tensor, Tensor] | None = None

    def limit(self, limits: Mapping[int, Limit]) -> None:
        """Limit the attention of some layers from now on; of the others it becomes unlimited.

        Args:
            limits: by layer, the first of which is 0.

        Raises:
            ValueError: there is no such layer, or content and position do not stay apart in it.
        """
        for number, given in limits.items():
            if not 0 <= number < len(self.layers):
                raise ValueError(f"layer {number}: {_allowed(len(self.layers))}")
            if not given.halves and not self.halves:
                raise ValueError(
                    f"layer {number}: the attention to content and to position can be told apart "
                    "only with a concatenated position and factored matrices"
                )
        self.limits = tuple(limits.get(number, OPEN) for number in range(len(self.layers)))

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

    def stack(self, content: Tensor, layout: Ragged) -> Tensor:
        """Content ``[tokens, content_width]`` to ``[tokens, d_model]``."""
        unlimited = all(limit == OPEN for limit in self.limits)
        if self.fused and unlimited and kernels.usable(content):
            return fused_encoder.encode(self, content, layout)
        position = self.positions(layout.position)
        joined = content + position if self.added else torch.cat((content, position), dim=1)
        rows = self.input_norm(joined)
        with products(self.precision, content.device):
            for number, layer in enumerate(self.layers):
                asking = position if number in self.position_only else None
                rows = layer(rows, layout, self.limits[number], asking)
        return rows.to(content.dtype)


def _allowed(layers: int) -> str:
    """Which layers an encoder has, in the words of an error."""
    return f"the encoder's layers are {f'0 to {layers - 1}' if layers else 'none'}"
