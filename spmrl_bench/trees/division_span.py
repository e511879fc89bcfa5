"""Division span: head words written into the labels of constituents.

The second representation of Zhou & Zhao (2019), Head-Driven Phrase Structure Grammar Parsing on
Penn Treebank, section 2.2. Each constituent is divided after the child that holds its head word,
and the labels of the children to the left of that border get a mark, so that the head is in the
last child with a mark. A chart that knows only labels then finds heads too:

    (S (NP the cat) (VP sat (PP on (NP it))))       heads: the <- cat <- sat -> on -> it

    >S ---- >NP ---- > the
     |       |------ > cat
     |----- >VP ---- > sat
             |-------- PP ---- > on
                       |-------- NP -- it

Here > is the mark. A word that is no constituent has a label of it alone, or no label.

As in the public code, and where the paper leaves it open: the child over all words is marked, too
(the sentence hangs from the root); the only word of a constituent is not, as there is nothing to
tell; of children none of which is marked, which no tree has but a chart may find, the first is
the head.

It is made from a :class:`~spmrl_bench.trees.head_driven.HeadDriven`, with its sub-heads and moved
heads, and loses nothing more: a structure goes there and back. Relations are not part of it.
"""

from __future__ import annotations

from collections.abc import Iterable

from spmrl_bench.errors import TreeError
from spmrl_bench.trees.chains import LabelRow
from spmrl_bench.trees.head_driven import HeadDriven, bottom_up

#: The mark: before the names of a label, or alone over a word.
TO_HEAD = "<to-head>"


def divided(structure: HeadDriven) -> tuple[LabelRow, ...]:
    """The labelled spans of the division span, in pre-order; marked words are rows, too.

    Raises:
        TreeError: a constituent has the name that is reserved for the mark.
    """
    row_heads = structure.row_heads.tolist()
    innermost = [-1] * len(structure)  # the row so far that each word is in
    found: list[LabelRow] = []
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


def undivided(rows: Iterable[LabelRow], n: int) -> tuple[list[LabelRow], list[int]]:
    """The labelled spans without marks, sub-heads among them, and the head of each word.

    ``to_parse(words, tags, *undivided(rows, n), relations)`` is the sentence. A mark alone over
    several words, which no structure has, is passed over; where no span covers the sentence, what
    stands beside each other are the children of one that does.

    Args:
        rows: ``(start, end, label)`` in pre-order, nested, one for a span: those of :func:`divided`
            or what a chart made of such labels.
        n: number of words.
    """
    marked: set[tuple[int, int]] = set()
    kept: list[LabelRow] = []
    for start, end, label in rows:
        names = label[1:] if label[:1] == (TO_HEAD,) else label
        if names is not label:
            marked.add((start, end))
        if names:
            kept.append((start, end, names))
    whole = bool(kept) and kept[0][:2] == (0, n)
    nodes = kept if whole else [(0, n, ()), *kept]
    heads = [0] * n
    row_heads = [0] * len(nodes)
    for row, parts in bottom_up(nodes, row_heads):
        head = parts[0][2]
        for start, end, word in parts:
            if (start, end) in marked:
                head = word
        row_heads[row] = head
        for _, _, word in parts:
            if word != head:
                heads[word - 1] = head
    return kept, heads
