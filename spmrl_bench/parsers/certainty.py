"""From scores to what a parser finds likely: each bracket, arc, relation and tag.

Scores are divided by a temperature, which makes of margins what agrees with how often a parser is
right (Guo, Pleiss, Sun & Weinberger 2017, On Calibration of Modern Neural Networks). Arcs share a
sum over trees, as brackets do; relations and tags are choices of single words.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import pairwise
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


def span_probabilities(
    scores: Tensor,
    lengths: NDArray[np.int32],
    trees: SpanTrees,
    labels: Sequence[Label],
    temperature: float,
) -> Iterator[Probabilities]:
    """Yield the constituents of each sentence that are likely, and the probability of its tree.

    Args:
        scores: [cells, labels - 1] of all labels but the empty one.
        trees: the best ones of these scores.
    """
    tempered = scores.double() / temperature
    weights = tempered.logsumexp(dim=1)
    found = span_marginals(weights.cpu().numpy(), lengths, trees.cells)
    shown = trees.labels != EMPTY
    cells, chosen = trees.cells[shown], trees.labels[shown].astype(np.int64) - 1
    of_nodes = np.zeros(len(trees.cells))
    of_nodes[shown] = tempered[torch.from_numpy(cells), torch.from_numpy(chosen)].cpu().numpy()
    totals = np.add.reduceat(of_nodes, node_offsets(lengths)[:-1]) - found.log_partition

    likely = np.flatnonzero(found.probabilities >= LEAST)
    rows = torch.from_numpy(likely).to(scores.device)
    shares = (tempered[rows] - weights[rows, None]).exp().cpu().numpy()
    shares *= found.probabilities[likely, None]
    places, columns = np.nonzero(shares >= LEAST)
    sentence, start, end = (part[likely[places]].tolist() for part in cell_spans(lengths))
    chains = [labels[column + 1] for column in columns.tolist()]
    every: list[dict[tuple[int, int, str], float]] = [defaultdict(float) for _ in lengths]
    values = zip(sentence, start, end, chains, shares[places, columns].tolist(), strict=True)
    for k, i, j, chain, share in values:
        for name in {*chain}:
            every[k][i, j, name] += share
    for constituents, total in zip(every, totals.tolist(), strict=True):
        yield Probabilities(min(total, 0.0), constituents=dict(constituents))


def trees_of_least_risk(
    scores: Tensor,
    lengths: NDArray[np.int32],
    near: NDArray[np.int64],
    temperature: float,
    threshold: float,
) -> SpanTrees:
    """Return the trees of which the most brackets are expected to be right, each less a threshold
    (Goodman 1996, Parsing Algorithms and Metrics); arguments are of :func:`span_probabilities`."""
    tempered = scores.double() / temperature
    weights = tempered.logsumexp(dim=1)
    found = span_marginals(weights.cpu().numpy(), lengths, near)
    values, columns = (tempered - weights[:, None]).max(dim=1)
    expected = values.exp().cpu().numpy() * found.probabilities - threshold
    return decode_spans(expected, (columns + 1).int().cpu().numpy(), lengths)


def arc_probabilities(
    arcs: NDArray[np.float64],
    lengths: NDArray[np.int32],
    heads: NDArray[np.int32],
    projective: bool,
    temperature: float,
) -> Iterator[Probabilities]:
    """Yield the arcs of each sentence that are likely, and the probability of its tree, for packed
    scores (:mod:`spmrl_bench.chart.arrays`) and the heads [words] of the best trees."""
    tempered = arcs / temperature
    totals, shares = arc_marginals(tempered, lengths, projective=projective)
    words = pairwise(starts(lengths).tolist())
    rows = zip(
        lengths.tolist(), pairwise(arc_offsets(lengths).tolist()), words, totals, strict=True
    )
    for n, own, (first, after), total in rows:
        best = np.arange(n), heads[first:after]
        score = tempered[slice(*own)].reshape(n, n + 1)[best].sum()
        table = shares[slice(*own)].reshape(n, n + 1)
        places = zip(*(one.tolist() for one in np.nonzero(table >= LEAST)), strict=True)
        likely = {(word + 1, head): float(table[word, head]) for word, head in places}
        yield Probabilities(min(float(score - total), 0.0), arcs=likely)


@torch.no_grad()
def tag_probabilities(
    encoded: Sequence[Encoded], members: Sequence[NeuralParser]
) -> Iterator[list[float] | None]:
    """Yield those of the tags that the first parser that tags has predicted, of each sentence."""
    for each, parser in zip(encoded, members, strict=True):
        if parser.tagger is not None:
            tokens = each.tokens[each.batch.layout.words]
            best = parser.tagger(tokens).float().softmax(dim=1).amax(dim=1).tolist()
            yield from (
                best[low:high] for low, high in pairwise(starts(each.batch.lengths).tolist())
            )
            return
    yield from [None] * len(encoded[0].batch.lengths)
