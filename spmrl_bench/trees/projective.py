"""Projective dependency trees, and how arcs that are not projective are learnt.

An arc is projective if its head dominates every word between the head and the dependent. The
root, number 0, stands before the first word and dominates them all: its arcs are projective, and
any other that spans a root of the sentence is not. Only trees whose arcs are all projective are
found by a chart or by arc-standard transitions; others are learnt after a change. In

    A hearing is scheduled on the issue today

with ``is`` the head of ``hearing`` and that the head of ``on``, the arc from ``hearing`` to ``on``
spans two words that ``hearing`` does not dominate. Lifted, ``on`` has the head ``is``.

To lift an arc is to attach its dependent to the head of its head. How far words rise depends on
the order, as an arc may be in the way of another until it is lifted itself. Bottom up, no word
rises further than needed (:func:`projectivize`); the shortest arc first
(:func:`pseudo_projective_lift`) is the order of Nivre & Nilsson (2005), Pseudo-Projective
Dependency Parsing.

Pseudo-projective parsing puts arcs back in the projective trees that a parser answers: relations
say what was lifted, and from where. In the encoding ``head+path`` of the paper a word with the
relation ``d`` that was lifted from a head with the relation ``h`` has the relation ``d↑h``, and
``p↓`` is the relation of the words on its path: of this head and all words above it that are below
the head it has now. A word may be both: ``d↑h↓``. Of ``n`` relations there come at most
``2 n (n + 1)``. In the encoding ``projectivise`` relations stay as they are, and what was lifted is
lost. An arrow or a backslash in the relation of a treebank gets a backslash before it.

**Back.** From the root down, and from left to right among the dependents of a head, each lifted
word is moved further down below that head, to a word with the relation ``h`` reached by words on
the path alone; if there is none, to any with the relation ``h``. Of several, those at the end of a
path go first; then those from which the arc crosses others (else it would not have been lifted),
and among these the first of a breadth-first search: one that is higher, then one that is nearer
to the word, then the left one. If there is none, the word stays where it is.

A word is only moved below words that are not below itself, so from any tree with any marks there
comes a tree. A root is moved only where it was lifted to the root beside another, so one root
stays one. The tree that was encoded comes back where all its relations differ, where one word only
was lifted, and in most other cases. (The search of the paper takes the first word that fits, level
by level and from left to right. MaltParser, the program of its authors, also goes by the distance
within a level and also prefers the end of a path; neither asks whether the arc would cross others.)
"""

from __future__ import annotations

import re
from bisect import bisect
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from heapq import heapify, heappop, heappush
from typing import Literal, NamedTuple

from spmrl_bench.errors import TreeError
from spmrl_bench.trees.dependencies import DependencyTree
from spmrl_bench.trees.tree import readonly_int32

#: How a parser learns arcs that are not projective.
EncodingName = Literal["projectivise", "head+path"]

#: Marks of a word that was lifted (the relation of its head follows) and of one on a path.
LIFTED, ON_PATH = "↑", "↓"
#: Before a character of a relation that could be taken for a mark, and before itself.
ESCAPE = "\\"

_SPECIAL = re.compile(r"[↑↓\\]")
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)
_ENCODED = re.compile(r"((?:[^↑↓\\]|\\.)*)(?:↑((?:[^↑↓\\]|\\.)*))?(↓)?", re.DOTALL)


def is_projective(heads: Sequence[int]) -> bool:
    """Return whether all arcs of a tree are projective; see :func:`projectivize`."""
    return projectivize(heads) == list(heads)


def nonprojective_words(heads: Sequence[int]) -> list[int]:
    """Return the words whose arcs are not projective, in order; see :func:`projectivize`."""
    if is_projective(heads):
        return []
    below = _descendants(heads)
    return [word for word, head in enumerate(heads, start=1) if _between(word, head) & ~below[head]]


