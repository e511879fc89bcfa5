"""Scores among which the best parse holds what is given, and what a parser finds likely by them.

What is given scores so much more that nothing makes up for it, and the best parse and the
distribution over all are among those which hold it. To say how likely a bracket or an arc is,
scores are divided by a temperature, which makes of margins what agrees with how often a parser is
right (Guo, Pleiss, Sun & Weinberger 2017, On Calibration of Modern Neural Networks). Arcs share a
sum over trees, as brackets do; relations and tags are choices of single words.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, islice, repeat
from typing import Any, Generic, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from spmrl_bench.chart import arrays
from spmrl_bench.chart.span_trees import SpanMarginals, SpanTrees, decode_spans
from spmrl_bench.nn.vocabulary import EMPTY
from spmrl_bench.trees.given import Given
from spmrl_bench.trees.parse import LEAST, Probabilities
from spmrl_bench.trees.tree import Label

M = TypeVar("M", bound=SpanMarginals)
#: What cells gain by what is given, or nothing.
Gains = NDArray[np.float64] | float
#: More than what any scores of a sentence differ by, of which sums are still exact to nine digits.
CERTAIN = 1e6
# What is certain is so much better: exponents of a few such numbers can be multiplied.
MOST = 300.0


def hold_constituents(
    blocks: Iterable[Tensor],
    labels: Sequence[Label],
    lengths: NDArray[np.int32],
    given: Sequence[Given],
) -> tuple[Iterable[Tensor], Gains]:
    """Return label scores in which what is excluded by brackets scores less than none, and what
    cells [cells] gain. ``labels`` are the constituents that labels of the parser stand for."""
    if not given:
        return blocks, 0.0
    scores = torch.cat([*blocks]).float()
    gains, offsets = np.zeros(len(scores)), arrays.cell_offsets(lengths)
    for one, n, first in zip(given, lengths.tolist(), offsets.tolist(), strict=False):
        wanted, unwanted = defaultdict[Any, set[Any]](set), defaultdict[Any, set[Any]](set)
        for rows, found in ((one.constituents, wanted), (one.not_constituents, unwanted)):
            for start, end, label in rows:
                found[first + arrays.cell_index(start, end, n)].add(label)
        for cell in wanted.keys() | unwanted.keys():
            # Any label is there where one is.
            holds = ({*own, *([None] if own else [])} for own in labels[1:])
            wrong = [
                k for k, own in enumerate(holds) if not wanted[cell] <= own or unwanted[cell] & own
            ]
            scores[cell, wrong] -= CERTAIN
            gains[cell] = CERTAIN if wanted[cell] else 0.0
    return [scores], gains


def hold_arcs(
    arcs: NDArray[np.float64], lengths: NDArray[np.int32], given: Sequence[Given]
) -> NDArray[np.float64]:
    """Return packed scores of arcs in which heads that are given have no rivals."""
    held, offsets = arcs.copy(), arrays.arc_offsets(lengths)
    for one, n, first in zip(given, lengths.tolist(), offsets.tolist(), strict=False):
        for word, head, _ in one.arcs:
            if head is not None:
                row = held[first + (word - 1) * (n + 1) : first + word * (n + 1)]
                row[np.arange(n + 1) != head] -= CERTAIN
    return held


def hold_relations(
    relations: Sequence[list[str]], given: Sequence[Given], known: Sequence[str]
) -> Iterator[list[str]]:
    """Yield relations of words, with those that are given if the parser has learnt them."""
    for row, one in zip(relations, given or repeat(Given()), strict=False):
        for word, _, name in one.arcs:
            if name is not None and name in known:
                row[word - 1] = name
        yield row


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
        gains: Gains = 0.0,
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
        totals = np.add.reduceat(of_nodes, arrays.node_offsets(self._lengths)[:-1])
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
        sentence, start, end = (one[likely[places]] for one in arrays.cell_spans(self._lengths))
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
    chosen = arcs[arrays.starts(np.repeat(lengths + 1, lengths))[:-1] + heads]
    total: NDArray[np.float64] = np.add.reduceat(chosen, arrays.starts(lengths)[:-1])
    return total
