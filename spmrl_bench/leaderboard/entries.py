"""The entries of a treebank: what has a row in its table, with its counts of every sentence.

An entry is a variant trained from one seed or several, an ensemble, a system of somebody else or a
baseline. Its scores are those of the table (:mod:`~spmrl_bench.leaderboard.tables`). For all that
goes by sentences, the counts of its runs are added up; two entries are set side by side by these
sums, each multiplied by the number of runs of the other, so that both weigh the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from spmrl_bench.errors import ScoreError
from spmrl_bench.leaderboard.board import (
    Column,
    Results,
    SeedMean,
    brief_columns,
    named_columns,
    track_title,
)
from spmrl_bench.leaderboard.frame import GROUP, StoredRecord, parts, records_frame
from spmrl_bench.leaderboard.record import MetricResult, Record, SplitResult
from spmrl_bench.leaderboard.tables import Result, group_results, metrics_of
from spmrl_bench.scoring.metric import metric_named
from spmrl_bench.scoring.significance import Ratio
from spmrl_bench.site.addresses import slugs

SHIPPED_NAME = ", shipped"

View = tuple[str, str]
"""A metric and a split."""


@dataclass(frozen=True, slots=True, eq=False)
class Sums:
    """The headline of an entry sentence by sentence, added up over its runs.

    Attributes:
        ratio: the sums above and below the line, int64 ``[sentences]`` each.
        scored: which sentences count, bool ``[sentences]``.
        lengths: words of each sentence, as the metric counts them; None where it does not say.
        runs: how many were added up.
    """

    ratio: Ratio
    scored: NDArray[np.bool_]
    lengths: Sequence[int] | None
    runs: int

    def beside(self, other: Sums) -> tuple[Ratio, Ratio] | None:
        """Both with the same weight; None where they are not of the same sentences.

        A comparison without what one of them leaves out would reward failures.
        """
        same = len(self.ratio) == len(other.ratio) and self.lengths == other.lengths
        if not same or (self.scored != other.scored).any():
            return None
        return self._times(other.runs), other._times(self.runs)

    def _times(self, number: int) -> Ratio:
        ratio = self.ratio
        return Ratio(ratio.name, number * ratio.numerator, number * ratio.denominator)


@dataclass(frozen=True, eq=False)
class Entry:
    """A row of the table of a treebank.

    Attributes:
        result: as the table has it.
        stored: the records that it is of, oldest first; of a baseline the one that scored it.
    """

    result: Result
    stored: Sequence[StoredRecord]

    @property
    def kind(self) -> str:
        """``run``, ``mean``, ``ensemble``, ``system`` or ``baseline``."""
        return "system" if self.is_system else self.result.kind

    @property
    def is_system(self) -> bool:
        """Whether it is somebody else's."""
        return self.result.kind != "baseline" and self.stored[0].record.system is not None

    @property
    def name(self) -> str:
        """The variant with its settings, or the name of the system, or of the baseline."""
        return self.result.name.removesuffix(SHIPPED_NAME)

    @property
    def origin(self) -> str:
        """Whose it is, in a word or two."""
        if self.is_system:
            return "of others" if self.stored[0].record.hardware is not None else "entered"
        if self.kind == "baseline":
            return "baseline"
        return "shipped" if self.result.shipped else "own"

    @property
    def tag(self) -> str:
        """Its origin where a reader would not guess it."""
        return "" if self.origin == "own" else self.origin

    @property
    def runs(self) -> str:
        """How many runs it stands for, and which seed a single one has."""
        if self.result.kind in ("mean", "ensemble"):
            return f"{self.result.kind} of {self.result.runs}"
        seeded = self.kind != "baseline" and has_seed(self.stored[0].record)
        return f"seed {self.stored[0].record.seed}" if seeded else ""

    @property
    def text(self) -> str:
        """What names it beside others of a treebank."""
        told = {"run": "", "mean": "", "ensemble": self.runs, "system": self.origin}
        shipped = "shipped" if self.origin == "shipped" else ""
        what = told.get(self.kind, self.kind)
        return " ".join(filter(None, (self.name, self.result.size, what, shipped)))

    @property
    def key(self) -> tuple[str, str, str, str]:
        """What is the same on every treebank: kind, name, size and origin."""
        kind = "run" if self.kind == "mean" else self.kind
        members = f" of {self.result.runs}" if self.kind == "ensemble" else ""
        return f"{kind}{members}", self.name, self.result.size or "", self.origin

    def estimate(self, column: Column) -> SeedMean | None:
        """The figure of a column."""
        return self.result.figures.get(column.key)

    def headline(self, view: View) -> SeedMean | None:
        """The figure by which entries are put in order."""
        metric, split = view
        return self.result.figures.get((split, metric, metric_named(metric).headline))

    def scored(self, view: View) -> list[tuple[SplitResult, MetricResult]]:
        """What the records have of it, if all of them do."""
        metric, split = view
        found = []
        for one in self.stored:
            result = one.record.result(split)
            if self.kind == "baseline":
                result = one.record.baselines.get(self.result.variant) if split == "test" else None
            if result is None or metric not in result.metrics:
                return []
            found.append((result, result.metrics[metric]))
        return found

    @cached_property
    def _sums(self) -> dict[View, Sums | None]:
        return {}

    def sums(self, view: View) -> Sums | None:
        """Its counts; None where they do not give the headline sentence by sentence."""
        if view not in self._sums:
            self._sums[view] = self._summed(view)
        return self._sums[view]

    def _summed(self, view: View) -> Sums | None:
        metric = metric_named(view[0])
        found: list[Ratio] = []
        scored, lengths = None, None
        for result, _ in self.scored(view):
            try:
                counts = result.counts(metric.name)
            except ScoreError:
                return None  # counted before the metric had all its columns
            found += [one for one in metric.ratios(counts) if one.name == metric.headline]
            sizes = metric.lengths(counts)
            lengths = None if sizes is None else list(sizes)
            scored = counts.scored if scored is None else scored & counts.scored
        if not found or scored is None or len({len(one) for one in found}) > 1:
            return None
        above = np.sum([one.numerator for one in found], axis=0)
        below = np.sum([one.denominator for one in found], axis=0)
        if not below.any():
            return None
        ratio = Ratio(metric.headline, above, below)
        return Sums(ratio, scored, lengths, len(found))


