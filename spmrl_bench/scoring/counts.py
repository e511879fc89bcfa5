"""Sufficient statistics of scores: one row of whole numbers per sentence.

F1 is no mean of sentence scores, so a stored F1 can be neither recombined nor tested for
significance. Counts can: every figure of a corpus is a pure function of an int64 array whose
rows add up. What the numbers are counted from is not known here.

Percentages run from 0 to 100 and are None where nothing can be divided (0 of 0).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from spmrl_bench.errors import ScoreError


@dataclass(frozen=True, slots=True, eq=False)
class Counts:
    """Counts of a corpus, from which every figure of a metric follows."""

    what: ClassVar[str]  # is counted, for messages
    columns: ClassVar[type[IntEnum]]  # names of the columns, by their number
    rows: NDArray[np.int64]  # [sentences, len(columns)], read-only

    def __post_init__(self) -> None:
        self.rows.flags.writeable = False

    @classmethod
    def from_rows(cls, rows: Iterable[Sequence[int]]) -> Self:
        """Return counts from one row per sentence, in the order of the columns. Raise a ScoreError
        if counts cannot be."""
        return cls._checked(np.array([*rows], dtype=np.int64).reshape(-1, len(cls.columns)))

    @classmethod
    def from_columns(cls, columns: Mapping[str, Sequence[int]]) -> Self:
        """Return counts from one list per column, by its name in small letters. Raise a ScoreError
        if a column is missing, lengths differ, or counts cannot be."""
        needed = [column.name.lower() for column in cls.columns]
        missing = [name for name in needed if name not in columns]
        if missing or len({len(columns[name]) for name in needed}) > 1:
            raise ScoreError(
                f"counts need the columns {', '.join(needed)}, all of one length; missing:"
                f" {', '.join(missing) or 'none'}"
            )
        return cls._checked(np.array([columns[name] for name in needed], dtype=np.int64).T)

    @classmethod
    def _checked(cls, rows: NDArray[np.int64]) -> Self:
        wrong = np.flatnonzero(~cls._possible(rows))
        if len(wrong):
            row = tuple(rows[wrong[0]].tolist())
            raise ScoreError(f"row {wrong[0] + 1} holds no {cls.what} counts: {row}")
        return cls(rows)

    @classmethod
    def _possible(cls, rows: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Which rows can be a sentence's."""
        possible: NDArray[np.bool_] = rows.min(axis=1) >= 0
        return possible

    def to_columns(self) -> dict[str, list[int]]:
        """Return one list per column, as :meth:`from_columns` takes them."""
        return {column.name.lower(): self.column(column).tolist() for column in self.columns}

    def __len__(self) -> int:
        """Number of sentences, scored or not."""
        return len(self.rows)

    def column(self, column: IntEnum) -> NDArray[np.int64]:
        """One column, int64 ``[sentences]``."""
        return self.rows[:, column]

    def total(self, column: IntEnum) -> int:
        """Sum of a column over all sentences."""
        return int(self.rows[:, column].sum())

    @property
    def scored(self) -> NDArray[np.bool_]:
        """Which sentences are part of the figures, bool ``[sentences]``."""
        return np.ones(len(self), dtype=bool)

    @property
    def skipped(self) -> int:
        """Number of sentences left out of every figure, for whatever reason."""
        return len(self) - int(self.scored.sum())


class Column(IntEnum):
    """Columns of a row of bracket counts; all from ``MATCHED`` on are 0 where nothing is scored."""

    LENGTH = 0  # words of gold whose tag is not in DELETE_LABEL_FOR_LENGTH (``Len.`` of evalb)
    STATUS = 1  # a Status
    MATCHED = 2  # brackets in both trees, each paired with one of the other side
    GOLD = 3  # brackets of the gold tree
    TEST = 4  # brackets of the test tree
    CROSSING = 5  # test brackets that cross at least one gold bracket
    WORDS = 6  # words compared, so without the removed ones
    MATCHED_TAGS = 7  # words whose tags are the same


