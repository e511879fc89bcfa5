"""How likely each arc is under a distribution over dependency trees in which one word is the root.

A tree is as likely as the exponent of the sum of the scores of its arcs. Projective trees are
summed in Eisner's chart; of all trees the sum is a determinant, by the matrix-tree theorem (Koo,
Globerson, Carreras & Collins 2007, Structured Prediction Models via the Matrix-Tree Theorem,
section 3.2).

Shares are the derivatives of the logarithms of sums: what is called the outside pass is the
backward pass of the program that sums up (Eisner 2016, Inside-Outside and Forward-Backward
Algorithms Are Just Backprop).

Every word has one arc into it, so scores of those into a word are counted from the largest, or
where that leaves the range of numbers, from that of the best tree.
"""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor
from torch.nn import functional

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
        weights = torch.from_numpy(np.exp(table - shifts[..., None])).requires_grad_()
        logs = (_projective if projective else _spanning)(weights, words)
        (gradient,) = torch.autograd.grad(logs.sum(), weights)
        shares = (weights * gradient).detach().numpy()
        totals = logs.detach().numpy() + shifts.sum(axis=1)
        wrong = ~(np.abs(shares.sum(axis=2) - 1) <= _TOLERATED) | ~np.isfinite(totals)[:, None]
    bad = (wrong & (np.arange(wrong.shape[1]) < words[:, None])).any(axis=1)
    totals[bad] = shares[bad] = np.nan
    return totals, shares.clip(0, 1)


def _spanning(weights: Tensor, words: NDArray[np.int32]) -> Tensor:
    """Return the logarithms of the sums over all trees [B], for weights [B, N, N + 1]."""
    heads, n = weights[:, :, 1:].transpose(1, 2), weights.shape[1]  # [B, head, dependent]
    beyond = torch.from_numpy((np.arange(n) >= words[:, None]).astype(np.float64))
    laplacian = torch.diag_embed(heads.sum(dim=1) + beyond) - heads
    with_roots = torch.cat((weights[:, None, :, 0], laplacian[:, 1:]), dim=1)
    return torch.linalg.slogdet(with_roots).logabsdet


def _projective(weights: Tensor, words: NDArray[np.int32]) -> Tensor:
    """Return the logarithms of the sums over projective trees [B]; the recurrences are those of
    :mod:`spmrl_bench.chart.dependency_trees`, with sums for maxima.

    Charts are lists by the number of arcs from the first to the last word of a part, of [B, N] by
    its first word and again by its last.
    """
    count, n, _ = weights.shape
    ones, zeros = weights.new_ones(count, n), weights.new_zeros(count, n)
    right, left, arc_right, arc_left = (([one], [one]) for one in (ones, ones, zeros, zeros))

    def joined(first: list[Tensor], last: list[Tensor], width: int) -> Tensor:
        firsts, lasts = torch.stack(first), torch.stack(last[::-1])
        return (firsts[:, :, : n - width] * lasts[:, :, width:]).sum(dim=0)

    def add(chart: tuple[list[Tensor], list[Tensor]], found: Tensor) -> None:
        chart[0].append(functional.pad(found, (0, n - found.shape[1])))
        chart[1].append(functional.pad(found, (n - found.shape[1], 0)))

    for width in range(1, n):
        below = joined(right[0], left[1], width)
        add(arc_right, below * weights[:, :, 1:].diagonal(-width, 1, 2))
        add(arc_left, below * weights[:, :, 1:].diagonal(width, 1, 2))
        add(right, joined(arc_right[0][1:], right[1], width))
        add(left, joined(left[0], arc_left[1][1:], width))
    # A sentence is the words left of its root, and the root with the words right of it.
    before = torch.stack([each[:, 0] for each in left[0]], dim=1)
    chart = torch.stack(right[0])
    after = np.maximum(words[:, None] - 1 - np.arange(n), 0)
    behind = chart[after, np.arange(count)[:, None], np.arange(n)]
    return (before * weights[:, :, 0] * behind).sum(dim=1).log()
