"""The entries of each treebank: a variant, an ensemble, a system of somebody else or a baseline.

An entry is a row of its table, from one record or those of several seeds. Figures are means over
its runs; for all that goes by sentences the counts of its runs are added up.
"""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import product
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from spmrl_bench.errors import RecordError, ScoreError
from spmrl_bench.leaderboard.documents import load_documents
from spmrl_bench.leaderboard.frame import Key, Run, RunGroup, grouped, known_metrics, records_frame
from spmrl_bench.leaderboard.published import PublishedFigure, load_published
from spmrl_bench.leaderboard.record import (
    SPLITS,
    Record,
    SplitResult,
    in_order,
    shipped_records,
    signature_parts,
)
from spmrl_bench.leaderboard.searches import searched_text
from spmrl_bench.scoring.counts import Counts
from spmrl_bench.scoring.metric import metric_named
from spmrl_bench.scoring.significance import Ratio, randomisation, summed

if TYPE_CHECKING:
    import pandas as pd

LEVEL = 0.05  # p below which a difference is marked

View = tuple[str, str]
"""A metric and a split."""
Scores = Mapping[int, float]
"""A figure for each seed."""


# ---- Figures from several seeds ----


@dataclass(frozen=True, slots=True)
class SeedMean:
    mean: float
    sd: float | None  # sample standard deviation (n - 1); None for one seed
    seeds: int  # how many

    @classmethod
    def of(cls, values: Collection[float]) -> SeedMean:
        sd = statistics.stdev(values) if len(values) > 1 else None
        return cls(statistics.fmean(values), sd, len(values))


def mean_text(found: SeedMean | None, mark: str = "") -> str:
    """As tables print it: two decimals, and the standard deviation if there is one."""
    if found is None:
        return ""
    mean = f"{found.mean:.2f}{mark}"
    return mean if found.sd is None else f"{mean} ± {found.sd:.2f}"


def average(columns: Sequence[tuple[str, Scores]]) -> SeedMean | None:
    """The mean over languages of ``(language, scores by seed)``; None where one has no score. The
    standard deviation is that of the averages of each seed, where all have the same seeds."""
    if not columns or any(not scores for _, scores in columns):
        return None

    def mean(values: Iterable[float]) -> float:
        by_language: dict[str, list[float]] = {}
        for (language, _), value in zip(columns, values, strict=True):
            by_language.setdefault(language, []).append(value)
        return statistics.fmean(map(statistics.fmean, by_language.values()))

    seeds = columns[0][1].keys()
    common = sorted(seeds) if all(scores.keys() == seeds for _, scores in columns) else []
    by_seed = [mean(scores[seed] for _, scores in columns) for seed in common]
    sd = statistics.stdev(by_seed) if len(by_seed) > 1 else None
    return SeedMean(mean(statistics.fmean(one.values()) for _, one in columns), sd, len(by_seed))


# ---- Columns of figures ----


class Column(NamedTuple):
    title: str
    split: str
    metric: str
    figure: str
    variant: str = ""  # or baseline
    brief: bool = False  # whether it stands in tables of many treebanks too

    @property
    def key(self) -> Key:
        return self.split, self.metric, self.figure

    @property
    def is_headline(self) -> bool:
        return self.metric != "" and self.figure == metric_named(self.metric).headline


def named_columns(metrics: Sequence[str]) -> dict[str, Column]:
    """By name in CSV: headlines of dev, all tabled figures of test, and the tags of both."""
    dev, test = [], []
    for name in metrics:
        metric = metric_named(name)
        top = Column(f"dev {metric.title(metric.headline)}", "dev", name, metric.headline)
        dev.append(top._replace(brief=True))
        end = metric.tabled.index(metric.headline)
        for n, figure in enumerate(metric.tabled):
            # What follows the headline is not shown of dev, so "test" tells nothing apart.
            title = f"{'test ' if n <= end else ''}{metric.title(figure)}"
            test.append(Column(title, "test", name, figure, brief=n <= end))
    figures = Counter((column.split, column.figure) for column in dev + test)
    titles = Counter(column.title for column in dev + test)
    named = {}
    for column in dev + test:
        of_metric = f"{column.metric}_" if figures[column.split, column.figure] > 1 else ""
        title = f"{column.title} ({column.metric})" if titles[column.title] > 1 else column.title
        named[f"{column.split}_{of_metric}{column.figure}"] = column._replace(title=title)
    for split in SPLITS:
        named[f"{split}_tags"] = Column(f"{split} tags", split, "", "tag_accuracy")
    return named


