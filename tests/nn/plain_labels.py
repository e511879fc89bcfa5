"""Label attention once more, written down as in the paper: loops over sentences and heads.

Keys and values are made for every token, the context of a head is added to every token, and each
head projects what comes out. Nothing is shared with the product but the weights.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from spmrl_bench.nn.encoders.label_attention import LabelAttention, LabelHeads
from tests.nn.plain import layer_norm, linear


def label_layer(
    module: LabelAttention, rows: Tensor, lengths: Sequence[int], *, divisor: float
) -> Tensor:
    """``[tokens, d_model]`` to ``[tokens, d_out]``; logits are divided by ``divisor``."""
    halves, names = module.output.parts, {name for name, _ in module.named_children()}
    found = []
    for sentence in rows.split(list(lengths)):
        own = [
            contexts(module.heads, sentence, head, halves, divisor)
            for head in range(module.heads.heads)
        ]
        if "reduce" in names:
            added = [sentence + linear(module.output, each) for each in own]
            outputs = [layer_norm(linear(module.reduce, each), module.norm) for each in added]
            found.append(torch.cat(outputs, dim=1))
        else:
            sides = zip(*(each.chunk(halves, dim=1) for each in own), strict=True)
            joined = torch.cat([torch.cat(side, dim=1) for side in sides], dim=1)
            found.append(layer_norm(sentence + linear(module.output, joined), module.norm))
    result = torch.cat(found)
    if "feed_forward" not in names:
        return result
    block = module.feed_forward
    contracted = linear(block.contract, linear(block.expand, result).clamp(min=0))
    return layer_norm(result + contracted, block.norm)


def contexts(heads: Any, sentence: Tensor, head: int, halves: int, divisor: float) -> Tensor:
    """What a head finds for each token of a sentence, or for all of them."""

    def of_head(module: Any, part: int = 0, parts: int = 1) -> Tensor:
        """Its features among those of all heads, of each half."""
        sides = linear(module, sentence).chunk(halves, dim=1)
        rows = [side.unflatten(1, (parts, heads.heads, -1))[:, part, head] for side in sides]
        return torch.cat(rows, dim=1)

    if isinstance(heads, LabelHeads):
        queries = heads.query[head].expand(len(sentence), -1)
        keys, values = of_head(heads.key), of_head(heads.value)
    else:
        queries, keys, values = (of_head(heads.project, part, 3) for part in range(3))
    powers = (queries @ keys.T / divisor).exp()
    return powers / powers.sum(dim=1, keepdim=True) @ values
