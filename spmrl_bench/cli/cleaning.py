"""Commands about the folders of runs as such."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from spmrl_bench.cli.app import app
from spmrl_bench.cli.options import RunsFolder

runs = typer.Typer(rich_markup_mode="markdown", no_args_is_help=True)
app.add_typer(runs, name="runs")


@runs.callback()
def about() -> None:
    """Look after the folders of training runs.

    Example:

        spmrl-bench runs clean --dry-run
    """


@runs.command()
def clean(
    names: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="[RUN]...",
            help="Runs, or folders of runs. Default: all of `--runs`.",
            show_default=False,
        ),
    ] = None,
    runs: RunsFolder = Path("runs"),
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what would be dropped, and drop nothing.")
    ] = False,
) -> None:
    """Drop the last checkpoints of finished runs, which only a run that goes on needs.

    The best parser, the settings and the log stay, and so does what says that the run has ended:
    `eval`, `parse` and all else work as before, and `train` does not train it again. Runs that
    have not ended, or could go on with more minutes, are left as they are, and so are those that
    another process trains.

    Examples:

        spmrl-bench runs clean --dry-run

        spmrl-bench runs clean runs/german-mini
    """
    from spmrl_bench.experiments.clean import clean_runs

    freed = cleaned = kept = 0
    for place in names or [runs]:
        for run in clean_runs(place, dry_run=dry_run):
            if run.kept:
                kept += 1
                typer.echo(f"{run.folder}: kept, {run.kept}")
                continue
            cleaned += 1
            freed += run.freed
            typer.echo(f"{run.folder}: {_megabytes(run.freed)}")
    verb = "would be freed" if dry_run else "freed"
    typer.echo(f"{_megabytes(freed)} {verb} in {_runs(cleaned)}, {_runs(kept)} kept")


def _megabytes(size: int) -> str:
    return f"{size / 1e6:,.1f} MB"


def _runs(number: int) -> str:
    return f"{number} run{'' if number == 1 else 's'}"
