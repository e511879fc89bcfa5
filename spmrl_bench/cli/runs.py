"""Commands about the folders of runs: how each stands, what it has said, and the room it takes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from spmrl_bench.cli.app import runs as group
from spmrl_bench.cli.options import RunsFolder, print_rows
from spmrl_bench.errors import SpmrlError, unknown_name
from spmrl_bench.process.console import echo

RunsNamed = Annotated[
    list[Path] | None,
    Argument(metavar="[RUN]...", help="Runs, or folders of runs. Default: all of '--runs'."),
]


@group.command("list")
def listing(
    names: RunsNamed = None,
    runs: RunsFolder = Path("runs"),
    state: list[str] | None = Option(
        None, help="Only running, failed, interrupted or done ones; may be repeated."
    ),
    as_json: bool = Option(False, "--json", help="Print a JSON object for each run, one a line."),
) -> None:
    """List runs: their state, machine, progress and score so far.

    'watch spmrl-bench runs list' shows how they go on; a process that is ended by 'kill' saves
    first.

    Example:
        spmrl-bench runs list --state failed --state interrupted
    """
    from spmrl_bench.experiments import run_folder as of

    for each in state or ():
        if each not in of.STATES:
            raise SpmrlError(f"--state: {unknown_name('state', each, of.STATES)}")
    folders: list[Path] = []
    for place in names or [runs]:
        inside = next((at for at in (place, runs / place) if at.is_dir()), place)
        found = of.find_runs(inside) if inside.is_dir() or not names else []
        folders += found or [of.run_named(str(place), runs)] if names else found
    looked_at = map(of.state_of, dict.fromkeys(folders))
    states = [run for run in looked_at if not state or run.state in state]
    if as_json:
        for run in states:
            echo(json.dumps({"run": of.shown(run.folder, runs), **vars(run)}, default=str))
        return
    if states:
        print_rows(of.HEADINGS, (of.row(run, runs) for run in states))
    echo(of.counts(states))


@group.command()
def log(
    name: str = Argument(..., metavar="RUN", help="Its path, or what 'runs list' calls it."),
    runs: RunsFolder = Path("runs"),
) -> None:
    """Print the log of a run: its evaluations, or why it failed.

    Example:
        spmrl-bench runs log german-mini/small-charlstm-seed1
    """
    from spmrl_bench.experiments.run_folder import log_of, run_named

    echo(log_of(run_named(name, runs)), nl=False)


@group.command()
def clean(
    names: RunsNamed = None,
    runs: RunsFolder = Path("runs"),
    dry_run: bool = Option(False, "--dry-run", help="Say what would be dropped, drop nothing."),
) -> None:
    """Delete the last checkpoints of finished runs.

    Only a run that goes on needs them. The best parser, the settings and the log stay, and so does
    what says that the run has ended: 'eval', 'parse' and all else work as before, and 'train' does
    not train it again. Runs that have not ended, or could go on with more minutes, are left as they
    are, and so are those that another process trains.

    Example:
        spmrl-bench runs clean runs/german-mini --dry-run
    """
    from spmrl_bench.experiments.run_folder import clean_runs

    def size(number: int) -> str:
        return f"{number / 1e6:,.1f} MB"

    answers = [run for place in names or [runs] for run in clean_runs(place, dry_run=dry_run)]
    for run in answers:
        echo(f"{run.folder}: {f'kept, {run.kept}' if run.kept else size(run.freed)}")
    cleaned, kept = (
        f"{number} run{'' if number == 1 else 's'}"
        for number in (sum(not run.kept for run in answers), sum(bool(run.kept) for run in answers))
    )
    verb = "would be freed" if dry_run else "freed"
    echo(f"{size(sum(run.freed for run in answers))} {verb} in {cleaned}, {kept} kept")
