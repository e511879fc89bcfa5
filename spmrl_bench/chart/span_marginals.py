"""How likely each span is under a distribution over trees of labelled spans.

A tree is as likely as the exponent of the sum of its weights. Where it has no label, a binary tree
only stands for how the parts of a constituent are put together, in many ways for one constituent
of several parts. To count each tree once, the parts of a span are put together from the right:

    sum(i, j)    = sum over i < k < j of closed(i, k) open(k, j)
    closed(i, j) = weight(i, j) sum(i, j)               a constituent, or a bare word
    open(i, j)   = closed(i, j) + sum(i, j)             one part or several

and the outside sums are the derivatives of closed(0, n) (Eisner 2016, Inside-Outside and
Forward-Backward Algorithms Are Just Backprop).

Sums are multiplied, not logarithms added, which takes no exponent of a sum. They stay in range as
each word is divided by what the words of a good tree bring, so that good trees are near 1. A
sentence for which that is not enough is done again with logarithms, by the twin of the kernel.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray

from spmrl_bench.chart import arrays, kernels
from spmrl_bench.chart.span_trees import decode_spans

_Vector = NDArray[np.float64]
_STEPS = 1024.0


@dataclass(frozen=True, slots=True, eq=False)
class SpanMarginals:
    """The distribution over the trees of each sentence of a batch."""

    log_partition: NDArray[np.float64]
    """[B] logarithm of the sum over all trees: a tree with the score s has exp(s - it)."""
    probabilities: NDArray[np.float64]
    """[cells] of a constituent over the span, in natural numbers from 0 to 1."""


def span_marginals(
    weights: ArrayLike,
    lengths: ArrayLike,
    near: NDArray[np.int64] | None = None,
    *,
    threads: int | None = None,
) -> SpanMarginals:
    """Return how likely constituents are.

    The whole sentence is one, any other span may be; a word may be bare.

    Args:
        weights: float64 [cells], the logarithm of the sum of exponents of all label scores.
        lengths: integers [B], words of each sentence.
        near: int64 [nodes], cells of trees that are about the best, as of
            :func:`~spmrl_bench.chart.span_trees.decode_spans`, which is asked without.
        threads: how many share the sentences; the result does not depend on it.
    """
    words = arrays.checked_lengths(lengths)
    logs = arrays.checked_values(weights, words)
    if not len(words):
        return SpanMarginals(np.empty(0), logs)
    offsets, first = arrays.cell_offsets(words), arrays.starts(words)
    if near is None:
        near = decode_spans(logs, np.ones(len(logs), np.int32), words, threads=threads).cells
    shares = shares_of_words(logs, words, near)
    found, totals = np.empty(len(logs)), np.full(len(words), np.nan)
    kernel = kernels.load("_spans")
    team = kernels.threads_for(kernel, threads, words, 20 * len(logs))
    if kernel is not None:
        order = np.argsort(-words, kind="stable")
        with np.errstate(all="ignore"):
            linear, scales = np.exp(logs), np.exp(-shares)
            kernel.sum_up(linear, scales, words, offsets, first, found, totals, order, team)
            totals = np.log(totals) + np.add.reduceat(shares, first[:-1])
    sums = np.add.reduceat(found, offsets[:-1])
    for b in np.flatnonzero(~(np.isfinite(totals) & np.isfinite(sums))).tolist():
        own = slice(offsets[b], offsets[b + 1])
        totals[b], found[own] = _sum_up(logs[own], int(words[b]))
    return SpanMarginals(totals, np.minimum(found, 1.0))


def shares_of_words(logs: _Vector, words: NDArray[np.int32], near: NDArray[np.int64]) -> _Vector:
    """Return what each word brings to a tree: of each node its weight, divided by its words."""
    sentence = np.repeat(np.arange(len(words)), 2 * words - 1)
    start, width = _places(near - arrays.cell_offsets(words)[sentence], words[sentence])
    begin = arrays.starts(words)[sentence] + start
    # A bare word, and no label, weigh as much as a score of 0.
    # They are rounded to what adds up without error, whatever other sentences there are.
    each = np.round(np.maximum(logs[near], 0.0) / width * _STEPS) / _STEPS
    size = int(words.sum()) + 1
    steps = np.bincount(begin, each, size) - np.bincount(begin + width, each, size)
    shares: _Vector = np.cumsum(steps[:-1])
    return shares


def _places(
    cells: NDArray[np.int64], n: NDArray[np.int32]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the left fenceposts and the widths of cells of sentences of ``n`` words."""
    twice = 2.0 * n + 1
    start = ((twice - np.sqrt(twice**2 - 8.0 * cells)) / 2).astype(np.int64)
    return start, cells - arrays.cell_index(start, start, n.astype(np.int64))


# The twin of the kernel, with logarithms ----------------------------------------------------


def _sum_up(weights: _Vector, n: int) -> tuple[float, _Vector]:
    """Return the logarithm of the sum over trees and the probabilities of cells of a sentence."""
    weight = torch.from_numpy(weights.copy()).requires_grad_()
    first, last = np.triu_indices(n + 1, 1)
    # By width, of each left fencepost.
    closed, opened = [weight[:0]], [weight[:0]]
    for width in range(1, n + 1):
        own, starts = weight[last - first == width], n - width + 1
        if width == 1:  # with nothing below it, or bare
            closed.append(own if n == 1 else torch.logaddexp(own, torch.zeros_like(own)))
            opened.append(closed[1])
            continue
        parts = [closed[k][:starts] + opened[width - k][k:] for k in range(1, width)]
        sums = torch.stack(parts).logsumexp(dim=0)
        closed.append(own + sums)
        opened.append(torch.logaddexp(closed[width], sums))
    (found,) = torch.autograd.grad(closed[n].sum(), weight)
    return closed[n].item(), found.numpy()
