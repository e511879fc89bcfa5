"""From scores to what a parser finds likely: each bracket, arc, relation and tag.

Scores are divided by a temperature, which makes of margins what agrees with how often a parser is
right (Guo, Pleiss, Sun & Weinberger 2017, On Calibration of Modern Neural Networks). Arcs share a
sum over trees, as brackets do; relations and tags are choices of single words.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import islice, pairwise
from typing import TYPE_CHECKING

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from spmrl_bench.chart.arc_marginals import arc_marginals
from spmrl_bench.chart.arrays import arc_offsets, cell_spans, node_offsets, starts
from spmrl_bench.chart.span_marginals import span_marginals
from spmrl_bench.chart.span_trees import SpanTrees, decode_spans
from spmrl_bench.nn.vocabulary import EMPTY
from spmrl_bench.trees.parse import LEAST, Probabilities
from spmrl_bench.trees.tree import Label

if TYPE_CHECKING:
    from spmrl_bench.parsers.neural import Encoded, NeuralParser


def temperature_of(members: Sequence[NeuralParser]) -> float:
    """Return that of the mean of the scores of some parsers."""
    return float(np.mean([each.temperature for each in members]))


class SpanDistribution:
    """The distribution over the trees of a batch, for the scores [cells, labels - 1], at their
    temperature, of all labels but the empty one; ``near`` as of :func:`span_marginals`."""

    def __init__(self, scores: Tensor, lengths: NDArray[np.int32], near: NDArray[np.int64]) -> None:
        self._scores, self._lengths, self._weights = scores, lengths, scores.logsumexp(dim=1)
        self._spans = span_marginals(self._weights.cpu().numpy(), lengths, near)

    def least_risk(self, threshold: float) -> SpanTrees:
        """Return the trees of which the most brackets are expected to be right, each less a
        threshold (Goodman 1996, Parsing Algorithms and Metrics)."""
        values, columns = (self._scores - self._weights[:, None]).max(dim=1)
        expected = values.exp().cpu().numpy() * self._spans.probabilities - threshold
        return decode_spans(expected, (columns + 1).int().cpu().numpy(), self._lengths)

    def probabilities(self, trees: SpanTrees, labels: Sequence[Label]) -> Iterator[Probabilities]:
        """Yield the constituents of each sentence that are likely, and what its tree has."""
        shown = trees.labels != EMPTY
        cells, chosen = trees.cells[shown], trees.labels[shown].astype(np.int64) - 1
        of_nodes = np.zeros(len(trees.cells))
        of_nodes[shown] = self._scores[torch.from_numpy(cells), torch.from_numpy(chosen)].cpu()
        totals = np.add.reduceat(of_nodes, node_offsets(self._lengths)[:-1])
        totals -= self._spans.log_partition

        likely = np.flatnonzero(self._spans.probabilities >= LEAST)
        rows = torch.from_numpy(likely).to(self._scores.device)
        shares = (self._scores[rows] - self._weights[rows, None]).exp().cpu().numpy()
        shares *= self._spans.probabilities[likely, None]
        places, columns = np.nonzero(shares >= LEAST)
        sentence, start, end = (one[likely[places]].tolist() for one in cell_spans(self._lengths))
        chains = [labels[column + 1] for column in columns.tolist()]
        every: list[dict[tuple[int, int, str], float]] = [defaultdict(float) for _ in totals]
        values = zip(sentence, start, end, chains, shares[places, columns].tolist(), strict=True)
        for k, i, j, chain, share in values:
            for name in {*chain}:
                every[k][i, j, name] += share
        for constituents, total in zip(every, totals.tolist(), strict=True):
            yield Probabilities(min(total, 0.0), constituents=dict(constituents))


def arc_probabilities(
    arcs: NDArray[np.float64],
    lengths: NDArray[np.int32],
    heads: NDArray[np.int32],
    *,
    projective: bool,
) -> Iterator[Probabilities]:
    """Yield the arcs of each sentence that are likely, and what its tree has, for packed scores
    (:mod:`spmrl_bench.chart.arrays`), at their temperature, and the heads [words] of trees."""
    totals, shares = arc_marginals(arcs, lengths, projective=projective)
    words = pairwise(starts(lengths).tolist())
    rows = zip(
        lengths.tolist(), pairwise(arc_offsets(lengths).tolist()), words, totals, strict=True
    )
    for n, own, (first, after), total in rows:
        best = np.arange(n), heads[first:after]
        score = arcs[slice(*own)].reshape(n, n + 1)[best].sum()
        table = shares[slice(*own)].reshape(n, n + 1)
        places = zip(*(one.tolist() for one in np.nonzero(table >= LEAST)), strict=True)
        likely = {(word + 1, head): float(table[word, head]) for word, head in places}
        yield Probabilities(min(float(score - total), 0.0), arcs=likely)


@torch.no_grad()
def with_tag_probabilities(
    found: Iterable[Probabilities], encoded: Sequence[Encoded], members: Sequence[NeuralParser]
) -> Iterator[Probabilities]:
    """Yield the same with those of the tags that the first parser that tags has predicted."""
    tagging = ((each, own.tagger) for each, own in zip(encoded, members, strict=True))
    each, tagger = next((pair for pair in tagging if pair[1] is not None), (encoded[0], None))
    if tagger is None:
        yield from found
        return
    scores = tagger(each.tokens[each.batch.layout.words]).float()
    best = iter(scores.softmax(dim=1).amax(dim=1).tolist())
    for one, n in zip(found, each.batch.lengths.tolist(), strict=True):
        yield replace(one, tags=[*islice(best, n)])
