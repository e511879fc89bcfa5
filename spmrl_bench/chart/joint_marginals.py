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
best one, which makes good ones about 1.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from spmrl_bench.chart import arrays, kernels
from spmrl_bench.chart.joint_trees import JointTrees, decode_joint
from spmrl_bench.chart.span_marginals import SpanMarginals, shares_of_words

_Chart = NDArray[np.float64]
#: Sentences with more words have no probabilities: their charts would have 32 n^3 bytes, 0.9 GB;
#: those of all threads have so much, or one thread has all.
LONGEST, _MOST = 300, 1 << 26


@dataclass(frozen=True, slots=True, eq=False)
class JointMarginals(SpanMarginals):
    """The distribution over the structures of each sentence; NaN where scores are too far apart, or
    the sentence is longer than :data:`LONGEST`."""

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
    with np.errstate(all="ignore"):
        weights, linear = np.exp(logs), np.exp(table - np.repeat(each, rows))
        linear[of_rows + own - np.repeat(of_words, words) + 1] = 0  # of a word to itself
        if kernel is not None:
            team = max(1, min(team, _MOST // int(words[order[:1]].sum() ** 3 + 1)))
            kernel.sum_up(
                weights, linear, words, offsets, runs, spans, of_arcs, totals, order, team
            )
        else:
            for b in order.tolist():
                cells, arc = slice(*offsets[b : b + 2]), slice(*runs[b : b + 2])
                found = _summed(weights[cells], linear[arc].reshape(words[b], -1))
                totals[b], spans[cells], of_arcs[arc] = found[0], found[1], found[2].ravel()
        wrong = np.abs(np.add.reduceat(of_arcs, of_rows) - 1) < 1e-6
        sound = np.isfinite(totals) & np.logical_and.reduceat(wrong, of_words)
        totals = np.log(totals) + np.add.reduceat(each, of_words)
    totals[~sound] = np.nan
    spans[~np.repeat(sound, np.diff(offsets))] = np.nan
    of_arcs[~np.repeat(sound, np.diff(runs))] = np.nan
    return JointMarginals(totals, np.minimum(spans, 1.0), np.minimum(of_arcs, 1.0))


def _summed(weights: _Chart, arcs: _Chart) -> tuple[float, _Chart, _Chart]:
    """Return the sum over the structures of a sentence, and the shares of cells and arcs, for
    weights [cells] and arcs [n, n + 1]; charts are by a fencepost and the width of a span."""
    n = len(arcs)
    first, last = np.triu_indices(n + 1, 1)
    weight = np.zeros((n + 1, n + 1))  # by the left fencepost
    weight[first, last - first] = weights
    word, attach = np.arange(n), arcs[:, 1:]
    # With the head in the span, and with it outside; for the left and for the right part of a span.
    head_at, head_to, dep_at, dep_to = np.zeros((4, n + 1, n + 1, n))
    closed, sums = np.zeros((2, n + 1, n + 1, n))
    for width in range(1, n + 1):
        at, to, back = slice(0, n - width + 1), slice(width, n + 1), slice(width - 1, 0, -1)
        if width == 1:
            bare = 0.0 if n == 1 else 1.0
            closed[word, 1, word] = weight[:n, 1] + bare
            right = left = np.zeros((n, n))
        else:
            right = _dot(head_at[at, 1:width], dep_to[to, back])
            left = _dot(dep_at[at, 1:width], head_to[to, back])
            sums[at, width] = right + left
            closed[at, width] = weight[at, width, None] * (right + left)
        head_at[at, width] = closed[at, width] + right
        head_to[to, width] = head_at[at, width] + left
        outside = (word < word[at, None]) | (word >= word[at, None] + width) if width < n else 0
        dep_at[at, width] = dep_to[to, width] = closed[at, width] @ attach * outside
    total = float(closed[0, n] @ arcs[:, 0])

    of_head_at, of_head_to, of_dep_at, of_dep_to = np.zeros((4, n + 1, n + 1, n))
    spans, shares = np.zeros((n + 1, n + 1)), np.zeros_like(arcs)
    shares[:, 0] = closed[0, n] * arcs[:, 0] / total
    for width in range(n, 0, -1):
        at, to, back = slice(0, n - width + 1), slice(width, n + 1), slice(width - 1, 0, -1)
        of_left = of_head_to[to, width]
        of_right = of_left + of_head_at[at, width]
        outside = (word < word[at, None]) | (word >= word[at, None] + width) if width < n else 0
        of_dep = (of_dep_at[at, width] + of_dep_to[to, width]) * outside
        of_closed = of_right + of_dep @ attach.T
        shares[:, 1:] += closed[at, width].T @ of_dep * attach
        if width == n:
            of_closed = of_closed + arcs[:, 0] / total
        below = weight[at, width, None] * of_closed
        if width == 1:
            spans[at, 1] = below[word, word]
            continue
        spans[at, width] = (below * sums[at, width]).sum(axis=1)
        of_right, of_left = (below + of_right)[:, None], (below + of_left)[:, None]
        of_head_at[at, 1:width] += of_right * dep_to[to, back]
        of_dep_to[to, back] += of_right * head_at[at, 1:width]
        of_dep_at[at, 1:width] += of_left * head_to[to, back]
        of_head_to[to, back] += of_left * dep_at[at, 1:width]
    return total, spans[first, last - first], shares


def _dot(one: _Chart, other: _Chart) -> _Chart:
    return np.einsum("ikw,ikw->iw", one, other)
