"""The biaffine parser of Dozat & Manning 2017: dependencies, learnt and read off encoded tokens.

Every word chooses its head among the other words and the root (START), by biaffine scores of all
pairs of a sentence, and a relation to it, by biaffine scores of the pair. In training both are
classifications of single words. Which arcs make a tree the layer does not know; the relations are
chosen afterwards, for a root among those seen at roots in training, for other words among theirs.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice, repeat
from typing import Annotated, Any, NamedTuple, Self

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import Field
from torch import Tensor, nn

from spmrl_bench.chart.arrays import arc_offsets, starts
from spmrl_bench.chart.dependency_trees import arc_marginals, decode_dependencies
from spmrl_bench.chart.k_best import k_best_heads
from spmrl_bench.errors import TreeError
from spmrl_bench.nn.scorers.pair_scores import BiaffineScorer, choice_loss, packed_arcs
from spmrl_bench.nn.settings import Rate, Settings, Width
from spmrl_bench.nn.vocabulary import Vocabulary
from spmrl_bench.parsers.base import Prediction, Words
from spmrl_bench.parsers.batches import Batch, Encoded, Group, first_words
from spmrl_bench.parsers.certainty import by_sentence, hold_arcs, hold_relations, scores_of_heads
from spmrl_bench.parsers.config import NeuralConfig
from spmrl_bench.parsers.neural import NeuralParser
from spmrl_bench.trees.dependencies import DependencyTree
from spmrl_bench.trees.given import Given
from spmrl_bench.trees.parse import LEAST, Parse, Probabilities


class DependencyGold(NamedTuple):
    """The head of each word, from 1, with 0 for the root, and the index of its relation to it."""

    heads: NDArray[np.int64]
    relations: NDArray[np.int64]


def relation_rows(tree: DependencyTree, ids: Mapping[str, int]) -> list[int]:
    """Return the index of the relation of each word; TreeError if one is unknown."""
    if unknown := [name for name in tree.relations if name not in ids]:
        raise TreeError(f"relation {unknown[0]} is not in the parser's vocabulary")
    return [ids[name] for name in tree.relations]


def relation_places(vocabulary: Vocabulary) -> NDArray[np.bool_]:
    """Return where relations may be, ``[relations, 2]``, at the root and at other words."""
    seen = np.array([*vocabulary.relations.values()], dtype=bool).reshape(-1, 2)
    return np.where(seen.any(axis=0), seen, True)  # where none was seen, all


def chain(words: Words, tags: Words, from_root: str, between: str) -> DependencyTree:
    """Return the tree in which every word hangs from the first, and that from the root."""
    others = len(words) - 1
    heads, relations = [0, *[1] * others], [from_root, *[between] * others]
    return DependencyTree.build(words, tags, heads, relations)


def dependency_vocabulary(examples: Sequence[Parse]) -> Vocabulary:
    """Return the inventories of sentences; TreeError if none of them has dependencies."""
    vocabulary = Vocabulary.of(examples)
    if not vocabulary.relations:
        raise TreeError(
            f"the {len(examples)} training sentences have no dependencies: nothing to learn"
        )
    return vocabulary


class DependencyLayer(nn.Module):
    """Biaffine scores of arcs and relations over the encoder, in a parser's relations."""

    class Config(Settings):
        """Settings of the layer."""

        d_arc: Width
        """Width of a word as a dependent, and as a head, in the scores of arcs."""
        d_relation: Width
        """Width of a word as a dependent, and as a head, in the scores of relations."""
        dropout: Rate
        """Dropout of the vectors of dependents and heads."""
        arc_loss_weight: Annotated[float, Field(gt=0)] = 1.0
        """Weight of the loss of heads; 0.5 in the codes of Zhou & Zhao 2019, Mrini et al. 2020."""
        relation_loss_weight: Annotated[float, Field(gt=0)] = 1.0
        """Weight of the loss of relations; 0.5 in the same codes."""

    def __init__(self, config: Config, width: int, vocabulary: Vocabulary) -> None:
        super().__init__()
        self.config = config
        self.relation_ids, self.names = vocabulary.relation_ids, list(vocabulary.relations)
        legal = relation_places(vocabulary)[:, ::-1].T.copy()
        self.scorer = BiaffineScorer(config, width, torch.from_numpy(legal))

    def gold(self, example: Parse) -> DependencyGold:
        if (tree := example.dependencies) is None:
            begun = first_words(example.words)
            raise TreeError(f"no dependencies to learn (the sentence begins: {begun})")
        rows = relation_rows(tree, self.relation_ids)
        return DependencyGold(tree.heads.astype(np.int64), np.array(rows, dtype=np.int64))

    def loss(self, tokens: Tensor, batch: Batch, gold: Sequence[DependencyGold]) -> Tensor:
        """Return the sum over words of the weighted cross-entropies of head and relation."""
        columns = map(np.concatenate, zip(*gold, strict=True))
        heads, relations = (torch.from_numpy(column).to(tokens.device) for column in columns)
        config, layout, scorer = self.config, batch.layout, self.scorer
        projected = scorer.project(tokens, layout)
        of_heads = choice_loss(scorer.arc_scores(projected, layout), heads)
        of_relations = choice_loss(scorer.relation_scores(projected, layout, heads), relations)
        return config.arc_loss_weight * of_heads + config.relation_loss_weight * of_relations

    def flat(self, words: Words, tags: Words) -> DependencyTree:
        between, from_root = (self.names[row.int().argmax()] for row in self.scorer.legal)
        return chain(words, tags, from_root, between)


