"""How likely each arc is under a distribution over dependency trees in which one word is the root.

A tree is as likely as the exponent of the sum of the scores of its arcs. Projective trees are
summed in Eisner's chart, inside and, for the share of trees with an arc, outside; all trees by the
matrix-tree theorem, by whose determinant and inverse the sums are known (Koo, Globerson, Carreras &
Collins 2007, Structured Prediction Models via the Matrix-Tree Theorem, section 3.2).

Every word has one arc into it, so scores of those into a word are counted from the largest, or
where that leaves the range of numbers, from that of the best tree.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from spmrl_bench.chart.arrays import arc_offsets, checked_arcs, checked_lengths
from spmrl_bench.chart.dependency_trees import decode_dependencies

_Chart = NDArray[np.float64]
# By how much the shares of all arcs into a word may differ from 1.
_TOLERATED = 1e-6


def arc_marginals(
    arcs: ArrayLike, lengths: ArrayLike, *, projective: bool
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the logarithm [B] of the sum over all trees of a sentence, and how likely arcs are,
    float64 [sum of n(n + 1)], packed as the scores; of a word to itself 0. Both are NaN where
    scores are so far apart that too few digits are left, as of words that want each other as heads.

    Args are as of :func:`spmrl_bench.chart.dependency_trees.decode_dependencies`.
    """
    words = checked_lengths(lengths)
    if not len(words):
        return np.empty(0), np.empty(0)
    scores, offsets = checked_arcs(arcs, words), arc_offsets(words)
    longest = int(words.max())
    table = np.full((len(words), longest, longest + 1), -np.inf)
    for b, n in enumerate(words.tolist()):
        table[b, :n, : n + 1] = scores[offsets[b] : offsets[b + 1]].reshape(n, n + 1)
        table[b, range(n), range(1, n + 1)] = -np.inf
    there = np.arange(longest) < words[:, None]
    by_largest = np.where(there, table.max(axis=2, initial=-np.inf), 0.0)
    totals, shares = _summed(table, by_largest, words, projective)
    lost = np.flatnonzero(np.isnan(totals))
    if len(lost):
        best = decode_dependencies(scores, words, projective=projective)
        by_best = np.zeros_like(by_largest)
        by_best[there] = table[there][np.arange(len(best)), best]
        totals[lost], shares[lost] = _summed(table[lost], by_best[lost], words[lost], projective)
    rows = [shares[b, :n, : n + 1].ravel() for b, n in enumerate(words.tolist())]
    return totals, np.concatenate(rows)


def _summed(
    table: _Chart, shifts: _Chart, words: NDArray[np.int32], projective: bool
) -> tuple[_Chart, _Chart]:
    """Return logarithms of sums, and shares; NaN where these do not add up to one of each word."""
    with np.errstate(all="ignore"):
        weights = np.exp(table - shifts[..., None])
        try:
            sums, shares = (_projective if projective else _spanning)(weights, words)
        except np.linalg.LinAlgError:  # one of them is singular, whichever it is
            return np.full(len(words), np.nan), np.full_like(weights, np.nan)
        totals = np.log(sums) + shifts.sum(axis=1)
        wrong = np.abs(shares.sum(axis=2) - 1) > _TOLERATED
        wrong |= ~np.isfinite(totals)[:, None]
    bad = (wrong & (np.arange(wrong.shape[1]) < words[:, None])).any(axis=1)
    bad |= np.isnan(shares).any(axis=(1, 2))
    totals[bad] = shares[bad] = np.nan
    return totals, shares


def _spanning(weights: _Chart, words: NDArray[np.int32]) -> tuple[_Chart, _Chart]:
    """Return the sums over all trees [B] and the shares of arcs, for weights [B, N, N + 1]."""
    roots, heads = weights[:, :, 0], weights[:, :, 1:].swapaxes(1, 2)  # [B, head, dependent]
    laplacian, diagonal = -heads, np.arange(heads.shape[1])
    laplacian[:, diagonal, diagonal] = heads.sum(axis=1) + (diagonal >= words[:, None])
    laplacian[:, 0] = roots
    inverse = np.linalg.inv(laplacian)  # [B, dependent, head]
    as_dependent = inverse[:, diagonal, diagonal].copy()
    as_dependent[:, 0] = 0
    as_head = inverse.copy()
    as_head[:, :, 0] = 0
    shares = np.empty_like(weights)
    shares[:, :, 0] = roots * inverse[:, :, 0]
    shares[:, :, 1:] = weights[:, :, 1:] * (as_dependent[:, :, None] - as_head)
    return np.linalg.det(laplacian), shares.clip(0, 1)


