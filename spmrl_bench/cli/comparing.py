"""The command that compares two parsers: is their difference chance, and what else differs?"""

from __future__ import annotations

import json
import statistics
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from typer import Argument, Option

from spmrl_bench.cli.app import app
from spmrl_bench.cli.options import ResultsFolder, StrictFiles, name_left_out, print_rows
from spmrl_bench.cli.scoring import is_conll
from spmrl_bench.errors import SpmrlError
from spmrl_bench.process.console import echo

if TYPE_CHECKING:
    from spmrl_bench.leaderboard.record import Record
    from spmrl_bench.scoring.counts import Counts
    from spmrl_bench.scoring.metric import Metric
    from spmrl_bench.scoring.significance import Interval, Ratio

FEW = 100  # sentences below which the bootstrap finds too many differences


class _Side(NamedTuple):
    """The counts of one side on the same sentences, for each seed, and the first signature."""

    counts: list[Counts]
    signature: str


@app.command()
def compare(
    first: str = Argument(
        ...,
        metavar="A",
        help="A run folder; a record, or the beginning of its name; a variant or a system of the "
        "table, with all its seeds; or, with --gold, a file of parses.",
    ),
    second: str = Argument(..., metavar="B", help="Likewise."),
    treebank: str | None = Option(None, help="Needed where several have the variant or system."),
    split: Literal["dev", "test"] | None = Option(
        None, help="Default: test where both were scored on it."
    ),
    metric: str | None = Option(None, help="Default: the first that both have."),
    gold: Path | None = Option(None, help="Gold trees of two files of parses."),
    prm: str = Option("spmrl", help="Parameter set for files of brackets."),
    trials: int = Option(
        10_000, min=1, max=1_000_000, help="Random swaps and random draws of sentences."
    ),
    seed: int = Option(0, min=0, help="Seed of the swaps and draws."),
    form: Literal["table", "json"] = Option("table", "--format", help="What to print."),
    latex: Path | None = Option(None, metavar="FILE", help="Also write the table as LaTeX."),
    results: ResultsFolder = Path("results"),
    strict: StrictFiles = False,
) -> None:
    """Test whether two parsers differ by chance; say what differs.

    Prints both scores with 95 % confidence intervals, the difference B - A, and the p of two
    tests over sentences: approximate randomisation and paired bootstrap; over several seeds of
    both, also that of a permutation test of their means. Below stands what else differs in their
    making. Scores that do not compare are refused, with the keys that differ.

    Examples:
        spmrl-bench compare runs/german-mini/small-{charlstm,bilstm}-seed1
        spmrl-bench compare charlstm bilstm --treebank german-mini --latex table.tex
        spmrl-bench compare a.mrg b.mrg --gold gold.mrg
    """
    from spmrl_bench.scoring import significance
    from spmrl_bench.scoring.metric import metric_named

    differing: list[tuple[str, str, str]] = []
    if gold is not None:
        where = str(gold)
        name, sides = _of_files(gold, Path(first), Path(second), prm)
    else:
        from spmrl_bench.leaderboard.compare import (
            common_metric,
            comparable_counts,
            record_differences,
        )

        found = _find((first, second), results, treebank, strict)
        one, other = (records[0] for records in found)
        name = metric or common_metric(one, other)
        where = split or ("test" if one.test and other.test else "dev")
        differing = record_differences(one, other)
        sides = []
        for records, (beside, *_) in (found, found[::-1]):
            counted = [comparable_counts(record, beside, where, name)[0] for record in records]
            result: Any = records[0].result(where)
            sides.append(_Side(counted, result.metrics[name].signature_long))
    scorer = metric_named(name)
    ratios = [
        _sums(scorer, side.counts, len(beside.counts)) for side, beside in (sides, sides[::-1])
    ]
    # What is 0 of 0 cannot be compared, as the precision of parses without brackets.
    pairs = zip(*ratios, strict=True)
    defined = [pair for pair in pairs if all(one.value is not None for one in pair)]
    if not defined:
        raise SpmrlError(f"nothing was counted by the metric {name} on {where}")
    compared = significance.compare(*zip(*defined, strict=True), trials=trials, seed=seed)
    over_seeds = _over_seeds(scorer, sides)
    counts = sides[0].counts[0]
    headings = ("", "A", "B", "B - A", "p randomisation", "p bootstrap")
    rows = [
        (
            scorer.title(one.name),
            f"{one.one:.2f} {_shown(one.one_interval)}",
            f"{one.other:.2f} {_shown(one.other_interval)}",
            f"{one.difference:+.2f} {_shown(one.interval, '+')}",
            f"{one.p_randomisation:.4f}",
            f"{one.p_bootstrap:.4f}",
        )
        for one in compared
    ]
    if latex is not None:
        from spmrl_bench.leaderboard.writing import Document, Table, to_latex, write_file

        table = Table(f"A: {first}; B: {second}; {where}", headings, rows, frozenset(headings[1:]))
        write_file(latex, to_latex(Document("", tables=(table,))).encode())
    if form == "json":
        report = {
            "metric": name,
            "split": where,
            "sentences": len(counts),
            "skipped": counts.skipped,
            "trials": trials,
            "seed": seed,
            "level": significance.LEVEL,
            "figures": {result.name: asdict(result) for result in compared},
            "signatures": [side.signature for side in sides],
            "seeds": over_seeds,
            "differences": {key: [left, right] for key, left, right in differing},
        }
        echo(json.dumps(report, indent=2))
        return
    print_rows(headings, rows)
    best = compared[0]
    equal = len(counts) - best.better - best.worse
    echo(
        f"\nB is better than A on {best.better:,} sentences of {where}, worse on {best.worse:,}, "
        f"equal on {equal:,} (by {scorer.title(best.name)})."
    )
    if over_seeds:
        echo(
            f"Over seeds: {over_seeds['A']} and {over_seeds['B']}; p {over_seeds['p']:.4f} "
            "(permutation test of the means)."
        )
    if len(counts) < FEW:
        echo(f"Fewer than {FEW} sentences: intervals and p bootstrap are rough.")
    if counts.skipped:
        echo(f"LEFT OUT of every figure: {counts.skipped:,} sentences.")
    swaps = "all swaps" if best.exact else f"{trials:,} random swaps"
    echo(
        f"Randomisation: {swaps}; bootstrap: {trials:,} draws; seed {seed}. Intervals: "
        f"{significance.LEVEL:g} %.\n"
    )
    for letter, side in zip("AB", sides, strict=True):
        echo(f"{letter}: {side.signature}")
    if differing:
        echo("\nWhat else differs:\n")
        print_rows(("key", "A", "B"), differing)


