"""Where a score comes from: F1 by sentence length, label and span length, and without labels.

One F1 hides that a parser fails on long sentences or never finds a rare label. All breakdowns
are sums over one table with a row for each bracket, so they add up to the score they break
down, and they agree with the counts of each sentence because the same code decides what a
bracket is. The table itself is large and quickly made; records keep the counts only.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from spmrl_bench.errors import ScoreError
from spmrl_bench.scoring.brackets import compared_brackets
from spmrl_bench.scoring.counts import BracketCounts, Column, f1_of, percent
from spmrl_bench.scoring.inputs import TreeLike, as_trees
from spmrl_bench.scoring.policy import PUBLISHED, Policy
from spmrl_bench.scoring.prm import Parameters

#: Upper bounds of the classes of length, in words; what is longer is a class of its own.
SENTENCE_LENGTHS = (10, 20, 30, 40, 50)
SPAN_LENGTHS = (1, 2, 3, 4, 5, 10, 20, 40)


class BracketColumn(IntEnum):
    """Columns of a row of a :class:`BracketTable`.

    Attributes:
        SENTENCE: index of the sentence, from 0.
        START: first fencepost of the span, among the words that are compared.
        END: last fencepost.
        LABEL: index of the label in :attr:`BracketTable.labels`.
        GOLD: how often gold has this bracket.
        TEST: how often test has it.
    """

    SENTENCE = 0
    START = 1
    END = 2
    LABEL = 3
    GOLD = 4
    TEST = 5


@dataclass(frozen=True, slots=True, eq=False)
class BracketTable:
    """The brackets of a corpus that count.

    Attributes:
        rows: int64 array ``[different brackets, len(BracketColumn)]``, read-only.
        labels: what brackets are compared by; labels that a parameter file makes equal are one.
        sentences: number of sentences, with those that have no row.
    """

    rows: NDArray[np.int64]
    labels: tuple[str, ...]
    sentences: int

    def column(self, column: BracketColumn) -> NDArray[np.int64]:
        """One column, int64 ``[different brackets]``."""
        return self.rows[:, column]

    @property
    def matched(self) -> NDArray[np.int64]:
        """How many brackets of each row pair with one of the other side."""
        return np.minimum(self.column(BracketColumn.GOLD), self.column(BracketColumn.TEST))

    @property
    def span_lengths(self) -> NDArray[np.int64]:
        """Words of each row's span."""
        return self.column(BracketColumn.END) - self.column(BracketColumn.START)

    def by_sentence(self) -> NDArray[np.int64]:
        """``[sentences, 3]``: matched, gold and test brackets, equal to the counts' columns."""
        return _sums(self, self.column(BracketColumn.SENTENCE), self.sentences)


@dataclass(frozen=True, slots=True)
class Part:
    """The score of some of the brackets; percentages as in ``BracketCounts``.

    Attributes:
        name: which brackets, such as ``NP`` or ``11-20``.
        sentences: number of sentences with such brackets; of the classes of sentence length,
            all sentences that are scored.
        matched: brackets in both trees.
        gold: brackets of the gold trees.
        test: brackets of the test trees.
    """

    name: str
    sentences: int
    matched: int
    gold: int
    test: int

    @property
    def recall(self) -> float | None:
        """Percentage of gold brackets found."""
        return percent(self.matched, self.gold)

    @property
    def precision(self) -> float | None:
        """Percentage of test brackets that are right."""
        return percent(self.matched, self.test)

    @property
    def f1(self) -> float | None:
        """Harmonic mean of recall and precision."""
        return f1_of(self.recall, self.precision)

    def figures(self) -> dict[str, int | float | None]:
        """Counts and percentages by name."""
        names = ("sentences", "matched", "gold", "test", "recall", "precision", "f1")
        return {name: getattr(self, name) for name in names}


def tabulate_brackets(
    gold: Sequence[TreeLike],
    test: Sequence[TreeLike],
    prm: Parameters,
    policy: Policy = PUBLISHED,
) -> BracketTable:
    """The brackets of a corpus; the arguments are those of ``score_trees``.

    Raises:
        ScoreError: the sides have different numbers of sentences, or one is malformed.
    """
    if len(gold) != len(test):
        raise ScoreError(f"gold has {len(gold)} sentences, test has {len(test)}")
    gold, test = as_trees(gold, "gold"), as_trees(test, "test")
    numbers: dict[str, int] = {}

    def rows() -> Iterator[tuple[int, ...]]:
        for sentence, pair in enumerate(zip(gold, test, strict=True)):
            one, other = (Counter(side) for side in compared_brackets(*pair, prm, policy))
            for start, end, label in one | other:
                number = numbers.setdefault(label, len(numbers))
                bracket = (start, end, label)
                yield sentence, start, end, number, one[bracket], other[bracket]

    array = np.array(list(rows()), dtype=np.int64).reshape(-1, len(BracketColumn))
    array.flags.writeable = False
    return BracketTable(array, tuple(numbers), len(gold))