class DependencyScores:
    """The mean scores of the same sentences, as encoded for each layer, of the same relations;
    ``arcs``, float64 ``[sum of n (n + 1)]``, are packed as in :mod:`spmrl_bench.chart.arrays`."""

    @torch.no_grad()
    def __init__(self, layers: Sequence[DependencyLayer], encoded: Sequence[Encoded]) -> None:
        self._layout = layout = encoded[0].batch.layout
        self._members = [
            (layer, layer.scorer.project(each.tokens, layout))
            for layer, each in zip(layers, encoded, strict=True)
        ]
        arcs = [
            packed_arcs(layer.scorer.arc_scores(projected, layout), layout)
            for layer, projected in self._members
        ]
        self.arcs: NDArray[np.float64] = torch.stack(arcs).double().mean(dim=0).cpu().numpy()

    @torch.no_grad()
    def relation_scores(
        self, heads: NDArray[np.integer], words: NDArray[np.integer] | None = None
    ) -> Tensor:
        """Return the scores ``[rows, relations]`` to heads, 0 for the root, of all words, or of
        these of the batch."""
        names, device = self._members[0][0].names, self._layout.lengths.device
        chosen = torch.from_numpy(heads.astype(np.int64)).to(device)
        which = None if words is None else torch.from_numpy(words).to(device)
        total = []
        for layer, projected in self._members:
            scores = layer.scorer.relation_scores(projected, self._layout, chosen, which)
            total.append(scores[:, [layer.relation_ids[name] for name in names]])
        return torch.stack(total).mean(dim=0)

    def relations(self, heads: NDArray[np.integer]) -> list[list[str]]:
        """Return the best relations of each sentence to heads ``[words]``, 0 for the root."""
        names = self._members[0][0].names
        best = map(names.__getitem__, self.relation_scores(heads).argmax(dim=1).tolist())
        return [[*islice(best, tokens - 2)] for tokens in self._layout.lengths.tolist()]

    def with_relations(
        self, ranked: Sequence[Sequence[tuple[float, Any]]], given: Sequence[Given]
    ) -> Iterator[list[tuple[float, Prediction]]]:
        """Yield some predictions of heads of each sentence, one at least, with the best relations
        that hold what is given."""
        names, found = self._members[0][0].names, []
        for rank in range(max(map(len, ranked))):
            heads = np.concatenate([own[min(rank, len(own) - 1)][1].heads for own in ranked])
            found.append([*hold_relations(self.relations(heads), given, names)])
        for own, rows in zip(ranked, zip(*found, strict=True), strict=True):
            pairs = zip(own, rows, strict=False)
            yield [(score, one._replace(relations=row)) for (score, one), row in pairs]

    def likely(
        self, shares: NDArray[np.float64]
    ) -> Iterator[tuple[dict[Any, float], dict[Any, float]]]:
        """Yield the likely arcs of each sentence, and those of a relation, for how likely packed
        arcs are."""
        lengths = self._layout.lengths.cpu().numpy() - 2
        sentence = np.repeat(np.arange(len(lengths)), lengths)
        widths = np.repeat(lengths + 1, lengths)
        kept = np.flatnonzero(shares >= LEAST["dependencies"])
        row = np.repeat(np.arange(len(widths)), widths)[kept]
        heads, word = kept - starts(widths)[row], row - starts(lengths)[sentence[row]] + 1
        scores = self.relation_scores(heads, row).double().softmax(dim=1).cpu().numpy()
        scores *= shares[kept, None]
        at, name = np.nonzero(scores >= LEAST["dependencies"])
        names = map(self._members[0][0].names.__getitem__, name.tolist())
        pairs, count = (word.tolist(), heads.tolist()), len(lengths)
        triples = word[at].tolist(), heads[at].tolist(), names
        arcs = by_sentence(sentence[row], count, pairs, shares[kept])
        relations = by_sentence(sentence[row[at]], count, triples, scores[at, name])
        return zip(arcs, relations, strict=True)


