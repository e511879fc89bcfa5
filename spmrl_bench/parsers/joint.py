"""A parser of constituents and dependencies at once (Zhou & Zhao 2019; Mrini et al. 2020).

The two trees of a sentence are one structure (:mod:`spmrl_bench.trees.head_driven`), and so are
those that the parser finds: the head word of each constituent is one of its words, and the only one
whose head is outside. As *joint spans* the best structure is searched by the scores of labels and
arcs together, weighed by lambda; as *division spans* the labels alone say where heads are, and arcs
are scored for their relations alone. In training the layers are independent.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import pairwise, repeat
from typing import Annotated, Any, Literal, Self

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import Field
from torch import Tensor

from spmrl_bench.chart.arrays import arc_offsets, cell_offsets
from spmrl_bench.chart.joint_trees import LONGEST, decode_joint, joint_marginals
from spmrl_bench.chart.k_best import k_best_spans, k_best_structures
from spmrl_bench.chart.span_trees import decode_spans, span_marginals
from spmrl_bench.errors import TreeError
from spmrl_bench.nn.scorers.span_scores import SpanScorer
from spmrl_bench.nn.vocabulary import EMPTY, Vocabulary
from spmrl_bench.parsers import certainty, chart
from spmrl_bench.parsers.base import Prediction, Words
from spmrl_bench.parsers.batches import Batch, Group, first_words
from spmrl_bench.parsers.biaffine import DependencyGold, DependencyLayer, DependencyScores
from spmrl_bench.parsers.config import NeuralConfig
from spmrl_bench.parsers.neural import NeuralParser
from spmrl_bench.trees.head_driven import (
    SUB_HEAD,
    TO_HEAD,
    constituent,
    from_division_span,
    head_driven,
    to_division_span,
)
from spmrl_bench.trees.parse import Parse, Probabilities
from spmrl_bench.trees.tree import Label, LabeledSpan, Tree, expand_chains

#: The temperature of arcs by that of spans. Arcs are learnt as choices of single words and spans by
#: a margin, and parsers of one layer are as often right as they say at about 2.8 and 0.55.
ARC_TEMPERATURE = 5.0
_Structure = tuple[list[LabeledSpan], list[int]]
#: Structures of sentences, probabilities where they are asked for, and scores of arcs if these have
#: decided too.
_Found = tuple[list[_Structure], Iterable[Any], NDArray[np.float64] | None]


class JointParser(NeuralParser):
    """Scores of labelled spans and of dependencies, read off as one structure."""

    kind = "joint"
    exact = True
    citations = (
        "Zhou & Zhao (2019). Head-Driven Phrase Structure Grammar Parsing on Penn Treebank. ACL. "
        "https://aclanthology.org/P19-1230/",
    )
    config: Config

    class Config(NeuralConfig):
        """A parser of constituents and dependencies at once."""

        scorer: SpanScorer.Config
        """Scores of labelled spans."""
        dependencies: DependencyLayer.Config
        """Scores of arcs and relations."""
        structure: Literal["joint", "division"] = "joint"
        """Joint spans, or division spans, whose labels say where heads are (Zhou & Zhao 2019)."""
        span_weight: Annotated[float, Field(ge=0, le=1)] = 0.5
        """Weight of the scores of labels in parsing (lambda); the scores of arcs have the rest."""

        @property
        def free(self) -> frozenset[str]:
            return frozenset({"span_weight"} if self.structure == "joint" else ())

    def add_layers(self) -> None:
        config, encoder, vocabulary = self.config, self.encoder, self.vocabulary
        self.scorer = chart.SpanLayer(config.scorer, encoder, vocabulary)
        self.add_tagger()
        self.dependencies = DependencyLayer(config.dependencies, encoder.d_out, vocabulary)
        if config.structure == "joint":  # its chart has a number for each head of each span
            self.longest = 700
        sub_heads, ids = [(SUB_HEAD,), (TO_HEAD, SUB_HEAD)], vocabulary.label_ids
        of_words = [ids[label] for label in sub_heads if label in ids]
        of_sentences = [ids[label] for label in ((TO_HEAD,), *sub_heads) if label in ids]
        self.masked = of_words, of_sentences

    @classmethod
    def build(cls, config: Any, examples: Sequence[Parse]) -> Self:
        learnt = [_learnt(example, config) for example in examples]
        return cls.fresh(
            config, Vocabulary.of([one for _, one in learnt], [one for one, _ in learnt])
        )

    def gold(self, example: Parse) -> tuple[chart.SpanGold, DependencyGold]:
        rows, learnt = _learnt(example, self.config)
        return self.scorer.gold(rows, len(example)), self.dependencies.gold(learnt)

    def loss(
        self, tokens: Tensor, batch: Batch, gold: Sequence[tuple[chart.SpanGold, DependencyGold]]
    ) -> Tensor:
        spans, dependencies = zip(*gold, strict=True)
        of_spans = self.scorer.loss(tokens, batch, spans)
        of_words = self.dependencies.loss(tokens, batch, dependencies)
        return of_words if of_spans is None else of_spans + of_words

    def predict(self, group: Group) -> Iterator[Prediction]:
        labels = chart.label_scores([each.scorer for each in group.members], group.encoded)
        masked = chart.masked_scores(labels, group.lengths, self.masked)
        kept = [*masked] if group.scored or group.best > 1 else masked
        held = certainty.hold_constituents(kept, self._constituents(), group.lengths, group.given)
        scores = DependencyScores([each.dependencies for each in group.members], group.encoded)
        if self.config.structure == "joint":
            pairs, found, arcs = self._joint(group, scores, *held)
        else:
            pairs, found, arcs = self._division(group, *held)
        names = scores.relations(np.concatenate([heads for _, heads in pairs]))
        relations = certainty.hold_relations(names, group.given, self.dependencies.names)
        ranked: Iterable[Any] = repeat(())
        if group.best > 1:
            ranked = scores.with_relations(self._ranked(group, pairs, *held, arcs), group.given)
        columns = zip(pairs, relations, found, ranked, strict=False)
        for (spans, heads), row, known, several in columns:
            yield Prediction(_shown(spans), heads, row, probabilities=known, best=several)

    def _division(self, group: Group, blocks: Iterable[Tensor], gains: certainty.Gains) -> _Found:
        """Heads follow from labels, which have a distribution of their own."""
        values, best = chart.best_labels(blocks)
        lengths = group.lengths
        trees = decode_spans(values + gains, best, lengths)
        rows = self.scorer.rows(trees.cells, trees.labels, lengths)
        pairs = [*map(from_division_span, rows, lengths.tolist())]
        if not group.scored:
            return pairs, repeat(None), None
        summed = partial(span_marginals, lengths=lengths, near=trees.cells)
        likely = certainty.SpanDistribution(blocks, 1 / group.temperature, lengths, summed, gains)
        return pairs, likely.probabilities(trees.cells, trees.labels, self._constituents()), None

    def _joint(
        self,
        group: Group,
        scores: DependencyScores,
        blocks: Iterable[Tensor],
        gains: certainty.Gains,
    ) -> _Found:
        values, best = chart.best_labels(blocks)
        lengths, weight = group.lengths, self.config.span_weight
        arcs = (1 - weight) * certainty.hold_arcs(scores.arcs, lengths, group.given)
        trees = decode_joint(weight * values + gains, arcs, lengths)
        labels = np.where(trees.labelled, best[trees.cells], EMPTY).astype(np.int32)
        rows = self.scorer.rows(trees.cells, labels, lengths)
        words = np.split(trees.heads, np.cumsum(lengths)[:-1])
        pairs = [(own, heads.tolist()) for own, heads in zip(rows, words, strict=True)]
        if not group.scored:
            return pairs, repeat(None), arcs
        cool = arcs / (ARC_TEMPERATURE * group.temperature)
        summed = partial(joint_marginals, arcs=cool, lengths=lengths, near=trees)
        likely = certainty.SpanDistribution(
            blocks, weight / group.temperature, lengths, summed, gains
        )
        of_heads = certainty.scores_of_heads(cool, lengths, trees.heads)
        found = likely.probabilities(trees.cells, labels, self._constituents(), of_heads)
        of_words = scores.likely(likely.marginals.arcs)
        both = (
            replace(one, arcs=own, relations=relations)
            for one, (own, relations) in zip(found, of_words, strict=True)
        )
        return pairs, both, arcs

    def _ranked(
        self,
        group: Group,
        structures: Iterable[_Structure],
        blocks: Iterable[Tensor],
        gains: certainty.Gains,
        arcs: NDArray[np.float64] | None,
    ) -> list[list[tuple[float, Prediction]]]:
        """Return the best parses of each sentence that hold what is given, one at least."""
        weight = 1.0 if arcs is None else self.config.span_weight
        scores = torch.cat([*blocks]).double().cpu().numpy()
        gained = np.broadcast_to(gains, len(scores))
        scores = np.where(scores < -chart.MASKED / 2, -np.inf, weight * scores) + gained[:, None]
        runs = pairwise(cell_offsets(group.lengths)), pairwise(arc_offsets(group.lengths))
        every = []
        for n, cells, words, first in zip(group.lengths.tolist(), *runs, structures, strict=True):
            own = None if arcs is None else arcs[slice(*words)].reshape(n, n + 1)
            certain = float(gained[slice(*cells)].sum())
            found: dict[str, tuple[float, Prediction]] = {}
            # Some may differ in sub-heads alone, which no parse shows: then more are listed.
            times = range(7 if own is None or n <= LONGEST else 0)
            for asked in (group.best << time for time in times):
                listed = self._listed(scores[slice(*cells)], own, n, asked)
                held = [each for each in listed if each[0] > certain - certainty.CERTAIN / 2]
                for score, cool, (rows, heads) in held:
                    likely = Probabilities(cool / group.temperature) if group.scored else None
                    one = Prediction(_shown(rows), heads, probabilities=likely)
                    found.setdefault(str(one[:2]), (score - certain, one))
                if len(found) >= group.best or len(held) < asked:
                    break
            alone = Prediction(_shown(first[0]), first[1])
            every.append([*found.values()][: group.best] or [(0.0, alone)])
        return every

    def _listed(
        self, scores: NDArray[np.float64], arcs: NDArray[np.float64] | None, n: int, k: int
    ) -> list[tuple[float, float, _Structure]]:
        """Return the k best structures of a sentence, or division spans, each with its score and
        what is left of it where arcs have a temperature of their own."""
        named = self.scorer.named
        if arcs is None:
            trees = k_best_spans(scores, n, k)
            return [(score, score, from_division_span(named(own), n)) for score, own in trees]
        found = []
        arcs = np.where(arcs < (self.config.span_weight - 1) * certainty.CERTAIN / 2, -np.inf, arcs)
        for score, tree, heads in k_best_structures(scores, arcs, k):
            of_arcs = float(arcs[np.arange(n), heads].sum())
            cool = score - of_arcs + of_arcs / ARC_TEMPERATURE
            found.append((score, cool, (named(tree), heads)))
        return found

    def _constituents(self) -> list[Label]:
        """Return of each label the nonterminals, without marks and sub-heads."""
        labels = self.vocabulary.labels
        return [() if SUB_HEAD in label else constituent(label) for label in labels]

    def flat(self, words: Words, tags: Words) -> Parse:
        tree = Tree.build(words, tags, [(0, len(words), self.vocabulary.root)])
        return Parse.of(tree, self.dependencies.flat(words, tags))


def _shown(spans: Iterable[LabeledSpan]) -> list[tuple[int, int, str]]:
    return [span for span in expand_chains(spans) if span[2] != SUB_HEAD]


def _learnt(example: Parse, config: JointParser.Config) -> tuple[Sequence[LabeledSpan], Parse]:
    """Return the labelled spans that the chart is to find, and the sentence with its heads."""
    tree, dependencies = example.tree, example.dependencies
    if tree is None or dependencies is None:
        raise TreeError(
            "constituents and dependencies are learnt together, but the sentence has only "
            f"{' and '.join(example.layers)} (it begins: {first_words(example.words)})"
        )
    structure = head_driven(tree, dependencies)
    rows = to_division_span(structure) if config.structure == "division" else structure.rows
    # A relation may be that of a root until its word is moved to another.
    moved = replace(dependencies, heads=structure.heads)
    return rows, replace(example, dependencies=moved)
