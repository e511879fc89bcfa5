"""The attention of the fused encoder: rectangles of neighbouring sentences, forwards and back.

Attention compares the tokens of one sentence, so the packed tokens of a batch are spread over
rectangles and gathered again. One rectangle for all would be mostly empty where lengths differ;
here neighbours of like lengths share one.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from spmrl_bench.nn.kernels import call
from spmrl_bench.nn.ragged import Ragged

# The longest sentence of a group may have this many times the tokens of its shortest.
RAGGED = 1.5
# Attention weights of longer sentences are computed again on the way back: there are so many of
# them that they would take more memory than anything else.
LONG = 128


@dataclass(slots=True)
class Group:
    """Neighbouring sentences of like lengths, whose attention is computed in one rectangle."""

    starts: Tensor
    """int64 ``[sentences]``, first token of each."""
    lengths: Tensor
    longest: int
    beyond: Tensor
    """Minus infinity at the places beyond a sentence, ``[sentences, 1, 1, longest]``."""

    def __len__(self) -> int:
        return len(self.lengths)


@dataclass(slots=True)
class KeptAttention:
    """What the attention of a layer leaves for the way back."""

    qkv: list[Tensor]
    """Of each group, ``[3, sentences, heads, longest, d_kv]``."""
    weights: list[Tensor | None]
    """Of each group, before dropout, ``[sentences * heads, longest, longest]``; None if long."""
    seed: int


class Attention:
    """Between the products that make queries, keys and values and the one that joins the heads.

    Args:
        kernel: the compiled ``_factored``.
        layout: of the sentences.
        tokens: rows of the packed arrays, of which the first belong to the sentences.
        dtype: of the packed arrays.
        keep: whether there will be a way back.
        training: whether weights are dropped.
    """

    def __init__(
        self,
        kernel: Any,
        layout: Ragged,
        tokens: int,
        dtype: torch.dtype,
        *,
        keep: bool,
        training: bool,
    ) -> None:
        self.kernel = kernel
        self.real = len(layout.sentence)
        self.tokens = tokens
        self.dtype = dtype
        self.low = dtype != torch.float32
        self.keep = keep
        self.training = training
        self.threads = torch.get_num_threads()
        self.groups = list(_groups(layout))

    def forward(self, module: Any, packed: Tensor, seed: int) -> tuple[Tensor, KeptAttention]:
        """Averages of values, low ``[2, tokens, heads d_kv / 2]``.

        Args:
            module: a :class:`SelfAttention`, for its sizes and its dropout.
            packed: low queries, keys and values ``[2, tokens, 3 heads d_kv / 2]``.
            seed: of the dropout.
        """
        heads, d_kv = module.heads, module.d_kv
        context = self._packed(heads * d_kv // 2)
        kept = KeptAttention([], [], seed)
        for number, group in enumerate(self.groups):
            qkv = self._spread(packed, group, 3, heads, d_kv // 2)
            query, key, value = qkv.flatten(1, 2)
            weights, spare = self._weights(query, key, group, module)
            dropped = self._drop(weights, module.dropout, seed + number, spare)
            self._gather(torch.bmm(dropped, value), group, 1, heads, d_kv // 2, context)
            if self.keep:
                kept.qkv.append(qkv)
                kept.weights.append(weights if group.longest <= LONG else None)
        return context, kept

    def _weights(
        self, query: Tensor, key: Tensor, group: Group, module: Any
    ) -> tuple[Tensor, Tensor]:
        """Attention weights before dropout, ``[sentences * heads, longest, longest]``.

        And an array of this shape that may be used.
        """
        products = torch.bmm(query, key.transpose(1, 2))
        whole = products.view(len(group), module.heads, group.longest, group.longest)
        torch.add(group.beyond, whole, alpha=1 / math.sqrt(module.d_kv), out=whole)
        return torch.softmax(products, dim=-1), products

    def backward(self, module: Any, kept: KeptAttention, context: Tensor) -> Tensor:
        """Gradient of the packed queries, keys and values."""
        heads, half, p = module.heads, module.d_kv // 2, module.dropout
        scale = 1 / math.sqrt(module.d_kv)
        packed = self._packed(3 * heads * half)
        for number, group in enumerate(self.groups):
            above = self._spread(context, group, 1, heads, half).flatten(0, 2)
            qkv = kept.qkv[number].flatten(1, 2)
            query, key, value = qkv
            known = kept.weights[number]
            if known is None:
                weights, spare = self._weights(query, key, group, module)
            else:
                weights, spare = known, torch.empty_like(known)
            gradients = torch.empty_like(qkv)
            dropped = self._drop(weights, p, kept.seed + number, spare)
            torch.bmm(dropped.transpose(1, 2), above, out=gradients[2])
            torch.bmm(above, value.transpose(1, 2), out=spare)
            by_weight = self._drop(spare, p, kept.seed + number, spare)
            products = torch.ops.aten._softmax_backward_data(by_weight, weights, -1, torch.float32)
            torch.baddbmm(query, products, key, beta=0, alpha=scale, out=gradients[0])
            torch.baddbmm(
                key, products.transpose(1, 2), query, beta=0, alpha=scale, out=gradients[1]
            )
            self._gather(gradients, group, 3, heads, half, packed)
        return packed

    def _drop(self, values: Tensor, p: float, seed: int, out: Tensor) -> Tensor:
        """``values`` after dropout, in ``out`` or themselves."""
        if not self.training or p == 0:
            return values
        call(self.kernel.drop, values, values.numel(), seed, p, out, self.threads)
        return out

    def _packed(self, width: int) -> Tensor:
        """What is to be gathered into; low ``[2, tokens, width]``."""
        packed = torch.empty(2, self.tokens, width, dtype=self.dtype)
        packed[:, self.real :] = 0
        return packed

    def _spread(self, packed: Tensor, group: Group, parts: int, heads: int, half: int) -> Tensor:
        """A group's low packed rows as float32 ``[parts, sentences, heads, longest, 2 half]``."""
        result = torch.empty(parts, len(group), heads, group.longest, 2 * half)
        call(
            self.kernel.spread, packed, self.low, group.starts, group.lengths, len(group),
            group.longest, self.tokens, parts, heads, half, result, self.threads,
        )  # fmt: skip
        return result

    def _gather(
        self, rectangle: Tensor, group: Group, parts: int, heads: int, half: int, packed: Tensor
    ) -> None:
        """The inverse of :meth:`_spread`, into the group's rows of ``packed``."""
        call(
            self.kernel.gather, rectangle, group.starts, group.lengths, len(group), group.longest,
            self.tokens, parts, heads, half, self.low, packed, self.threads,
        )  # fmt: skip


def _groups(layout: Ragged) -> Iterator[Group]:
    """Neighbours whose rectangle is not much larger than their sentences."""
    starts = layout.lengths.cumsum(0) - layout.lengths
    filled = layout.filled
    lengths = layout.lengths.tolist()
    first = 0
    for end in range(1, len(lengths) + 1):
        part = lengths[first : end + 1]
        if end < len(lengths) and max(part) <= RAGGED * min(part):
            continue
        longest = max(lengths[first:end])
        beyond = torch.zeros(end - first, 1, 1, longest)
        beyond.masked_fill_(~filled[first:end, None, None, :longest], -math.inf)
        yield Group(starts[first:end], layout.lengths[first:end], longest, beyond)
        first = end