def _find(
    wanted: Sequence[str], results: Path, treebank: str | None, strict: bool
) -> list[list[Record]]:
    """The records of both sides: of one run, or of all seeds of an entry of the table."""
    from spmrl_bench.leaderboard.board import load_results
    from spmrl_bench.leaderboard.compare import find_record

    loaded = load_results([results]) if not all(Path(one).exists() for one in wanted) else None
    found: list[list[Record]] = []
    for one in wanted:
        entry = loaded.named(one, treebank) if loaded and not Path(one).exists() else []
        if not entry:
            mistakes: list[str] = []
            entry = [find_record(one, results, mistakes)]
            name_left_out(mistakes, strict)
        found.append(entry)
    return found


def _of_files(gold: Path, first: Path, second: Path, prm: str) -> tuple[str, list[_Side]]:
    from spmrl_bench.scoring import AttachmentRules, load_prm, score_dependency_files, score_files
    from spmrl_bench.scoring.bracket_metric import BracketRules
    from spmrl_bench.scoring.metric import metric_named
    from spmrl_bench.scoring.signature import sign

    name = "attachment" if is_conll(gold) else "brackets"
    conll = name == "attachment"
    rules: Any = AttachmentRules() if conll else BracketRules(load_prm(prm))
    sides = []
    for path in (first, second):
        counts: Counts = (
            score_dependency_files(gold, path, rules) if conll else score_files(gold, path, *rules)
        )
        sides.append(_Side([counts], sign(metric_named(name), counts, rules).long()))
    if (sides[0].counts[0].scored != sides[1].counts[0].scored).any():
        raise SpmrlError(
            f"{first} and {second} leave out different sentences of {gold}: a comparison of the "
            "others would reward failures"
        )
    return name, sides


def _sums(scorer: Metric[Any, Any], counts: Sequence[Counts], times: int) -> list[Ratio]:
    """The figures of all seeds together, multiplied so that both sides weigh the same."""
    from spmrl_bench.scoring.significance import Ratio

    return [
        Ratio(
            each[0].name,
            times * sum(ratio.numerator for ratio in each),
            times * sum(ratio.denominator for ratio in each),
        )
        for each in zip(*map(scorer.ratios, counts), strict=True)
    ]


def _over_seeds(scorer: Metric[Any, Any], sides: Sequence[_Side]) -> dict[str, Any]:
    """Means over the seeds and the p of their difference; empty without several on both sides."""
    from spmrl_bench.scoring.significance import permutation

    values = [[scorer.ratios(one)[0].value or 0.0 for one in side.counts] for side in sides]
    if min(map(len, values)) < 2:
        return {}
    texts = [f"{statistics.fmean(one):.2f} ± {statistics.stdev(one):.2f}" for one in values]
    return {"A": texts[0], "B": texts[1], "p": permutation(*values)}


def _shown(interval: Interval, sign: str = "") -> str:
    return f"[{interval.low:{sign}.2f}, {interval.high:{sign}.2f}]"
