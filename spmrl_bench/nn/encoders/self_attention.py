"""The self-attentive encoder: content and position of each token, seen through attention layers.

In the factored encoder of Kitaev & Klein 2018 (section 4) content and position never share a
matrix. They meet in the attention weights alone, as the two query-key products are added before the
softmax, and in the layer norms, which run over the whole vector. Attention can be masked, in
training or in a trained encoder: one of the two products (table 1), or all pairs of tokens that lie
farther apart than a window (tables 2 and 3).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal, Self

import torch
from pydantic import Field, model_validator
from torch import Tensor, nn
from torch.nn import functional

from spmrl_bench.errors import UnsupportedError
from spmrl_bench.nn import kernels
from spmrl_bench.nn.encoders import PARTS, Encoder, Part
from spmrl_bench.nn.kernels import autocast
from spmrl_bench.nn.kernels.encoder import encode
from spmrl_bench.nn.layers import (
    LINEAR,
    Matrices,
    Norm,
    SinusoidalPositions,
    init_heads,
    layer_norm,
)
from spmrl_bench.nn.ragged import Ragged, SentenceDropout
from spmrl_bench.nn.settings import Even, Layers, Precision, Rate, Settings

#: Whose square root divides the products of queries and keys.
Scale = Literal["d_kv", "d_model"]
#: Random weights of attention.
Start = Literal["usual", "released", "version-0.2"]

#: Standard deviation of the attention's weights in version 0.2 of the released code.
UNIFORM_DEVIATION = 0.02
#: Tokens at either end of a sentence that a relaxed window does not bind: START and the first
#: word, the last word and STOP.
EXEMPT = 2


@dataclass(frozen=True, slots=True)
class AttentionMask:
    """What the attention of a layer may use."""

    content: bool = True
    position: bool = True
    """Whether this product of queries and keys counts."""
    window: int | None = None
    """Largest distance of two tokens that see each other; None for any."""
    relaxed: bool = False
    """Whether the tokens at the ends of a sentence see all, and are seen by all."""

    def __post_init__(self) -> None:
        if (self.window or 0) < 0:
            raise ValueError(f"window is {self.window}; it must be 0 or more, or None for none")

    def pairs(self, layout: Ragged) -> Tensor:
        """Which tokens may see which, bool ``[sentences, 1, 1 or longest, longest]``."""
        keys = layout.mask[:, None, None, :]
        if self.window is None or self.window >= layout.longest:
            return keys
        places = torch.arange(layout.longest, device=keys.device)
        seen = ((places[:, None] - places).abs() <= self.window)[None]
        if self.relaxed:
            ends = (places < EXEMPT) | (places >= layout.lengths[:, None] - EXEMPT)
            seen = seen | ends[:, :, None] | ends[:, None, :]
        # A query that sees nothing has no weights; those beyond a sentence are of no interest.
        seen = seen | ~layout.mask[:, :, None]
        return keys & seen[:, None]

    def queries(self, query: Tensor) -> Tensor:
        """Queries ``[..., d_kv]``, zero in the half whose product does not count."""
        if self.content and self.position:
            return query
        halves = zip(query.chunk(2, dim=-1), (self.content, self.position), strict=True)
        return torch.cat([half if counts else half * 0 for half, counts in halves], dim=-1)


OPEN = AttentionMask()


class Heads(nn.Module):
    """Heads of attention, whatever their queries are of."""

    def __init__(self, config: Any, d_model: int, heads: int) -> None:
        super().__init__()
        self.heads, self.d_kv, self.dropout = heads, config.d_kv, config.attention_dropout
        scale = d_model if config.attention_scale == "d_model" else self.d_kv
        self.factor = 1 / math.sqrt(scale)


class AttentionHeads(Heads):
    """The heads of self-attention: the weight of token ``j`` at token ``i`` is ``softmax_j(q_i .
    k_j / sqrt(d_kv))``. With factored maps ``q_i . k_j`` is ``q_i^c . k_j^c + q_i^p . k_j^p``, and
    the same weights average both halves of the values."""

    def __init__(self, config: Any, d_model: int, heads: int, matrices: Matrices) -> None:
        super().__init__(config, d_model, heads)
        self.project = LINEAR[matrices](d_model, 3 * heads * self.d_kv, bias=False)

    def contexts(
        self, rows: Tensor, layout: Ragged, mask: AttentionMask = OPEN, places: Tensor | None = None
    ) -> Tensor:
        """What each head finds for each token, ``[tokens, heads, d_kv]``; queries and keys are of
        ``places`` if given, rows of the position table."""
        query, key, value = self._padded(rows, layout, places)
        p = self.dropout if self.training else 0.0
        context = functional.scaled_dot_product_attention(
            mask.queries(query), key, value, mask.pairs(layout), p, scale=self.factor
        )
        return layout.unpad(context.transpose(1, 2).flatten(2)).unflatten(1, (self.heads, -1))

    def weights(
        self, rows: Tensor, layout: Ragged, mask: AttentionMask = OPEN, places: Tensor | None = None
    ) -> Tensor:
        """Weights by which :meth:`contexts` averages, ``[sentences, heads, longest, longest]``."""
        with torch.autocast(rows.device.type, enabled=False):
            query, key, _ = self._padded(rows, layout, places)
            logits = mask.queries(query) @ key.transpose(2, 3) * self.factor
            return logits.masked_fill(~mask.pairs(layout), -torch.inf).softmax(dim=3)

    def _padded(self, rows: Tensor, layout: Ragged, places: Tensor | None) -> Tensor:
        """Queries, keys and values, ``[3, sentences, heads, longest, d_kv]``."""
        if places is None:
            joined = self.project.to_heads(rows, 3 * self.heads).flatten(1)
        else:
            (weight,) = self.project.head_matrices(1)
            both, values = weight[0].tensor_split([2 * self.heads * self.d_kv])
            parts = functional.linear(places, both), functional.linear(rows, values)
            joined = torch.cat(parts, dim=1)
        return layout.pad(joined).unflatten(2, (3, self.heads, self.d_kv)).permute(2, 0, 3, 1, 4)


class SelfAttention(AttentionHeads):
    """Multi-head attention over the tokens of a sentence; the heads are joined by a matrix."""

    def __init__(self, config: AttentionEncoder.Config, d_model: int) -> None:
        heads, d_kv = config.heads, config.d_kv
        super().__init__(config, d_model, heads, config.matrices)
        self.output = LINEAR[config.matrices](heads * d_kv, d_model, bias=False)
        if config.start == "version-0.2":
            bound = math.sqrt(3) * UNIFORM_DEVIATION
            for weight in self.parameters():
                nn.init.uniform_(weight, -bound, bound)
        else:
            init_heads(self.project, heads, d_kv)
        if config.start == "usual":  # else the map back stays as torch begins it
            init_heads(self.output, heads, d_kv, back=True)

    def forward(self, *given: Any) -> Tensor:
        """``[tokens, d_model]`` to ``[tokens, d_model]``, given what :meth:`contexts` is."""
        return self.output.from_heads(self.contexts(*given))


class EncoderLayer(nn.Module):
    """Attention and feed-forward sublayers, each ``LayerNorm(x + dropout(sublayer(x)))``."""

    def __init__(self, config: AttentionEncoder.Config, d_model: int) -> None:
        super().__init__()
        self.attention = SelfAttention(config, d_model)
        linear = LINEAR[config.matrices]
        self.expand = linear(d_model, config.d_ff, bias=True)
        self.contract = linear(config.d_ff, d_model, bias=True)
        self.relu_dropout = SentenceDropout(config.relu_dropout)
        self.residual_dropout = SentenceDropout(config.residual_dropout)
        self.attention_norm = layer_norm(d_model, config.layer_norm)
        self.feed_forward_norm = layer_norm(d_model, config.layer_norm)

    def forward(self, rows: Tensor, layout: Ragged, *limits: Any) -> Tensor:
        """``[tokens, d_model]`` to the same; ``limits`` as of :meth:`AttentionHeads.contexts`."""
        attended = self.attention(rows, layout, *limits)
        rows = self.attention_norm(rows + self.residual_dropout(attended, layout))
        contracted = self.contract(self.relu_dropout(self.expand(rows).relu_(), layout))
        return self.feed_forward_norm(rows + self.residual_dropout(contracted, layout))


class AttentionEncoder(Encoder):
    """A stack of layers over content and position.

    A position concatenated, with factored matrices, makes the factored encoder (Kitaev & Klein
    2018, section 4), one added, with full ones, the unfactored one (section 3). START is place 0.
    In position-only layers (section 3) queries and keys come from the rows of the table alone.
    """

    class Config(Settings):
        """Settings of the encoder ``attention``."""

        layers: Layers
        """How many."""
        heads: Annotated[int, Field(ge=1, le=1000)]
        """Attention heads per layer."""
        d_kv: Even
        """Width of a query, key or value of one head; half content, half position."""
        d_ff: Even
        """Hidden width of the feed-forward sublayer, both halves together."""
        max_positions: Annotated[int, Field(ge=3, le=100_000)]
        """Rows of the position table; a sentence of n words needs n + 2."""
        attention_dropout: Rate
        """Dropout of attention weights."""
        residual_dropout: Rate
        """Dropout of the output of a sublayer, before it is added to its input."""
        relu_dropout: Rate
        """Dropout within the feed-forward sublayers, behind their relu."""
        position: Literal["concatenated", "added"] = "concatenated"
        """Whether the position is the second half of a token vector, or added to the content."""
        matrices: Matrices = "factored"
        """One matrix for each half of a token vector, or one for all of it."""
        position_table: Literal["learned", "sinusoidal"] = "learned"
        """What stands for a place in the sentence: learned vectors, or sines and cosines."""
        position_only_layers: tuple[Annotated[int, Field(ge=0)], ...] = ()
        """Layers, the first of which is 0, whose queries and keys come from the positions alone."""
        attention_scale: Scale = "d_kv"
        """Whose root divides products of queries and keys; ``d_model`` in the released code."""
        layer_norm: Norm = "usual"
        """``released`` divides by the unbiased deviation plus 0.001, as the code of 2018."""
        input_norm: bool = True
        """Whether a layer norm stands before the first layer, as in the released code."""
        start: Start = "usual"
        """Random weights of attention: Xavier normal, or those of a version of the code."""
        forward_features: Literal["even", "first"] = "even"
        """Forward part of a token vector: the even features, or the first half (released code)."""
        window: Annotated[int, Field(ge=0)] | None = None
        """Largest distance of two tokens that see each other, in all layers; without it any."""
        relaxed_window: bool = False
        """Whether the first two and the last two tokens see all, and are seen by all."""

        @model_validator(mode="after")
        def _possible(self) -> Self:
            if self.relaxed_window and self.window is None:
                raise ValueError("relaxed_window is set, but there is no window to relax")
            if self.forward_features == "first" and self.position != "added":
                raise ValueError(
                    "forward_features = 'first' needs position = 'added'; where the position is "
                    "concatenated, the first half of a token vector is its content"
                )
            if (absent := max(self.position_only_layers, default=-1)) >= self.layers:
                raise ValueError(f"position_only_layers: layer {absent}; {_known(self.layers)}")
            unfactored = (self.position, self.matrices) == ("added", "full")
            if self.position_only_layers and not unfactored:
                raise ValueError(
                    "position_only_layers needs position = 'added' and matrices = 'full'; a "
                    "factored encoder is kept from its content by a mask"
                )
            return self

    def __init__(self, config: Config, d_model: int, d_content: int, precision: Precision) -> None:
        super().__init__(config, d_model, d_content, precision)
        self.matrices = config.matrices
        self.max_tokens = config.max_positions
        self.stack_block = 2 if config.forward_features == "even" else d_model
        self.added, self.content_width = config.position == "added", d_content
        # Whether content and position stay apart, for which the kernels are made.
        self.factored = config.matrices == "factored" and not self.added
        self.attention_parts = PARTS if self.factored else ("combined",)
        self.fused = self.factored and config.layer_norm == "usual" and config.input_norm
        self.position_only = config.position_only_layers
        table = nn.Embedding if config.position_table == "learned" else SinusoidalPositions
        self.positions = table(config.max_positions, d_model if self.added else d_model // 2)
        norm = layer_norm(d_model, config.layer_norm) if config.input_norm else nn.Identity()
        self.input_norm: nn.Module = norm
        self.layers = nn.ModuleList(EncoderLayer(config, d_model) for _ in range(config.layers))
        if config.start == "version-0.2":  # which makes one layer and copies it, all its weights
            for layer in self.layers[1:]:
                layer.load_state_dict(self.layers[0].state_dict())
        trained = AttentionMask(window=config.window, relaxed=config.relaxed_window)
        self.masks = (trained,) * config.layers
        self.bf16_weights: dict[Tensor, Tensor] | None = None

    @classmethod
    def d_content(cls, config: Config, d_model: int) -> int:
        return d_model if config.position == "added" else d_model // 2

    @contextmanager
    def limited(self, masks: Mapping[int, AttentionMask]) -> Iterator[None]:
        # Other layers see all; without any nothing changes.
        trained, numbers = self.masks, range(len(self.layers))
        for number, mask in masks.items():
            if number not in numbers:
                raise UnsupportedError(f"layer {number}: {_known(len(numbers))}")
            self._check_factored(mask.content and mask.position, f"layer {number}: ")
        if masks:
            self.masks = tuple(masks.get(number, OPEN) for number in numbers)
        try:
            yield
        finally:
            self.masks = trained

    def _check_factored(self, combined: bool, place: str = "") -> None:
        if not (combined or self.factored):
            raise UnsupportedError(
                f"{place}the attention to content and to position can be told apart only with "
                "position = 'concatenated' and matrices = 'factored'"
            )

    @contextmanager
    def cached_weights(self) -> Iterator[None]:
        # For no longer: fused optimisers change weights but not their version number.
        self.bf16_weights = {}
        try:
            yield
        finally:
            self.bf16_weights = None

    def stack(self, content: Tensor, layout: Ragged) -> Tensor:
        if self.fused and {*self.masks} <= {OPEN} and kernels.usable(content, "encoder"):
            return encode(self, content, layout)
        return self._layer_by_layer(content, layout)[0]

    @torch.no_grad()
    def attention(self, content: Tensor, layout: Ragged, part: Part = "combined") -> list[Tensor]:
        """Of content or position as if a head had nothing else to go by."""
        self._check_factored(part == "combined")
        _, found = self._layer_by_layer(content, layout, part)
        lengths = layout.lengths.tolist()
        if not found:
            return [content.new_empty(0, 0, n, n) for n in lengths]
        return [each[:, :, :n, :n] for each, n in zip(torch.stack(found, 1), lengths, strict=True)]

    def _layer_by_layer(
        self, content: Tensor, layout: Ragged, part: Part | None = None
    ) -> tuple[Tensor, list[Tensor]]:
        """The stack by operations of torch, and the attention weights of a part if asked for."""
        position, weights = self.positions(layout.position), list[Tensor]()
        alone = {} if part == "combined" else {half: half == part for half in PARTS[:2]}
        joined = content + position if self.added else torch.cat((content, position), dim=1)
        rows, layers = self.input_norm(joined), zip(self.layers, self.masks, strict=True)
        with autocast(self.precision, content.device):
            for number, (layer, mask) in enumerate(layers):
                places = position if number in self.position_only else None
                if part is not None:
                    attention: Any = layer.attention
                    weights.append(attention.weights(rows, layout, replace(mask, **alone), places))
                rows = layer(rows, layout, mask, places)
        return rows.to(content.dtype), weights


def _known(layers: int) -> str:
    """Which layers an encoder has, in the words of an error."""
    return f"the encoder's layers are {f'0 to {layers - 1}' if layers else 'none'}"
