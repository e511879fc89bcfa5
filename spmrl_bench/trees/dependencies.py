"""A dependency tree as read-only arrays, and what makes a list of heads a tree.

Parsers and conversions produce heads that form no tree: a cycle, two roots, a head beyond the
sentence. A :class:`DependencyTree` that exists is a tree. Words are numbered from 1 as in treebank
files, and head 0 is the root.

Treebanks of the same sentences do not always cut them into the same words. Universal Dependencies
make two words of an amalgam (French *du*: *de* and *le*) and several of a compound that trees have
as one word. :func:`merge_words` and :func:`split_words` bring dependencies to the words of trees.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from spmrl_bench.errors import TreeError
from spmrl_bench.trees.tree import ByContent, readonly_int32

#: How many words may have head 0: exactly one, or at least one.
Roots = Literal["one", "several"]


class HeadFault(NamedTuple):
    """Why heads form no tree; ``word`` is the number of a word that shows it, from 1."""

    word: int
    problem: str


@dataclass(frozen=True, slots=True, eq=False)
class DependencyTree(ByContent):
    """Words, tags, heads and relations of one sentence; build with :meth:`build`.

    Attributes:
        words: the ``n`` words.
        tags: the ``n`` part-of-speech tags.
        heads: int32 array ``[n]``, read-only: ``heads[i]`` is the number, from 1, of the head
            of word ``i + 1``, or 0 for a root. The tree may be non-projective.
        relations: the ``n`` relations of the words to their heads.
    """

    words: tuple[str, ...]
    tags: tuple[str, ...]
    heads: NDArray[np.int32]
    relations: tuple[str, ...]

    @classmethod
    def build(
        cls,
        words: Sequence[str],
        tags: Sequence[str],
        heads: Sequence[int],
        relations: Sequence[str],
        *,
        roots: Roots = "one",
    ) -> DependencyTree:
        """Return the tree; a TreeError if it has no words, lengths differ, or heads form none."""
        lengths = [len(words), len(tags), len(heads), len(relations)]
        if not words or len(set(lengths)) > 1:
            raise TreeError(
                "expected as many words as tags, heads and relations, and at least one, found"
                f" {', '.join(map(str, lengths))}"
            )
        fault = head_fault(heads, roots)
        if fault is not None:
            raise TreeError(f"word {fault.word}: {fault.problem}")
        return cls(tuple(words), tuple(tags), readonly_int32(heads), tuple(relations))

    def __len__(self) -> int:
        """Number of words."""
        return len(self.words)


def head_fault(heads: Sequence[int], roots: Roots = "one") -> HeadFault | None:
    """Return the first reason why ``heads`` (0 = root, words from 1) form no tree, or None.

    Time and memory are linear in the number of words, whatever the depth of the tree.
    """
    n = len(heads)
    for word, head in enumerate(heads, start=1):
        if not 0 <= head <= n:
            return HeadFault(word, f"head {head} is not one of 0..{n}")
    cycle = first_cycle(heads)
    if cycle:
        shown = " -> ".join(map(str, [*cycle[:9], *(["..."] if len(cycle) > 9 else []), cycle[0]]))
        return HeadFault(cycle[0], f"the heads form a cycle: {shown}")
    found = [word for word, head in enumerate(heads, start=1) if head == 0]
    if roots == "one" and len(found) > 1:
        return HeadFault(found[1], f"a second root; {len(found)} words have head 0, expected one")
    return None


def first_cycle(heads: Sequence[int]) -> list[int]:
    """Return the words of the first cycle, each before its head; none where there is none."""
    reached = [0] * (len(heads) + 1)  # the word from which the walk came that reached a word
    for start in range(1, len(heads) + 1):
        word = start
        while word and not reached[word]:
            reached[word] = start
            word = heads[word - 1]
        if word and reached[word] == start:
            cycle = [word]
            while (word := heads[word - 1]) != cycle[0]:
                cycle.append(word)
            return cycle
    return []


def depths(heads: Sequence[int]) -> list[int]:
    """Return the number of arcs between each word and the root, for ``heads`` that form a tree."""
    depth = [0] * (len(heads) + 1)  # of the root and of words 1 to n; 0 for those not known yet
    for word in range(1, len(heads) + 1):
        path = []
        while word and not depth[word]:
            path.append(word)
            word = heads[word - 1]
        for steps, passed in enumerate(reversed(path), start=1):
            depth[passed] = depth[word] + steps
    return depth[1:]


def merge_words(tree: DependencyTree, sizes: Sequence[int], words: Sequence[str]) -> DependencyTree:
    """Return the tree with neighbouring words merged into ``words``.

    Each is made of as many words of the tree as ``sizes`` say, at least one. The part nearest to
    the root (the first of several) gives the word its head, relation and tag; what hung from any
    part hangs from the word. No cycle can come of that: the part that is chosen hangs from a word
    nearer to the root than all parts, so every step upwards leads to a word whose chosen part is
    nearer to the root than that of the word before.
    """
    heads = tree.heads.tolist()
    depth = depths(heads)
    word_of = [0, *(number for number, size in enumerate(sizes, 1) for _ in range(size))]
    chosen = [
        min(range(end - size, end), key=depth.__getitem__)
        for size, end in zip(sizes, accumulate(sizes), strict=True)
    ]
    return DependencyTree(
        tuple(words),
        tuple(tree.tags[part] for part in chosen),
        readonly_int32([word_of[heads[part]] for part in chosen]),
        tuple(tree.relations[part] for part in chosen),
    )


def split_words(
    tree: DependencyTree, sizes: Sequence[int], words: Sequence[str], relation: str
) -> DependencyTree:
    """Return the tree with words divided (*ex-* and *ministre*) into the parts ``words``.

    Each has as many parts as ``sizes`` say, at least one. The last stands for the word, and those
    before it hang from it by ``relation``.
    """
    last = [0, *accumulate(sizes)]  # of each word its last part, from 1; 0 for the root
    tags, heads, relations = [], [], []
    for word, (size, head) in enumerate(zip(sizes, tree.heads.tolist(), strict=True)):
        tags += [tree.tags[word]] * size
        heads += [last[word + 1]] * (size - 1) + [last[head]]
        relations += [relation] * (size - 1) + [tree.relations[word]]
    return DependencyTree(tuple(words), tuple(tags), readonly_int32(heads), tuple(relations))
