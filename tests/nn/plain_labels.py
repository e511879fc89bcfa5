"""Label attention once more, written down as in the paper: loops over sentences, heads and tokens.

Keys and values are made for every token, the context of a head is added to every token, and each
head projects what comes out. Nothing is shared with the product but the weights, which it is given
by their names, so that gradients of both can be compared.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from spmrl_bench.nn.encoders.label_attention import LabelAttention

Weights = Mapping[str, Tensor]


def weights_of(module: LabelAttention) -> dict[str, Tensor]:
    return dict(module.named_parameters())


def linear(weights: Weights, name: str, row: Tensor) -> Tensor:
    """One vector through a full map, or through one for each half or part of it."""
    for parts in (("content", "position"), ("first", "last")):
        if f"{name}.{parts[0]}.weight" in weights:
            sizes = [weights[f"{name}.{part}.weight"].shape[1] for part in parts]
            pieces = zip(parts, row.split(sizes), strict=True)
            return torch.cat([linear(weights, f"{name}.{part}", piece) for part, piece in pieces])
    found = weights[f"{name}.weight"] @ row
    return found + weights[f"{name}.bias"] if f"{name}.bias" in weights else found


def of_head(vector: Tensor, head: int, heads: int, halves: bool) -> Tensor:
    """The features of one head among those of all, which with halves are those of each half."""
    parts = vector.chunk(2) if halves else (vector,)
    return torch.cat([part.view(heads, -1)[head] for part in parts])


def norm(weights: Weights, name: str, row: Tensor, released: bool) -> Tensor:
    centred = row - row.mean()
    squares = (centred * centred).sum()
    if released:
        scaled = centred / ((squares / (len(row) - 1)).sqrt() + 0.001)
    else:
        scaled = centred / (squares / len(row) + 1e-5).sqrt()
    return scaled * weights[f"{name}.weight"] + weights[f"{name}.bias"]


def softmax(logits: Sequence[Tensor]) -> list[Tensor]:
    powers = [logit.exp() for logit in logits]
    total = sum(powers, torch.zeros((), dtype=powers[0].dtype))
    return [power / total for power in powers]


def label_layer(
    module: LabelAttention,
    rows: Tensor,
    lengths: Sequence[int],
    *,
    divisor: float,
    released_norm: bool = False,
) -> Tensor:
    """``[tokens, d_model]`` to ``[tokens, d_out]``; logits are divided by ``divisor``."""
    weights = weights_of(module)
    halves = "output.content.weight" in weights
    heads = module.heads.heads
    found: list[Tensor] = []
    for sentence in rows.split(list(lengths)):
        contexts = [
            _contexts(weights, sentence, head, heads, halves, divisor) for head in range(heads)
        ]
        for k, row in enumerate(sentence):
            own = [context[k] for context in contexts]
            if "reduce.weight" in weights:
                outputs = [
                    norm(
                        weights,
                        "norm",
                        linear(weights, "reduce", row + linear(weights, "output", context)),
                        released_norm,
                    )
                    for context in own
                ]
                found.append(torch.cat(outputs))
            else:
                parts = zip(
                    *[context.chunk(2) if halves else (context,) for context in own], strict=True
                )
                joined = torch.cat([torch.cat(part) for part in parts])
                found.append(
                    norm(weights, "norm", row + linear(weights, "output", joined), released_norm)
                )
    if not any(name.startswith("feed_forward") for name in weights):
        return torch.stack(found)
    return torch.stack([_feed_forward(weights, row, released_norm) for row in found])


def _contexts(
    weights: Weights, sentence: Tensor, head: int, heads: int, halves: bool, divisor: float
) -> list[Tensor]:
    """What a head finds for each token of a sentence."""
    if "heads.query" in weights:
        keys = [of_head(linear(weights, "heads.key", x), head, heads, halves) for x in sentence]
        values = [of_head(linear(weights, "heads.value", x), head, heads, halves) for x in sentence]
        queries = [weights["heads.query"][head]] * len(sentence)
    else:
        queries, keys, values = (
            [
                of_head(linear(weights, "heads.project", x), part * heads + head, 3 * heads, halves)
                for x in sentence
            ]
            for part in range(3)
        )
    found = []
    for query in queries:
        shares = softmax([(query @ key) / divisor for key in keys])
        found.append(torch.stack([w * v for w, v in zip(shares, values, strict=True)]).sum(0))
    return found


def _feed_forward(weights: Weights, row: Tensor, released_norm: bool) -> Tensor:
    hidden = linear(weights, "feed_forward.expand", row).clamp(min=0)
    contracted = linear(weights, "feed_forward.contract", hidden)
    return norm(weights, "feed_forward.norm", row + contracted, released_norm)
