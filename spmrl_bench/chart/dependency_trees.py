"""Best dependency trees under arc scores, with exactly one child of the root, and likely arcs.

A tree with several children of the root is never returned, however high its arcs score.

**Projective trees** (Eisner 1996; notation of McDonald, Crammer & Pereira 2005, section 3.1). A
complete part is a word with all its descendants on one side, an incomplete part an arc with all
that lies between its words:

    joined(i, j) = max over i <= k < j of  right(i, k) + left(k + 1, j)
    arc_right(i, j) = joined(i, j) + score(i -> j)        arc_left(i, j) = joined + score(j -> i)
    right(i, j) = max over i < k <= j of  arc_right(i, k) + right(k, j)
    left(i, j) = max over i <= k < j of  left(i, k) + arc_left(k, j)

where ``right(i, j)`` has its head at i and ``left(i, j)`` at j. The chart is over the words alone.
The one child r of the root is the best of ``left(first, r) + right(r, last) + score(root -> r)``.
A tree is the sum of one sequence of joins only, so that ties can be decided by these: the lowest
child of the root wins, then, from the top down, the lowest k.

**Spanning trees** (Chu & Liu 1965, Edmonds 1967, in the dense form of Tarjan 1977 and the order of
Gabow, Galil, Spencer & Tarjan 1986). A path of components grows from word 1 backwards: its last
component takes its best incoming arc; the component where that comes from becomes the last, or,
if it is on the path already, all from there on form a cycle and are contracted into one
component, whose incoming arcs are worth what they gain over the arcs that they would replace. Each
of at most 2n - 1 components costs O(n). Ties go to the lowest head, then to the lowest dependent.

Arcs from the root take no part until all words are one component; then the best of them enters
it, and one arc goes from each cycle, down to the words. This makes exactly one child of the root:
subtract a constant c from all arcs from the root (Gabow & Tarjan 1984; Stanojević & Cohen 2021).
Trees with one child of the root keep their order, and those with more lose by at least c more; so
if c is large enough the best tree of all is the best with one child. What the algorithm does to
values is subtract arcs of cycles, which are never from the root; so with c beyond all bounds an arc
from the root loses every comparison with one between words, and their comparisons with each other
do not depend on c. Hence c need not be chosen, and costs no digits. O(n^2) in time and memory.

**How likely an arc is.** A tree is as likely as the exponent of the sum of the scores of its arcs.
Projective trees are summed in Eisner's chart; of all trees the sum is a determinant, by the
matrix-tree theorem (Koo, Globerson, Carreras & Collins 2007, Structured Prediction Models via the
Matrix-Tree Theorem, section 3.2). Shares are the derivatives of the logarithms of sums, as of
:mod:`spmrl_bench.chart.span_trees`.

Every word has one arc into it, so scores of those into a word are counted from the largest, or
where that leaves the range of numbers, from that of the best tree.
"""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor
from torch.nn import functional

from spmrl_bench.chart import kernels
from spmrl_bench.chart.arrays import arc_offsets, checked_arcs, checked_lengths, starts

Scores = NDArray[np.float64]
# By how much the shares of all arcs into a word may differ from 1.
_TOLERATED = 1e-6


def decode_dependencies(
    arcs: ArrayLike, lengths: ArrayLike, *, projective: bool
) -> NDArray[np.int32]:
    """Find the dependency tree of highest score of every sentence of a batch.

    Args:
        arcs: float64 or float32 [sum of n(n + 1)], packed as in :mod:`spmrl_bench.chart.arrays`.
            The score of a word as its own head may be anything. Sums are double.
        lengths: integers [B], words of each sentence.
        projective: whether only trees without crossing arcs are searched.

    Returns:
        The head of each word [words]: 0 is the root, 1..n are the words of its sentence.
    """
    words = checked_lengths(lengths)
    scores = checked_arcs(arcs, words)
    rows, offsets = arc_offsets(words), starts(words)
    heads = np.empty(int(offsets[-1]), dtype=np.int32)
    size = words.astype(np.float64)
    work = (size**3 / 2 if projective else 16 * size**2).sum()
    kernel, order, team = kernels.for_batch("_dependencies", words, work)
    if kernel is None:
        search = _projective_heads if projective else _spanning_heads
        for b, n in enumerate(words.tolist()):
            table = scores[rows[b] : rows[b + 1]].reshape(n, n + 1)
            heads[offsets[b] : offsets[b + 1]] = search(table)
    else:
        kernel.decode(scores, words, rows, offsets, heads, order, team, projective)
    return heads


