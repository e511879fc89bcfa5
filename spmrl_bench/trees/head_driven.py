"""Head-driven structures: the constituents and the dependencies of a sentence as one tree of spans.

Zhou & Zhao (2019), Head-Driven Phrase Structure Grammar Parsing on Penn Treebank, section 2, put
the two trees of a sentence into one: every constituent has a head word, whose own head lies
outside it. A chart combines neighbouring parts, the head word of one being the head of that of the
other; the dependent part must be one word or a labelled span. It finds structures in which

- a labelled span covers the sentence;
- of the words of a labelled span one, its head word, has its head outside;
- the children of a labelled span (the largest labelled spans within it, and the words that are
  in none of these) hang from its head word, but for the child that holds it.

Annotation keeps the first rule, or is refused. It is made to keep the others:

**Sub-heads.** Where one child hangs from another and neither holds the head word, both are put
under an artificial node with the label :data:`SUB_HEAD`. In the noun phrase ``paper and wood
products`` with the head word ``products``, these are ``paper`` and its dependent, ``and``. Any
number of children may hang together, in groups within groups.

**Head words.** The head word of a constituent is the one of its words that is nearest to the root
of the dependency tree; of several the last. No other word of the constituent is above it, so no
dependency is turned around. Others with their head outside are moved below it.

**Heads.** A word whose head is inside another constituent and not its head word is moved to that
head word, or, where the children that hang together would have a gap, upwards until they have none
(:func:`~spmrl_bench.trees.projective.projectivize`). Constituents never change. ``docs/lal.md``
compares all that with the public code.

**Division span.** The second representation of the paper (section 2.2) writes head words into
labels, so that a chart that knows only labels finds heads too: each constituent is divided after
the child that holds its head word, and the labels of the children up to that border get the mark
:data:`TO_HEAD`. The head is in the last child with a mark:

    (S (NP the cat) (VP sat (PP on (NP it))))       heads: the <- cat <- sat -> on -> it

    >S ---- >NP ---- > the
     |       |------ > cat
     |----- >VP ---- > sat
             |-------- PP ---- > on
                       |-------- NP -- it

Here > is the mark. A word that is no constituent has a label of it alone, or no label. As in the
public code, and where the paper leaves it open: the child over all words is marked, too; the only
word of a constituent is not; of children none of which is marked, which no tree has but a chart
may find, the first is the head. Only relations are lost.
"""

from __future__ import annotations

from bisect import bisect
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from spmrl_bench.errors import TreeError
from spmrl_bench.trees.dependencies import DependencyTree, depths
from spmrl_bench.trees.parse import Parse
from spmrl_bench.trees.projective import projectivize
from spmrl_bench.trees.tree import (
    Label,
    LabeledSpan,
    Tree,
    collapsed_spans,
    expand_chains,
    readonly_int32,
)

#: The label, on its own, of an artificial node over children that hang together.
SUB_HEAD = "<sub-head>"
#: The mark of the division span: before the names of a label, or alone over a word.
TO_HEAD = "<to-head>"

#: ``(start, end, head word)`` of a child: its half-open span, and the number, from 1, of a word.
Part = tuple[int, int, int]


@dataclass(frozen=True, slots=True, eq=False)
class HeadDriven:
    """A head-driven structure of ``n`` words, as a chart can find and a parser learn it."""

    # `(start, end, label)` of the labelled spans in pre-order, the first over all words, one for a
    # span: labels are unary chains, or `(SUB_HEAD,)`.
    rows: tuple[LabeledSpan, ...]
    row_heads: tuple[int, ...]  # the number, from 1, of the head word of each row
    # Int32 `[n]`, read-only: the head of each word, from 1, and 0 for the one root.
    heads: NDArray[np.int32]


def head_driven(tree: Tree, dependencies: DependencyTree) -> HeadDriven:
    """Return the head-driven structure of a sentence, by the rules at the top of this module.

    If some structure has all constituents of the tree and all its heads, this is the one of those
    with the fewest sub-heads. Several roots are several words with a head outside the sentence.
    Raise a TreeError if the trees are over different words, no constituent covers the whole
    sentence, or one has the name that is reserved for sub-heads.
    """
    Parse.of(tree, dependencies)
    if SUB_HEAD in tree.labels:
        raise TreeError(
            f"a constituent has the label '{SUB_HEAD}', which is reserved for artificial nodes:"
            " rename it by a transform"
        )
    rows = list(collapsed_spans(tree))
    if not rows or rows[0][:2] != (0, len(tree)):
        raise TreeError(
            "no constituent covers the whole sentence, so it has no head-driven structure "
            f"(it begins: {' '.join(tree.words[:8])}). Add a root transform to the manifest"
        )
    given = [0, *dependencies.heads.tolist()]
    depth = [0, *depths(given[1:])]
    heads = given.copy()
    row_heads = [0] * len(rows)
    groups: list[Part] = []
    for row, parts in bottom_up(rows, row_heads):
        words = [word for _, _, word in parts]
        row_heads[row] = head = min(reversed(words), key=depth.__getitem__)
        if any(given[word] != head and word != head for word in words):
            groups += _attach_children(parts, head, given, depth, heads)
    both = list(zip(rows, row_heads, strict=True))
    both += [((start, end, (SUB_HEAD,)), head) for start, end, head in groups]
    # No two have the same span: a group holds two children at least, and lacks another.
    both.sort(key=lambda pair: (pair[0][0], -pair[0][1]))
    all_rows, all_heads = zip(*both, strict=True)
    return HeadDriven(all_rows, all_heads, readonly_int32(heads[1:]))


