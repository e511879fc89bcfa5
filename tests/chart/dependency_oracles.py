"""The oracles of dependency decoding: all trees, and the rules for ties written down once more.

Nothing here is shared with the decoders: no dynamic program, no rows of arcs. Words count from 1,
0 is the root, and a tree is the tuple of the heads of the words 1..n.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

Tree = tuple[int, ...]


@functools.cache
def trees(n: int) -> list[Tree]:
    """All trees over n words in which one word has the root for its head."""
    heads = np.indices((n + 1,) * n).reshape(n, -1).T
    heads = heads[(heads == 0).sum(axis=1) == 1]
    # From every word n steps up lead to the root, unless there is a cycle.
    up = np.concatenate([np.zeros((len(heads), 1), dtype=heads.dtype), heads], axis=1)
    place = np.tile(np.arange(n + 1), (len(heads), 1))
    for _ in range(n):
        place = np.take_along_axis(up, place, axis=1)
    return list(map(tuple, heads[(place == 0).all(axis=1)].tolist()))


def crosses(tree: Tree) -> bool:
    """Whether two arcs cross."""
    arcs = [(min(pair), max(pair)) for pair in enumerate(tree, start=1)]
    return any(a < c < b < d for a, b in arcs for c, d in arcs)


@functools.cache
def projective_trees(n: int) -> list[Tree]:
    """Those of :func:`trees` without crossing arcs."""
    return [tree for tree in trees(n) if not crosses(tree)]


def totals(arcs: NDArray[np.float64], candidates: list[Tree]) -> NDArray[np.float64]:
    """Score of each of some trees, given arcs [n, n + 1]."""
    return arcs[np.arange(len(arcs)), np.array(candidates)].sum(axis=1)


def best_projective(arcs: NDArray[np.float64]) -> Tree:
    """Of all best projective trees that which the rule for ties prefers."""
    candidates = projective_trees(len(arcs))
    scores = totals(arcs, candidates)
    return min((candidates[k] for k in np.flatnonzero(scores == scores.max())), key=joins)


def joins(tree: Tree) -> list[int]:
    """The child of the root, and where parts are joined, from the top down.

    The part of a word to its right ends in that of its last dependent on the right, whose part to
    its left begins after the join; to its left it is the other way round.
    """
    below = {word: {word} for word in range(1, len(tree) + 1)}
    for _ in tree:
        for word, head in enumerate(tree, start=1):
            if head:
                below[head] |= below[word]

    def left(word: int, dependents: list[int]) -> Iterator[int]:
        if dependents:
            outermost, *others = dependents
            yield from (outermost, max(below[outermost]))
            yield from right(outermost, *_sides(tree, outermost)[1:])
            yield from left(word, others)
            yield from left(outermost, _sides(tree, outermost)[0])

    def right(word: int, dependents: list[int]) -> Iterator[int]:
        if dependents:
            *others, outermost = dependents
            yield from (outermost, min(below[outermost]) - 1)
            yield from right(word, others)
            yield from left(outermost, _sides(tree, outermost)[0])
            yield from right(outermost, _sides(tree, outermost)[1])

    root = tree.index(0) + 1
    on_left, on_right = _sides(tree, root)
    return [root, *left(root, on_left), *right(root, on_right)]


def _sides(tree: Tree, word: int) -> tuple[list[int], list[int]]:
    """The dependents of a word on its left and on its right."""
    dependents = [each for each, head in enumerate(tree, start=1) if head == word]
    return [d for d in dependents if d < word], [d for d in dependents if d > word]


def grown_tree(arcs: NDArray[np.float64]) -> Tree:
    """Chu, Liu and Edmonds in the order that the rule for ties speaks of, on sets of words.

    Every arc keeps a value of its own, and the best arc into a component is searched among all of
    those into its words.
    """
    n = len(arcs)
    value = {(u, v): float(arcs[v - 1, u]) for v in range(1, n + 1) for u in range(n + 1) if u != v}
    everything = frozenset(range(1, n + 1))
    parts: dict[frozenset[int], list[frozenset[int]]] = {}
    taken: dict[frozenset[int], tuple[int, int]] = {}

    def best_into(words: frozenset[int], heads: frozenset[int]) -> tuple[int, int]:
        return max(
            ((u, v) for u in heads for v in words), key=lambda arc: (value[arc], -arc[0], -arc[1])
        )

    path = [frozenset([1])]
    while path[-1] != everything:
        last = path[-1]
        taken[last] = best_into(last, everything - last)
        source = taken[last][0]
        on_path = [place for place, words in enumerate(path) if source in words]
        if not on_path:
            inside = [words for words in parts if source in words]
            path.append(max(inside, key=len, default=frozenset([source])))
            continue
        cycle = path[on_path[0] :]
        worth = {words: value[taken[words]] for words in cycle}
        for words in cycle:
            for u, v in value:
                if v in words:
                    value[u, v] -= worth[words]
        del path[on_path[0] :]
        path.append(frozenset.union(*cycle))
        parts[path[-1]] = cycle

    heads = [0] * n

    def enter(words: frozenset[int], arc: tuple[int, int]) -> None:
        if words not in parts:
            heads[arc[1] - 1] = arc[0]
            return
        for part in parts[words]:
            enter(part, arc if arc[1] in part else taken[part])

    enter(everything, best_into(everything, frozenset([0])))
    return tuple(heads)
