"""Whether one variant is better than another, from one seed or several.

The test compares two variants by the counts of each sentence summed over the seeds that both
have (F1 of these sums is close to, but not exactly, the mean F1). What is swapped is all parses
of a sentence at once: parses of one sentence from several seeds are alike, and coins of their
own would make chance differences look significant. p so answers whether other sentences could
turn the difference round, the trainings being what they are; the standard deviation over the
seeds shows what other trainings do.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from spmrl_bench.leaderboard.compare import comparable_counts
from spmrl_bench.leaderboard.record import Record
from spmrl_bench.scoring.counts import Counts
from spmrl_bench.scoring.metric import SelectionMetric, metric_named
from spmrl_bench.scoring.significance import Comparison, Ratio, compare


def compare_variants(
    first: Mapping[int, Record], second: Mapping[int, Record], criterion: SelectionMetric
) -> Comparison | None:
    """Two variants on dev, over the seeds that both have.

    None where they share no seed, or where the criterion is no ratio of sums, as the sum of two
    figures is not. The counts of each sentence are summed over the seeds, and sentences are
    swapped whole.

    Args:
        first: records of one variant by seed.
        second: records of the other.
        criterion: by which.

    Raises:
        ScoreError: the scores of a seed do not compare, or there is nothing to score.
    """
    seeds = sorted(first.keys() & second.keys())
    if len(criterion.terms) > 1:
        return None
    ((name, _),) = criterion.terms
    return compare_counts(
        [comparable_counts(first[seed], second[seed], "dev", name) for seed in seeds], criterion
    )


def compare_counts(
    pairs: Sequence[tuple[Counts, Counts]], criterion: SelectionMetric
) -> Comparison | None:
    """Two systems, from the counts of both by the same metric for each seed.

    None where there is no seed, or where the criterion is no ratio of sums.

    Args:
        pairs: of each seed the counts of the first and the second system on the same sentences.
        criterion: by which.

    Raises:
        ScoreError: there is nothing to score.
    """
    if len(criterion.terms) > 1:
        return None
    ((name, figure),) = criterion.terms
    sides: tuple[list[Ratio], list[Ratio]] = [], []
    for pair in pairs:
        for side, counts in zip(sides, pair, strict=True):
            side += [one for one in metric_named(name).ratios(counts) if one.name == figure]
    if not sides[0]:
        return None
    return compare([_summed(sides[0])], [_summed(sides[1])])[0]


def _summed(ratios: Sequence[Ratio]) -> Ratio:
    """The ratio of the sums over several results of the same sentences."""
    return Ratio.of(
        ratios[0].name,
        np.sum([ratio.numerator for ratio in ratios], axis=0),
        np.sum([ratio.denominator for ratio in ratios], axis=0),
    )
