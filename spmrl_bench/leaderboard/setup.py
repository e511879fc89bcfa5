"""What a table over languages is made of: setups, their treebanks, and averages.

Runs of one model size, precision and settings that were selected by the same figure form a
:class:`Setup`; what differs in these never shares a table. A row of it is one treebank with the
runs that compare, from as many seeds as there are; an average is over rows that were scored in the
same way and only where every one of them has the value. How they come from records is told in
:mod:`track`, what an average is in :mod:`estimates`, how variants are compared in :mod:`contest`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from spmrl_bench.leaderboard.estimates import Estimate, Scores, Term, average
from spmrl_bench.leaderboard.frame import brief_terms, title_of
from spmrl_bench.leaderboard.identity import Resolved
from spmrl_bench.scoring.metric import Criterion
from spmrl_bench.scoring.significance import Comparison

LEVEL = 0.05  # p below which a difference is marked

Convention = tuple[tuple[str, str], ...]


class Column(NamedTuple):
    """A column of figures in the table of a setup: of a variant on dev, or of test.

    What dev selects by may be a sum of figures, whose names are then joined.
    """

    title: str
    split: str
    metric: str
    figure: str
    variant: str = ""
    baseline: str = ""


@dataclass(frozen=True, slots=True)
class TreebankScores:
    """One treebank in one setup.

    Attributes:
        language: of the treebank.
        treebank: name of its manifest.
        convention: what the scores share with those they may be averaged with.
        dev: what dev selects by, of each variant by seed.
        selected: the variant with the best mean of it.
        test: the figures of the selected variant on test, by seed; empty where it was not scored.
        baselines: the same of each baseline; empty without test scores.
        contests: the selected variant (second) against each other variant (first) on dev,
            where they have seeds in common.
        settings: of each variant, resolved.
        signature: of the test scores, or of dev where there are none.
        notes: what a reader has to know about this row.
    """

    language: str
    treebank: str
    convention: Convention
    dev: Mapping[str, Scores]
    selected: str
    test: Mapping[Term, Scores]
    baselines: Mapping[str, Mapping[Term, float]]
    contests: Mapping[str, Comparison]
    settings: Mapping[str, Resolved]
    signature: str
    notes: tuple[str, ...]

    @property
    def seeds(self) -> list[int]:
        """Seeds of all its runs."""
        return sorted({seed for scores in self.dev.values() for seed in scores})

    def scores(self, column: Column) -> Scores:
        """The scores of a column by seed; a baseline has the seed 0."""
        term = column.metric, column.figure
        if column.baseline:
            figures = self.baselines.get(column.baseline, {})
            return {0: figures[term]} if term in figures else {}
        return (self.dev.get(column.variant) if column.variant else self.test.get(term)) or {}

    @property
    def p(self) -> float | None:
        """The largest p of the selected variant against the others; None without a test."""
        return max((one.p_randomisation for one in self.contests.values()), default=None)

    @property
    def significant(self) -> bool:
        """Whether dev shows the selected variant to be better than every other."""
        others = self.dev.keys() - {self.selected}
        return bool(others) and others == {
            name
            for name, contest in self.contests.items()
            if contest.difference > 0 and contest.p_randomisation < LEVEL
        }


@dataclass(frozen=True, slots=True)
class Average:
    """Averages over the languages that were scored in one way; None where a row has no value."""

    convention: Convention
    languages: tuple[str, ...]
    values: Mapping[Column, Estimate | None]


@dataclass(frozen=True, slots=True)
class Setup:
    """Runs of one model size, precision, settings and way to select, over the languages."""

    settings: str
    precision: str
    size: str
    criterion: Criterion
    variants: tuple[str, ...]
    rows: tuple[TreebankScores, ...]
    left_out: tuple[str, ...]

    @property
    def name(self) -> str:
        """Size, and what else differs from the recipes."""
        return ", ".join(part for part in (self.size, self.precision, self.settings) if part)

    @property
    def languages(self) -> list[str]:
        """Languages of the rows, each once."""
        return list(dict.fromkeys(row.language for row in self.rows))

    @property
    def columns(self) -> list[Column]:
        """What selects, of each variant; of test the figures up to the headline of each metric."""
        names = (" + ".join(part) for part in zip(*self.criterion.terms, strict=True))
        metric, figure = names
        found = [
            Column(f"dev {self.criterion.title} {variant}", "dev", metric, figure, variant)
            for variant in self.variants
        ]
        baselines = dict.fromkeys(name for row in self.rows for name in row.baselines)
        for term in (term for name in self.criterion.metrics for term in brief_terms(name)):
            title = f"test {title_of(term)}"
            found.append(Column(title, "test", *term))
            found += [Column(f"{title} {name}", "test", *term, "", name) for name in baselines]
        return found

    @property
    def averages(self) -> list[Average]:
        """An average for each way of scoring that at least two languages share."""
        found: dict[Convention, list[TreebankScores]] = {}
        for row in self.rows:
            found.setdefault(row.convention, []).append(row)
        averages = []
        for convention, rows in found.items():
            languages = tuple(dict.fromkeys(row.language for row in rows))
            values = {
                column: average([(row.language, row.scores(column)) for row in rows])
                for column in self.columns
            }
            if len(languages) > 1:
                averages.append(Average(convention, languages, values))
        return sorted(averages, key=lambda one: -len(one.languages))


@dataclass(frozen=True, slots=True)
class TrackScores:
    """All of a track that its records tell."""

    track: str
    setups: tuple[Setup, ...]
    left_out: tuple[str, ...]
