"""How likely spans and arcs are under a distribution over joint structures.

A structure is as likely as the exponent of its score, as :mod:`spmrl_bench.chart.joint_trees` says.
Where a part that has the head has no label, it only stands for how the parts of a constituent are
put together. To count each structure once, what depends on a head to its right is put on after all
that depends on it to its left is not yet there; that is, with sums over spans and their head word h
and, where ``dep(i, j, h)`` is that of a part [i, j) which depends on a word h outside of it:

    right(i, j, h)  = sum over h < k < j of (closed + right)(i, k, h) dep(k, j, h)
    left(i, j, h)   = sum over i < k <= h of dep(i, k, h) (closed + right + left)(k, j, h)
    closed(i, j, h) = weight(i, j) (right + left)(i, j, h)
    dep(i, j, g)    = sum over i <= d < j of closed(i, j, d) arc(g, d)

and a word is closed with its weight, or bare. What is outside is the derivative of the sum over all
structures. Each takes n^4 / 6 products, all words side by side.

Every structure has each word and one arc into it, so weights are divided by what they bring to the
best one, which makes good ones about 1. A sentence for which that is not enough is done again with
logarithms, by the twin of the kernel.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray

from spmrl_bench.chart import arrays, kernels
from spmrl_bench.chart.joint_trees import JointTrees, decode_joint
from spmrl_bench.chart.span_marginals import SpanMarginals, shares_of_words

_Chart = NDArray[np.float64]
#: Sentences with more words have no probabilities: their charts would have 32 n^3 bytes, 0.9 GB.
LONGEST = 300
# Likewise where they need logarithms, of which n^4 / 6 are kept.
_LONGEST = 100
# Words in the third power of the charts of all threads, where there are several.
_AT_ONCE = 1 << 26
# A logarithm of nothing, which has derivatives.
_NEVER = torch.tensor(-1e30, dtype=torch.double)


@dataclass(frozen=True, slots=True, eq=False)
class JointMarginals(SpanMarginals):
    """The distribution over the structures of each sentence; NaN if it is longer than
    :data:`LONGEST`, or longer than 100 words with scores that are too far apart."""

    arcs: NDArray[np.float64]
    """[sum of n(n + 1)] of an arc, packed as the scores; of a word to itself 0."""


def joint_marginals(
    weights: ArrayLike, arcs: ArrayLike, lengths: ArrayLike, near: JointTrees | None = None
) -> JointMarginals:
    """Return how likely constituents and arcs are.

    Args:
        weights: float64 [cells], the logarithm of the sum of exponents of all label scores.
        arcs, lengths: as of :func:`~spmrl_bench.chart.joint_trees.decode_joint`.
        near: what that returns for about the same scores; it is asked without.
    """
    words = arrays.checked_lengths(lengths)
    logs, table = arrays.checked_values(weights, words), arrays.checked_arcs(arcs, words)
    near = near or decode_joint(logs, table, words)
    offsets, runs = arrays.cell_offsets(words), arrays.arc_offsets(words)
    rows, own = np.repeat(words + 1, words), np.arange(words.sum())
    of_rows, of_words = arrays.starts(rows)[:-1], arrays.starts(words)[:-1]
    each = shares_of_words(logs, words, near.cells) + table[of_rows + near.heads]
    totals, spans, of_arcs = np.full(len(words), np.nan), logs * np.nan, table * np.nan
    order = np.argsort(-words, kind="stable")
    order = order[words[order] <= LONGEST]
    kernel = kernels.load("_joint")
    team = kernels.threads_for(kernel, None, words, (words[order].astype(np.float64) ** 4).sum())
    if kernel is not None:
        team = max(1, min(team, _AT_ONCE // int(1 + words[order[:1]].sum() ** 3)))
        with np.errstate(all="ignore"):
            linear = np.exp(table - np.repeat(each, rows))
            linear[of_rows + own - np.repeat(of_words, words) + 1] = 0  # of a word to itself
            given = np.exp(logs), linear, words, offsets, runs
            kernel.sum_up(*given, spans, of_arcs, totals, order, team)
            totals = np.log(totals) + np.add.reduceat(each, of_words)
    # Each word has one head: a sum that got out of range shows.
    wrong = ~(np.abs(np.add.reduceat(of_arcs, of_rows) - 1) < 1e-6)
    for b in np.flatnonzero(np.logical_or.reduceat(wrong, of_words) | ~np.isfinite(totals)):
        cells, arc = slice(*offsets[b : b + 2]), slice(*runs[b : b + 2])
        totals[b] = spans[cells] = of_arcs[arc] = np.nan
        if (n := words[b]) <= _LONGEST:
            scores = table[arc].reshape(n, n + 1).copy()
            totals[b], spans[cells], of_arcs[arc] = _sum_up(logs[cells], scores)
    return JointMarginals(totals, np.minimum(spans, 1.0), np.minimum(of_arcs, 1.0))


# The twin of the kernel, with logarithms ----------------------------------------------------


def _sum_up(weights: _Chart, arcs: _Chart) -> tuple[float, _Chart, _Chart]:
    """Return the logarithm of the sum over the structures of a sentence, and the shares of cells
    and arcs, for the logarithms of weights [cells] and arcs [n, n + 1]."""
    n = len(arcs)
    arcs[np.arange(n), np.arange(1, n + 1)] = 0.0  # of a word to itself, which may be anything
    weight, arc = (torch.from_numpy(one).requires_grad_() for one in (weights.copy(), arcs))
    first, last = np.triu_indices(n + 1, 1)
    word = torch.arange(n)
    # By width, of each left fencepost and word.
    closed, opened, ended, hung = ([arc[:0]] for _ in range(4))
    for width in range(1, n + 1):
        start = torch.arange(n + 1 - width)[:, None]
        own = weight[last - first == width][:, None]
        if width == 1:
            bare = own if n == 1 else torch.logaddexp(own, torch.zeros_like(own))
            right = left = _NEVER.expand(n, n)
            closed.append(bare.where(word == start, _NEVER))
        else:
            right, left = (
                torch.stack(
                    [a[k][: len(start)] + b[width - k][k:] for k in range(1, width)]
                ).logsumexp(dim=0)
                for a, b in ((opened, hung), (hung, ended))
            )
            closed.append(own + torch.logaddexp(right, left))
        opened.append(torch.logaddexp(closed[width], right))
        ended.append(torch.logaddexp(opened[width], left))
        outside = (word < start) | (word >= start + width)
        attached = (closed[width][:, :, None] + arc[:, 1:]).logsumexp(dim=1)
        hung.append(attached.where(outside, _NEVER))
    total = (closed[n][0] + arc[:, 0]).logsumexp(dim=0)
    cells, rows = torch.autograd.grad(total, (weight, arc))
    return total.item(), cells.numpy(), rows.numpy().ravel()
