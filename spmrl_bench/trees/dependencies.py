"""A dependency tree as frozen arrays, and what makes a list of heads a tree.

Parsers and conversions produce heads that form no tree: a cycle, two roots, a head beyond the
sentence. Scorers that do not look count such output as any other. A :class:`DependencyTree`
that exists is a tree.

Words are numbered from 1 as in treebank files, and head 0 is the root.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from spmrl_bench.errors import TreeError
from spmrl_bench.trees.tree import frozen

#: How many words may have head 0: exactly one, or at least one.
Roots = Literal["one", "several"]


class HeadFault(NamedTuple):
    """Why heads form no tree; ``word`` is the number of a word that shows it, from 1."""

    word: int
    problem: str


@dataclass(frozen=True, slots=True, eq=False)
class DependencyTree:
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
        """A checked tree.

        Raises:
            TreeError: there are no words, the lengths differ, or the heads form no tree.
        """
        lengths = [len(words), len(tags), len(heads), len(relations)]
        if not words or len(set(lengths)) > 1:
            raise TreeError(
                "expected as many words as tags, heads and relations, and at least one, found"
                f" {', '.join(map(str, lengths))}"
            )
        fault = head_fault(heads, roots)
        if fault is not None:
            raise TreeError(f"word {fault.word}: {fault.problem}")
        return cls(tuple(words), tuple(tags), frozen(heads), tuple(relations))

    def __len__(self) -> int:
        """Number of words."""
        return len(self.words)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, DependencyTree):
            return NotImplemented
        return (
            self.words == other.words
            and self.tags == other.tags
            and np.array_equal(self.heads, other.heads)
            and self.relations == other.relations
        )

    def __hash__(self) -> int:
        return hash((self.words, self.tags, self.heads.tobytes(), self.relations))


def head_fault(heads: Sequence[int], roots: Roots = "one") -> HeadFault | None:
    """The first reason why ``heads`` (0 = root, words from 1) form no tree, or None.

    Time and memory are linear in the number of words, whatever the depth of the tree.
    """
    n = len(heads)
    for word, head in enumerate(heads, start=1):
        if not 0 <= head <= n:
            return HeadFault(word, f"head {head} is not one of 0..{n}")
    cycle = _cycle(heads)
    if cycle:
        shown = " -> ".join(map(str, [*cycle[:9], *(["..."] if len(cycle) > 9 else []), cycle[0]]))
        return HeadFault(cycle[0], f"the heads form a cycle: {shown}")
    if roots == "one":
        found = [word for word, head in enumerate(heads, start=1) if head == 0]
        if len(found) > 1:
            return HeadFault(
                found[1], f"a second root; {len(found)} words have head 0, expected one"
            )
    return None


def _cycle(heads: Sequence[int]) -> list[int]:
    """The words of the first cycle, each followed by its head; empty where there is none."""
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
