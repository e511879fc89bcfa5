"""The oracles of chart decoding: write down every tree and take the best.

Nothing here is shared with the decoder: no dynamic program, no packed index formula. Ties are
resolved by one rule that needs neither: among the best labelled trees, the one whose sequence
"label of the node, then where it splits", read in pre-order, is smallest.

A joint structure is a binary tree and, for each inner node, the part that has its head; there are
Catalan(n - 1) times 2 to the power of n - 1 of them. Each becomes a row of counts, which spans it
has that are free to be empty, which ones that are not, and which arcs, so that the scores of all
are products with the scores of a chart. They are sorted by root, then node by node in pre-order by
split and dependent head word, and the first of the best wins.
"""

from __future__ import annotations

import functools
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Span = tuple[int, int]
Answer = tuple[float, list[Span], list[int]]


def spans(n: int) -> list[Span]:
    """The spans of ``n`` words in the order of their cells."""
    return [(i, j) for i in range(n) for j in range(i + 1, n + 1)]


@functools.cache
def trees(i: int, j: int) -> list[tuple[Span, ...]]:
    """All binary trees over [i, j) as pre-order nodes, those that split further left first."""
    if j == i + 1:
        return [((i, j),)]
    return [
        ((i, j), *left, *right)
        for k in range(i + 1, j)
        for left in trees(i, k)
        for right in trees(k, j)
    ]


@functools.cache
def _tree_matrix(n: int) -> NDArray[np.float64]:
    """[trees, cells], 1 where the tree has the cell's span."""
    return np.array([[float(span in tree) for span in spans(n)] for tree in trees(0, n)])


def label_table(
    scores: NDArray[np.float32], gold: NDArray[np.int32] | None, n: int
) -> NDArray[np.float64]:
    """Score of every label in every cell of a sentence [cells, labels], as a tree adds it."""
    table = np.zeros((len(scores), scores.shape[1] + 1))
    for cell, span in enumerate(spans(n)):
        for label in range(table.shape[1]):
            if label > 0:
                table[cell, label] = scores[cell, label - 1]
            if gold is not None and label != gold[cell]:
                table[cell, label] += 1
        if span == (0, n):
            table[cell, 0] = -np.inf
    return table


def best_tree(table: NDArray[np.float64], n: int) -> Answer:
    """Best tree by enumeration of trees; labels of different nodes cannot disturb each other."""
    values = [max(row) for row in table.tolist()]
    labels = [row.index(max(row)) for row in table.tolist()]
    totals = _tree_matrix(n) @ values
    winner = int(np.argmax(totals))  # the first of the best
    nodes = list(trees(0, n)[winner])
    where = dict(zip(spans(n), labels, strict=True))
    return float(totals[winner]), nodes, [where[node] for node in nodes]


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
def joint_trees(i: int, j: int) -> list[Tree]:
    """All structures over [i, j) as nodes in pre-order, the first of which is free."""
    if j == i + 1:
        return [(Node(i, j, j, False, 0, 0),)]
    found = []
    for k in range(i + 1, j):
        for left in joint_trees(i, k):
            for right in joint_trees(k, j):
                governor, dependent = left[0].head, right[0].head
                top = Node(i, j, governor, False, k, dependent)
                found.append((top, *left, *_as_dependent(right)))
                top = Node(i, j, dependent, False, k, governor)
                found.append((top, *_as_dependent(left), *right))
    return found


def _as_dependent(tree: Tree) -> Tree:
    return (tree[0]._replace(required=tree[0].j - tree[0].i > 1), *tree[1:])


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

    found = [(tree[0]._replace(required=True), *tree[1:]) for tree in joint_trees(0, n)]
    found.sort(key=preference)
    cell = {span: c for c, span in enumerate(spans(n))}
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
