"""Commands about the folders of runs: how each stands, what it has said, and the room it takes."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from spmrl_bench.cli.app import runs as group
from spmrl_bench.cli.options import RunsFolder, check_choice, print_rows

RunsNamed = Annotated[
    list[Path] | None,
    typer.Argument(
        metavar="[RUN]...",
        help="Runs, or folders of runs. Default: all of '--runs'.",
        show_default=False,
    ),
]


@group.command("list")
def listing(
    names: RunsNamed = None,
    runs: RunsFolder = Path("runs"),
    state: Annotated[
        list[str] | None,
        typer.Option(
            metavar="STATE",
            help="Only runs in this state: running, failed, interrupted or done; "
            "may be repeated. Default: all.",
            show_default=False,
        ),
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print a JSON object for each run, one a line.")
    ] = False,
) -> None:
    """List runs: their state, machine, progress and score so far.

    'watch spmrl-bench runs list' shows how they go on; a process that is ended by 'kill' saves
    first.

    Examples:

        spmrl-bench runs list

        spmrl-bench runs list --state failed --state interrupted
    """
    from spmrl_bench.experiments.listing import (
        HEADINGS,
        STATES,
        counts,
        find_runs,
        json_line,
        row,
        run_named,
        state_of,
    )

    for each in state or ():
        check_choice("state", each, STATES)
    folders: list[Path] = []
    for place in names or [runs]:
        inside = next((at for at in (place, runs / place) if at.is_dir()), place)
        found = find_runs(inside) if inside.is_dir() or not names else []
        folders += found or [run_named(str(place), runs)] if names else found
    looked_at = map(state_of, dict.fromkeys(folders))
    states = [run for run in looked_at if not state or run.state in state]
    if as_json:
        for run in states:
            typer.echo(json_line(run, runs))
        return
    if states:
        print_rows(HEADINGS, (row(run, runs) for run in states))
    typer.echo(counts(states))


@group.command()
def log(
    name: Annotated[
        str,
        typer.Argument(
            metavar="RUN", help="A run: its path, or what 'spmrl-bench runs list' calls it."
        ),
    ],
    runs: RunsFolder = Path("runs"),
) -> None:
    """Print the log of a run: its evaluations, or why it failed.

    Example:

        spmrl-bench runs log german-mini/small-charlstm-seed1
    """
    from spmrl_bench.experiments.listing import log_of, run_named

    typer.echo(log_of(run_named(name, runs)), nl=False)


@group.command()
def clean(
    names: RunsNamed = None,
    runs: RunsFolder = Path("runs"),
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what would be dropped, and drop nothing.")
    ] = False,
) -> None:
    """Delete the last checkpoints of finished runs.

    Only a run that goes on needs them. The best parser, the settings and the log stay, and so does
    what says that the run has ended: 'eval', 'parse' and all else work as before, and 'train' does
    not train it again. Runs that have not ended, or could go on with more minutes, are left as they
    are, and so are those that another process trains.

    Examples:

        spmrl-bench runs clean --dry-run

        spmrl-bench runs clean runs/german-mini
    """
    from spmrl_bench.experiments.listing import clean_runs

    answers = [run for place in names or [runs] for run in clean_runs(place, dry_run=dry_run)]
    for run in answers:
        typer.echo(f"{run.folder}: {f'kept, {run.kept}' if run.kept else _megabytes(run.freed)}")
    verb = "would be freed" if dry_run else "freed"
    kept = sum(bool(run.kept) for run in answers)
    freed = _megabytes(sum(run.freed for run in answers))
    typer.echo(f"{freed} {verb} in {_runs(len(answers) - kept)}, {_runs(kept)} kept")


def _megabytes(size: int) -> str:
    return f"{size / 1e6:,.1f} MB"


def _runs(number: int) -> str:
    return f"{number} run{'' if number == 1 else 's'}"
