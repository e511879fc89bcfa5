"""The k best trees of one sentence, each of them once.

**Labelled spans** are put together as :mod:`spmrl_bench.chart.span_trees` says of sums, in one way
for each tree, and **joint structures** as :mod:`spmrl_bench.chart.joint_trees` says, with the
largest sum in place of the sum of all. The second best way to build a node, and so on, is looked
for only where a better tree may have it (Huang & Chiang 2005, Better k-best Parsing, algorithm 3).

**Heads**, projective or not, are found by partition (Lawler 1972, A Procedure for Computing the K
Best Solutions; Camerini, Fratta & Maffioli 1980 for spanning trees). All trees but the best are
those which have its heads up to some word, and another head there. The best of each part is
searched by the same decoder, and the part from which the next tree is taken is divided likewise.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from heapq import heapify, heappop, heappush
from itertools import count
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from spmrl_bench.chart.arrays import cell_index
from spmrl_bench.chart.dependency_trees import decode_dependencies

#: What an arc scores that may not be in a tree; less than half of it, no tree is told that has it.
_BARRED = -1e6
#: Bound on the arcs of all parts of which the best trees are searched at once.
_AT_ONCE = 1 << 21
_Scores = NDArray[np.float64]
#: What is built: its kind, the span [i, j), and a word of joint structures, or 0.
_Node = tuple[str, int, int, int]
_Constituents = list[tuple[int, int, int]]
#: A way to build a node from the best of its parts: the score, these, and a label or a word.
_Edge = tuple[float, tuple[_Node, ...], int]


class _Way(NamedTuple):
    """A way to build a node from parts, of each that of this rank. Of two that score the same, the
    one that was met before comes first."""

    cost: float
    number: int
    parts: tuple[_Node, ...]
    mark: int
    ranks: tuple[int, ...]


class _Ways:
    """The ways to build nodes, best first, as far as they have been asked for; the function gives
    the best edges of a node."""

    def __init__(self, edges: Callable[[_Node], list[_Edge]]) -> None:
        self._edges, self._number = edges, count()
        # Of each node those found, and those from which the next is taken.
        self._known: dict[_Node, tuple[list[_Way], list[_Way]]] = {}
        self._followed: dict[_Node, int] = {}  # of those found, how many have led to others
        self._looked_for: set[tuple[_Node, int]] = set()

    def trees(self, root: _Node, k: int) -> Iterator[tuple[float, list[tuple[_Node, int]]]]:
        """Yield the score of each tree, and its nodes with their marks, those to the left first."""
        for rank in range(k):
            if not self._find(root, rank):
                return
            nodes, waiting = [], [(root, rank)]
            while waiting:
                node, place = waiting.pop()
                self._find(node, place)
                way = self._known[node][0][place]
                nodes.append((node, way.mark))
                waiting += [*zip(way.parts, way.ranks, strict=True)][::-1]
            yield -self._known[root][0][rank].cost, nodes

    def _find(self, node: _Node, rank: int) -> bool:
        """Look for so many ways to build a node, and return whether there are."""
        asked = [(node, rank)]
        while asked:
            at, place = asked[-1]
            if at not in self._known:
                made = (
                    _Way(-score, next(self._number), parts, mark, (0,) * len(parts))
                    for score, parts, mark in self._edges(at)
                )
                self._known[at], self._followed[at] = ([], [w for w in made if w.cost < np.inf]), 0
                heapify(self._known[at][1])
            found, waiting = self._known[at]
            if len(found) <= place and self._followed[at] < len(found):
                missing = self._follow(found[-1], waiting)
                asked += missing
                self._followed[at] += not missing
            elif len(found) <= place and waiting:
                found.append(heappop(waiting))
            else:
                self._looked_for.add(asked.pop())
        return len(self._known[node][0]) > rank

    def _follow(self, way: _Way, waiting: list[_Way]) -> list[tuple[_Node, int]]:
        """Let those ways wait which have the next of one part, or return what to find before. So
        that each comes once, no part is changed before the last that has been."""
        last = max((place for place, rank in enumerate(way.ranks) if rank), default=0)
        parts = [*zip(way.parts, (rank + 1 for rank in way.ranks), strict=True)][last:]
        if missing := [each for each in parts if each not in self._looked_for]:
            return missing
        for place, (part, rank) in enumerate(parts, last):
            if rank < len(found := self._known[part][0]):
                cost = way.cost - found[rank - 1].cost + found[rank].cost
                ranks = (*way.ranks[:place], rank, *way.ranks[place + 1 :])
                heappush(waiting, way._replace(cost=cost, number=next(self._number), ranks=ranks))
        return []


def _best(scores: _Scores, k: int) -> list[int]:
    return np.argsort(-scores, kind="stable")[:k].tolist()


def _labels(row: _Scores, k: int, *, bare: bool) -> list[_Edge]:
    """Return the best labels of a span, or none where a word may be bare."""
    return [(0.0, (), 0)] * bare + [(row[at], (), at + 1) for at in _best(row, k)]


def k_best_spans(scores: _Scores, n: int, k: int) -> list[tuple[float, _Constituents]]:
    """Return the k best trees of a sentence of ``n`` words, or all, and before each its score.

    Args:
        scores: ``[cells, labels - 1]``; column c scores label c + 1.

    Returns:
        Constituents ``(start, end, label)`` in pre-order; the whole sentence is one.
    """
    closed, opened = np.full((2, n + 1, n + 1), -np.inf)
    closed[np.triu_indices(n + 1, 1)] = scores.max(axis=1)
    for width in range(1, n + 1):
        i = np.arange(n + 1 - width)
        j = i + width
        sums = np.full(len(i), -np.inf if n == 1 else 0.0)
        if width > 1:
            split = i[:, None] + np.arange(1, width)
            sums = (closed[i[:, None], split] + opened[split, j[:, None]]).max(axis=1)
            closed[i, j] += sums
        opened[i, j] = np.maximum(closed[i, j], sums)
        if width == 1:
            closed[i, j] = opened[i, j]

    def edges(node: _Node) -> list[_Edge]:
        kind, i, j, _ = node
        if kind == "label" or j == i + 1:
            return _labels(scores[cell_index(i, j, n)], k, bare=kind != "label" and n > 1)
        if kind == "closed":
            return [(closed[i, j], (("label", i, j, 0), ("sum", i, j, 0)), 0)]
        sums = closed[i, i + 1 : j] + opened[i + 1 : j, j]
        whole: list[_Edge] = [(closed[i, j], (("closed", i, j, 0),), 0)]
        return whole * (kind == "opened") + [
            (sums[at], (("closed", i, i + 1 + at, 0), ("opened", i + 1 + at, j, 0)), 0)
            for at in _best(sums, k)
        ]

    trees = _Ways(edges).trees(("closed", 0, n, 0), k)
    return [(score, _constituents(nodes)) for score, nodes in trees]


def _constituents(nodes: list[tuple[_Node, int]]) -> _Constituents:
    return [(i, j, mark) for (kind, i, j, _), mark in nodes if kind != "hung" and mark]


def k_best_structures(
    scores: _Scores, arcs: _Scores, k: int
) -> list[tuple[float, _Constituents, list[int]]]:
    """Return the k best joint structures of a sentence, or all: of each its score, constituents as
    of :func:`k_best_spans`, and the head of each word.

    Args:
        scores: as of :func:`k_best_spans`.
        arcs: ``[n, n + 1]`` of each word and head, 0 for the root.
    """
    n = len(arcs)
    word = np.arange(n)
    # By fenceposts and a word: as in the sums, the head word or, of what depends, one outside.
    closed, opened, ended, hung = np.full((4, n + 1, n + 1, n), -np.inf)
    labelled = np.zeros((n + 1, n + 1))
    labelled[np.triu_indices(n + 1, 1)] = scores.max(axis=1)
    for width in range(1, n + 1):
        i = np.arange(n + 1 - width)
        j, split = i + width, i[:, None] + np.arange(1, width)
        if width == 1:
            closed[i, j, word] = np.maximum(labelled[i, j], -np.inf if n == 1 else 0.0)
            right = left = closed[i, j]
        else:
            right = (opened[i[:, None], split] + hung[split, j[:, None]]).max(axis=1)
            left = (hung[i[:, None], split] + ended[split, j[:, None]]).max(axis=1)
            closed[i, j] = labelled[i, j, None] + np.maximum(right, left)
        opened[i, j] = np.maximum(closed[i, j], right)
        ended[i, j] = np.maximum(opened[i, j], left)
        attached = (closed[i, j][:, :, None] + arcs[:, 1:]).max(axis=1)
        hung[i, j] = np.where((word < i[:, None]) | (word >= j[:, None]), attached, -np.inf)

    def edges(node: _Node) -> list[_Edge]:
        kind, i, j, head = node
        if kind == "label" or (kind == "closed" and j == i + 1):
            return _labels(scores[cell_index(i, j, n)], k, bare=kind != "label" and n > 1)
        if kind == "hung":
            attached = closed[i, j, i:j] + arcs[i:j, head + 1]
            words = [(attached[at], i + at) for at in _best(attached, k)]
            return [(score, (("closed", i, j, own),), own) for score, own in words]
        if kind == "closed":
            return [(closed[i, j, head], (("label", i, j, 0), ("sum", i, j, head)), 0)]
        whole: list[_Edge] = [(closed[i, j, head], (("closed", i, j, head),), 0)]
        found = whole * (kind != "sum")
        split = np.arange((head if kind == "opened" else i) + 1, j)
        right, left = opened[i, :, head] + hung[:, j, head], hung[i, :, head] + ended[:, j, head]
        sums = np.where(split > head, right[split], left[split])
        for at in _best(sums, k):
            place = int(split[at])
            kinds = ("opened", "hung") if place > head else ("hung", "ended")
            parts = (kinds[0], i, place, head), (kinds[1], place, j, head)
            found.append((sums[at], parts, 0))
        return found

    found = []
    # The root is a word to the left of the sentence.
    for score, nodes in _Ways(edges).trees(("hung", 0, n, -1), k):
        heads = [0] * n
        for (kind, _, _, head), dependent in nodes:
            if kind == "hung":
                heads[dependent] = head + 1
        found.append((score, _constituents(nodes), heads))
    return found


def k_best_heads(arcs: _Scores, k: int, *, projective: bool) -> list[tuple[float, tuple[int, ...]]]:
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
