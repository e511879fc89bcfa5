"""A parser of dependencies: the biaffine parser of Dozat & Manning 2017 over any encoder.

Its trees are the best by the sum of their arcs' scores: projective ones where all training trees
are, by the algorithm of Eisner 1996, else maximum spanning trees. Either way exactly one word
hangs from the root.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np
from torch import Tensor

from spmrl_bench.chart import decode_dependencies
from spmrl_bench.parsers.base import Words
from spmrl_bench.parsers.batches import Batch
from spmrl_bench.parsers.dependency_layer import (
    DependencyGold,
    DependencyLayer,
    ScoredDependencies,
    dependency_vocabulary,
)
from spmrl_bench.parsers.kind_configs import DependencyParserConfig
from spmrl_bench.parsers.lengths import ARCS, Search
from spmrl_bench.parsers.neural import Encoded, NeuralParser, predicted_tags
from spmrl_bench.parsers.parsing import Found
from spmrl_bench.parsers.vocabulary import Vocabulary
from spmrl_bench.trees.parse import Parse


class DependencyParser(NeuralParser):
    """Encoder, biaffine scores and tree search, with the vocabulary they were built for."""

    kind = "biaffine"

    def __init__(
        self, config: DependencyParserConfig, vocabulary: Vocabulary, assets: Path | None = None
    ) -> None:
        """A parser with random weights; the arguments are those of :class:`NeuralParser`."""
        super().__init__(config, vocabulary, assets)
        self.dependencies = DependencyLayer(config, self.encoder.d_out, vocabulary)
        self._add_tagger()

    @classmethod
    def build(cls, config: Any, examples: Sequence[Parse]) -> Self:
        return cls.fresh(config, dependency_vocabulary(examples))

    @property
    def search(self) -> Search:
        return ARCS

    def gold(self, example: Parse) -> DependencyGold:
        """Its governors and relations; raises as :meth:`DependencyLayer.gold`."""
        return self.dependencies.gold(example)

    def loss(self, tokens: Tensor, batch: Batch, gold: Sequence[DependencyGold]) -> Tensor:
        """Sum over words of the losses of their governors and relations."""
        return self.dependencies.loss(tokens, batch, gold)

    def found_by(self, group: Sequence[Encoded], members: Sequence[Self]) -> Iterator[Found]:
        scored = ScoredDependencies([member.dependencies for member in members], group)
        decoded = decode_dependencies(
            scored.arcs, group[0].batch.lengths, projective=self.vocabulary.projective
        )
        heads = np.split(decoded.heads, decoded.offsets[1:-1])
        relations = scored.relations(decoded.heads)
        for rows, names, tags in zip(heads, relations, predicted_tags(group), strict=True):
            yield Found(heads=rows.tolist(), relations=names, tags=tags)

    def flat(self, words: Words, tags: Words) -> Parse:
        """Every word hangs from the first, which hangs from the root."""
        return Parse.of(dependencies=self.dependencies.flat(words, tags))
