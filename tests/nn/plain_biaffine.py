"""The biaffine scorer once more, one word at a time, by the formulas of the paper.

Nothing here is shared with the product but the weights. Numbers are torch's, so that gradients can
be compared too.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch
from torch import Tensor

from spmrl_bench.nn.scorers.biaffine import BiaffineScorer


def vectors(module: BiaffineScorer, tokens: Tensor) -> tuple[Tensor, ...]:
    """Of tokens ``[n, d_model]``: as dependents and heads of arcs, then of relations."""
    hidden = tokens @ module.hidden.weight.T + module.hidden.bias
    return torch.where(hidden > 0, hidden, 0.1 * hidden).split(list(module.widths), dim=1)


def arc_scores(module: BiaffineScorer, word: Tensor, heads: Tensor) -> Tensor:
    """``h_dep^T U h_head + u^T h_head`` of a word and each of some heads."""
    dependent, above = vectors(module, word[None])[0][0], vectors(module, heads)[1]
    return above @ (module.arc.weight @ dependent) + above @ module.arc.bias


def relation_scores(module: BiaffineScorer, word: Tensor, head: Tensor) -> Tensor:
    """``h_dep^T U_r h_head + w_r^T [h_dep ; h_head] + b_r`` of an arc, for each relation."""
    dependent, above = vectors(module, word[None])[2][0], vectors(module, head[None])[3][0]
    matrices = module.relation.weight.unflatten(0, (-1, len(above)))
    of_head = module.relation.bias.unflatten(0, (-1, len(above))) @ above
    of_dependent = module.relation_dependent.weight @ dependent + module.relation_dependent.bias
    return (
        torch.stack([(matrix @ dependent) @ above for matrix in matrices]) + of_head + of_dependent
    )


def words(lengths: Sequence[int]) -> Iterator[tuple[int, int, int]]:
    """Row of START, number and words of the sentence, of each word of a batch of tokens."""
    begin = 0
    for length in lengths:
        for word in range(1, length - 1):
            yield begin, word, length - 2
        begin += length


def losses(
    module: BiaffineScorer,
    tokens: Tensor,
    lengths: Sequence[int],
    heads: Sequence[int],
    relations: Sequence[int],
) -> tuple[Tensor, Tensor]:
    """Minus the log-probability of each word's head among 0..n, added up, and of its relation among
    those legal for its arc."""
    of_arcs, of_relations = torch.zeros(2, dtype=tokens.dtype)
    for (begin, word, n), head, right in zip(words(lengths), heads, relations, strict=True):
        row = tokens[begin + word]
        scores = arc_scores(module, row, tokens[begin : begin + n + 1])
        of_arcs = of_arcs + scores.logsumexp(0) - scores[head]
        scores = relation_scores(module, row, tokens[begin + head])
        legal = module.legal[1 if head == 0 else 0]
        of_relations = of_relations + scores[legal].logsumexp(0) - scores[right]
    return of_arcs, of_relations
