"""The biaffine scorer once more, one arc at a time, by the formulas of the paper.

Nothing here is shared with the product but the weights. Numbers are torch's, so that gradients can
be compared too.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from spmrl_bench.nn.scorers.biaffine import BiaffineScorer

Vectors = tuple[Tensor, Tensor, Tensor, Tensor]


def vectors(module: BiaffineScorer, token: Tensor) -> Vectors:
    """Of one token ``[d_model]``: as dependent and head of arcs, then of relations."""
    hidden = module.hidden.weight @ token + module.hidden.bias
    leaky = [value if value > 0 else 0.1 * value for value in hidden]
    parts, begin = [], 0
    for width in module.widths:
        parts.append(torch.stack(leaky[begin : begin + width]))
        begin += width
    return parts[0], parts[1], parts[2], parts[3]


def arc_score(module: BiaffineScorer, dependent: Tensor, head: Tensor) -> Tensor:
    """``h_dep^T U h_head + u^T h_head`` of two encoded tokens."""
    of_dependent, of_head = vectors(module, dependent)[0], vectors(module, head)[1]
    matrix, vector = module.arc.weight.t(), module.arc.bias
    return of_dependent @ matrix @ of_head + vector @ of_head


def relation_score(
    module: BiaffineScorer, dependent: Tensor, head: Tensor, relation: int
) -> Tensor:
    """``h_dep^T U_r h_head + w_r^T [h_dep ; h_head] + b_r`` of two encoded tokens."""
    of_dependent, of_head = vectors(module, dependent)[2], vectors(module, head)[3]
    width = len(of_head)
    rows = slice(relation * width, (relation + 1) * width)
    matrix, vector = module.relation.weight[rows].t(), module.relation.bias[rows]
    weights = torch.cat((module.relation_dependent.weight[relation], vector))
    return (
        of_dependent @ matrix @ of_head
        + weights @ torch.cat((of_dependent, of_head))
        + module.relation_dependent.bias[relation]
    )


def words(lengths: list[int]) -> Iterator[tuple[int, int, int]]:
    """Row of START, number and words of the sentence, of each word of a batch of tokens."""
    begin = 0
    for length in lengths:
        for word in range(1, length - 1):
            yield begin, word, length - 2
        begin += length


def arc_losses(
    module: BiaffineScorer, tokens: Tensor, lengths: list[int], heads: list[int]
) -> Tensor:
    """Minus the log-probability of each word's head among 0..n, added up."""
    total = torch.zeros((), dtype=tokens.dtype)
    for (begin, word, n), right in zip(words(lengths), heads, strict=True):
        scores = [arc_score(module, tokens[begin + word], tokens[begin + g]) for g in range(n + 1)]
        total = total + torch.log(sum(map(torch.exp, scores))) - scores[right]
    return total


def relation_losses(
    module: BiaffineScorer,
    tokens: Tensor,
    lengths: list[int],
    heads: list[int],
    relations: list[int],
) -> Tensor:
    """Minus the log-probability of each word's relation among those legal for its arc, added up."""
    total = torch.zeros((), dtype=tokens.dtype)
    arcs = zip(words(lengths), heads, relations, strict=True)
    for (begin, word, _), head, right in arcs:
        pair = tokens[begin + word], tokens[begin + head]
        legal = module.legal[1 if head == 0 else 0].nonzero().flatten().tolist()
        powers = [torch.exp(relation_score(module, *pair, r)) for r in legal]
        total = total + torch.log(sum(powers)) - torch.log(powers[legal.index(right)])
    return total
