"""The command that trains, scores and tabulates all languages of a track."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from spmrl_bench.cli.app import app
from spmrl_bench.cli.options import (
    Device,
    Jobs,
    On,
    ResultsFolder,
    RunsFolder,
    Seeds,
    Settings,
    Size,
    StrictFiles,
    Variant,
    chosen_seeds,
    name_left_out,
    parse_settings,
    raise_all,
)


@app.command()
def multilingual(
    track: Annotated[
        str, typer.Option(help="Track of the treebanks: spmrl, ptb, ctb, open or mini.")
    ],
    languages: Annotated[
        str | None,
        typer.Option(
            metavar="LANG,LANG,...",
            help="Only these recipes. Default: all with a treebank of the track that is present.",
        ),
    ] = None,
    variant: Variant = None,
    size: Size = None,
    seeds: Seeds = None,
    jobs: Jobs = None,
    on: On = None,
    device: Device = "auto",
    settings: Settings = None,
    runs: RunsFolder = Path("runs"),
    results: ResultsFolder = Path("results"),
    strict: StrictFiles = False,
) -> None:
    """Train and score the variants of every language of a track, and print one table of all.

    Writes multilingual-TRACK as .md, .csv and .tex to the results folder: the dev score of
    each variant, test scores of the one that dev selects, averages, and published figures. Given
    again after an interruption it continues; what is trained or scored is not done twice.

    Examples:

        spmrl-bench multilingual --track mini --seeds 2 --jobs 2

        spmrl-bench multilingual --track spmrl --languages german,french

        spmrl-bench multilingual --track spmrl --seeds 5 --on dask://scheduler:8786
    """
    from spmrl_bench.experiments.plan import plan_track
    from spmrl_bench.experiments.score import KnownRecords
    from spmrl_bench.experiments.train import train_and_evaluate
    from spmrl_bench.leaderboard.board import load_results
    from spmrl_bench.leaderboard.multilingual import write_track
    from spmrl_bench.leaderboard.published import load_published
    from spmrl_bench.process.executors.backend import parse_backend

    backend = parse_backend(on)
    work, absent = plan_track(
        track,
        languages=[name.strip() for name in (languages or "").split(",") if name.strip()],
        variants=variant,
        size=size,
        seeds=chosen_seeds(None, seeds),
        settings=parse_settings(settings),
        runs_dir=runs,
    )
    known = KnownRecords(results)
    if strict:  # before hours of training
        name_left_out([*known.problems.values(), *load_published()[1]], strict)
    for name, places in absent.items():
        typer.echo(f"absent: {name} ({places})", err=True)
    done, errors = train_and_evaluate(
        work, known, device=device, jobs=jobs, scored_at_once=jobs or 1, on=backend
    )
    if errors and not done:
        raise_all(errors)
    found = load_results([results])
    name_left_out(found.errors, strict)
    typer.echo(write_track(found.groups, track, results, found.published))
    seconds = sum(record.training.wall_seconds for record in done if record.training)
    typer.echo(f"Training time of {len(done)} runs: {_duration(seconds)}.")
    if absent:
        typer.echo(f"Absent: {', '.join(absent)}.")
    raise_all(errors)


def _duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minutes} min"
    return f"{minutes} min {rest} s" if minutes else f"{seconds:.1f} s"
