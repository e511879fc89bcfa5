"""Projective dependency trees, and what becomes of arcs that are not projective.

An arc is projective if its head dominates every word between the head and the dependent. Where
all arcs are, each word and what it dominates stand side by side, and only such trees are found
by a chart. The others are learned after a change: in

    A hearing is scheduled on the issue today

with ``hearing`` governed by ``is`` and governing ``on``, the arc from ``hearing`` to ``on`` spans
two words that ``hearing`` does not dominate. Lifted, ``on`` is governed by ``is``.
"""

from __future__ import annotations

from bisect import bisect
from collections.abc import Sequence
from dataclasses import replace

from spmrl_bench.errors import TreeError
from spmrl_bench.trees.dependencies import DependencyTree
from spmrl_bench.trees.tree import frozen


def lift_crossing_arcs(tree: DependencyTree) -> DependencyTree:
    """Make a dependency tree projective by moving words to heads of their heads.

    Each word is governed by the lowest word above it that leaves all arcs projective; relations
    stay with the words. There is one such tree: of all projective ones in which every word is
    governed by a word that governed it before, directly or not, it has every word as low as
    any. Such lifting is that of Nivre & Nilsson (2005), Pseudo-Projective Dependency Parsing,
    section 2, without the marks on relations; they lift one arc after another, the shortest
    first, by which a word may rise further than needed. A projective tree is returned as it is.
    """
    heads = tree.heads.tolist()
    found = lifted(heads)
    return tree if found == heads else replace(tree, heads=frozen(found))


def is_projective(heads: Sequence[int]) -> bool:
    """Whether all arcs of a tree are projective; ``heads`` are as in :func:`lifted`."""
    return lifted(heads) == list(heads)


def lifted(heads: Sequence[int]) -> list[int]:
    """The heads after the lifting that :func:`lift_crossing_arcs` describes.

    Args:
        heads: the head of each of ``n`` words, numbered from 1, that form a tree; 0 is the root,
            which may have several dependents and dominates everything.

    Raises:
        TreeError: the heads form no tree.
    """
    n = len(heads)
    heads = list(heads)
    dependents: list[list[int]] = [[] for _ in range(n + 1)]
    for word, head in enumerate(heads, start=1):
        dependents[head].append(word)
    downwards = [0]
    for word in downwards:
        downwards += dependents[word]
    if len(downwards) != n + 1:
        raise TreeError("the heads form a cycle, so there is no tree to lift arcs in")
    # From the bottom up, each word keeps what touches it and hands the rest to its head.
    first, last = list(range(n + 1)), list(range(n + 1))
    for word in reversed(downwards[1:]):
        if not (waiting := dependents[word]):
            continue
        waiting.sort()
        middle = bisect(waiting, word)
        cut_off: list[int] = []
        for dependent in reversed(waiting[:middle]):
            if last[dependent] + 1 == first[word]:
                first[word] = first[dependent]
            else:
                cut_off.append(dependent)
        for dependent in waiting[middle:]:
            if first[dependent] == last[word] + 1:
                last[word] = last[dependent]
            else:
                cut_off.append(dependent)
        for dependent in cut_off:
            heads[dependent - 1] = heads[word - 1]
        dependents[heads[word - 1]] += cut_off
    return heads