def projectivize(heads: Sequence[int]) -> list[int]:
    """Return the heads after the least lifting that leaves all arcs projective.

    Words are numbered from 1; 0 is the root, which may have several dependents and dominates
    everything. Of all projective trees in which the head of every word was above it before, this
    one has every word as low as any. The time is linear in the number of words, but for sorting.
    Raise a TreeError if the heads form no tree.
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


def pseudo_projective_lift(heads: Sequence[int]) -> list[int]:
    """Return the heads after lifting, again and again, the shortest arc that is not projective.

    The algorithm of Nivre & Nilsson (2005), section 2, for heads as in :func:`projectivize`. The
    length of an arc is the distance of its two words as it is at the time; of arcs of one length
    the leftmost is lifted. Projective trees take linear time; others also a few operations on sets
    of all words for each word and each lift.
    """
    heads = list(heads)
    waiting = [_length_and_place(word, heads[word - 1]) for word in nonprojective_words(heads)]
    if not waiting:
        return heads
    below = _descendants(heads)
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
        below[lower] ^= below[word]
        for other in (word, *dependents[lower]):
            head = heads[other - 1]
            if other not in crossing and _between(other, head) & ~below[head]:
                crossing.add(other)
                heappush(waiting, _length_and_place(other, head))
    return heads


def _descendants(heads: Sequence[int]) -> list[int]:
    """Return what the root and each word dominate, themselves included, as bits (``1 << word``)."""
    sets = [1 << word for word in range(len(heads) + 1)]
    _, downwards = _top_down(heads)
    for word in reversed(downwards[1:]):
        sets[heads[word - 1]] |= sets[word]
    return sets


def _between(one: int, other: int) -> int:
    """The words between two, as bits; an arc crosses others if its head lacks one of them."""
    return (1 << max(one, other)) - 1 & -2 << min(one, other)


def _top_down(heads: Sequence[int]) -> tuple[list[list[int]], list[int]]:
    """The dependents of the root and each word, and all of these with heads before dependents."""
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
    return abs(word - head), min(word, head), word


def encode_projective(tree: DependencyTree, encoding: EncodingName) -> DependencyTree:
    """Return the projective tree with encoded relations; the same one if nothing changes.

    Arcs are lifted by :func:`pseudo_projective_lift`. A word below one of several roots may
    become a root.
    """
    given = tree.heads.tolist()
    heads = pseudo_projective_lift(given)
    relations = tree.relations
    if encoding == "head+path":
        relations = tuple(_marked_relations(relations, given, heads))
    if heads == given and relations == tree.relations:
        return tree
    return replace(tree, heads=readonly_int32(heads), relations=relations)


def decode_projective(tree: DependencyTree, encoding: EncodingName) -> DependencyTree:
    """Return the tree with plain relations that an encoded one stands for.

    The tree may be the answer of a parser, in which marks need not fit each other. Raise a
    TreeError if a relation is not one that this encoding makes.
    """
    if encoding != "head+path":
        return tree
    marks = []
    for number, relation in enumerate(tree.relations, start=1):
        mark = _read_relation(relation)
        if mark is None:
            raise TreeError(
                f"word {number}: '{relation}' is no relation of the encoding '{encoding}'; expected"
                f" d, d{LIFTED}h, d{ON_PATH}, d{LIFTED}h{ON_PATH}, with {ESCAPE} before {LIFTED},"
                f" {ON_PATH} and {ESCAPE} that belong to a name"
            )
        marks.append(mark)
    heads = tree.heads
    if any(mark.lifted_from is not None for mark in marks):
        heads = readonly_int32(_Deprojectivizer(heads.tolist(), marks).heads_put_back())
    relations = tuple(mark.relation for mark in marks)
    if heads is tree.heads and relations == tree.relations:
        return tree
    return replace(tree, heads=heads, relations=relations)


def _marked_relations(
    relations: Sequence[str], given: Sequence[int], heads: Sequence[int]
) -> Iterator[str]:
    on_path = set()
    for before, now in zip(given, heads, strict=True):
        while before != now:
            on_path.add(before)
            before = given[before - 1]
    rows = zip(relations, given, heads, strict=True)
    for word, (relation, before, now) in enumerate(rows, start=1):
        text = _escaped(relation)
        if before != now:
            text += LIFTED + _escaped(relations[before - 1])
        yield text + ON_PATH if word in on_path else text


class _LiftMark(NamedTuple):
    """What an encoded relation says, with that of the head from which the word was lifted."""

    relation: str
    lifted_from: str | None
    on_path: bool


@lru_cache(maxsize=10_000)
def _escaped(relation: str) -> str:
    return _SPECIAL.sub(lambda found: ESCAPE + found[0], relation)


@lru_cache(maxsize=10_000)
def _read_relation(relation: str) -> _LiftMark | None:
    """None where it breaks the notation."""
    found = _ENCODED.fullmatch(relation)
    if found is None:
        return None
    plain, head = (text and _ESCAPED.sub(r"\1", text) for text in found.groups()[:2])
    return _LiftMark(plain, head, found[3] is not None)


class _Deprojectivizer:
    """A tree while its lifted words are moved down again; words from 1, and the root is 0."""

    def __init__(self, heads: Sequence[int], marks: Sequence[_LiftMark]) -> None:
        self.heads = [0, *heads]
        self.marks = [_LiftMark("", None, False), *marks]
        self.below = _descendants(heads)
        self.dependents, _ = _top_down(heads)

    def heads_put_back(self) -> list[int]:
        # From the root down: words that a lifted one has to go through are back before it.
        settled = [False] * len(self.heads)
        reached = [0]
        for head in reached:
            for word in sorted(self.dependents[head]):
                if self.marks[word].lifted_from is not None and not settled[word]:
                    settled[word] = True
                    self._lower(word)
            reached += self.dependents[head]
        return self.heads[1:]

    def _lower(self, word: int) -> None:
        """Move a word to the best of the words that fit, if there is any."""
        best = min(self._ranked(word, True), default=None) or min(
            self._ranked(word, False), default=None
        )
        if best is None:
            return
        target = best[-1]
        self.dependents[self.heads[word]].remove(word)
        self.dependents[target].append(word)
        old, self.heads[word] = self.heads[word], target
        while target != old:
            self.below[target] |= self.below[word]
            target = self.heads[target]

    def _ranked(self, word: int, path_only: bool) -> Iterator[tuple[int, ...]]:
        """The words that fit below the head of a word, as what they are preferred by. The least
        goes first: whether others on the path depend on it (if only words on the path are asked
        for), whether the arc would be projective, the depth, the distance, the number."""
        wanted = self.marks[word].lifted_from
        level, depth = [self.heads[word]], 0
        while level:
            depth += 1
            reached = []
            for head in level:
                dependents = [
                    other
                    for other in self.dependents[head]
                    if other != word and (not path_only or self.marks[other].on_path)
                ]
                reached += dependents
                if depth > 1 and self.marks[head].relation == wanted:
                    seen = self.below[head] | self.below[word]
                    crosses = bool(_between(word, head) & ~seen)
                    inner = path_only and bool(dependents)
                    yield inner, not crosses, depth, abs(word - head), head
            level = reached
