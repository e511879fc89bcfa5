"""What a metric is: everything above the counting speaks of metrics, never of brackets.

A metric compares one or both layers of gold parses with those of a parser and leaves one row of
whole numbers per sentence (:class:`~spmrl_bench.scoring.counts.Counts`). All else is a function
of these rows: the figures of a corpus, the ratios that significance tests work on, the part of
the signature that says how it was counted, the breakdowns and the report. Records, tables,
comparisons, the dev score in training and selection ask the metric for them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from spmrl_bench.errors import ScoreError, unknown_name
from spmrl_bench.registry import Registry
from spmrl_bench.scoring.counts import Counts, f1_of, percent
from spmrl_bench.scoring.significance import Ratio
from spmrl_bench.trees.parse import Layer, Parse

CountsT = TypeVar("CountsT", bound=Counts)
RulesT = TypeVar("RulesT")
Number = int | float | None


@dataclass(frozen=True, slots=True)
class Figure:
    """A number that says something of a corpus: a percentage (0 to 100) or another one."""

    title: str  # for reports and headings
    of: Callable[[Any], Number]  # gives it from counts; None for 0 of 0


@dataclass(frozen=True, slots=True)
class BreakdownRow:
    """The score of some of what was counted, such as the brackets ``NP``."""

    name: str
    sentences: int  # that have any of it
    matched: int  # on both sides
    gold: int
    test: int

    def figures(self) -> dict[str, Number]:
        """Return counts and percentages by name."""
        recall, precision = percent(self.matched, self.gold), percent(self.matched, self.test)
        counted = {k: getattr(self, k) for k in ("sentences", "matched", "gold", "test")}
        return counted | {"recall": recall, "precision": precision, "f1": f1_of(recall, precision)}


class Metric(ABC, Generic[CountsT, RulesT]):
    """One way to score parses.

    ``scorer`` says in signatures what counts: this program, by its first rules. Whoever changes
    the counts of the same parses raises it (``own2``), so that scores are told apart.
    """

    name: str  # in recipes, records and tables
    scorer: str = "own"
    layers: tuple[Layer, ...]  # that it compares
    counts: type[CountsT]  # the class of its counts, whose columns are the metric's
    figures: Mapping[str, Figure]  # by name, in the order of a report
    headline: str  # the figure by which systems are put in order
    tabled: tuple[str, ...]  # the figures that a table of results shows
    breakdowns: tuple[str, ...] = ()  # names of the ways to say where a score comes from

    @abstractmethod
    def rules(self, options: Mapping[str, Any]) -> RulesT:
        """Return what decides the counts, from a treebank's options. Raise a SpmrlError if an
        option is unknown or has a value that is not allowed."""

    @abstractmethod
    def count(self, gold: Sequence[Parse], test: Sequence[Parse], rules: RulesT) -> CountsT:
        """Count a corpus; sentence ``k`` of one side is compared with ``k`` of the other. Raise a
        ScoreError if the sides cannot be compared."""

    @abstractmethod
    def ratios(self, counts: CountsT) -> list[Ratio]:
        """Return the figures that are ratios of sums, which can be tested; the headline first."""

    def counting(self, rules: RulesT) -> dict[str, str | None]:
        """Return the keys of a signature that say how it is counted."""
        return {"scorer": self.scorer, "match": self.name}

    def break_down(
        self, how: str, counts: CountsT, gold: Sequence[Parse], test: Sequence[Parse], rules: RulesT
    ) -> Sequence[BreakdownRow]:
        """Return the parts of the score of these parses, by one of :attr:`breakdowns`. Raise a
        ScoreError if there is no such breakdown."""
        raise ScoreError(f"metric {self.name} has no breakdown by {how}")

    def lengths(self, counts: CountsT) -> Sequence[int] | None:
        """Return what tells sentences of two counts apart; None for nothing."""
        return None

    def values(self, counts: CountsT) -> dict[str, Number]:
        """Return every figure by name."""
        return {name: figure.of(counts) for name, figure in self.figures.items()}

    def report(self, counts: CountsT, rules: RulesT) -> str:
        """Return the report for people."""
        lines = figure_lines(self.figures, {"": self.values(counts)}, 24, 14)[1:]
        return "".join(f"{line}\n" for line in lines)

    def report_dict(self, counts: CountsT, rules: RulesT) -> dict[str, object]:
        """Return the report as JSON-able values."""
        return dict(self.values(counts))

    def title(self, figure: str) -> str:
        """Return what a figure is called."""
        return self.figures[figure].title if figure in self.figures else figure


def check_options(metric: str, options: Mapping[str, Any], known: Sequence[str]) -> None:
    """Check that the options of a metric are known and have names as values; a ScoreError names the
    option, what was found and what is allowed."""
    for name, value in options.items():
        if name not in known:
            raise ScoreError(unknown_name(f"rule of {metric}", name, known))
        if not isinstance(value, str):
            raise ScoreError(f"{metric}: {name} must be a name, found {value!r}")


def figure_lines(
    figures: Mapping[str, Figure],
    columns: Mapping[str, Mapping[str, Number]],
    left: int,
    right: int,
) -> list[str]:
    """Return a table for people: the heads of the columns, then a line for each figure.

    Each column has the same figures by name. Titles are ``left`` characters wide, columns
    ``right``.
    """
    rows = [("", list(columns))]
    for name in next(iter(columns.values())):
        cells = [format_value(column[name]) for column in columns.values()]
        rows.append((figures[name].title, cells))
    return [f"{title:{left}}" + "".join(f"{cell:>{right}}" for cell in row) for title, row in rows]


def format_value(value: Number) -> str:
    """Return a figure for people: two decimals, or a whole number."""
    if value is None:
        return "n/a"
    return str(value) if isinstance(value, int) else f"{value:.2f}"


METRICS: Registry[Metric[Any, Any]] = Registry(
    "metric",
    "spmrl_bench.metrics",
    {
        "brackets": "spmrl_bench.scoring.bracket_metric:BRACKETS",
        "attachment": "spmrl_bench.scoring.attachment:ATTACHMENT",
    },
)


def metric_named(name: str) -> Metric[Any, Any]:
    """Return the metric of a name. Raise a ScoreError if there is none."""
    return METRICS.get(name, ScoreError)


@dataclass(frozen=True, slots=True)
class SelectionMetric:
    """What selects: a figure, or the sum of several, as ``METRIC.FIGURE + METRIC.FIGURE``."""

    terms: tuple[tuple[str, str], ...]

    @classmethod
    def parse(cls, text: str) -> SelectionMetric:
        """Read what selects as recipes write it; a ScoreError for an unknown metric or figure."""
        terms = []
        for term in text.split("+"):
            name, _, figure = term.strip().partition(".")
            metric = metric_named(name)
            figure = figure or metric.headline
            if figure not in metric.figures:
                raise ScoreError(
                    f"'{text}': metric {name} has no figure '{figure}'; it has "
                    f"{', '.join(metric.figures)}"
                )
            terms.append((name, figure))
        return cls(tuple(terms))

    @property
    def metrics(self) -> tuple[str, ...]:
        """The metrics that it needs."""
        return tuple(dict.fromkeys(name for name, _ in self.terms))

    @property
    def title(self) -> str:
        """What the score is called, such as ``F1`` or ``F1 + LAS``."""
        return " + ".join(metric_named(name).title(figure) for name, figure in self.terms)

    def score(self, figures: Mapping[str, Mapping[str, Number]]) -> float:
        """Return the score that figures by metric and name give; one that is missing counts 0."""
        return sum((figures.get(name, {}).get(figure) or 0.0) for name, figure in self.terms)

    def __str__(self) -> str:
        return " + ".join(f"{name}.{figure}" for name, figure in self.terms)