def brief_columns(metrics: Iterable[str]) -> list[Column]:
    return [column for column in named_columns(list(metrics)).values() if column.brief]


# ---- Entries ----


class Difference(NamedTuple):
    """A score minus another in points, and p of the paired randomisation test over sentences. All
    parses of a sentence are swapped at once: those from several seeds are alike. p answers whether
    other sentences could turn the difference round, the trainings being what they are."""

    points: float
    p: float


@dataclass(frozen=True, slots=True, eq=False)
class Sums:
    """A figure of an entry sentence by sentence, added up over its runs."""

    ratio: Ratio  # the sums above and below the line, int64 [sentences] each
    scored: NDArray[np.bool_]  # which sentences count
    lengths: Sequence[int] | None  # words of each sentence; None where the metric does not say
    runs: int  # how many were added up

    @classmethod
    def of(cls, counts: Sequence[Counts], metric: str, figure: str) -> Sums | None:
        """The sums of several runs; None where they do not give the figure by sentence."""
        scorer = metric_named(metric)
        found = [one for each in counts for one in scorer.ratios(each) if one.name == figure]
        if not found or len(set(map(len, found))) > 1:
            return None
        whole = summed(found)
        if not whole.denominator.any():
            return None
        lengths = scorer.lengths(counts[-1])
        scored = np.all([each.scored for each in counts], axis=0)
        return cls(whole, scored, None if lengths is None else list(lengths), len(found))

    def of_same_sentences(self, other: Sums) -> bool:
        same = len(self.ratio) == len(other.ratio) and self.lengths == other.lengths
        return same and bool((self.scored == other.scored).all())

    def compare(self, other: Sums) -> Difference | None:
        """The difference to another; None where they are not of the same sentences. A comparison
        without what one of them leaves out would reward failures. Each is multiplied by the number
        of runs of the other, so that both weigh the same."""
        if not self.of_same_sentences(other):
            return None
        one, two = summed([self.ratio], other.runs), summed([other.ratio], self.runs)
        return Difference((one.value or 0.0) - (two.value or 0.0), randomisation(one, two))


