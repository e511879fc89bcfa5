"""Commands that set two runs side by side."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from spmrl_bench.cli.app import app
from spmrl_bench.cli.options import (
    ResultsFolder,
    StrictFiles,
    check_choice,
    name_left_out,
    print_rows,
)
from spmrl_bench.errors import SpmrlError

if TYPE_CHECKING:
    from spmrl_bench.scoring.metric import Metric
    from spmrl_bench.scoring.significance import Comparison, Interval

RUN_HELP = "a file in results/runs, the beginning of its name, or a run folder."
First = Annotated[str, typer.Argument(metavar="RUN_A", help=f"Record of a run: {RUN_HELP}")]
Second = Annotated[str, typer.Argument(metavar="RUN_B", help="Record of another run, likewise.")]

FEW = 100  # sentences below which the bootstrap finds too many differences


@app.command()
def compare(
    first: First,
    second: Second,
    split: Annotated[
        str | None,
        typer.Option(
            help="`dev` or `test`. Default: `test` where both runs were scored on it, else `dev`."
        ),
    ] = None,
    metric: Annotated[
        str | None,
        typer.Option(help="By which metric. Default: the first that both runs were scored by."),
    ] = None,
    trials: Annotated[
        int, typer.Option(min=1, help="Random swaps and random draws of sentences.")
    ] = 10_000,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the random swaps and draws.")] = 0,
    form: Annotated[
        str, typer.Option("--format", help="What to print: `table` or `json`.")
    ] = "table",
    results: ResultsFolder = Path("results"),
    strict: StrictFiles = False,
) -> None:
    """Say whether the difference between the scores of two runs can be chance.

    Prints both scores with 95 % confidence intervals, the difference B - A, and the p of two
    tests on the counts of each sentence: approximate randomisation and paired bootstrap. Runs
    whose scores do not compare are refused, with the keys that differ.

    Examples:

        spmrl-bench compare runs/german-mini/small-charlstm-seed{1,2}

        spmrl-bench compare 5f3a 77c0 --split dev --trials 100000
    """
    import json
    from dataclasses import asdict

    from spmrl_bench.leaderboard.compare import (
        common_metric,
        common_split,
        comparable_counts,
        find_records,
    )
    from spmrl_bench.scoring import significance
    from spmrl_bench.scoring.metric import metric_named

    check_choice("format", form, ("table", "json"))
    (one, other), mistakes = find_records((first, second), results)
    name_left_out(mistakes, strict)
    split = split or common_split(one, other)
    scored_by = metric_named(metric or common_metric(one, other))
    both = comparable_counts(one, other, split, scored_by.name)
    pairs = zip(*map(scored_by.ratios, both), strict=True)
    # What is 0 of 0 cannot be compared, as the precision of parses without brackets.
    defined = [pair for pair in pairs if None not in (pair[0].value, pair[1].value)]
    if not defined:
        raise SpmrlError(f"nothing was counted by the metric {scored_by.name} on {split}")
    compared = significance.compare(*zip(*defined, strict=True), trials=trials, seed=seed)
    scores = [score for record in (one, other) if (score := record.result(split))]
    signatures = [score.metrics[scored_by.name].signature_long for score in scores]
    if form == "json":
        report = {
            "metric": scored_by.name,
            "split": split,
            "sentences": len(both[0]),
            "skipped": both[0].skipped,
            "trials": trials,
            "seed": seed,
            "level": significance.LEVEL,
            "figures": {result.name: asdict(result) for result in compared},
            "signatures": signatures,
        }
        typer.echo(json.dumps(report, indent=2))
        return
    _print_comparisons(compared, scored_by)
    best = compared[0]
    equal = len(both[0]) - best.better - best.worse
    typer.echo(
        f"\nB is better than A on {best.better:,} sentences of {split}, worse on {best.worse:,}, "
        f"equal on {equal:,} (by {scored_by.title(best.name)})."
    )
    if len(both[0]) < FEW:
        typer.echo(f"Fewer than {FEW} sentences: intervals and p bootstrap are rough.")
    if both[0].skipped:
        typer.echo(f"LEFT OUT of every figure: {both[0].skipped:,} sentences.")
    swaps = "all swaps" if best.exact else f"{trials:,} random swaps"
    typer.echo(
        f"Randomisation: {swaps}; bootstrap: {trials:,} draws; seed {seed}. Intervals: "
        f"{significance.LEVEL:g} %.\n"
    )
    for name, signature in zip("AB", signatures, strict=True):
        typer.echo(f"{name}: {signature}")


def _print_comparisons(compared: Sequence[Comparison], metric: Metric[Any, Any]) -> None:
    rows = [
        (
            metric.title(result.name),
            f"{result.one:.2f} {_shown(result.one_interval)}",
            f"{result.other:.2f} {_shown(result.other_interval)}",
            f"{result.difference:+.2f} {_shown(result.interval, '+')}",
            f"{result.p_randomisation:.4f}",
            f"{result.p_bootstrap:.4f}",
        )
        for result in compared
    ]
    print_rows(("", "A", "B", "B - A", "p randomisation", "p bootstrap"), rows)


def _shown(interval: Interval, sign: str = "") -> str:
    return f"[{interval.low:{sign}.2f}, {interval.high:{sign}.2f}]"


@app.command()
def explain(
    first: First,
    second: Second,
    results: ResultsFolder = Path("results"),
    strict: StrictFiles = False,
) -> None:
    """List what differs in the making of two runs: one line for each key.

    Compares the signatures of the scores, the treebanks, the resolved recipes, the versions and
    the machines. Prints nothing below the headings where all are the same.

    Examples:

        spmrl-bench explain 5f3a 77c0

        spmrl-bench explain runs/german-mini/small-charlstm-seed{1,2}
    """
    from spmrl_bench.leaderboard.compare import find_records, record_differences

    records, mistakes = find_records((first, second), results)
    name_left_out(mistakes, strict)
    print_rows(("key", "A", "B"), record_differences(*records))
