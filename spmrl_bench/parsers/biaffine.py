"""The biaffine parser of Dozat & Manning 2017: dependencies, learnt and read off encoded tokens.

Every word chooses its head among the other words and the root (START), by biaffine scores of all
pairs of a sentence, and a relation to it, by biaffine scores of the pair. In training both are
classifications of single words. Which arcs make a tree the layer does not know; the relations are
chosen afterwards, for a root among those seen at roots in training, for other words among theirs.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice, repeat
from typing import Annotated, Any, NamedTuple, Self

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import Field
from torch import Tensor, nn

from spmrl_bench.chart.dependency_trees import decode_dependencies
from spmrl_bench.errors import TreeError
from spmrl_bench.nn.scorers.pair_scores import BiaffineScorer, choice_loss, packed_arcs
from spmrl_bench.nn.settings import Rate, Settings, Width
from spmrl_bench.nn.vocabulary import Vocabulary
from spmrl_bench.parsers.base import MAX_TOKENS, Margin, Prediction, Words
from spmrl_bench.parsers.batches import Batch, first_words
from spmrl_bench.parsers.certainty import (
    arc_probabilities,
    temperature_of,
    with_tag_probabilities,
)
from spmrl_bench.parsers.config import NeuralConfig
from spmrl_bench.parsers.neural import Encoded, NeuralParser, predicted_tags
from spmrl_bench.parsers.session import NeuralSession
from spmrl_bench.trees.dependencies import DependencyTree
from spmrl_bench.trees.parse import Parse, Probabilities


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

    @torch.no_grad()
    def margins(
        self, encoded: Encoded, gold: Sequence[Parse], predicted: Sequence[Parse]
    ) -> list[list[Margin]]:
        """Return the words whose head or relation differs, in the order of the sentence. The margin
        is the logarithm of the odds of the predicted labelled arc against the gold one, negative
        where the word by itself would have chosen the gold arc."""
        layout, scorer = encoded.batch.layout, self.scorer
        projected = scorer.project(encoded.tokens, layout)
        of_arcs = scorer.arc_scores(projected, layout).float().log_softmax(dim=1)

        def log_probabilities(trees: Sequence[DependencyTree]) -> Tensor:
            heads = torch.from_numpy(np.concatenate([tree.heads for tree in trees]))
            heads = heads.to(of_arcs.device).long()
            ids = [self.relation_ids.get(name, -1) for tree in trees for name in tree.relations]
            relations = torch.tensor(ids, device=of_arcs.device)
            scores = scorer.relation_scores(projected, layout, heads).float().log_softmax(dim=1)
            # A relation that is unknown, or illegal at its place, counts as the second best of the
            # legal ones, if there is one: no more is known than that it is not the parser's.
            second = scores.topk(min(2, scores.shape[1]), dim=1).values[:, -1]
            second = torch.where(second == -torch.inf, scores.amax(dim=1), second)
            chosen = scores.gather(1, relations.clamp(min=0)[:, None]).squeeze(1)
            chosen = torch.where((relations < 0) | (chosen == -torch.inf), second, chosen)
            return of_arcs.gather(1, heads[:, None]).squeeze(1) + chosen

        trees = trees_of(gold), trees_of(predicted)
        of_gold, of_predicted = map(log_probabilities, trees)
        rows = (of_predicted - of_gold).split(encoded.batch.lengths.tolist())
        return arc_margins(*trees, [row.tolist() for row in rows], self.relation_ids)


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

    def relations(self, heads: NDArray[np.integer]) -> list[list[str]]:
        """Return the best relations of each sentence to heads ``[words]``, 0 for the root."""
        return self.likely_relations(heads)[0]

    @torch.no_grad()
    def likely_relations(
        self, heads: NDArray[np.integer]
    ) -> tuple[list[list[str]], list[list[float]]]:
        """Return them, and how likely each is given its head."""
        names = self._members[0][0].names
        chosen = torch.from_numpy(heads.astype(np.int64)).to(self._layout.lengths.device)
        total = []
        for layer, projected in self._members:
            scores = layer.scorer.relation_scores(projected, self._layout, chosen)
            total.append(scores[:, [layer.relation_ids[name] for name in names]])
        mean = torch.stack(total).mean(dim=0)
        best = map(names.__getitem__, mean.argmax(dim=1).tolist())
        sure = iter(mean.float().softmax(dim=1).amax(dim=1).tolist())
        counts = [tokens - 2 for tokens in self._layout.lengths.tolist()]
        return [[*islice(best, n)] for n in counts], [[*islice(sure, n)] for n in counts]


def trees_of(parses: Iterable[Parse]) -> list[DependencyTree]:
    return [tree for parse in parses if (tree := parse.dependencies) is not None]


def arc_margins(
    gold: Sequence[DependencyTree],
    predicted: Sequence[DependencyTree],
    margins: Iterable[Sequence[float]],
    known: Container[str],
) -> list[list[Margin]]:
    """Return the words of each sentence whose head or relation differs, of the margins of all;
    ``known`` are the parser's relations."""
    results = []
    for one, other, row in zip(gold, predicted, margins, strict=True):
        columns = one.relations, other.relations, one.heads.tolist(), other.heads.tolist(), row
        results.append(
            [
                Margin("dependencies", k, k + 1, name, found, margin, name in known, head, own)
                for k, (name, found, head, own, margin) in enumerate(zip(*columns, strict=False))
                if (name, head) != (found, own)
            ]
        )
    return results


