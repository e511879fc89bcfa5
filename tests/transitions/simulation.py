"""Transition systems as the papers define them, on lists, and all trees by enumeration.

Nothing here is shared with the package: what a move is defined on is what it needs to be carried
out, and a move is legal if some way to go on ends in a tree. Words count from 1, 0 is the root.
"""

from __future__ import annotations

import functools
from collections import defaultdict
from itertools import combinations
from math import comb
from typing import NamedTuple

import numpy as np

Tree = tuple[int, ...]
#: "s", "l" and "r" for SHIFT, LEFT-ARC and RIGHT-ARC.
Sequence = str


class Configuration(NamedTuple):
    stack: tuple[int, ...]
    buffer: tuple[int, ...]
    arcs: frozenset[tuple[int, int]]  # head and dependent


def applied(name: str, move: str, before: Configuration) -> Configuration | None:
    """The configuration after a move; None where the move is not defined."""
    stack, buffer, arcs = before
    if move == "s":
        return Configuration((*stack, buffer[0]), buffer[1:], arcs) if buffer else None
    if move == "l" and name == "arc-hybrid":
        if not buffer or stack[-1] == 0:
            return None
        return Configuration(stack[:-1], buffer, arcs | {(buffer[0], stack[-1])})
    if len(stack) < 2:
        return None
    *rest, second, top = stack
    if move == "r":
        return Configuration((*rest, second), buffer, arcs | {(second, top)})
    if second == 0:
        return None
    return Configuration((*rest, top), buffer, arcs | {(top, second)})


@functools.cache
def sequences(name: str, n: int, roots: str) -> dict[Sequence, Tree]:
    """All sequences of moves that end with the root alone on the stack, and their trees."""
    found: dict[Sequence, Tree] = {}

    def search(moves: Sequence, state: Configuration) -> None:
        if not state.buffer and state.stack == (0,):
            head = {dependent: head for head, dependent in state.arcs}
            tree = tuple(head[word] for word in range(1, n + 1))
            if roots == "several" or tree.count(0) == 1:
                found[moves] = tree
            return
        for move in "slr":
            after = applied(name, move, state)
            if after is not None:
                search(moves + move, after)

    search("", Configuration((0,), tuple(range(1, n + 1)), frozenset()))
    return found


@functools.cache
def legal_after(name: str, n: int, roots: str) -> dict[Sequence, str]:
    """By each beginning of a sequence, the moves with which one goes on, in the order of "slr"."""
    following: dict[Sequence, set[str]] = defaultdict(set)
    for sequence in sequences(name, n, roots):
        for step, move in enumerate(sequence):
            following[sequence[:step]].add(move)
    return {moves: "".join(sorted(after, key="slr".index)) for moves, after in following.items()}


@functools.cache
def all_trees(n: int, roots: str) -> tuple[list[Tree], list[Tree]]:
    """All projective and all other trees over n words."""
    heads = np.indices((n + 1,) * n).reshape(n, -1).T.astype(np.int8)
    count = (heads == 0).sum(axis=1)
    heads = heads[count == 1 if roots == "one" else count > 0]
    # From every word n steps up lead to the root, unless there is a cycle.
    up = np.concatenate([np.zeros((len(heads), 1), dtype=heads.dtype), heads], axis=1)
    place = np.tile(np.arange(n + 1), (len(heads), 1))
    for _ in range(n):
        place = np.take_along_axis(up, place, axis=1)
    heads = heads[(place == 0).all(axis=1)]
    words = np.arange(1, n + 1)
    low, high = np.minimum(heads, words), np.maximum(heads, words)
    crossed = np.zeros(len(heads), dtype=np.bool_)
    for a, b in combinations(range(n), 2):
        for one, other in ((a, b), (b, a)):
            crossed |= (
                (low[:, one] < low[:, other])
                & (low[:, other] < high[:, one])
                & (high[:, one] < high[:, other])
            )
    return list(map(tuple, heads[~crossed].tolist())), list(map(tuple, heads[crossed].tolist()))


def projective_count(n: int, roots: str) -> int:
    """How many projective trees there are: noncrossing trees that are rooted at their left end."""
    return comb(3 * n - 2, n - 1) // n if roots == "one" else comb(3 * n, n) // (2 * n + 1)