def break_down(how: str, counts: BracketCounts, table: BracketTable) -> list[Part]:
    """The parts by ``length``, ``label`` or ``span``, then all brackets, then all unlabelled."""
    if how == "length":
        parts = by_sentence_length(counts)
    else:
        parts = by_label(table) if how == "label" else by_span_length(table)
    return [*parts, labelled(table), unlabelled(table)]


def by_sentence_length(counts: BracketCounts) -> list[Part]:
    """Scores by the length of the gold sentence, shortest first; empty classes are left out."""
    scored = counts.scored
    columns = (Column.MATCHED, Column.GOLD, Column.TEST)
    classes = np.searchsorted(SENTENCE_LENGTHS, counts.column(Column.LENGTH))
    parts = []
    for number, name in enumerate(length_names()):
        chosen = scored & (classes == number)
        if chosen.any():
            sums = (int(counts.column(column)[chosen].sum()) for column in columns)
            parts.append(Part(name, int(chosen.sum()), *sums))
    return parts


def by_label(table: BracketTable) -> list[Part]:
    """Scores by label, the most frequent in gold first."""
    parts = _parts(table, table.column(BracketColumn.LABEL), table.labels)
    return sorted(parts, key=lambda part: (-part.gold, -part.test, part.name))


def by_span_length(table: BracketTable) -> list[Part]:
    """Scores by the number of words that brackets cover, shortest first; no empty classes."""
    classes = np.searchsorted(SPAN_LENGTHS, table.span_lengths)
    return _parts(table, classes, _names(SPAN_LENGTHS))


def unlabelled(table: BracketTable) -> Part:
    """The score of the same brackets if labels did not matter; deleted labels stay deleted."""
    spans = table.rows[:, : BracketColumn.LABEL]
    _, which = np.unique(spans, axis=0, return_inverse=True)
    gold, test = (
        np.bincount(which.ravel(), table.column(column)).astype(np.int64)
        for column in (BracketColumn.GOLD, BracketColumn.TEST)
    )
    matched = int(np.minimum(gold, test).sum())
    return Part("unlabelled", _sentences(table), matched, int(gold.sum()), int(test.sum()))


def labelled(table: BracketTable) -> Part:
    """The score of all brackets."""
    return Part("all", _sentences(table), *map(int, table.by_sentence().sum(axis=0)))


def _sentences(table: BracketTable) -> int:
    return len(np.unique(table.column(BracketColumn.SENTENCE)))


def _parts(table: BracketTable, group: NDArray[np.int64], names: Sequence[str]) -> list[Part]:
    """One part for each group that has a row."""
    sums = _sums(table, group, len(names))
    pairs = np.unique(np.stack([group, table.column(BracketColumn.SENTENCE)]), axis=1)
    sentences = np.bincount(pairs[0], minlength=len(names))
    return [
        Part(name, int(number), *row)
        for name, number, row in zip(names, sentences, sums.tolist(), strict=True)
        if number
    ]


def _sums(table: BracketTable, group: NDArray[np.int64], groups: int) -> NDArray[np.int64]:
    """``[groups, 3]``: matched, gold and test brackets of each group of rows."""
    columns = table.matched, table.column(BracketColumn.GOLD), table.column(BracketColumn.TEST)
    sums = [np.bincount(group, column, minlength=groups) for column in columns]
    return np.stack(sums, axis=1).astype(np.int64)


def length_names() -> list[str]:
    """The names of the classes of sentence length."""
    return _names(SENTENCE_LENGTHS)


def _names(bounds: Sequence[int]) -> list[str]:
    """The names of the classes of length: up to the first bound, up to the second, ..."""
    names = [f"up to {bounds[0]}" if bounds[0] > 1 else "1"]
    for low, high in pairwise(bounds):
        names.append(f"{low + 1}-{high}" if high > low + 1 else f"{high}")
    return [*names, f"over {bounds[-1]}"]