class Status(IntEnum):
    """Whether a sentence was scored, and why not.

    The C programs know only error (``LENGTH_UNMATCH``, ``WORDS_UNMATCH``) and skip
    (``NO_WORDS``). ``MISSED`` is a sentence without a parse that is scored all the same, as
    one without brackets (:class:`~spmrl_bench.scoring.MissingParse`).
    """

    VALID = 0
    LENGTH_UNMATCH = 1
    WORDS_UNMATCH = 2
    NO_WORDS = 3
    MISSED = 4

    @property
    def scored(self) -> bool:
        """Whether the sentence is part of the figures."""
        return self in (Status.VALID, Status.MISSED)


_VALID, _MISSED = int(Status.VALID), int(Status.MISSED)  # numpy is slow with members of an enum


@dataclass(frozen=True, slots=True, eq=False)
class BracketCounts(Counts):
    """Bracket counts of a corpus and the figures that follow from them."""

    what = "bracket"
    columns = Column

    @classmethod
    def _possible(cls, rows: NDArray[np.int64]) -> NDArray[np.bool_]:
        possible: NDArray[np.bool_] = rows[:, Column.STATUS] < len(Status)
        for part, whole in (
            (Column.MATCHED, Column.GOLD),
            (Column.MATCHED, Column.TEST),
            (Column.CROSSING, Column.TEST),
            (Column.MATCHED_TAGS, Column.WORDS),
        ):
            possible &= rows[:, part] <= rows[:, whole]
        return possible & (rows.min(axis=1) >= 0)

    def sentences_with(self, status: Status) -> NDArray[np.int64]:
        """0-based indices of the sentences with a status."""
        return np.flatnonzero(self.column(Column.STATUS) == status)

    def up_to(self, length: int) -> BracketCounts:
        """The counts of the sentences of at most ``length`` words."""
        return BracketCounts(self.rows[self.column(Column.LENGTH) <= length])

    @property
    def scored(self) -> NDArray[np.bool_]:
        """Which sentences are part of the figures, bool ``[sentences]``."""
        status = self.column(Column.STATUS)
        return (status == _VALID) | (status == _MISSED)

    @property
    def valid(self) -> int:
        """Number of sentences that were scored."""
        return int(self.scored.sum())

    @property
    def recall(self) -> float | None:
        """Percentage of gold brackets found (labelled, micro-averaged)."""
        return percent(self.total(Column.MATCHED), self.total(Column.GOLD))

    @property
    def precision(self) -> float | None:
        """Percentage of test brackets that are right."""
        return percent(self.total(Column.MATCHED), self.total(Column.TEST))

    @property
    def f1(self) -> float | None:
        """Harmonic mean of recall and precision; 0 where brackets exist but none match."""
        return f1_of(self.recall, self.precision)

    @property
    def complete_match(self) -> float | None:
        """Percentage of scored sentences whose brackets are all right and none missing.

        A sentence without a parse is none of them, even where gold has no bracket that counts.
        """
        matched, gold, test = map(self.column, (Column.MATCHED, Column.GOLD, Column.TEST))
        parsed = self.column(Column.STATUS) == _VALID
        return self._percent_of_scored((matched == gold) & (gold == test) & parsed)

    @property
    def average_crossing(self) -> float | None:
        """Crossing test brackets per scored sentence (a number, not a percentage)."""
        return self.total(Column.CROSSING) / self.valid if self.valid else None

    @property
    def no_crossing(self) -> float | None:
        """Percentage of scored sentences without a crossing bracket."""
        return self._percent_of_scored(self.column(Column.CROSSING) == 0)

    @property
    def two_or_less_crossing(self) -> float | None:
        """Percentage of scored sentences with at most two crossing brackets."""
        return self._percent_of_scored(self.column(Column.CROSSING) <= 2)

    @property
    def tagging_accuracy(self) -> float | None:
        """Percentage of compared words whose tags agree."""
        return percent(self.total(Column.MATCHED_TAGS), self.total(Column.WORDS))

    def _percent_of_scored(self, condition: NDArray[np.bool_]) -> float | None:
        return percent(int((self.scored & condition).sum()), self.valid)


