"""The command that lets all parsers compete."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from spmrl_bench.cli.app import app
from spmrl_bench.cli.options import (
    Device,
    On,
    ResultsFolder,
    RunsFolder,
    SaveParses,
    Seeds,
    Size,
    StrictFiles,
    Variant,
    chosen_seeds,
    name_left_out,
    raise_all,
    say_line,
)


@app.command()
def leaderboard(
    track: Annotated[str, typer.Argument(help="spmrl, ptb, ctb, open or mini.")] = "open",
    minutes: Annotated[
        float, typer.Option(min=0, help="That each training may take, by the clock.")
    ] = 10.0,
    languages: Annotated[
        str | None,
        typer.Option(help="Only these recipes, in this order, with commas between."),
    ] = None,
    treebank: Annotated[
        list[str] | None, typer.Option(help="Only this treebank; may be repeated.")
    ] = None,
    variant: Variant = None,
    system: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="Only this parser of somebody else, or `none`; may be repeated. Default: all that "
            "are installed and trained here.",
            show_default=False,
        ),
    ] = None,
    size: Size = None,
    seeds: Seeds = None,
    jobs: Annotated[int, typer.Option(min=1, help="Trainings at once.")] = 1,
    on: On = None,
    device: Device = "auto",
    runs: RunsFolder = Path("runs"),
    results: ResultsFolder = Path("results"),
    save_parses: SaveParses = False,
    strict: StrictFiles = False,
) -> None:
    """Let our parsers and those of others compete on every treebank of a track.

    Each trains on the same split with the same time and as many threads as the others, and is
    scored by the same scorer. Given again, the command goes on where it was; what fails is named at
    the end and stops nothing else. Printed at the end: for each treebank whether our best entry is
    ahead of the best of the others, with significance. `table` and `site` show all of it.

    Examples:

        spmrl-bench leaderboard open --minutes 10 --jobs 2

        spmrl-bench leaderboard mini --languages german --system udpipe --minutes 2
    """
    from spmrl_bench.experiments.plan import plan_board
    from spmrl_bench.experiments.run_folder import MINUTES
    from spmrl_bench.experiments.score import KnownRecords
    from spmrl_bench.experiments.train import train_and_evaluate
    from spmrl_bench.leaderboard.board import load_results
    from spmrl_bench.leaderboard.formats import Document, to_markdown
    from spmrl_bench.leaderboard.tables import ours_and_others, ours_and_others_table
    from spmrl_bench.process.executors.backend import parse_backend
    from spmrl_bench.systems.description import load_system, system_paths
    from spmrl_bench.systems.install import is_installed, version_of
    from spmrl_bench.systems.run import system_runs

    backend = parse_backend(on)
    if system is None:
        installed = map(load_system, system_paths())
        others = [one for one in installed if one.train and is_installed(one)]
    else:
        others = [load_system(name) for name in system if system != ["none"]]
    for one in others:
        version_of(one)  # raises where it is not installed
    known = KnownRecords(results)
    name_left_out([*known.problems.values()], strict)
    work = plan_board(
        track,
        languages=[name.strip() for name in (languages or "").split(",") if name.strip()],
        treebanks=treebank,
        variants=variant,
        others=[(one.layer, partial(system_runs, system=one, minutes=minutes)) for one in others],
        settings={MINUTES: str(minutes)},
        size=size,
        seeds=chosen_seeds(None, seeds),
        runs_dir=runs,
    )
    competing: dict[str, list[str]] = {}
    for run in work:
        competing.setdefault(run.folder.parent.name, []).append(run.variant)
    for name, titles in competing.items():
        say_line(f"{name}: {', '.join(dict.fromkeys(titles))}")
    _, errors = train_and_evaluate(
        work, known, device=device, jobs=jobs, on=backend, save_parses=save_parses
    )
    groups = load_results([results]).groups
    table = ours_and_others_table(*ours_and_others(groups, {*competing}, minutes))
    typer.echo(to_markdown(Document(title="", tables=(table,))), nl=False)
    raise_all(errors)