def _projective(weights: _Chart, words: NDArray[np.int32]) -> tuple[_Chart, _Chart]:
    """Return sums and shares as _spanning does, of projective trees.

    A part has its head at its left or right end, and words below that; the words of one that has
    just got an ``arc`` are all under it. Charts are [B, word, width], by where parts begin
    (``_at``) and by where they end (``_to``), so that what is multiplied are slices. Widths are
    from 0, and words from 0 here.
    """
    count, n, _ = weights.shape
    batch, word = np.arange(count), np.arange(n)
    rightward = np.zeros((count, n, n))  # weights of arcs, by the first word and the width
    leftward = np.zeros((count, n, n))
    for width in range(1, n):
        rightward[:, : n - width, width] = weights[:, word[width:], word[: n - width] + 1]
        leftward[:, : n - width, width] = weights[:, word[: n - width], word[width:] + 1]
    right_at, right_to, left_at, left_to, under_right, under_left = np.zeros((6, count, n, n))
    for chart in (right_at, right_to, left_at, left_to):
        chart[:, :, 0] = 1
    for width in range(1, n):
        low, high, back = slice(0, n - width), slice(width, n), slice(width - 1, None, -1)
        joined = _dot(right_at[:, low, :width], left_to[:, high, back])
        under_right[:, low, width] = joined * rightward[:, low, width]
        under_left[:, high, width] = joined * leftward[:, low, width]
        right = _dot(under_right[:, low, 1 : width + 1], right_to[:, high, back])
        left = _dot(left_at[:, low, :width], under_left[:, high, width:0:-1])
        right_at[:, low, width] = right_to[:, high, width] = right
        left_at[:, low, width] = left_to[:, high, width] = left

    # A sentence is the words left of its root, and the root with the words right of it.
    end = words[:, None] - 1
    after = np.maximum(end - word, 0)
    before, behind = left_to[:, word, word], right_at[batch[:, None], word, after]
    roots = weights[:, :, 0]
    totals = (before * roots * behind).sum(axis=1)
    whole = roots / totals[:, None]
    of_right_at, of_right_to, of_left_at, of_left_to = np.zeros((4, count, n, n))
    of_under_right, of_under_left = np.zeros((2, count, n, n))
    of_right_at[batch[:, None], word, after] = np.where(word <= end, before * whole, 0)
    of_left_to[:, word, word] = behind * whole
    for width in range(n - 1, 0, -1):
        low, high, back = slice(0, n - width), slice(width, n), slice(width - 1, None, -1)
        own = (of_right_at[:, low, width] + of_right_to[:, high, width])[..., None]
        of_under_right[:, low, 1 : width + 1] += own * right_to[:, high, back]
        of_right_to[:, high, back] += own * under_right[:, low, 1 : width + 1]
        own = (of_left_at[:, low, width] + of_left_to[:, high, width])[..., None]
        of_left_at[:, low, :width] += own * under_left[:, high, width:0:-1]
        of_under_left[:, high, width:0:-1] += own * left_at[:, low, :width]
        own = of_under_right[:, low, width] * rightward[:, low, width]
        own = (own + of_under_left[:, high, width] * leftward[:, low, width])[..., None]
        of_right_at[:, low, :width] += own * left_to[:, high, back]
        of_left_to[:, high, back] += own * right_at[:, low, :width]
    shares = np.zeros_like(weights)
    shares[:, :, 0] = before * whole * behind
    of_under_right *= under_right
    of_under_left *= under_left
    for width in range(1, n):
        first, last = word[: n - width], word[width:]
        shares[:, last, first + 1] = of_under_right[:, first, width]
        shares[:, first, last + 1] = of_under_left[:, last, width]
    return totals, shares


def _dot(one: _Chart, other: _Chart) -> _Chart:
    return np.einsum("bik,bik->bi", one, other)
