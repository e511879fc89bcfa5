"""Figures from several seeds, and their averages over languages.

*Averages.* Each language counts once: of several treebanks of a language the mean is taken
first. The standard deviation is that of the averages of each seed, where all columns have the
same seeds; it says how much another training of all languages would move the average.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

Scores = Mapping[int, float]
"""A figure in percent for each seed."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """A figure from one or several seeds.

    Attributes:
        mean: in percent.
        sd: sample standard deviation over the seeds; None for one seed.
        seeds: number of seeds.
    """

    mean: float
    sd: float | None
    seeds: int

    @classmethod
    def of(cls, scores: Scores) -> Estimate | None:
        """Mean and standard deviation; None where there is no score."""
        values = list(scores.values())
        if not values:
            return None
        sd = statistics.stdev(values) if len(values) > 1 else None
        return cls(statistics.fmean(values), sd, len(values))


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


def best_variant(scores: Mapping[str, Sequence[float]]) -> str:
    """The variant with the highest mean of its runs; of equal ones, the first."""
    return max(scores, key=lambda name: statistics.fmean(scores[name]))