class Group(NamedTuple):
    """Entries of one treebank that compare: one table."""

    track: str
    treebank: str
    language: str
    number: int
    several: bool  # whether the treebank has other groups
    rows: pd.DataFrame  # of the frame
    metrics: Sequence[str]
    entries: Sequence[Entry]
    below: Mapping[int, Result]  # rows of the runs of means, by the number of their record
    slugs: Mapping[Entry, str]

    @property
    def title(self) -> str:
        """Treebank and track, and which of several tables."""
        number = f", table {self.number}" if self.several else ""
        return f"{self.treebank} ({track_title(self.track)}{number})"

    @property
    def results(self) -> list[Result]:
        """All rows, those of the runs of a mean behind it."""
        listed = []
        for entry in self.entries:
            listed.append(entry.result)
            listed += [self.below[n] for n in entry.result.records if n in self.below]
        return listed

    @property
    def views(self) -> list[View]:
        """Metrics and splits of which there are scores, test first."""
        return [
            (metric, split)
            for metric in self.metrics
            for split in ("test", "dev")
            if any(entry.headline((metric, split)) for entry in self.entries)
        ]

    @property
    def columns(self) -> dict[str, Column]:
        """The columns of its table, by their names in CSV: those in which something stands."""
        return {
            name: column
            for name, column in named_columns(self.metrics).items()
            if any(entry.estimate(column) for entry in self.entries)
        }

    def view_title(self, view: View) -> str:
        """Such as ``test F1``."""
        metric = metric_named(view[0])
        return f"{view[1]} {metric.title(metric.headline)}"


def entries_of(gathered: Results) -> tuple[pd.DataFrame, list[Group]]:
    """The frame of all records, and the tables of all treebanks with their entries."""
    frame = records_frame(gathered.records(shipped=False), gathered.records(shipped=True))
    found = list(_groups(frame, gathered.stored))
    return frame, found


def _groups(frame: pd.DataFrame, stored: Sequence[StoredRecord]) -> Iterator[Group]:
    groups = parts(frame, GROUP)
    for (track, treebank, number), rows in groups.items():
        results = group_results(rows, [])
        entries = [
            Entry(result, [stored[n] for n in result.records])
            for result in results
            if not result.below
        ]
        several = sum(place[:2] == (track, treebank) for place in groups) > 1
        mark = f" table {number}" if several else ""
        texts = {entry: entry.text for entry in entries}
        yield Group(
            track=track,
            treebank=treebank,
            language=str(rows["language"].iloc[0]),
            number=number,
            several=several,
            rows=rows,
            metrics=metrics_of(rows),
            entries=entries,
            below={one.records[0]: one for one in results if one.below},
            slugs=slugs({entry: f"{text}{mark}" for entry, text in _told(texts).items()}),
        )


def _told(texts: Mapping[Entry, str]) -> dict[Entry, str]:
    """What entries are called; those that are called the same, with what stands for their runs."""
    seen: dict[str, int] = {}
    for text in texts.values():
        seen[text] = seen.get(text, 0) + 1
    return {
        entry: text if seen[text] == 1 else f"{text} {entry.stored[0].name}"
        for entry, text in texts.items()
    }


def has_seed(record: Record) -> bool:
    """Whether a seed decided what was learnt, as of one parser that was trained here."""
    return record.cost is not None and not record.ensemble


def headlines(metrics: Sequence[str]) -> list[Column]:
    """The headline of each metric on dev and test."""
    return [column for column in brief_columns(metrics) if column.is_headline]
