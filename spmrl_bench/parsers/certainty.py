"""From scores to what a parser finds likely: each bracket, arc, relation and tag.

Scores are divided by a temperature, which makes of margins what agrees with how often a parser is
right (Guo, Pleiss, Sun & Weinberger 2017, On Calibration of Modern Neural Networks). Arcs share a
sum over trees, as brackets do; relations and tags are choices of single words.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain, islice, repeat
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from spmrl_bench.chart.arrays import cell_spans, node_offsets, starts
from spmrl_bench.chart.span_marginals import SpanMarginals
from spmrl_bench.chart.span_trees import SpanTrees, decode_spans
from spmrl_bench.nn.vocabulary import EMPTY
from spmrl_bench.trees.parse import LEAST, Probabilities
from spmrl_bench.trees.tree import Label

if TYPE_CHECKING:
    from spmrl_bench.parsers.batches import Group

M = TypeVar("M", bound=SpanMarginals)
# What is certain is so much better: exponents of a few such numbers can be multiplied.
MOST = 300.0


class SpanDistribution(Generic[M]):
    """The distribution over the trees of a batch, for blocks of the scores [cells, labels - 1] of
    all labels but the empty one and what they are multiplied with; ``summed`` gives marginals for
    the logarithms of the sums of their exponents, to which ``gains`` [cells] are added."""

    def __init__(
        self,
        blocks: Iterable[Tensor],
        scale: float,
        lengths: NDArray[np.int32],
        summed: Callable[[NDArray[np.float64]], M],
        gains: NDArray[np.float64] | float = 0.0,
    ) -> None:
        self._scores = torch.cat([*blocks]).double() * scale
        self._lengths, self._weights = lengths, self._scores.logsumexp(dim=1)
        self._gains = np.broadcast_to(np.minimum(gains, MOST), len(self._scores))
        self.marginals = summed(self._weights.cpu().numpy() + self._gains)

    def least_risk(self, threshold: float) -> SpanTrees:
        """Return the trees of which the most brackets are expected to be right, each less a
        threshold (Goodman 1996, Parsing Algorithms and Metrics)."""
        values, columns = (self._scores - self._weights[:, None]).max(dim=1)
        expected = values.exp().cpu().numpy() * self.marginals.probabilities - threshold
        return decode_spans(expected, (columns + 1).int().cpu().numpy(), self._lengths)

    def probabilities(
        self,
        nodes: NDArray[np.int64],
        marks: NDArray[np.int32],
        labels: Sequence[Label],
        rest: NDArray[np.float64] | float = 0.0,
    ) -> Iterator[Probabilities]:
        """Yield the constituents of each sentence that are likely, and what its tree has, of which
        cells and labels of the nodes are given, and what else it scores [B]; ``labels`` are the
        names of all."""
        shown = marks != EMPTY
        at = torch.from_numpy(nodes[shown]), torch.from_numpy(marks[shown].astype(np.int64) - 1)
        of_nodes = np.zeros(len(nodes))
        of_nodes[shown] = self._scores[at].cpu().numpy() + self._gains[nodes[shown]]
        totals = np.add.reduceat(of_nodes, node_offsets(self._lengths)[:-1])
        totals += rest - self.marginals.log_partition

        names = {name: k for k, name in enumerate(dict.fromkeys(chain.from_iterable(labels)))}
        has = torch.zeros(len(labels) - 1, len(names), dtype=torch.float64)
        for row, label in enumerate(labels[1:]):
            has[row, [names[name] for name in label]] = 1
        likely = np.flatnonzero(self.marginals.probabilities >= LEAST["constituents"])
        rows = torch.from_numpy(likely).to(self._scores.device)
        shares = (self._scores[rows] - self._weights[rows, None]).exp()
        of_names = (shares @ has.to(shares.device)).cpu().numpy()
        of_names *= self.marginals.probabilities[likely, None]
        places, chosen = np.nonzero(of_names >= LEAST["constituents"])
        sentence, start, end = (one[likely[places]] for one in cell_spans(self._lengths))
        columns = start.tolist(), end.tolist(), map([*names].__getitem__, chosen.tolist())
        every = by_sentence(sentence, len(totals), columns, of_names[places, chosen])
        for total, constituents in zip(totals.tolist(), every, strict=True):
            yield Probabilities(min(total, 0.0), constituents=constituents)


def by_sentence(
    sentence: NDArray[np.integer], count: int, columns: Iterable[Iterable[Any]], shares: Any
) -> Iterator[dict[Any, float]]:
    """Yield for each of ``count`` sentences how likely what the columns name is; ``sentence`` says
    of which each row is, in their order."""
    rows = zip(zip(*columns, strict=True), shares.tolist(), strict=True)
    for number in np.bincount(sentence, minlength=count).tolist():
        yield dict(islice(rows, number))


def scores_of_heads(
    arcs: NDArray[np.float64], lengths: NDArray[np.int32], heads: NDArray[np.int32]
) -> NDArray[np.float64]:
    """Return the sum [B] of the scores of the arcs to the heads [words] of trees; those of all arcs
    are packed (:mod:`spmrl_bench.chart.arrays`)."""
    chosen = arcs[starts(np.repeat(lengths + 1, lengths))[:-1] + heads]
    total: NDArray[np.float64] = np.add.reduceat(chosen, starts(lengths)[:-1])
    return total


@torch.no_grad()
def with_tag_probabilities(
    found: Iterable[Probabilities] | None, group: Group
) -> Iterator[Probabilities | None]:
    """Yield the same with those of the tags that the first parser that tags has predicted; None of
    each sentence where they are not asked for."""
    if found is None:
        yield from repeat(None, len(group.lengths))
        return
    tagging = ((each, own.tagger) for each, own in zip(group.encoded, group.members, strict=True))
    each, tagger = next((pair for pair in tagging if pair[1] is not None), (None, None))
    if each is None or tagger is None:
        yield from found
        return
    scores = tagger(each.tokens[each.batch.layout.words]).float()
    best = iter(scores.softmax(dim=1).amax(dim=1).tolist())
    for one, n in zip(found, group.lengths.tolist(), strict=True):
        yield replace(one, tags=[*islice(best, n)])
