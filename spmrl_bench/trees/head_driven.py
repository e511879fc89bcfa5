"""Head-driven structures: the constituents and the dependencies of a sentence as one tree of spans.

Zhou & Zhao (2019), Head-Driven Phrase Structure Grammar Parsing on Penn Treebank, section 2, put
the two trees of a sentence into one: every constituent has a head word, whose governor lies
outside it. A chart finds such a structure by combining neighbouring parts, the head word of one
part governing that of the other; the dependent part must be one word or a labelled span. What
can be found, and learned, is therefore a structure in which

- a labelled span covers the sentence;
- of the words of a labelled span one, its head word, has its governor outside;
- the children of a labelled span (the largest labelled spans within it, and the words that are
  in none of these) are governed by its head word, but for the child that holds it.

Annotation keeps the first rule, or is refused. It is made to keep the others:

**Sub-heads.** Where one child governs another and neither holds the head word, both are put under
an artificial node with the label :data:`SUB_HEAD`. In the noun phrase ``paper and wood products``
with the head word ``products``, these are ``paper`` and what it governs, ``and``. Any number of
children may hang together, in groups within groups.

**Head words.** The head word of a constituent is the one of its words that is nearest to the root
of the dependency tree; of several the last. Where one word only is governed from outside,
that is the one. Where several are, it is one that no other word of the constituent governs,
directly or not, so that no dependency is turned around. The others are moved below it.

**Heads.** A word whose governor cannot be reached, because only the head word of a constituent is
seen from outside it, is moved to a word that can be: see :class:`Change`. Constituents never
change.

The public code of the paper takes as head word the last of the children governed from outside,
leaves the others as they are (the paper says that 50 heads are wrong in the Penn Treebank), makes
groups of one level, and fails where a group would have gaps or a group within it.
"""

from __future__ import annotations

from bisect import bisect
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import IntEnum
from typing import Self

import numpy as np
from numpy.typing import NDArray

from spmrl_bench.errors import TreeError
from spmrl_bench.trees.chains import LabelRow, label_rows, written_out
from spmrl_bench.trees.dependencies import DependencyTree, head_fault
from spmrl_bench.trees.parse import Parse
from spmrl_bench.trees.projective import lifted
from spmrl_bench.trees.tree import Tree, frozen

#: The label, on its own, of an artificial node over children that hang together.
SUB_HEAD = "<sub-head>"

#: ``(start, end, head word)`` of a child: its half-open span, and the number, from 1, of a word.
Part = tuple[int, int, int]


class Change(IntEnum):
    """Why the head of a word is not the given one.

    Where several apply, the first in this order of what happened to the word.
    """

    NONE = 0
    """It is the given one."""
    SHARED_GOVERNOR = 1
    """Several words of a constituent are governed from outside, this and the head word of the
    constituent by the same word; it is moved to the head word."""
    OTHER_GOVERNOR = 2
    """Several words of a constituent are governed from outside, this one by another word than the
    head word of the constituent; it is moved to the head word."""
    LOST_HEAD = 3
    """Its governor is, or is governed by, one of several such words that did not become the head
    word of a constituent beside it; it is moved to the head word."""
    INSIDE = 4
    """Its governor is within a constituent beside it and governed by the head word of that,
    directly or not; it is lifted to the head word."""
    CROSSING = 5
    """The children that hang together would have a gap; it is lifted to the governor of its
    governor until they have none, as in :func:`~spmrl_bench.trees.projective.lifted`."""