def _attach_children(
    parts: Sequence[Part], head: int, given: Sequence[int], depth: Sequence[int], heads: list[int]
) -> list[Part]:
    """Give the head words of children their ``heads``; return what hangs together."""
    words = [word for _, _, word in parts]
    starts = [start for start, _, _ in parts]
    above = []  # the number, from 1, of the child that each child hangs from
    for word in words:
        if word == head:
            above.append(0)
        elif parts[0][0] < given[word] <= parts[-1][1]:
            # Never the child itself: its head is nearer to the root than any head word.
            above.append(bisect(starts, given[word] - 1))
        else:
            above.append(words.index(head) + 1)
    above = projectivize(above)
    first, last = list(range(len(parts))), list(range(len(parts)))
    # A child hangs from one nearer to the root, or from the one that holds the head word.
    for child in sorted(first, key=lambda child: -depth[words[child]]):
        if above[child]:
            parent = above[child] - 1
            heads[words[child]] = words[parent]
            first[parent] = min(first[parent], first[child])
            last[parent] = max(last[parent], last[child])
    return [
        (starts[low], parts[high][1], word)
        for word, low, high in zip(words, first, last, strict=True)
        if low < high and word != head
    ]


def bottom_up(
    rows: Sequence[LabeledSpan], row_heads: Sequence[int]
) -> Iterator[tuple[int, list[Part]]]:
    """Yield number and children of each of the rows, which are in pre-order, children first.

    The caller puts the head word of a row into ``row_heads`` before asking for the next.
    """
    finished: list[Part] = []  # spans without a parent so far, the leftmost last
    for row in range(len(rows) - 1, -1, -1):
        position, end, _ = rows[row]
        parts: list[Part] = []
        while finished and finished[-1][0] < end:
            part = finished.pop()
            parts += [(word, word + 1, word + 1) for word in range(position, part[0])]
            parts.append(part)
            position = part[1]
        parts += [(word, word + 1, word + 1) for word in range(position, end)]
        yield row, parts
        finished.append((rows[row][0], end, row_heads[row]))


def to_parse(
    words: Sequence[str],
    tags: Sequence[str],
    rows: Iterable[LabeledSpan],
    heads: Sequence[int],
    relations: Sequence[str],
) -> Parse:
    """Return the two trees of a head-driven structure: sub-heads go, and their children stay.

    The ``rows`` are ``(start, end, label)`` in pre-order; ``heads`` count from 1, the root is 0.
    Raise a TreeError if the spans cross, the heads form no tree, or the lengths differ.
    """
    constituents = [row for row in expand_chains(rows) if row[2] != SUB_HEAD]
    return Parse.of(
        Tree.build(words, tags, constituents), DependencyTree.build(words, tags, heads, relations)
    )


def to_division_span(structure: HeadDriven) -> tuple[LabeledSpan, ...]:
    """Return the labelled spans of the division span in pre-order, marked words among them. Raise a
    TreeError if a constituent has the name that is reserved for the mark."""
    row_heads = structure.row_heads
    innermost = [-1] * len(structure.heads)  # the row so far that each word is in
    found: list[LabeledSpan] = []
    for row, (start, end, label) in enumerate(structure.rows):
        if TO_HEAD in label:
            raise TreeError(
                f"a constituent has the label '{TO_HEAD}', which is reserved for the mark of what"
                " stands left of a head: rename it by a transform"
            )
        above = innermost[start]
        marked = above < 0 or start < row_heads[above]
        found.append((start, end, (TO_HEAD, *label) if marked else label))
        innermost[start:end] = [row] * (end - start)
    for word, row in enumerate(innermost):
        start, end, _ = structure.rows[row]
        if word < row_heads[row] and end - start > 1:
            found.append((word, word + 1, (TO_HEAD,)))
    found.sort(key=lambda row: (row[0], -row[1]))
    return tuple(found)


def from_division_span(rows: Iterable[LabeledSpan], n: int) -> tuple[list[LabeledSpan], list[int]]:
    """Return the labelled spans without marks, sub-heads among them, and the head of each word.

    ``to_parse(words, tags, *from_division_span(rows, n), relations)`` is the sentence. ``rows``, of
    ``n`` words, are as those of :func:`to_division_span`, or what a chart made of such labels: a
    mark alone over several words is passed over; where no span covers the sentence, what stands
    beside each other are the children of one that does.
    """
    marked: set[tuple[int, int]] = set()
    kept: list[LabeledSpan] = []
    for start, end, label in rows:
        if label[:1] == (TO_HEAD,):
            marked.add((start, end))
            label = label[1:]
        if label:
            kept.append((start, end, label))
    nodes = kept if kept and kept[0][:2] == (0, n) else [(0, n, ()), *kept]
    heads = [0] * n
    row_heads = [0] * len(nodes)
    for row, parts in bottom_up(nodes, row_heads):
        head = next((part[2] for part in reversed(parts) if part[:2] in marked), parts[0][2])
        row_heads[row] = head
        for _, _, word in parts:
            if word != head:
                heads[word - 1] = head
    return kept, heads


def constituent(label: Label) -> Label:
    """Return the nonterminals of a label of the chart, without the mark of division spans."""
    return label[1:] if label[:1] == (TO_HEAD,) else label
