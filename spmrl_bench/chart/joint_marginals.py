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

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from spmrl_bench.chart import arrays
from spmrl_bench.chart.joint_trees import JointTrees, decode_joint
from spmrl_bench.chart.span_marginals import SpanMarginals, shares_of_words

_Chart = NDArray[np.float64]
#: Sentences with more words have no probabilities: their charts would have 88 n^3 bytes, 2.4 GB.
LONGEST = 300
# Of a chart of sentences that are summed together.
_NUMBERS = 1 << 17


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
    shares = shares_of_words(logs, words, near.cells)
    totals, spans, of_arcs = np.full(len(words), np.nan), logs * np.nan, table * np.nan
    runs = arrays.cell_offsets, arrays.arc_offsets, arrays.starts
    offsets = [of_runs(words).tolist() for of_runs in runs]
    for some in _together(words):
        n = int(words[some].max(initial=0))
        own = [[slice(*each[b : b + 2]) for each in offsets] for b in some]
        weight, arc = np.zeros((len(some), n + 1, n + 1)), np.zeros((len(some), n, n + 1))
        brought = np.zeros(len(some))
        with np.errstate(all="ignore"):
            for k, (m, (cells, rows, of_words)) in enumerate(zip(words[some], own, strict=True)):
                weight[k][_spans(m)] = np.exp(logs[cells])
                scores = table[rows].reshape(m, m + 1)
                each = shares[of_words] + scores[np.arange(m), near.heads[of_words]]
                arc[k, :m, : m + 1] = np.exp(scores - each[:, None])
                arc[k, range(m), range(1, m + 1)] = 0
                brought[k] = each.sum()
            sums, found, found_arcs = _summed(weight, arc, words[some])
        for k, (b, m, (cells, rows, _)) in enumerate(zip(some, words[some], own, strict=True)):
            heads = found_arcs[k, :m, : m + 1]
            if np.isfinite(sums[k]) and np.abs(heads.sum(axis=1) - 1).max() < 1e-6:
                totals[b] = np.log(sums[k]) + brought[k]
                spans[cells], of_arcs[rows] = found[k][_spans(m)], heads.ravel()
    return JointMarginals(totals, np.minimum(spans, 1.0), np.minimum(of_arcs, 1.0))


def _together(words: NDArray[np.int32]) -> Iterator[list[int]]:
    """Yield sentences of like lengths whose charts fit into a cache, none that is too long."""
    some: list[int] = []
    for b in np.argsort(words, kind="stable").tolist():
        n = int(words[b])
        if n > LONGEST:
            break
        if some and (len(some) + 1) * n**3 > _NUMBERS:
            yield some
            some = []
        some.append(b)
    yield some


def _spans(n: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return left fencepost and width of each cell."""
    first, last = np.triu_indices(n + 1, 1)
    return first, last - first


def _summed(
    weight: _Chart, arcs: _Chart, words: NDArray[np.int32]
) -> tuple[_Chart, _Chart, _Chart]:
    """Return the sums over the structures of sentences [B], and the shares of spans and arcs, for
    weights [B, N + 1, N + 1] by left fencepost and width, and arcs [B, N, N + 1]."""
    count, n, _ = arcs.shape
    batch, word, attach = np.arange(count), np.arange(n), arcs[:, :, 1:]
    # With the head in the span, and with it outside; for the left and for the right part of a span.
    head_at, head_to, dep_at, dep_to = np.zeros((4, count, n + 1, n + 1, n))
    closed, sums = np.zeros((2, count, n + 1, n + 1, n))
    for width in range(1, n + 1):
        at, to, back = slice(0, n - width + 1), slice(width, n + 1), slice(width - 1, 0, -1)
        if width == 1:
            bare = np.where(words == 1, 0.0, 1.0)[:, None]
            closed[:, word, 1, word] = weight[:, :n, 1] + bare
            right = left = np.zeros((count, n, n))
        else:
            right = _dot(head_at[:, at, 1:width], dep_to[:, to, back])
            left = _dot(dep_at[:, at, 1:width], head_to[:, to, back])
            sums[:, at, width] = right + left
            closed[:, at, width] = weight[:, at, width, None] * sums[:, at, width]
        head_at[:, at, width] = closed[:, at, width] + right
        head_to[:, to, width] = head_at[:, at, width] + left
        outside = (word < word[at, None]) | (word >= word[at, None] + width) if width < n else 0
        dep_at[:, at, width] = dep_to[:, to, width] = closed[:, at, width] @ attach * outside
    roots = arcs[:, :, 0]
    totals = np.einsum("bw,bw->b", closed[batch, 0, words], roots)

    of_head_at, of_head_to, of_dep_at, of_dep_to, of_closed = np.zeros((5, count, n + 1, n + 1, n))
    whole = roots / totals[:, None]
    of_closed[batch, 0, words] = whole
    spans, shares = np.zeros_like(weight), np.zeros_like(arcs)
    shares[:, :, 0] = closed[batch, 0, words] * whole
    for width in range(n, 0, -1):
        at, to, back = slice(0, n - width + 1), slice(width, n + 1), slice(width - 1, 0, -1)
        of_left = of_head_to[:, to, width]
        of_right = of_left + of_head_at[:, at, width]
        outside = (word < word[at, None]) | (word >= word[at, None] + width) if width < n else 0
        of_dep = (of_dep_at[:, at, width] + of_dep_to[:, to, width]) * outside
        shares[:, :, 1:] += closed[:, at, width].transpose(0, 2, 1) @ of_dep * attach
        own = of_closed[:, at, width] + of_right + of_dep @ attach.transpose(0, 2, 1)
        below = weight[:, at, width, None] * own
        if width == 1:
            spans[:, at, 1] = below[:, word, word]
            continue
        spans[:, at, width] = (below * sums[:, at, width]).sum(axis=2)
        of_right, of_left = (below + of_right)[:, :, None], (below + of_left)[:, :, None]
        of_head_at[:, at, 1:width] += of_right * dep_to[:, to, back]
        of_dep_to[:, to, back] += of_right * head_at[:, at, 1:width]
        of_dep_at[:, at, 1:width] += of_left * head_to[:, to, back]
        of_head_to[:, to, back] += of_left * dep_at[:, at, 1:width]
    return totals, spans, shares


def _dot(one: _Chart, other: _Chart) -> _Chart:
    return np.einsum("bikw,bikw->biw", one, other)