@dataclass(frozen=True, slots=True, eq=False)
class HeadDriven:
    """A head-driven structure of ``n`` words, as a chart can find and a parser learn it.

    Attributes:
        rows: ``(start, end, label)`` of the labelled spans in pre-order, one for a span: labels
            are unary chains (:mod:`spmrl_bench.trees.chains`), or ``(SUB_HEAD,)``. The first is
            over all words; neither it nor any over one word is a sub-head.
        row_heads: int32 ``[rows]``, read-only: the number, from 1, of the head word of each.
        heads: int32 ``[n]``, read-only: the head of each word, from 1, and 0 for the one root.
        changes: int8 ``[n]``, read-only: the :class:`Change` of the head of each word.
    """

    rows: tuple[LabelRow, ...]
    row_heads: NDArray[np.int32]
    heads: NDArray[np.int32]
    changes: NDArray[np.int8]

    @classmethod
    def build(cls, rows: Iterable[LabelRow], heads: Sequence[int]) -> Self:
        """The structure of labelled spans in pre-order and heads, checked; nothing is changed.

        Raises:
            TreeError: the spans are not nested, in pre-order and each there once, one with a label
                of its own, the first over all words; a sub-head is over one or all words; the
                heads form no tree; a span has several head words; a child is not governed by the
                head word of its span.
        """
        rows, heads = tuple(rows), list(heads)
        n = len(heads)
        words = [""] * n
        nested = tuple(label_rows(Tree.build(words, words, written_out(rows))))
        if nested != rows or not rows or rows[0][:2] != (0, n):
            raise TreeError(
                f"expected labelled spans that differ, the first of them over all {n} words, found"
                f" {', '.join(map(_shown, rows)) or 'none'}"
            )
        for start, end, label in rows:
            if SUB_HEAD in label and (label != (SUB_HEAD,) or end - start in (1, n)):
                raise TreeError(
                    f"{_shown((start, end, label))}: '{SUB_HEAD}' stands alone, and neither over"
                    f" one word nor over all {n}"
                )
        fault = head_fault(heads)
        if fault is not None:
            raise TreeError(f"word {fault.word}: {fault.problem}")
        row_heads = [0] * len(rows)
        for row, parts in bottom_up(rows, row_heads):
            start, end, _ = rows[row]
            outward = [word for _, _, word in parts if not start < heads[word - 1] <= end]
            if len(outward) > 1:
                raise TreeError(
                    f"{_shown(rows[row])} has several head words:"
                    f" {', '.join(map(str, outward))}; expected one"
                )
            row_heads[row] = head = outward[0]  # there is one, as heads have no cycle
            for word in (word for _, _, word in parts if word != head):
                if heads[word - 1] != head:
                    raise TreeError(
                        f"{_shown(rows[row])} has the head word {head}, but its child with the head"
                        f" word {word} is governed by {heads[word - 1]}; expected {head}"
                    )
        return cls(rows, frozen(row_heads), frozen(heads), _frozen_changes([0] * n))

    def __len__(self) -> int:
        """Number of words."""
        return len(self.heads)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, HeadDriven):
            return NotImplemented
        return (
            self.rows == other.rows
            and np.array_equal(self.row_heads, other.row_heads)
            and np.array_equal(self.heads, other.heads)
            and np.array_equal(self.changes, other.changes)
        )

    def __hash__(self) -> int:
        return hash((self.rows, self.heads.tobytes(), self.changes.tobytes()))

    @property
    def sub_heads(self) -> int:
        """Number of artificial nodes."""
        return sum(label == (SUB_HEAD,) for _, _, label in self.rows)

    def changed(self) -> Counter[Change]:
        """How many heads are not the given ones, by cause."""
        return Counter(Change(change) for change in self.changes.tolist() if change)


def head_driven(tree: Tree, dependencies: DependencyTree) -> HeadDriven:
    """The head-driven structure of a sentence, by the rules at the top of this module.

    If some structure has all constituents of the tree and all its heads, this is the one of those
    with the fewest sub-heads, and no head is changed. Several roots are several words governed
    from outside the sentence.

    Raises:
        TreeError: the trees are over different words, no constituent covers the whole sentence, or
            one has the name that is reserved for sub-heads.
    """
    Parse.of(tree, dependencies)
    if SUB_HEAD in tree.labels:
        raise TreeError(
            f"a constituent has the label '{SUB_HEAD}', which is reserved for artificial nodes:"
            " rename it by a transform"
        )
    rows = list(label_rows(tree))
    if not rows or rows[0][:2] != (0, len(tree)):
        raise TreeError(
            "no constituent covers the whole sentence, so it has no head-driven structure "
            f"(it begins: {' '.join(tree.words[:8])}). Add a root transform to the manifest"
        )
    attachment = _Attachment(dependencies.heads.tolist())
    row_heads = [0] * len(rows)
    groups: list[Part] = []
    for row, parts in bottom_up(rows, row_heads):
        row_heads[row] = attachment.attach(parts, groups)
    if groups:
        both = list(zip(rows, row_heads, strict=True))
        both += [((start, end, (SUB_HEAD,)), head) for start, end, head in groups]
        # No two have the same span: a group holds two children at least, and lacks another.
        both.sort(key=lambda pair: (pair[0][0], -pair[0][1]))
        rows, row_heads = [row for row, _ in both], [head for _, head in both]
    return HeadDriven(
        tuple(rows),
        frozen(row_heads),
        frozen(attachment.heads[1:]),
        _frozen_changes(attachment.changes[1:]),
    )


def attach_within_constituents(tree: Tree, dependencies: DependencyTree) -> DependencyTree:
    """Move the heads that no head-driven structure with these constituents can have.

    In a constituent with several words governed from outside, all but the one nearest to the root
    (the last of several) are moved to that one; a word governed by what is not the head word of a
    constituent beside it is moved to the head word; and a word is lifted to the governor of its
    governor where the children of a constituent that hang together would have a gap. Relations
    stay with the words. Dependencies that agree with the constituents stay as they are.

    Raises:
        TreeError: as :func:`head_driven`.
    """
    heads = head_driven(tree, dependencies).heads
    same = np.array_equal(heads, dependencies.heads)
    return dependencies if same else replace(dependencies, heads=heads)


def several_headed(tree: Tree, dependencies: DependencyTree) -> list[LabelRow]:
    """The constituents, unary chains as one, of which several words are governed from outside."""
    heads = dependencies.heads.tolist()
    return [
        (start, end, label)
        for start, end, label in label_rows(tree)
        if sum(not start < head <= end for head in heads[start:end]) > 1
    ]


