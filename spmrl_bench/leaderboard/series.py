"""Runs of one variant that differ in their seed only, and what they have in common.

One score says how good a trained parser is; how good the recipe is, and how much of a
difference is luck, takes several seeds. A :class:`Series` has the runs and their mean.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from statistics import fmean, stdev

from spmrl_bench.leaderboard.comparison import signature_parts
from spmrl_bench.leaderboard.record import Record
from spmrl_bench.settings_text import settings_text, variant_text


def variant_key(record: Record) -> tuple[Hashable, ...]:
    """What tells variants apart: all that says which run it is, but for the seed."""
    precision = signature_parts(record.dev.signature_long).get("precision")
    settings = settings_text(record.settings)
    return record.size, record.variant, settings, precision, len(record.ensemble)


def run_key(record: Record) -> tuple[Hashable, ...]:
    """What tells runs apart."""
    return *variant_key(record), record.seed


@dataclass(frozen=True, slots=True)
class Series:
    """Runs with other seeds of one variant, by seed; there is one at least.

    An ensemble is a series of its own, with one record.
    """

    runs: tuple[Record, ...]

    @property
    def name(self) -> str:
        """The variant, the settings that were changed, and whether it is an ensemble."""
        first = self.runs[0]
        of = f", ensemble of {len(first.ensemble)}" if first.ensemble else ""
        return variant_text(first.variant, first.settings) + of

    @property
    def signature(self) -> str:
        """The short signature of test, or else of dev; values that differ are joined by ``+``."""
        values: dict[str, dict[str, None]] = {}
        for run in self.runs:
            result = run.test if self.tested and run.test else run.dev
            for key, value in signature_parts(result.signature).items():
                values.setdefault(key, {})[value] = None
        return "|".join(f"{key}:{'+'.join(found)}" for key, found in values.items())

    @property
    def tested(self) -> bool:
        """Whether all its runs have scores on test."""
        return all(run.test is not None for run in self.runs)

    def mean(self, split: str, figure: str) -> float | None:
        """The mean of a figure of a split; None where a run has none."""
        values = self._values(split, figure)
        return fmean(values) if values else None

    def deviation(self, split: str, figure: str) -> float | None:
        """Its sample standard deviation (n - 1); None where a run has none, or is the only one."""
        values = self._values(split, figure)
        return stdev(values) if len(values) > 1 else None

    def _values(self, split: str, figure: str) -> list[float]:
        results = [run.test if split == "test" else run.dev for run in self.runs]
        values = [None if result is None else getattr(result, figure) for result in results]
        known = [value for value in values if value is not None]
        return known if len(known) == len(values) else []


def all_series(records: Iterable[Record]) -> list[Series]:
    """The series of records, of which each is another run; best mean dev F1 first."""
    found: dict[tuple[Hashable, ...], list[Record]] = {}
    for record in records:
        found.setdefault(variant_key(record), []).append(record)
    series = [Series(tuple(sorted(runs, key=lambda run: run.seed))) for runs in found.values()]
    return sorted(series, key=lambda one: -(one.mean("dev", "f1") or 0.0))


def seeds_text(seeds: Sequence[int]) -> str:
    """``1 to 5``, or the seeds one by one."""
    if len(seeds) > 2 and list(seeds) == list(range(seeds[0], seeds[0] + len(seeds))):
        return f"{seeds[0]} to {seeds[-1]}"
    return ", ".join(map(str, seeds))
