"""Arc-standard transitions as the paper defines them, on tuples, and all trees by enumeration.

Nothing here is shared with the package: what a transition is defined on is what it needs to be
carried out, and a sequence is legal if it ends in a tree with one root. Words count from 1.
"""

from __future__ import annotations

import functools
from typing import NamedTuple

import numpy as np

from spmrl_bench.trees.projective import projectivize
from tests.chart.dependency_oracles import Tree, crosses, projective_trees, trees


class Configuration(NamedTuple):
    stack: tuple[int, ...]
    buffer: tuple[int, ...]
    arcs: frozenset[tuple[int, int]]  # head and dependent


def start(n: int) -> Configuration:
    return Configuration((0,), tuple(range(1, n + 1)), frozenset())


def applied(transition: str, before: Configuration) -> Configuration | None:
    """The configuration after "s", "l" or "r" (SHIFT, LEFT-ARC, RIGHT-ARC), where it is defined."""
    stack, buffer, arcs = before
    if transition == "s":
        return Configuration((*stack, buffer[0]), buffer[1:], arcs) if buffer else None
    if len(stack) < 2 or (transition == "l" and stack[-2] == 0):
        return None
    *rest, second, top = stack
    head, dependent = (top, second) if transition == "l" else (second, top)
    return Configuration((*rest, head), buffer, arcs | {(head, dependent)})


@functools.cache
def sequences(n: int) -> dict[str, Tree]:
    """All sequences that end with the root alone on the stack, over one word, and their trees."""
    found: dict[str, Tree] = {}

    def search(done: str, state: Configuration) -> None:
        if not state.buffer and state.stack == (0,):
            head = {dependent: head for head, dependent in state.arcs}
            tree = tuple(head[word] for word in range(1, n + 1))
            if tree.count(0) == 1:
                found[done] = tree
            return
        for transition in "slr":
            if (after := applied(transition, state)) is not None:
                search(done + transition, after)

    search("", start(n))
    return found


def all_trees(n: int) -> tuple[list[Tree], list[Tree]]:
    """All projective and all other trees over n words."""
    return projective_trees(n), [tree for tree in trees(n) if crosses(tree)]


def random_heads(rng: np.random.Generator, n: int) -> list[int]:
    """A projective tree: any tree, lifted."""
    order = rng.permutation(n) + 1
    heads = [0] * n
    for place in range(1, n):
        # Near words are heads of each other more often, so that lifting leaves something.
        before = order[:place]
        near = before[np.abs(before - order[place]).argmin()]
        heads[order[place] - 1] = int(near if rng.random() < 0.8 else rng.choice(before))
    return projectivize(heads)
