"""How a score depends on the length of sentences, from the counts of each sentence.

The classes are those of ``score --by length``; a class is the ratio of its sums, so that the
classes of F1 add up to F1.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from spmrl_bench.leaderboard.board import Sums
from spmrl_bench.scoring.bracket_metric import SENTENCE_LENGTHS, length_names


class LengthClass(NamedTuple):
    """The score of the sentences of some lengths."""

    name: str
    sentences: int
    score: float | None


def by_length(sums: Sums) -> list[LengthClass]:
    """Scores by the length of the sentence, shortest first; classes without sentences are left out.

    Nothing where the metric does not say how long sentences are.
    """
    if sums.lengths is None:
        return []
    classes = np.searchsorted(SENTENCE_LENGTHS, np.asarray(sums.lengths))
    found = []
    for number, name in enumerate(length_names()):
        chosen = sums.scored & (classes == number)
        if chosen.any():
            above = int(sums.ratio.numerator[chosen].sum())
            below = int(sums.ratio.denominator[chosen].sum())
            score = 100.0 * above / below if below else None
            found.append(LengthClass(name, int(chosen.sum()), score))
    return found
