"""Whether one variant is better than another, from one seed or several.

The test compares two variants by the brackets of each sentence summed over the seeds that both
have (F1 of these sums is close to, but not exactly, the mean F1). What is swapped is all trees
of a sentence at once: trees of one sentence from several seeds are alike, and coins of their
own would make chance differences look significant. p so answers whether other sentences could
turn the difference round, the trainings being what they are; the standard deviation over the
seeds shows what other trainings do.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from spmrl_bench.leaderboard.comparison import comparable_results
from spmrl_bench.leaderboard.record import Record, SplitResult
from spmrl_bench.scoring.significance import Comparison, Ratio, bracket_ratios, compare


def compare_variants(
    first: Mapping[int, Record], second: Mapping[int, Record]
) -> Comparison | None:
    """Two variants on dev by F1, over the seeds that both have; None where they share none.

    The counts of each sentence are summed over the seeds, and sentences are swapped whole.

    Args:
        first: records of one variant by seed.
        second: records of the other.

    Raises:
        ScoreError: the scores of a seed do not compare, or there is no bracket to score.
    """
    seeds = sorted(first.keys() & second.keys())
    if not seeds:
        return None
    pairs = [comparable_results(first[seed], second[seed], "dev") for seed in seeds]
    sides = [_summed([pair[side] for pair in pairs]) for side in (0, 1)]
    return compare([sides[0]], [sides[1]])[0]


def _summed(results: Sequence[SplitResult]) -> Ratio:
    """F1 of the brackets of each sentence, summed over results of the same sentences."""
    ratios = [bracket_ratios(result.bracket_counts())[0] for result in results]
    return Ratio.of(
        ratios[0].name,
        np.sum([ratio.numerator for ratio in ratios], axis=0),
        np.sum([ratio.denominator for ratio in ratios], axis=0),
    )