@dataclass(frozen=True, eq=False)
class Entry:
    """A row of the table of a treebank."""

    runs: Sequence[Run]  # by seed; of a baseline the one that scored it
    _sums: dict[tuple[View, str], Sums | None] = field(default_factory=dict, repr=False)

    @property
    def record(self) -> Record:
        return self.runs[0].record

    @property
    def baseline(self) -> bool:
        return self.runs[0].baseline

    @property
    def members(self) -> list[Entry]:
        return [Entry([run]) for run in self.runs] if len(self.runs) > 1 else []

    @property
    def form(self) -> str:
        """``baseline``, ``mean``, ``ensemble`` or ``run``."""
        several = "mean" if len(self.runs) > 1 else "ensemble" if self.record.ensemble else "run"
        return "baseline" if self.baseline else several

    @property
    def is_system(self) -> bool:
        return self.record.system is not None

    @property
    def name(self) -> str:
        members = len(self.record.ensemble)
        return self.runs[0].name + f", ensemble of {members}" * bool(members)

    @property
    def label(self) -> str:
        """Its name without the settings."""
        return self.name.replace(self.runs[0].name, self.record.variant, 1)

    @property
    def shipped(self) -> bool:
        return self.runs[0].shipped

    @property
    def title(self) -> str:
        return f"{self.name}, shipped" if self.shipped else self.name

    @property
    def number(self) -> int | None:
        members = len(self.record.ensemble) if self.form == "ensemble" else len(self.runs)
        return None if self.baseline else members

    @property
    def seed(self) -> int | None:
        return self.record.seed if self.form == "run" and not self.is_system else None

    @property
    def origin(self) -> str:
        if self.is_system:
            return "of others" if self.record.hardware is not None else "entered"
        return self.form if self.baseline else "shipped" if self.shipped else "own"

    @property
    def text(self) -> str:
        """What names it beside others of a treebank."""
        origin = "" if self.origin == "own" else self.origin
        of = f"ensemble of {self.number}" if self.form == "ensemble" else ""
        return " ".join(filter(None, (self.name, self.record.size, of, origin)))

    @property
    def searched(self) -> str:
        found = (searched_text(run.record.searches) for run in self.runs)
        return "; ".join(dict.fromkeys(filter(None, found)))

    @property
    def dates(self) -> list[str]:
        return sorted({f"{run.record.finished:%Y-%m-%d}" for run in self.runs})

    @property
    def commits(self) -> list[str]:
        return sorted({run.record.commit[:10] for run in self.runs if run.record.commit})

    def _results(self, split: str) -> list[SplitResult]:
        """The scores of all its runs, or none."""
        results = [run.record.result(split) for run in self.runs]
        found = [result for result in results if result and known_metrics(result)]
        return found if len(found) == len(results) else []

    @property
    def test_sentences(self) -> int | None:
        """Those that were scored on test."""
        results = self._results("test")
        scored = (one.sentences - one.metrics[known_metrics(one)[0]].skipped for one in results)
        return next(scored, None)

    def signature(self, metrics: Collection[str] | None = None) -> str:
        """Of test where all runs have scores of it, else of dev; by these metrics or all. Values in
        which the runs differ are joined by ``+``."""
        found: dict[str, dict[str, dict[str, None]]] = {}
        for result in self._results("test") or self._results("dev"):
            for name in known_metrics(result):
                if metrics is None or name in metrics:
                    joined = found.setdefault(name, {})
                    for key, value in signature_parts(result.metrics[name].signature).items():
                        joined.setdefault(key, {})[value] = None
        return " & ".join(
            "|".join(f"{key}:{'+'.join(values)}" for key, values in joined.items())
            for joined in found.values()
        )

    def figure(self, key: Key) -> SeedMean | None:
        """A figure that all its runs have."""
        scores = self.scores(key)
        return SeedMean.of(scores.values()) if len(scores) == len(self.runs) else None

    def headline(self, view: View) -> SeedMean | None:
        metric, split = view
        return self.figure((split, metric, metric_named(metric).headline))

    def scores(self, key: Key) -> dict[int, float]:
        """A figure by seed, of those runs that have it; of a baseline with the seed 0."""
        found = {run.record.seed: run.figure(key) for run in self.runs}
        return {seed: value for seed, value in found.items() if value is not None}

    def sums(self, view: View, figure: str = "") -> Sums | None:
        """None where its counts do not give the figure (the headline) by sentence."""
        metric, split = view
        figure = figure or metric_named(metric).headline
        if (view, figure) not in self._sums:
            try:
                counts = [one.counts(metric) for one in self._results(split)]
            except ScoreError:  # not by this metric, or before it had all its columns
                counts = []
            self._sums[view, figure] = Sums.of(counts, metric, figure)
        return self._sums[view, figure]

    def compare(self, other: Entry, view: View, figure: str = "") -> Difference | None:
        one, two = self.sums(view, figure), other.sums(view, figure)
        return None if one is None or two is None else one.compare(two)


# ---- Groups ----