class BiaffineParser(NeuralParser):
    """Finds the tree with the highest sum of arc scores, in which one word hangs from the root.

    It is projective where all training trees are (Eisner 1996), else a maximum spanning tree.
    """

    kind = "biaffine"
    exact = True
    citations = (
        "Dozat & Manning (2017). Deep Biaffine Attention for Neural Dependency Parsing. ICLR.",
    )
    config: Config

    class Config(NeuralConfig):
        """A parser of dependencies."""

        dependencies: DependencyLayer.Config
        """Scores of arcs and relations."""

    def add_layers(self) -> None:
        width, vocabulary = self.encoder.d_out, self.vocabulary
        self.dependencies = DependencyLayer(self.config.dependencies, width, vocabulary)
        self.add_tagger()

    @classmethod
    def build(cls, config: Any, examples: Sequence[Parse]) -> Self:
        return cls.fresh(config, dependency_vocabulary(examples))

    def gold(self, example: Parse) -> DependencyGold:
        return self.dependencies.gold(example)

    def loss(self, tokens: Tensor, batch: Batch, gold: Sequence[DependencyGold]) -> Tensor:
        return self.dependencies.loss(tokens, batch, gold)

    def predict(self, group: Group) -> Iterator[Prediction]:
        scores = DependencyScores([each.dependencies for each in group.members], group.encoded)
        lengths, projective = group.lengths, self.vocabulary.projective
        of_arcs = hold_arcs(scores.arcs, lengths, group.given)
        heads = decode_dependencies(of_arcs, lengths, projective=projective)
        found: Iterable[Any] = repeat(None)
        if group.scored:
            arcs = of_arcs / group.temperature
            totals, shares = arc_marginals(arcs, lengths, projective=projective)
            of_trees = np.minimum(scores_of_heads(arcs, lengths, heads) - totals, 0.0)
            rows = zip(of_trees.tolist(), scores.likely(shares), strict=True)
            found = (Probabilities(own, None, *likely) for own, likely in rows)
        ranked = self._ranked(scores, of_arcs, group) if group.best > 1 else repeat(())
        trees = np.split(heads, np.cumsum(lengths)[:-1])
        relations = hold_relations(scores.relations(heads), group.given, self.dependencies.names)
        columns = zip(trees, relations, found, ranked, strict=False)
        for row, names, known, several in columns:
            yield Prediction(None, row.tolist(), names, probabilities=known, best=several)

    def _ranked(
        self, scores: DependencyScores, arcs: NDArray[np.float64], group: Group
    ) -> Iterator[Sequence[tuple[float, Prediction]]]:
        """Yield the best trees of each sentence that hold what is given, and their scores."""
        every, projective = [], self.vocabulary.projective
        for table in np.split(arcs, arc_offsets(group.lengths)[1:-1]):
            n = math.isqrt(len(table))
            found = k_best_heads(table.reshape(n, n + 1), group.best, projective=projective)
            # One that holds not all that is given is refused where parses are looked at.
            some = found or [(0.0, (0, *[1] * (n - 1)))]
            every.append([(score, Prediction(None, heads)) for score, heads in some])
        return scores.with_relations(every, group.given)

    def flat(self, words: Words, tags: Words) -> Parse:
        return Parse.of(dependencies=self.dependencies.flat(words, tags))
