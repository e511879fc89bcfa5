"""The oracle of joint decoding: write down every structure and take the best.

A structure is a binary tree and, for each inner node, the part that has its head; there are
Catalan(n - 1) times 2 to the power of n - 1 of them. Each becomes a row of counts, which spans it
has that are free to be empty, which ones that are not, and which arcs, so that the scores of all
are products with the scores of a chart. Nothing is shared with the decoder.

Ties: rows are sorted by root, then node by node in pre-order by split and dependent head word, and
the first of the best wins.
"""

from __future__ import annotations

import functools
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


class Node(NamedTuple):
    """A node; words are numbered from 1, ``split`` and ``dependent`` are 0 over one word."""

    i: int
    j: int
    head: int
    required: bool
    split: int
    dependent: int


Tree = tuple[Node, ...]


@functools.cache
def trees(i: int, j: int) -> list[Tree]:
    """All structures over [i, j) as nodes in pre-order, the first of which is free."""
    if j == i + 1:
        return [(Node(i, j, j, False, 0, 0),)]
    found = []
    for k in range(i + 1, j):
        for left in trees(i, k):
            for right in trees(k, j):
                governor, dependent = left[0].head, right[0].head
                top = Node(i, j, governor, False, k, dependent)
                found.append((top, *left, *_as_dependent(right)))
                top = Node(i, j, dependent, False, k, governor)
                found.append((top, *_as_dependent(left), *right))
    return found


def _as_dependent(tree: Tree) -> Tree:
    top = tree[0]
    return (top._replace(required=top.j - top.i > 1), *tree[1:])


class Structures(NamedTuple):
    """All structures of n words, in the order in which ties prefer them."""

    trees: list[Tree]
    heads: list[tuple[int, ...]]
    free: NDArray[np.float64]
    required: NDArray[np.float64]
    arcs: NDArray[np.float64]

    def scores(self, values: NDArray[np.float64], arcs: NDArray[np.float64]) -> NDArray[np.float64]:
        """Score of each, for the scores of one sentence as ``decode_joint`` takes them."""
        spans = self.free @ np.maximum(values, 0) + self.required @ values
        return np.asarray(spans + self.arcs @ arcs)


@functools.cache
def structures(n: int) -> Structures:
    """All structures of ``n`` words."""

    def preference(tree: Tree) -> list[int]:
        inner = [(node.split, node.dependent) for node in tree if node.split]
        return [tree[0].head, *(number for pair in inner for number in pair)]

    found = [(tree[0]._replace(required=True), *tree[1:]) for tree in trees(0, n)]
    found.sort(key=preference)
    cell = {span: c for c, span in enumerate((i, j) for i in range(n) for j in range(i + 1, n + 1))}
    free, required = np.zeros((2, len(found), len(cell)))
    arcs = np.zeros((len(found), n, n + 1))
    heads = []
    for row, tree in enumerate(found):
        governors = [0] * n
        for node in tree:
            (required if node.required else free)[row, cell[node.i, node.j]] += 1
            if node.split:
                governors[node.dependent - 1] = node.head
        arcs[row, np.arange(n), governors] = 1
        heads.append(tuple(governors))
    return Structures(found, heads, free, required, arcs.reshape(len(found), -1))