@dataclass(frozen=True, eq=False)
class Group:
    """One table: entries of a treebank that compare, parsers by scores on dev, then baselines."""

    track: str
    treebank: str
    number: int  # of the table
    several: bool  # whether the treebank has others
    runs: RunGroup  # its records, older ones of a run too

    @property
    def language(self) -> str:
        return self.runs[0].record.treebank.language

    @property
    def title(self) -> str:
        number = f", table {self.number}" if self.several else ""
        return f"{self.treebank} ({track_title(self.track)}{number}{self.runs.read})"

    @cached_property
    def metrics(self) -> list[str]:
        return metrics_of(self.runs)

    @cached_property
    def entries(self) -> list[Entry]:
        newest = [run for run in self.runs if run.newest]
        series: dict[object, list[Run]] = {}
        for run in sorted(newest, key=lambda run: run.record.seed):
            series.setdefault(run.series, []).append(run)
        keys = [one.key for one in brief_columns(self.metrics) if one.split == "dev"]

        def place(entry: Entry) -> list[float]:
            return [-found.mean if (found := entry.figure(key)) else 0.0 for key in keys]

        baselines: dict[str, Run] = {}
        for run in newest:
            for name in run.record.baselines:
                baselines.setdefault(name, run.of_baseline(name))
        entries = sorted(map(Entry, series.values()), key=place)
        return entries + [Entry([run]) for run in baselines.values()]

    @cached_property
    def views(self) -> list[View]:
        """Metrics and splits with scores, test first."""
        return [
            (metric, split)
            for metric in self.metrics
            for split in ("test", "dev")
            if any(entry.headline((metric, split)) for entry in self.entries)
        ]

    def view_title(self, view: View) -> str:
        metric = metric_named(view[0])
        return f"{view[1]} {metric.title(metric.headline)}"

    @cached_property
    def columns(self) -> dict[str, Column]:
        """The columns of its table, by their names in CSV: those in which something stands."""
        return {
            name: column
            for name, column in named_columns(self.metrics).items()
            if any(entry.figure(column.key) for entry in self.entries)
        }


def groups_of(stored: Iterable[Run]) -> list[Group]:
    return [
        Group(track, treebank, number, len(groups) > 1, runs)
        for (track, treebank), groups in grouped(stored).items()
        for number, runs in enumerate(groups, start=1)
    ]


def metrics_of(runs: Iterable[Run]) -> list[str]:
    records = [run.record for run in runs]
    results = (result for record in records for result in record.results)
    found = dict.fromkeys(name for result in results for name in known_metrics(result))
    return in_order(found, {record.select for record in records})


def track_title(track: str) -> str:
    return f"{track} track, generated sentences" if track == "mini" else f"{track} track"


# ---- All results ----


@dataclass(frozen=True)
class Results:
    stored: Sequence[Run]  # oldest first
    published: Sequence[PublishedFigure]
    errors: Sequence[str]  # a message for each file or line that cannot be read

    @cached_property
    def groups(self) -> list[Group]:
        """By track, treebank and number."""
        return groups_of(self.stored)

    def named(self, name: str, treebank: str | None = None) -> list[Record]:
        """The records of an entry that a table names, or of a variant or system with one entry;
        none where there is none, and a RecordError where there are several."""
        entries = [
            (entry, f"{entry.title} on {group.treebank}")
            for group in self.groups
            if treebank in (None, group.treebank)
            for entry in group.entries
            if not entry.baseline
        ]
        found = [each for each in entries if name in (each[0].title, each[0].name)]
        found = found or [each for each in entries if name == each[0].record.variant]
        if len(found) > 1:
            raise RecordError(
                f"{name}: several entries ({'; '.join(title for _, title in found)}); say which "
                "with its whole name and --treebank"
            )
        return [run.record for entry, _ in found for run in entry.runs]


def load_results(folders: Iterable[Path]) -> Results:
    """Read the records of folders of results, shipped ones included, and all published figures. One
    that lies in several folders is one. A RecordError where a folder cannot be read."""
    found: dict[str, Run] = {}
    errors: list[str] = []
    for shipped, folder in product((False, True), folders):  # what is the user's too is theirs
        place = shipped_records(folder) if shipped else folder / "runs"
        records, wrong = load_documents(Record, place)
        errors += wrong
        for path, record in records.items():
            found.setdefault(path.name, Run(record, path, folder, shipped))
    published, wrong = load_published()
    ordered = sorted(found.values(), key=attrgetter("record.finished", "shipped", "path.name"))
    return Results(ordered, published, [*dict.fromkeys(errors), *wrong])


def results_frame(results: str | Path = "results") -> pd.DataFrame:
    """All numbers of a folder of results, one row for each record, split, metric and figure. Files
    in it that cannot be read are left out; a RecordError where the folder cannot be."""
    return records_frame(load_results([Path(results)]).stored)
