"""Where the test score of the selected variant comes from: by label, by length, by span.

The parts are counted from the parses that were kept when the runs were scored, and add up to the
figures of the table of results. Runs that differ in nothing but their seeds share a row, as there.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from spmrl_bench.errors import RecipeError
from spmrl_bench.experiments.evaluation import rules_of
from spmrl_bench.experiments.plan import Plan
from spmrl_bench.leaderboard.board import SeedMean, mean_text
from spmrl_bench.leaderboard.formats import Document, Table
from spmrl_bench.leaderboard.record import Record
from spmrl_bench.leaderboard.saved_parses import SavedParses
from spmrl_bench.parsers.registry import kind_named
from spmrl_bench.scoring.bracket_metric import BRACKETS
from spmrl_bench.scoring.metric import BreakdownRow

#: The figures of a part that are averaged over runs, and their headings.
_FIGURES = {"recall": "recall", "precision": "precision", "f1": "F1"}
SPLIT = "test"


def check_breakdowns(work: Plan) -> None:
    """Refuse a plan whose variants are not all scored by something that has parts.

    Raises:
        RecipeError: with the variant.
    """
    for config in work.configs:
        metrics = kind_named(config.kind).metrics
        if BRACKETS.name not in metrics:
            raise RecipeError(
                f"--by breaks brackets down, but variant {config.variant} is scored by "
                f"{' and '.join(metrics)}: choose others with --variant"
            )


def breakdowns(
    work: Plan, records: Sequence[Record], ways: Sequence[str], *, runs_dir: Path, results_dir: Path
) -> Document:
    """The parts of the test score, a table for each way and parser.

    Args:
        records: of the plan's runs in its order, and perhaps of an ensemble behind them, as
            :func:`~spmrl_bench.experiments.run.evaluate` returns them with the parses kept.
        ways: names of the breakdowns of brackets: ``length``, ``label``, ``span``.

    Raises:
        SpmrlError: the parses cannot be read.
    """
    folders = [work.folder(runs_dir, config) for config in work.configs]
    chosen = [place for place, record in zip(folders, records, strict=False) if record.test]
    single = f"mean of {len(chosen)} runs" if len(chosen) > 1 else "one run"
    several = {single: [SavedParses.of(results_dir, place) for place in chosen]}
    if len(records) > len(folders):
        ensemble = SavedParses.of(results_dir, chosen[0], len(chosen))
        several[f"ensemble of {len(chosen)}"] = [ensemble]
    variant = next(record.variant for record in records if record.test)
    tables = []
    for way in ways:
        for what, saved in several.items():
            runs = [_parts(work, way, each) for each in saved]
            title = f"{work.treebank.name}, {SPLIT}, {variant} by {way} ({what})"
            tables.append(_table(title, way, runs))
    return Document("", tables=tuple(tables))


def _parts(work: Plan, way: str, saved: SavedParses) -> list[BreakdownRow]:
    """The parts of the score of one parser, then all brackets, then all without labels."""
    rules = rules_of(work.treebank, [BRACKETS.name])[BRACKETS.name]
    gold, parses = saved.read(SPLIT, "constituents")
    counts = BRACKETS.count(gold, parses, rules)
    return list(BRACKETS.break_down(way, counts, gold, parses, rules))


def _table(title: str, way: str, runs: Sequence[Sequence[BreakdownRow]]) -> Table:
    # Labels that gold does not have are in the runs that made them up only, so that the first run
    # does not have all rows; the last two are those of every run.
    parts: dict[str, list[BreakdownRow]] = {}
    for run in runs:
        for part in run[:-2]:
            parts.setdefault(part.name, []).append(part)
    rows = [*parts.values(), *([run[place] for run in runs] for place in (-2, -1))]
    headings = [way, "gold", *_FIGURES.values()]
    cells = [
        [row[0].name, f"{row[0].figures()['gold']:,}", *(_mean(row, name) for name in _FIGURES)]
        for row in rows
    ]
    return Table(title, headings, cells, frozenset(headings[1:]), frozenset({len(parts)}))


def _mean(parts: Sequence[BreakdownRow], figure: str) -> str:
    """A figure of the same part in several runs, without those where it is 0 of 0."""
    values = [part.figures()[figure] for part in parts]
    return mean_text(SeedMean.of([value for value in values if value is not None])) or "n/a"
