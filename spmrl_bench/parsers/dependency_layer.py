"""What a parser learns of dependencies, and reads off encoded tokens.

Every word chooses its governor among the other words and the root (START), by biaffine scores of
all pairs of a sentence, and a relation to it, by biaffine scores of the pair (Dozat & Manning
2017). In training both are classifications of single words; a tree is made of the scores of arcs
by a chart or a maximum spanning tree, and the relations are chosen for its arcs afterwards. Only
relations that were seen at a root in training are given to a root, and only those seen at other
words to these.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from spmrl_bench.errors import TreeError
from spmrl_bench.nn.biaffine import BiaffineScorer, arc_loss, packed_arcs, relation_loss
from spmrl_bench.parsers.base import Words
from spmrl_bench.parsers.batches import Batch
from spmrl_bench.parsers.kind_configs import DependencyParserConfig
from spmrl_bench.parsers.lengths import beginning
from spmrl_bench.parsers.neural import Encoded
from spmrl_bench.parsers.vocabulary import Vocabulary
from spmrl_bench.trees.dependencies import DependencyTree
from spmrl_bench.trees.parse import Parse


class DependencyGold(NamedTuple):
    """The gold dependencies of a sentence of ``n`` words.

    Attributes:
        heads: int64 ``[n]``, the governor of each word, from 1; 0 for the root.
        relations: int64 ``[n]``, index of the relation to it.
    """

    heads: NDArray[np.int64]
    relations: NDArray[np.int64]


def dependency_vocabulary(examples: Sequence[Parse]) -> Vocabulary:
    """The inventories of sentences whose dependencies are learnt.

    Raises:
        TreeError: none of them has any.
    """
    vocabulary = Vocabulary.of(examples)
    if not vocabulary.relations:
        raise TreeError(
            f"the {len(examples)} training sentences have no dependencies: nothing to learn"
        )
    return vocabulary


class ScoredDependencies:
    """What one layer, or several on average, think of the dependencies of encoded sentences.

    Attributes:
        arcs: float64 ``[sum of n (n + 1)]``, packed as in :mod:`spmrl_bench.chart.packing`: of
            each word the scores of its governors 0 (the root) to n.
    """

    @torch.no_grad()
    def __init__(self, layers: Sequence[DependencyLayer], group: Sequence[Encoded]) -> None:
        """Scores of all arcs; those of relations wait for the arcs that are chosen.

        Args:
            layers: with the same relations, in any order.
            group: the same sentences, as encoded for each layer.
        """
        self._layout = layout = group[0].batch.layout
        self._names = layers[0].names
        self._scorers = [layer.scorer for layer in layers]
        # Where the relations of the first layer are among those of each; None where they are alike.
        self._columns = [
            None
            if layer.names == self._names
            else torch.tensor([layer.relation_ids[name] for name in self._names])
            for layer in layers
        ]
        self._projected = [
            scorer.project(encoded.tokens, layout)
            for scorer, encoded in zip(self._scorers, group, strict=True)
        ]
        arcs = [
            packed_arcs(scorer.arc_scores(projected, layout), layout)
            for scorer, projected in zip(self._scorers, self._projected, strict=True)
        ]
        self.arcs: NDArray[np.float64] = torch.stack(arcs).double().mean(dim=0).cpu().numpy()

    @torch.no_grad()
    def relations(self, heads: NDArray[np.integer]) -> list[list[str]]:
        """The best relations of each sentence.

        Args:
            heads: ``[words]`` of all sentences, one after the other; 0 for the root.
        """
        governors = torch.from_numpy(heads.astype(np.int64)).to(self._layout.lengths.device)
        scores = []
        for scorer, projected, columns in zip(
            self._scorers, self._projected, self._columns, strict=True
        ):
            found = scorer.relation_scores(projected, self._layout, governors)
            scores.append(found if columns is None else found[:, columns.to(found.device)])
        rows = iter(torch.stack(scores).mean(dim=0).argmax(dim=1).tolist())
        return [
            [self._names[next(rows)] for _ in range(tokens - 2)]
            for tokens in self._layout.lengths.tolist()
        ]


class DependencyLayer(nn.Module):
    """Biaffine scores of arcs and relations over the encoder, in a parser's relations."""

    def __init__(self, config: DependencyParserConfig, width: int, vocabulary: Vocabulary) -> None:
        """Random weights.

        Args:
            config: of the parser.
            width: of an encoded token.
            vocabulary: of the parser.
        """
        super().__init__()
        self.arc_weight = config.arc_loss_weight
        self.relation_weight = config.relation_loss_weight
        self.relation_ids = vocabulary.relation_ids
        self.names = list(vocabulary.relations)
        seen = torch.tensor([*vocabulary.relations.values()], dtype=torch.bool).view(-1, 2)
        of_root, of_words = (column if column.any() else ~column for column in seen.unbind(1))
        self.scorer = BiaffineScorer(
            width,
            config.d_arc,
            config.d_relation,
            len(self.names),
            dropout=config.biaffine_dropout,
            legal=torch.stack((of_words, of_root)),
        )

    def gold(self, example: Parse) -> DependencyGold:
        """What is learnt of a sentence.

        Raises:
            TreeError: there are no dependencies, or a relation is not in the vocabulary.
        """
        tree = example.dependencies
        if tree is None:
            begun = beginning(example.words)
            raise TreeError(f"no dependencies to learn (the sentence begins: {begun})")
        unknown = [name for name in tree.relations if name not in self.relation_ids]
        if unknown:
            raise TreeError(f"relation {unknown[0]} is not in the parser's vocabulary")
        rows = [self.relation_ids[name] for name in tree.relations]
        return DependencyGold(tree.heads.astype(np.int64), np.array(rows, dtype=np.int64))

    def loss(self, tokens: Tensor, batch: Batch, gold: Sequence[DependencyGold]) -> Tensor:
        """Sum over words of the cross-entropy of the governor and of the relation to it.

        Args:
            tokens: encoded, ``[tokens, width]``.
            batch: of these sentences.
            gold: of each.
        """
        governors, relations = (
            torch.from_numpy(np.concatenate(rows)).to(tokens.device)
            for rows in zip(*gold, strict=True)
        )
        layout, scorer = batch.layout, self.scorer
        projected = scorer.project(tokens, layout)
        of_arcs = arc_loss(scorer.arc_scores(projected, layout), governors)
        scores = scorer.relation_scores(projected, layout, governors)
        return self.arc_weight * of_arcs + self.relation_weight * relation_loss(scores, relations)

    def flat(self, words: Words, tags: Words) -> DependencyTree:
        """Every word hangs from the first, which hangs from the root."""
        scorer = self.scorer
        between, from_root = (self.names[row.int().argmax()] for row in scorer.legal)
        heads = [0, *[1] * (len(words) - 1)]
        relations = [from_root, *[between] * (len(words) - 1)]
        return DependencyTree.build(words, tags, heads, relations)
