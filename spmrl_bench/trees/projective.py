"""Projective dependency trees, and what becomes of arcs that are not projective.

An arc is projective if its head dominates every word between the head and the dependent. The
root, number 0, stands before the first word and dominates them all: its arcs are projective, and
any other that spans a root of the sentence is not. Where all arcs are projective, none crosses
another, each word and what it dominates stand side by side, and only such trees are found by a
chart. The others are learned after a change: in

    A hearing is scheduled on the issue today

with ``hearing`` governed by ``is`` and governing ``on``, the arc from ``hearing`` to ``on`` spans
two words that ``hearing`` does not dominate. Lifted, ``on`` is governed by ``is``.

To lift an arc is to attach its dependent to the head of its head. A tree becomes projective by
lifting arcs that are not, but it depends on the order how far they rise: an arc may be in the way
of another for as long as it is not lifted itself. Bottom up, no word rises further than needed
(:func:`lifted`). The shortest arcs first is the order of Nivre & Nilsson (2005), Pseudo-Projective
Dependency Parsing (:func:`lifted_shortest_first`), to which the literature compares.
"""

from __future__ import annotations

from bisect import bisect
from collections.abc import Sequence
from heapq import heapify, heappop, heappush

from spmrl_bench.errors import TreeError


def is_projective(heads: Sequence[int]) -> bool:
    """Whether all arcs of a tree are projective; ``heads`` are as in :func:`lifted`."""
    return lifted(heads) == list(heads)


def crossing_words(heads: Sequence[int]) -> list[int]:
    """The words whose arcs are not projective, in order; ``heads`` are as in :func:`lifted`."""
    if is_projective(heads):
        return []
    dominated = dominated_words(heads)
    return [
        word for word, head in enumerate(heads, start=1) if between(word, head) & ~dominated[head]
    ]


def lifted(heads: Sequence[int]) -> list[int]:
    """The heads after the least lifting that leaves all arcs projective.

    Each word is governed by the lowest word above it that leaves all arcs projective. There is
    one such tree: of all projective ones in which every word is governed by a word that governed
    it before, directly or not, it has every word as low as any. The time is linear in the number
    of words, but for sorting.

    Args:
        heads: the head of each of ``n`` words, numbered from 1, that form a tree; 0 is the root,
            which may have several dependents and dominates everything.

    Raises:
        TreeError: the heads form no tree.
    """
    heads = list(heads)
    dependents, downwards = _top_down(heads)
    # From the bottom up, each word keeps what touches it and hands the rest to its head.
    first, last = list(range(len(dependents))), list(range(len(dependents)))
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


def lifted_shortest_first(heads: Sequence[int]) -> list[int]:
    """The heads after lifting, again and again, the shortest arc that is not projective.

    The algorithm of Nivre & Nilsson (2005), section 2. The length of an arc is the distance of
    its two words as it is at the time; of arcs of one length the leftmost is lifted, and no two of
    that length begin at the same word. Some words may rise further than by :func:`lifted`.
    Projective trees take linear time; others also a few operations on sets of all words for each
    word and each lift.

    Args:
        heads: as in :func:`lifted`; so are the errors.
    """
    heads = list(heads)
    waiting = [_length_and_place(word, heads[word - 1]) for word in crossing_words(heads)]
    if not waiting:
        return heads
    dominated = dominated_words(heads)
    dependents, _ = _top_down(heads)
    crossing = {word for *_, word in waiting}
    heapify(waiting)
    while waiting:
        *_, word = heappop(waiting)
        crossing.remove(word)
        lower = heads[word - 1]
        heads[word - 1] = higher = heads[lower - 1]
        dependents[lower].remove(word)
        dependents[higher].append(word)
        # Only the head that loses a word dominates less. So no arc becomes projective but by being
        # lifted, and none ceases to be but this one and those beside it.
        dominated[lower] ^= dominated[word]
        for other in (word, *dependents[lower]):
            head = heads[other - 1]
            if other not in crossing and between(other, head) & ~dominated[head]:
                crossing.add(other)
                heappush(waiting, _length_and_place(other, head))
    return heads


def dominated_words(heads: Sequence[int]) -> list[int]:
    """What the root and each word dominate, themselves included: bit ``k`` stands for word ``k``.

    Args:
        heads: as in :func:`lifted`; so are the errors.
    """
    sets = [1 << word for word in range(len(heads) + 1)]
    _, downwards = _top_down(heads)
    for word in reversed(downwards[1:]):
        sets[heads[word - 1]] |= sets[word]
    return sets


def between(one: int, other: int) -> int:
    """The words between two, as bits.

    An arc crosses others where ``between(word, head) & ~dominated_words(heads)[head]`` is not 0.
    """
    return (1 << max(one, other)) - 1 & -2 << min(one, other)


def _top_down(heads: Sequence[int]) -> tuple[list[list[int]], list[int]]:
    """The dependents of each word and of the root, and all of these with heads before dependents.

    Raises:
        TreeError: the heads form no tree.
    """
    dependents: list[list[int]] = [[] for _ in range(len(heads) + 1)]
    for word, head in enumerate(heads, start=1):
        dependents[head].append(word)
    downwards = [0]
    for word in downwards:
        downwards += dependents[word]
    if len(downwards) != len(dependents):
        raise TreeError("the heads form a cycle, so there is no tree to lift arcs in")
    return dependents, downwards


def _length_and_place(word: int, head: int) -> tuple[int, int, int]:
    """By what arcs are ordered, and the word."""
    return abs(word - head), min(word, head), word
