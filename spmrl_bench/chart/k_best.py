"""The k best trees of one sentence, each of them once.

**Labelled spans** are put together as :mod:`spmrl_bench.chart.span_marginals` says, in one way for
each tree, with the k largest sums in place of the sum of all. Of two falling lists the sum of
number a of one and number b of the other, counted from 0, is among the k largest only where
(a + 1)(b + 1) <= k, since no sum before both in its list is smaller. All such pairs of all splits
of the spans of a width are compared at once. This finds what algorithm 3 of Huang & Chiang (2005),
Better k-best Parsing, finds one by one. **Joint structures** are put together likewise as
:mod:`spmrl_bench.chart.joint_marginals` says.

**Heads**, projective or not, are found by partition (Lawler 1972, A Procedure for Computing the K
Best Solutions; Camerini, Fratta & Maffioli 1980 for spanning trees). All trees but the best are
those which have its heads up to some word, and another head there. The best of each part is
searched by the same decoder, and the part from which the next tree is taken is divided likewise.
"""

from __future__ import annotations

from heapq import heappop, heappush
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import pad

from spmrl_bench.chart.dependency_trees import decode_dependencies

#: What an arc scores that may not be in a tree; less than half of it, no tree is told that has it.
_BARRED = -1e6
#: Bound on the arcs of all parts of which the best trees are searched at once.
_AT_ONCE = 1 << 21


class _Lists(NamedTuple):
    """The best of each span of a width, or of each and a word, ``[..., k]``: their scores, falling,
    with minus infinity where there are no more, and which of what was compared they are."""

    scores: Tensor
    which: Tensor

    @classmethod
    def of(cls, compared: Tensor, k: int) -> _Lists:
        found = pad(compared, (0, max(0, k - compared.shape[-1])), value=-np.inf).topk(k)
        return cls(found.values, found.indices)


def k_best_spans(scores: Tensor, n: int, k: int) -> list[tuple[float, list[tuple[int, int, int]]]]:
    """Return the k best trees of a sentence of ``n`` words, or all, and before each its score.

    Args:
        scores: float64 ``[cells, labels - 1]``; column c scores label c + 1.

    Returns:
        Constituents ``(start, end, label)`` in pre-order; the whole sentence is one.
    """
    pairs = _pairs(k)
    one, other = torch.from_numpy(pairs)
    first, last = np.triu_indices(n + 1, 1)
    # By width: of the labels of a span, of constituents or bare words, of two parts or more, and
    # of one part or more.
    labels, closed, sums, opened = ([_Lists(scores[:0], scores[:0])] for _ in range(4))
    for width in range(1, n + 1):
        spans = n + 1 - width
        own = _Lists.of(scores[torch.from_numpy(last - first == width)], k)
        if width == 1:
            bare = own.scores.new_full((spans, 1), -np.inf if n == 1 else 0.0)
            sums.append(_Lists.of(bare, k))
            closed.append(_Lists.of(torch.cat((own.scores, bare), dim=1), k))
            opened.append(closed[1])
        else:
            parts = [
                closed[split].scores[:spans, one] + opened[width - split].scores[split:, other]
                for split in range(1, width)
            ]
            sums.append(_Lists.of(torch.cat(parts, dim=1), k))
            closed.append(_Lists.of(own.scores[:, one] + sums[width].scores[:, other], k))
            both = torch.cat((closed[width].scores, sums[width].scores), dim=1)
            opened.append(_Lists.of(both, k))
        labels.append(own)

    def tree(rank: int) -> list[tuple[int, int, int]]:
        found, waiting = [], [(closed, 0, n, rank)]
        while waiting:
            kind, start, width, place = waiting.pop()
            at = int(kind[width].which[start, place])
            if kind is sums:
                split, pair = divmod(at, len(one))
                a, b = pairs[:, pair].tolist()
                rest = (opened, start + split + 1, width - split - 1, b)
                waiting += [rest, (closed, start, split + 1, a)]
            elif kind is opened and width > 1:
                waiting.append(
                    (closed, start, width, at) if at < k else (sums, start, width, at - k)
                )
            elif width > 1 or at < k:
                a, b = pairs[:, at].tolist() if width > 1 else (at, 0)
                found.append((start, start + width, int(labels[width].which[start, a]) + 1))
                waiting += [(sums, start, width, b)] if width > 1 else []
        return found

    totals = closed[n].scores[0].tolist()
    return [(total, tree(rank)) for rank, total in enumerate(totals) if total > -np.inf]


