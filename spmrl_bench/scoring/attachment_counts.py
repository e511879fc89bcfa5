"""Sufficient statistics of attachment scores: one row of counts per sentence.

As with brackets, corpus figures are quotients of sums, so the sums are what is kept. Words
that a punctuation rule leaves out have columns of their own: the same counts give the scores
with and without punctuation.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

import numpy as np

from spmrl_bench.scoring.counts import Counts, percent


class AttachmentColumn(IntEnum):
    """Columns of a row of counts: four of the scored words, then the same of all words.

    Attributes:
        WORDS: words that are scored, which are those that are no punctuation.
        HEADS: of these, words with the right head.
        LABELS: words with the right relation, whatever their head.
        BOTH: words with the right head and the right relation.
        ALL_WORDS: words of the sentence.
        ALL_HEADS: of all words, those with the right head.
        ALL_LABELS: of all words, those with the right relation.
        ALL_BOTH: of all words, those with both right.
    """

    WORDS = 0
    HEADS = 1
    LABELS = 2
    BOTH = 3
    ALL_WORDS = 4
    ALL_HEADS = 5
    ALL_LABELS = 6
    ALL_BOTH = 7


@dataclass(frozen=True, slots=True, eq=False)
class AttachmentCounts(Counts):
    """Attachment counts of a corpus and the figures that follow from them.

    Every figure is of the scored words, so without punctuation; :meth:`with_punctuation` gives
    the counts whose figures are of all words. Percentages run from 0 to 100 and are None where
    nothing can be divided (0 of 0).
    """

    what = "attachment"
    columns = AttachmentColumn

    @classmethod
    def _possible(cls, row: tuple[int, ...]) -> bool:
        """Whether no count is larger than another allows."""
        scored, every = row[:4], row[4:]
        return all(
            0 <= both <= min(heads, labels) and heads + labels - both <= words
            for words, heads, labels, both in (scored, every)
        ) and all(
            # What is right among all words is right among the scored ones or the others.
            0 <= more - some <= every[0] - scored[0]
            for some, more in zip(scored, every, strict=True)
        )

    def with_punctuation(self) -> AttachmentCounts:
        """Counts of the same sentences in which every word is scored."""
        rows = np.tile(self.rows[:, AttachmentColumn.ALL_WORDS :], (1, 2))
        rows.flags.writeable = False
        return AttachmentCounts(rows)

    @property
    def words(self) -> int:
        """Number of words that are scored."""
        return self.total(AttachmentColumn.WORDS)

    @property
    def sentences(self) -> int:
        """Number of sentences with a word that is scored."""
        return int((self.rows[:, AttachmentColumn.WORDS] > 0).sum())

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
        words = self.rows[:, AttachmentColumn.WORDS]
        return percent(int(((words > 0) & (self.rows[:, column] == words)).sum()), self.sentences)
