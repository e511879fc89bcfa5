"""Commands that show how runs stand and what they say."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from spmrl_bench.cli.cleaning import RunsNamed
from spmrl_bench.cli.cleaning import runs as runs_app
from spmrl_bench.cli.options import RunsFolder, check_choice, print_rows
from spmrl_bench.errors import SpmrlError
from spmrl_bench.process.signals import Interrupted

if TYPE_CHECKING:
    from rich.text import Text

    from spmrl_bench.experiments.run_state import RunState

_REFRESH = 2.0  # seconds

RunName = Annotated[
    str,
    typer.Argument(metavar="RUN", help="A run: its path, or what `spmrl-bench runs` calls it."),
]


@runs_app.command("list")
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
    watch: Annotated[
        bool, typer.Option("--watch", help="Show them again every two seconds, until Ctrl-C.")
    ] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print a JSON object for each run, one a line.")
    ] = False,
) -> None:
    """List runs: in what state each is, where it runs, how far it is and how good so far.

    This is what `spmrl-bench runs` does without another word. The time that a run takes at most
    is reckoned from the epochs and minutes that its recipe allows; most runs stop before.

    Examples:

        spmrl-bench runs

        spmrl-bench runs --state failed --state interrupted

        spmrl-bench runs --watch runs/german-mini
    """
    from spmrl_bench.experiments.run_listing import HEADINGS, counts, json_line, row
    from spmrl_bench.experiments.run_state import STATES

    for each in state or ():
        check_choice("state", each, STATES)
    if watch:
        if as_json or not sys.stdout.isatty():
            raise SpmrlError("--watch is for a terminal; give the command again, or use --json")
        _watch(names, runs, state)
        return
    found = _looked_at(names, runs, state)
    if as_json:
        for run in found:
            typer.echo(json_line(run, runs))
        return
    if found:
        print_rows(HEADINGS, (row(run, runs) for run in found))
    typer.echo(counts(found))


@runs_app.command()
def log(
    name: RunName,
    runs: RunsFolder = Path("runs"),
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Go on until the run has ended, or Ctrl-C.")
    ] = False,
) -> None:
    """Print what a run has said: its evaluations, and what it failed of.

    Example:

        spmrl-bench runs log german-mini/small-charlstm-seed1 --follow
    """
    from spmrl_bench.experiments.run_log import log_of
    from spmrl_bench.experiments.run_search import run_named

    try:
        for piece in log_of(run_named(name, runs).folder, follow=follow):
            typer.echo(piece, nl=False)
    except KeyboardInterrupt as stopped:
        _unless_asked(stopped)


def _looked_at(
    names: list[Path] | None, runs_dir: Path, wanted: list[str] | None
) -> list[RunState]:
    """The states of the runs that were asked for."""
    from spmrl_bench.experiments.run_search import run_named, states

    found: dict[Path, RunState] = {}
    for place in names or [runs_dir]:
        below = runs_dir / place
        if names and not place.is_dir() and not below.is_dir():
            run = run_named(str(place), runs_dir)
            found[run.folder] = run
            continue
        for run in states(place if place.is_dir() or not names else below):
            found[run.folder] = run
    return [run for run in found.values() if not wanted or run.state in wanted]


def _watch(names: list[Path] | None, runs_dir: Path, wanted: list[str] | None) -> None:
    """Show the runs until Ctrl-C, as many as there is room for, those that go on first."""
    from rich.console import Console
    from rich.live import Live

    console = Console()
    try:
        with Live(console=console, auto_refresh=False, screen=False) as live:
            while True:
                found = _looked_at(names, runs_dir, wanted)
                live.update(_screen(found, runs_dir, console.height), refresh=True)
                time.sleep(_REFRESH)
    except KeyboardInterrupt as stopped:
        _unless_asked(stopped)


def _screen(found: list[RunState], runs_dir: Path, height: int) -> Text:
    from rich.text import Text
    from tabulate import tabulate

    from spmrl_bench.experiments.run_listing import HEADINGS, counts, row
    from spmrl_bench.experiments.run_state import STATES

    room = max(1, height - 5)  # below the headings, above the counts
    ordered = sorted(found, key=lambda run: STATES.index(run.state))
    rows = [row(run, runs_dir) for run in ordered[:room]]
    lines = tabulate(rows, headers=HEADINGS, tablefmt="simple", disable_numparse=True)
    more = f" ({len(found) - room:,} not shown)" if len(found) > room else ""
    return Text(f"{lines}\n{counts(found)}{more}", no_wrap=True, overflow="ellipsis")


def _unless_asked(stopped: KeyboardInterrupt) -> None:
    """Ctrl-C is how one stops looking; SIGTERM is not."""
    import signal

    if isinstance(stopped, Interrupted) and stopped.number != signal.SIGINT:
        raise stopped