def to_parse(
    words: Sequence[str],
    tags: Sequence[str],
    rows: Iterable[LabelRow],
    heads: Sequence[int],
    relations: Sequence[str],
) -> Parse:
    """The two trees of a head-driven structure: sub-heads go, and their children stay.

    Args:
        words: the ``n`` words.
        tags: their ``n`` tags.
        rows: ``(start, end, label)`` in pre-order; sub-heads may be anywhere among them.
        heads: the head of each word, from 1, and 0 for the root.
        relations: the relation of each word to its head.

    Raises:
        TreeError: the spans cross, the heads form no tree, or the lengths differ.
    """
    constituents = [row for row in written_out(rows) if row[2] != SUB_HEAD]
    return Parse.of(
        Tree.build(words, tags, constituents), DependencyTree.build(words, tags, heads, relations)
    )


class _Attachment:
    """The heads of a sentence while the children of its constituents are put in order."""

    def __init__(self, heads: list[int]) -> None:
        """``heads`` of the words as given; number 0 of the lists below is the root."""
        self.given = [0, *heads]
        self.heads = [0, *heads]
        self.changes = [Change.NONE] * len(self.given)
        self.depths = _depths(self.given)

    def attach(self, parts: Sequence[Part], groups: list[Part]) -> int:
        """The head word of the constituent with these children; ``groups`` gets its sub-heads."""
        given, depths = self.given, self.depths
        head = parts[0][2]
        for _, _, word in parts:
            if depths[word] <= depths[head]:
                head = word
        for _, _, word in parts:
            if given[word] != head and word != head:
                self._rearrange(parts, head, groups)
                break
        return head

    def _rearrange(self, parts: Sequence[Part], head: int, groups: list[Part]) -> None:
        """Attach children to each other: a tree of them, in which what hangs together touches."""
        words = [word for _, _, word in parts]
        number_of_head = words.index(head) + 1
        starts = [start for start, _, _ in parts]
        above = []  # the number, from 1, of the child that each child hangs from
        for word in words:
            governor = self.given[word]
            if word == head:
                above.append(0)
            elif parts[0][0] < governor <= parts[-1][1]:
                # Never the child itself: a governor is nearer to the root than any head word.
                above.append(number := bisect(starts, governor - 1))
                self.changes[word] = self._seen(governor, parts[number - 1])
            else:
                above.append(number_of_head)
                shared = governor == self.given[head]
                self.changes[word] = Change.SHARED_GOVERNOR if shared else Change.OTHER_GOVERNOR
        projective = lifted(above)
        first, last = list(range(len(parts))), list(range(len(parts)))
        # A child hangs from one nearer to the root, or from the one that holds the head word.
        for child in sorted(first, key=lambda child: -self.depths[words[child]]):
            word, number = words[child], projective[child]
            if number:
                self.heads[word] = words[number - 1]
                first[number - 1] = min(first[number - 1], first[child])
                last[number - 1] = max(last[number - 1], last[child])
                if number != above[child] and self.changes[word] is Change.NONE:
                    self.changes[word] = Change.CROSSING
        groups += [
            (starts[low], parts[high][1], word)
            for word, low, high in zip(words, first, last, strict=True)
            if low < high and word != head
        ]

    def _seen(self, governor: int, part: Part) -> Change:
        """Whether a governor in a child is its head word, and if not, why a word is moved."""
        start, end, head = part
        if governor == head:
            return Change.NONE
        while start < (above := self.given[governor]) <= end:
            governor = above
        return Change.INSIDE if governor == head else Change.LOST_HEAD


def bottom_up(
    rows: Sequence[LabelRow], row_heads: Sequence[int]
) -> Iterator[tuple[int, list[Part]]]:
    """Number and children of each of the rows, which are in pre-order, children before parents.

    ``row_heads`` has the head word of a row by the time that the next row is asked for.
    """
    finished: list[Part] = []  # spans without a parent so far, the leftmost last
    for row in range(len(rows) - 1, -1, -1):
        start, end, _ = rows[row]
        parts: list[Part] = []
        position = start
        while finished and finished[-1][0] < end:
            part = finished.pop()
            parts += [(word, word + 1, word + 1) for word in range(position, part[0])]
            parts.append(part)
            position = part[1]
        parts += [(word, word + 1, word + 1) for word in range(position, end)]
        yield row, parts
        finished.append((start, end, row_heads[row]))


def _depths(heads: Sequence[int]) -> list[int]:
    """How many steps each word is from the root, the number 0."""
    depths = [0] + [-1] * (len(heads) - 1)
    for word in range(1, len(heads)):
        path = []
        while depths[word] < 0:
            path.append(word)
            word = heads[word]
        depth = depths[word]
        for below in reversed(path):
            depths[below] = depth = depth + 1
    return depths


def _frozen_changes(changes: Sequence[int]) -> NDArray[np.int8]:
    array = np.array(changes, dtype=np.int8)
    array.flags.writeable = False
    return array


def _shown(row: LabelRow) -> str:
    start, end, label = row
    return f"[{start}, {end}) of '{'+'.join(label)}'"