class AttachmentColumn(IntEnum):
    """Columns of a row of attachment counts: four of the scored words, then the same of all."""

    WORDS = 0  # that are scored, which are those that are no punctuation
    HEADS = 1  # of these, words with the right head
    LABELS = 2  # with the right relation, whatever their head
    BOTH = 3  # with both right
    ALL_WORDS = 4
    ALL_HEADS = 5
    ALL_LABELS = 6
    ALL_BOTH = 7


@dataclass(frozen=True, slots=True, eq=False)
class AttachmentCounts(Counts):
    """Attachment counts of a corpus and the figures that follow from them.

    Every figure is of the scored words, so without punctuation; :meth:`with_punctuation` gives
    the counts whose figures are of all words.
    """

    what = "attachment"
    columns = AttachmentColumn

    @classmethod
    def _possible(cls, rows: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Which rows have no count larger than another allows."""
        scored, every = rows[:, :4], rows[:, 4:]
        others = every - scored
        # What is right among all words is right among the scored ones or the others.
        possible: NDArray[np.bool_] = others.max(axis=1) <= others[:, 0]
        possible &= np.minimum(scored, others).min(axis=1) >= 0
        for words, heads, labels, both in (scored.T, every.T):
            possible &= (both <= np.minimum(heads, labels)) & (heads + labels - both <= words)
        return possible

    def with_punctuation(self) -> AttachmentCounts:
        """Counts of the same sentences in which every word is scored."""
        return AttachmentCounts(np.tile(self.rows[:, AttachmentColumn.ALL_WORDS :], (1, 2)))

    @property
    def words(self) -> int:
        """Number of words that are scored."""
        return self.total(AttachmentColumn.WORDS)

    @property
    def sentences(self) -> int:
        """Number of sentences with a word that is scored."""
        return int((self.column(AttachmentColumn.WORDS) > 0).sum())

    @property
    def uas(self) -> float | None:
        """Unlabelled attachment score: percentage of words with the right head."""
        return percent(self.total(AttachmentColumn.HEADS), self.words)

    @property
    def las(self) -> float | None:
        """Labelled attachment score: percentage of words with the right head and relation."""
        return percent(self.total(AttachmentColumn.BOTH), self.words)

    @property
    def label_accuracy(self) -> float | None:
        """Percentage of words with the right relation, whatever their head."""
        return percent(self.total(AttachmentColumn.LABELS), self.words)

    @property
    def unlabelled_match(self) -> float | None:
        """Percentage of sentences with all heads right, of those with a scored word."""
        return self._complete(AttachmentColumn.HEADS)

    @property
    def labelled_match(self) -> float | None:
        """Percentage of sentences with all heads and relations right, likewise."""
        return self._complete(AttachmentColumn.BOTH)

    def _complete(self, column: AttachmentColumn) -> float | None:
        words = self.column(AttachmentColumn.WORDS)
        return percent(int(((words > 0) & (self.column(column) == words)).sum()), self.sentences)


def percent(part: int, whole: int) -> float | None:
    """``part`` of ``whole`` between 0 and 100; None for a part of nothing."""
    return 100.0 * part / whole if whole else None


def f1_of(recall: float | None, precision: float | None) -> float | None:
    """Harmonic mean of two percentages; 0 where brackets exist but none match."""
    if recall is None and precision is None:
        return None
    if not recall or not precision:
        return 0.0
    # In this form, not as 2 matched / (gold + test), the last digit rounds as evalb's does.
    return 2 * precision * recall / (precision + recall)