def arc_marginals(
    arcs: ArrayLike, lengths: ArrayLike, *, projective: bool
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the logarithm [B] of the sum over all trees of a sentence, and how likely arcs are,
    float64 [sum of n(n + 1)], packed as the scores; of a word to itself 0. Both are NaN where
    scores are so far apart that too few digits are left, as of words that want each other as heads.

    Args are as of :func:`decode_dependencies`.
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
    table: Scores, shifts: Scores, words: NDArray[np.int32], projective: bool
) -> tuple[Scores, Scores]:
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
    """Return the logarithms of the sums over projective trees [B]; the recurrences are those of the
    best one, with sums for maxima.

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


# The twins of the kernels -----------------------------------------------------------------


def _projective_heads(arcs: Scores) -> list[int]:
    """Return the head of each word, given its arcs [n, n + 1]; here words count from 0.

    Charts are of words, where parts begin or where they end, and widths.
    """
    n = len(arcs)
    right_from, right_to, left_from, left_to = np.zeros((4, n, n))
    arc_right_from, arc_left_to = np.zeros((2, n, n))
    # Which part of a sum is the shorter one, [n, n] by first word and width.
    joined_at, right_at, left_at = np.zeros((3, n, n), dtype=np.int64)
    for width in range(1, n):
        first = np.arange(n - width)
        last = first + width
        sums = right_from[:-width, :width] + left_to[width:, :width][:, ::-1]
        joined_at[first, width] = sums.argmax(axis=1)
        joined = sums.max(axis=1)
        arc_right_from[first, width] = joined + arcs[last, first + 1]
        arc_left_to[last, width] = joined + arcs[first, last + 1]
        sums = arc_right_from[:-width, 1 : width + 1] + right_to[width:, :width][:, ::-1]
        right_at[first, width] = sums.argmax(axis=1)
        right_from[first, width] = right_to[last, width] = sums.max(axis=1)
        sums = left_from[:-width, :width] + arc_left_to[width:, 1 : width + 1][:, ::-1]
        left_at[first, width] = sums.argmax(axis=1)
        left_from[first, width] = left_to[last, width] = sums.max(axis=1)

    words = np.arange(n)
    top = int((left_from[0, words] + right_from[words, n - 1 - words] + arcs[:, 0]).argmax())
    heads = [0] * n
    waiting = [(0, top, False), (top, n - 1, True)]
    while waiting:
        i, j, headed_left = waiting.pop()
        if i == j:
            continue
        k = i + (1 + int(right_at[i, j - i]) if headed_left else int(left_at[i, j - i]))
        heads[k] = 1 + (i if headed_left else j)
        part, low, high = ((k, j), i, k) if headed_left else ((i, k), k, j)
        split = low + int(joined_at[low, high - low])
        waiting += [(*part, headed_left), (low, split, True), (split + 1, high, False)]
    return heads


def _spanning_heads(arcs: Scores) -> list[int]:
    n = len(arcs)
    # For each word, later for each component, which has the row of one of its words: the value
    # of its best arc from each head (0 is the root), and which word that enters.
    values = arcs.copy()
    enters = np.repeat(np.arange(n), n + 1).reshape(n, n + 1)
    values[np.arange(n), np.arange(1, n + 1)] = -np.inf
    row, component = list(range(n)), list(range(n))  # of each component; of each word
    words = [[word] for word in range(n)]
    parent: dict[int, int] = {}
    taken: dict[int, tuple[int, int]] = {}  # arc (head, dependent) into each component
    path = [0]
    while len(words[path[-1]]) < n:
        last = path[-1]
        head = 1 + int(values[row[last], 1:].argmax())
        taken[last] = head, int(enters[row[last], head])
        source = component[head - 1]
        if source not in path:
            path.append(source)
            continue
        new, target = len(row), row[last]
        row.append(target)
        words.append([])
        while new not in path:
            part = path.pop()
            at = row[part]
            values[at] -= values[at, taken[part][0]]
            if at != target:
                better = values[at] > values[target]
                better |= (values[at] == values[target]) & (enters[at] < enters[target])
                values[target] = np.where(better, values[at], values[target])
                enters[target] = np.where(better, enters[at], enters[target])
            parent[part] = new
            words[new] += words[part]
            if part == source:
                path.append(new)
        for word in words[new]:
            component[word] = new
            values[target, word + 1] = -np.inf

    taken[path[0]] = 0, int(enters[row[path[0]], 0])
    # An arc into a component replaces those that enter the parts of it that it goes into.
    heads, entered = [0] * n, set[int]()
    for each in reversed(range(len(row))):
        if each not in entered:
            head, part = taken[each]
            heads[part] = head
            while part != each:
                entered.add(part)
                part = parent[part]
    return heads