class BiaffineParser(NeuralParser):
    """Finds the tree with the highest sum of arc scores, in which one word hangs from the root.

    It is projective where all training trees are (Eisner 1996), else a maximum spanning tree.
    """

    kind = "biaffine"
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

    def predict(self, encoded: Sequence[Encoded], members: Sequence[Self]) -> Iterator[Prediction]:
        return self._predictions(encoded, members, scored=False)

    def predict_scored(
        self, encoded: Sequence[Encoded], members: Sequence[Self]
    ) -> Iterator[Prediction]:
        """Yield the same as :meth:`predict` with probabilities, at the temperature."""
        return self._predictions(encoded, members, scored=True)

    def _predictions(
        self, encoded: Sequence[Encoded], members: Sequence[Self], *, scored: bool
    ) -> Iterator[Prediction]:
        scores = DependencyScores([each.dependencies for each in members], encoded)
        lengths, projective = encoded[0].batch.lengths, self.vocabulary.projective
        heads = decode_dependencies(scores.arcs, lengths, projective=projective)
        relations, sure = scores.likely_relations(heads)
        known: Iterable[Probabilities | None] = repeat(None, len(lengths))
        if scored:
            arcs = scores.arcs / temperature_of(members)
            found = arc_probabilities(arcs, lengths, heads, projective=projective)
            both = zip(found, sure, strict=True)
            of_words = (replace(one, relations=row) for one, row in both)
            known = with_tag_probabilities(of_words, encoded, members)
        rows = np.split(heads, np.cumsum(lengths)[:-1])
        columns = rows, relations, predicted_tags(encoded), known
        for row, own, tags, probabilities in zip(*columns, strict=True):
            yield Prediction(None, row.tolist(), own, tags, probabilities)

    def scored_session(self, max_tokens: int = MAX_TOKENS) -> NeuralSession:
        return NeuralSession([self], max_tokens, self.predict_scored)

    def batch_margins(
        self, encoded: Encoded, gold: Sequence[Parse], predicted: Sequence[Parse]
    ) -> list[list[Margin]]:
        return self.dependencies.margins(encoded, gold, predicted)

    def flat(self, words: Words, tags: Words) -> Parse:
        return Parse.of(dependencies=self.dependencies.flat(words, tags))
