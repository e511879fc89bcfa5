"""How sure a biaffine scorer is of each dependency that differs from gold.

Every word chooses its governor among all words of the sentence and the root, and a relation to
it; the probability of a labelled arc is the product of the two. The margin of a word is the
logarithm of the odds of the parser's arc against the gold one. A tree is made of the scores of
all words, so that now and then it has an arc against which the word itself would have chosen the
gold one; its margin is negative.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from spmrl_bench.annotation.differences import Difference
from spmrl_bench.parsers.dependency_layer import DependencyLayer
from spmrl_bench.parsers.neural import Encoded
from spmrl_bench.trees.dependencies import DependencyTree


@torch.no_grad()
def arc_differences(
    layer: DependencyLayer,
    encoded: Encoded,
    gold: Sequence[DependencyTree],
    found: Sequence[DependencyTree],
) -> list[list[Difference]]:
    """The words whose head or relation differs, of each sentence.

    Args:
        layer: of the parser.
        encoded: some sentences.
        gold: of each.
        found: the parser's trees of each.
    """
    layout, scorer = encoded.batch.layout, layer.scorer
    projected = scorer.project(encoded.tokens, layout)
    of_arcs = scorer.arc_scores(projected, layout).float().log_softmax(dim=1)
    sides: list[Tensor] = []
    for trees in (gold, found):
        heads = torch.from_numpy(np.concatenate([tree.heads for tree in trees]).astype(np.int64))
        heads = heads.to(of_arcs.device)
        names = [layer.relation_ids.get(name, -1) for tree in trees for name in tree.relations]
        relations = torch.tensor(names, device=of_arcs.device)
        scores = scorer.relation_scores(projected, layout, heads).float().log_softmax(dim=1)
        # A relation that is unknown, or illegal at its place, counts as the second best of the
        # legal ones, if there is one: no more is known than that it is not the parser's.
        second = scores.topk(min(2, scores.shape[1]), dim=1).values[:, -1]
        second = torch.where(second == -torch.inf, scores.amax(dim=1), second)
        chosen = scores.gather(1, relations.clamp(min=0)[:, None]).squeeze(1)
        chosen = torch.where((relations < 0) | (chosen == -torch.inf), second, chosen)
        sides.append(of_arcs.gather(1, heads[:, None]).squeeze(1) + chosen)
    margins = (sides[1] - sides[0]).tolist()
    results, first = [], 0
    for right, own in zip(gold, found, strict=True):
        results.append(
            [
                difference(
                    word,
                    right,
                    own,
                    margins[first + word],
                    right.relations[word] in layer.relation_ids,
                )
                for word in range(len(right))
                if differs(word, right, own)
            ]
        )
        first += len(right)
    return results


def differs(word: int, gold: DependencyTree, found: DependencyTree) -> bool:
    """Whether the head or the relation of a word, counted from 0, differs."""
    return bool(
        gold.heads[word] != found.heads[word] or gold.relations[word] != found.relations[word]
    )


def difference(
    word: int, gold: DependencyTree, found: DependencyTree, margin: float, known: bool
) -> Difference:
    """The difference at a word, counted from 0."""
    return Difference(
        "dependencies",
        word,
        word + 1,
        gold.relations[word],
        found.relations[word],
        margin,
        known=known,
        gold_head=int(gold.heads[word]),
        parser_head=int(found.heads[word]),
    )