def k_best_structures(
    scores: Tensor, arcs: NDArray[np.float64], k: int
) -> list[tuple[float, list[tuple[int, int, int]], list[int]]]:
    """Return the k best joint structures of a sentence, or all: of each its score, constituents as
    of :func:`k_best_spans`, and the head of each word.

    It takes n^4 k log k steps and n^3 k numbers.

    Args:
        scores: as of :func:`k_best_spans`.
        arcs: ``[n, n + 1]`` of each word and head, 0 for the root.
    """
    n, pairs = len(arcs), _pairs(k)
    (one, other), table = torch.from_numpy(pairs), torch.from_numpy(arcs)
    first, last = np.triu_indices(n + 1, 1)
    words = torch.arange(n)
    # By width, of spans and head words: whole constituents or bare words; parts of which the last
    # was put on to the right of the head, or to the left; both; what may have more to its right,
    # or on both sides; and what depends on a word outside.
    labels, closed, rights, lefts, sums, opened, ended, hung = (
        [_Lists(table, table)] for _ in range(8)
    )
    for width in range(1, n + 1):
        start = torch.arange(n + 1 - width)[:, None]
        own = _Lists.of(scores[torch.from_numpy(last - first == width)], k)
        labels.append(own)
        if width == 1:
            alone = own.scores.new_full((n, n, k + 1), -np.inf)
            alone[words, words] = pad(own.scores, (0, 1), value=-np.inf if n == 1 else 0.0)
            closed.append(_Lists.of(alone, k))
            for lists in (rights, lefts, sums, opened, ended):
                lists.append(closed[1])
        else:
            for found, one_part, other_part in ((rights, opened, hung), (lefts, hung, ended)):
                parts = [
                    one_part[split].scores[: len(start), :, one]
                    + other_part[width - split].scores[split:, :, other]
                    for split in range(1, width)
                ]
                found.append(_Lists.of(torch.cat(parts, dim=2), k))
            right, left = rights[width].scores, lefts[width].scores
            sums.append(_Lists.of(torch.cat((right, left), dim=2), k))
            closed.append(_Lists.of(own.scores[:, None, one] + sums[width].scores[:, :, other], k))
            whole = closed[width].scores
            opened.append(_Lists.of(torch.cat((whole, right), dim=2), k))
            ended.append(_Lists.of(torch.cat((whole, right, left), dim=2), k))
        attached = closed[width].scores[:, None] + table[:, 1:].T[None, :, :, None]
        attached[(words >= start) & (words < start + width)] = -np.inf
        hung.append(_Lists.of(attached.flatten(2), k))

    def structure(root: int, rank: int) -> tuple[list[tuple[int, int, int]], list[int]]:
        found, heads, waiting = [], [0] * n, [(closed, 0, n, root, rank)]
        while waiting:
            kind, start, width, head, place = waiting.pop()
            at = int(kind[width].which[start, head, place])
            if kind is hung:
                word, at = divmod(at, k)
                heads[word] = head + 1
                waiting.append((closed, start, width, word, at))
            elif width == 1:
                found += [(start, start + 1, int(labels[1].which[start, at]) + 1)] if at < k else []
            elif kind is closed:
                a, b = pairs[:, at].tolist()
                found.append((start, start + width, int(labels[width].which[start, a]) + 1))
                waiting.append((sums, start, width, head, b))
            elif kind is rights or kind is lefts:
                split, (a, b) = at // len(one) + 1, pairs[:, at % len(one)].tolist()
                one_part, other_part = (opened, hung) if kind is rights else (hung, ended)
                waiting.append((other_part, start + split, width - split, head, b))
                waiting.append((one_part, start, split, head, a))
            else:
                of = (rights, lefts) if kind is sums else (closed, rights, lefts)
                waiting.append((of[at // k], start, width, head, at % k))
        return found, heads

    totals, places = _Lists.of((closed[n].scores[0] + table[:, :1]).flatten(), k)
    return [
        (total, *structure(*divmod(place, k)))
        for total, place in zip(totals.tolist(), places.tolist(), strict=True)
        if total > -np.inf
    ]


def _pairs(k: int) -> NDArray[np.int64]:
    return np.array([(a, b) for a in range(k) for b in range(k // (a + 1))]).T


def k_best_heads(
    arcs: NDArray[np.float64], k: int, *, projective: bool
) -> list[tuple[float, tuple[int, ...]]]:
    """Return the heads of the k best trees with one child of the root, or of all, and before each
    its score.

    Args:
        arcs: ``[n, n + 1]`` of each word and head, 0 for the root; half of -1e6 and less bars one.
        projective: as of :func:`~spmrl_bench.chart.dependency_trees.decode_dependencies`.
    """
    n = len(arcs)
    words, found = np.arange(n), list[tuple[float, tuple[int, ...]]]()
    # The best tree of each part, the first word whose head is open there, and what it may not be.
    parts: list[tuple[float, tuple[int, ...], int, tuple[int, ...]]] = []

    def search(tables: NDArray[np.float64], begin: int, barred: list[tuple[int, ...]]) -> None:
        lengths = np.full(len(tables), n)
        trees = decode_dependencies(tables.ravel(), lengths, projective=projective).reshape(-1, n)
        chosen = tables[np.arange(len(tables))[:, None], words, trees]
        for place in np.flatnonzero((chosen > _BARRED / 2).all(axis=1)).tolist():
            total, heads = float(chosen[place].sum()), tuple(trees[place].tolist())
            heappush(parts, (-total, heads, begin + place, barred[place]))

    search(arcs[None], 0, [()])
    while parts and len(found) < k:
        total, heads, begin, barred = heappop(parts)
        found.append((-total, heads))
        step = max(1, _AT_ONCE // arcs.size)
        for least in range(begin, n if len(found) < k else 0, step):
            divided = range(least, min(n, least + step))
            never = [(*(barred if word == begin else ()), heads[word]) for word in divided]
            tables = np.repeat(arcs[None], len(divided), axis=0)
            for table, word, without in zip(tables, divided, never, strict=True):
                kept = table[words[:word], heads[:word]]
                table[:word] = _BARRED
                table[words[:word], heads[:word]] = kept
                table[word, list(without)] = _BARRED
            search(tables, least, never)
    return found
