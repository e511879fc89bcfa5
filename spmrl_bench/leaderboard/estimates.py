"""Figures from several seeds, the variant that they select, and averages over languages.

*Averages.* Each language counts once: of several treebanks of a language the mean is taken
first. The standard deviation is that of the averages of each seed, where all columns have the
same seeds; it says how much another training of all languages would move the average.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

Scores = Mapping[int, float]
"""A figure for each seed."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """A figure from one or several seeds.

    Attributes:
        mean: of the seeds.
        sd: sample standard deviation (n - 1) over the seeds; None for one seed.
        seeds: number of seeds.
    """

    mean: float
    sd: float | None
    seeds: int

    @classmethod
    def of(cls, values: Collection[float]) -> Estimate | None:
        """Mean and standard deviation; None where there is no value."""
        if not values:
            return None
        sd = statistics.stdev(values) if len(values) > 1 else None
        return cls(statistics.fmean(values), sd, len(values))


def estimate_text(estimate: Estimate | None, signed: bool = False, mark: str = "") -> str:
    """As tables print it: two decimals, and the standard deviation if there is one."""
    if estimate is None:
        return ""
    mean = f"{estimate.mean:{'+' if signed else ''}.2f}{mark}"
    return mean if estimate.sd is None else f"{mean} ± {estimate.sd:.2f}"


def best_variant(scores: Mapping[str, Collection[float]]) -> str:
    """The variant with the highest mean score over its seeds; of equals the first.

    A variant without a score is behind all others.

    Args:
        scores: of each variant, one at least.
    """

    def mean(name: str) -> float:
        estimate = Estimate.of(scores[name])
        return -math.inf if estimate is None else estimate.mean

    return max(scores, key=mean)


def average(columns: Sequence[tuple[str, Scores]]) -> Estimate | None:
    """The mean over languages of ``(language, scores by seed)``; None where one has no score.

    Several columns of one language count as one, their mean.
    """
    if not columns or any(not scores for _, scores in columns):
        return None
    means = [(language, statistics.fmean(scores.values())) for language, scores in columns]
    seeds = {tuple(sorted(scores)) for _, scores in columns}
    (common,) = seeds if len(seeds) == 1 else ((),)
    by_seed = [
        _mean_of_languages([(language, scores[seed]) for language, scores in columns])
        for seed in common
    ]
    sd = statistics.stdev(by_seed) if len(by_seed) > 1 else None
    return Estimate(_mean_of_languages(means), sd, len(by_seed))


def _mean_of_languages(values: Sequence[tuple[str, float]]) -> float:
    by_language: dict[str, list[float]] = {}
    for language, value in values:
        by_language.setdefault(language, []).append(value)
    return statistics.fmean(statistics.fmean(found) for found in by_language.values())
