"""New training sentences out of old ones: a constituent gives way to one with the same label, drawn
from all training sentences (Shi, Livescu & Gimpel 2021, Findings of ACL).

A label is the chain of nonterminals over a span, as the chart parser has it: no new one comes up.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence, Sized
from itertools import islice, takewhile

import numpy as np
from numpy.typing import NDArray

from spmrl_bench.errors import TreeError
from spmrl_bench.trees.parse import Parse
from spmrl_bench.trees.tree import Label, Tree, collapsed_spans

#: A new sentence has no more words than this, or than the one that it is made of.
MAX_WORDS = 60

Row = tuple[int, int, Label]


def places_of(number: int, example: Sized) -> NDArray[np.int32]:
    """Where the words of a training sentence stand, int32 ``[n, 2]``: its number, and from 0."""
    words = np.arange(len(example), dtype=np.int32)
    return np.stack((np.full_like(words, number), words), axis=1)


class Substitution:
    """Training sentences, and what may stand in place of their constituents."""

    def __init__(self, examples: Sequence[Parse]) -> None:
        """Raise a TreeError if a sentence has no tree, or has dependencies, which would not fit."""
        self._examples = examples
        self._rows: list[list[Row]] = []
        self._donors: dict[Label, list[tuple[int, int]]] = defaultdict(list)
        for number, example in enumerate(examples):
            if example.tree is None or example.dependencies is not None:
                raise TreeError(
                    "train.substitution exchanges constituents, and this kind of parser learns "
                    f"from {' and '.join(example.layers)}: leave the setting out"
                )
            rows = list(collapsed_spans(example.tree))
            self._rows.append(rows)
            for place, (_, _, label) in enumerate(rows[1:], 1):
                self._donors[label].append((number, place))

    def __call__(self, number: int, random: np.random.Generator) -> tuple[Parse, NDArray[np.int32]]:
        """Return a sentence with another constituent in place of one of its own below the root, and
        the place of each word (:func:`places_of`); the sentence itself, where it has none or would
        get too long."""
        example, rows = self._examples[number], self._rows[number]
        own = places_of(number, example)
        if len(rows) < 2:
            return example, own
        place = int(random.integers(1, len(rows)))
        start, end, label = rows[place]
        donors = self._donors[label]
        other, donor_place = donors[int(random.integers(len(donors)))]
        donor_rows, donor = self._rows[other], self._examples[other]
        first, last, _ = donor_rows[donor_place]
        longer = (last - first) - (end - start)
        if len(example) + longer > max(MAX_WORDS, len(example)):
            return example, own
        after = place + _inside(rows, place)
        inner = donor_rows[donor_place : donor_place + _inside(donor_rows, donor_place)]
        # Of the rows that stay, one either lies beside the constituent or is around it.
        moved = [(i + longer if i >= end else i, j + longer if j >= end else j, name)
                 for i, j, name in (*rows[:place], *rows[after:])]  # fmt: skip
        put = [(i - first + start, j - first + start, name) for i, j, name in inner]
        words, tags = (
            (*mine[:start], *theirs[first:last], *mine[end:])
            for mine, theirs in ((example.words, donor.words), (example.tags, donor.tags))
        )
        chains = (*moved[:place], *put, *moved[place:])
        made = Tree.build(words, tags, [(i, j, one) for i, j, c in chains for one in c])
        places = own[:start], places_of(other, donor)[first:last], own[end:]
        return Parse.of(made), np.concatenate(places)


def _inside(rows: Sequence[Row], place: int) -> int:
    """How many rows a constituent has, itself among them; they follow each other."""
    end = rows[place][1]
    return sum(1 for _ in takewhile(lambda row: row[0] < end, islice(rows, place, None)))
