"""Commands about the folders of runs as such."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from spmrl_bench.cli.app import app
from spmrl_bench.cli.options import RunsFolder

RunsNamed = Annotated[
    list[Path] | None,
    typer.Argument(
        metavar="[RUN]...",
        help="Runs, or folders of runs. Default: all of `--runs`.",
        show_default=False,
    ),
]


class _ListByDefault(TyperGroup):
    """Lists runs where no command is named, whatever else is given."""

    def list_commands(self, ctx: Any) -> list[str]:
        return sorted(self.commands, key=("list", "log", "cancel", "clean").index)

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        # A shell that completes the line wants the names of the commands.
        known = {*self.commands, *self.get_help_option_names(ctx)}
        if not ctx.resilient_parsing and (not args or args[0] not in known):
            args = ["list", *args]
        return super().parse_args(ctx, args)


runs = typer.Typer(cls=_ListByDefault, rich_markup_mode="markdown")
app.add_typer(runs, name="runs")


@runs.callback()
def about() -> None:
    """See how training runs stand, steer them, and look after their folders.

    Without a command, runs are listed: `spmrl-bench runs` is `spmrl-bench runs list`.

    Examples:

        spmrl-bench runs

        spmrl-bench runs --watch

        spmrl-bench runs cancel german-mini/small-charlstm-seed1

        spmrl-bench runs clean --dry-run
    """


@runs.command()
def clean(
    names: RunsNamed = None,
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
