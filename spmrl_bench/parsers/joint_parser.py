"""A parser of constituents and dependencies at once (Zhou & Zhao 2019; Mrini et al. 2020).

The two trees of a sentence are one structure (:mod:`spmrl_bench.trees.head_driven`), and so are
those that the parser finds: the head word of each constituent is one of its words, and the only
one governed from outside. As *joint spans* the best structure is searched by the scores of labels
and arcs together, which the parameter lambda weighs; as *division spans* the labels alone say
where heads are, and arcs are not scored but for their relations.

In training the trees are searched by the scores of labels alone, as those of a chart parser, and
words choose their governors one by one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np
from torch import Tensor

from spmrl_bench.chart import decode_joint
from spmrl_bench.errors import TreeError
from spmrl_bench.parsers.base import Words
from spmrl_bench.parsers.batches import Batch
from spmrl_bench.parsers.chart_parser import ChartGold, ChartParser
from spmrl_bench.parsers.decoding import barred, decode_blocks, taken
from spmrl_bench.parsers.dependency_layer import (
    DependencyGold,
    DependencyLayer,
    ScoredDependencies,
)
from spmrl_bench.parsers.kind_configs import JointParserConfig
from spmrl_bench.parsers.lengths import MARKED_SPANS, SPANS_AND_ARCS, Search, beginning
from spmrl_bench.parsers.neural import Encoded, predicted_tags
from spmrl_bench.parsers.parsing import Found
from spmrl_bench.parsers.vocabulary import EMPTY, Vocabulary
from spmrl_bench.trees.dependencies import DependencyTree
from spmrl_bench.trees.head_driven import (
    SUB_HEAD,
    TO_HEAD,
    HeadDriven,
    from_division_span,
    head_driven,
    to_division_span,
)
from spmrl_bench.trees.parse import Parse
from spmrl_bench.trees.tree import LabeledSpan, Tree, expand_chains


class JointGold(NamedTuple):
    """What is learnt of a sentence: labelled spans, sub-heads among them, and its heads."""

    spans: ChartGold
    dependencies: DependencyGold


class JointParser(ChartParser):
    """A chart parser that scores dependencies too, and finds both in one structure."""

    kind = "joint"
    config: JointParserConfig

    def __init__(
        self, config: JointParserConfig, vocabulary: Vocabulary, assets: Path | None = None
    ) -> None:
        """A parser with random weights; the arguments are those of :class:`NeuralParser`."""
        super().__init__(config, vocabulary, assets)
        self.dependencies = DependencyLayer(config, self.encoder.d_out, vocabulary)
        sub_heads = {(SUB_HEAD,), (TO_HEAD, SUB_HEAD)}
        ids = vocabulary.label_ids
        self._not_of_words = [ids[label] for label in sub_heads & ids.keys()]
        self._not_of_sentences = [ids[label] for label in ({(TO_HEAD,)} | sub_heads) & ids.keys()]

    @classmethod
    def build(cls, config: Any, examples: Sequence[Parse]) -> Self:
        learnt, rows = [], []
        for example in examples:
            tree, dependencies = _layers(example)
            structure = head_driven(tree, dependencies)
            rows.append(_rows(structure, config))
            # A relation may be that of a root until its word is moved to another.
            moved = replace(dependencies, heads=structure.heads)
            learnt.append(replace(example, dependencies=moved))
        return cls.fresh(config, Vocabulary.of(learnt, rows))

    @property
    def search(self) -> Search:
        return MARKED_SPANS if self.config.structure == "division" else SPANS_AND_ARCS

    # Training -------------------------------------------------------------------------

    def gold(self, example: Parse) -> JointGold:  # type: ignore[override]
        """Its head-driven structure.

        Raises:
            TreeError: a layer is missing, no constituent covers the whole sentence, or a label or
                relation is not in the vocabulary.
        """
        structure = head_driven(*_layers(example))
        relations = self.dependencies.gold(example).relations
        return JointGold(
            self.spans(_rows(structure, self.config), len(example)),
            DependencyGold(structure.heads.astype(np.int64), relations),
        )

    def loss(self, tokens: Tensor, batch: Batch, gold: Sequence[JointGold]) -> Tensor:  # type: ignore[override]
        """The losses of a chart parser and of its dependencies, summed up."""
        of_spans = super().loss(tokens, batch, [each.spans for each in gold])
        of_words = self.dependencies.loss(tokens, batch, [each.dependencies for each in gold])
        return of_words if of_spans is None else of_spans + of_words

    # Parsing --------------------------------------------------------------------------

    def found_by(self, group: Sequence[Encoded], members: Sequence[Self]) -> Iterator[Found]:
        lengths = group[0].batch.lengths
        blocks = barred(
            self.mean_scores(group, members), lengths, self._not_of_words, self._not_of_sentences
        )
        scored = ScoredDependencies([member.dependencies for member in members], group)
        if self.config.structure == "division":
            decoded = decode_blocks(blocks, lengths)
            marked = self.label_rows(decoded.cells, decoded.labels, lengths)
            pairs = [
                from_division_span(rows, n)
                for rows, n in zip(marked, lengths.tolist(), strict=True)
            ]
        else:
            values, best = taken(blocks, lengths).maxima()
            weight = self.config.span_weight
            found = decode_joint(weight * values, (1 - weight) * scored.arcs, lengths)
            labels = np.where(found.labelled, best[found.cells], EMPTY).astype(np.int32)
            nodes = self.label_rows(found.cells, labels, lengths)
            words = np.split(found.heads, found.word_offsets[1:-1])
            pairs = [(rows, heads.tolist()) for rows, heads in zip(nodes, words, strict=True)]
        relations = scored.relations(np.concatenate([heads for _, heads in pairs]))
        for (rows, heads), names, tags in zip(pairs, relations, predicted_tags(group), strict=True):
            constituents = [row for row in expand_chains(rows) if row[2] != SUB_HEAD]
            yield Found(constituents, heads, names, tags)

    def flat(self, words: Words, tags: Words) -> Parse:
        """One bracket over all words, which hang from the first."""
        return Parse.of(super().flat(words, tags).tree, self.dependencies.flat(words, tags))


def _layers(example: Parse) -> tuple[Tree, DependencyTree]:
    """Both layers of a sentence.

    Raises:
        TreeError: one is missing.
    """
    if example.tree is None or example.dependencies is None:
        raise TreeError(
            "constituents and dependencies are learnt together, but the sentence has only "
            f"{' and '.join(example.layers)} (it begins: {beginning(example.words)})"
        )
    return example.tree, example.dependencies


def _rows(structure: HeadDriven, config: JointParserConfig) -> Sequence[LabeledSpan]:
    """The labelled spans that the chart is to find."""
    return to_division_span(structure) if config.structure == "division" else structure.rows
