"""Commands that train and evaluate parsers."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from spmrl_bench.cli.app import app
from spmrl_bench.cli.options import (
    Device,
    Jobs,
    Lang,
    Minutes,
    On,
    ResultsFolder,
    RunsFolder,
    SaveParses,
    Seed,
    Seeds,
    Settings,
    Size,
    StrictFiles,
    SystemName,
    Track,
    TreebankName,
    Variant,
    check_choice,
    chosen_seeds,
    name_left_out,
    parse_settings,
    required_lang,
    say_line,
)
from spmrl_bench.cli.systems import eval_systems, refuse_with_system, runs_of_system


@app.command()
def train(
    lang: Lang = None,
    treebank: TreebankName = None,
    track: Track = None,
    variant: Variant = None,
    size: Size = None,
    seed: Seed = None,
    seeds: Seeds = None,
    jobs: Jobs = None,
    on: On = None,
    device: Device = "auto",
    minutes: Minutes = None,
    settings: Settings = None,
    system: SystemName = None,
    runs: RunsFolder = Path("runs"),
    fresh: Annotated[
        bool, typer.Option("--fresh", help="Delete what the run folders hold and start anew.")
    ] = False,
) -> None:
    """Train the variants of a language's recipe on its first treebank that is present.

    A run that was interrupted continues where it stopped when the same command is given
    again; a finished one is not trained twice. A run that fails does not stop the others.

    Examples:

        spmrl-bench train german

        spmrl-bench train german --track mini --variant charlstm --seed 2

        spmrl-bench train german --seeds 5 --jobs 2 --set model.matrices=full

        spmrl-bench train german --minutes 20

        spmrl-bench train german --seeds 5 --on slurm:partition=gpu,gpus=1

        spmrl-bench train basque --system udpipe --minutes 10
    """
    if system is not None:
        refuse_with_system({"variant": variant, "on": on})
        from spmrl_bench.systems.together import train_systems

        theirs = runs_of_system(
            lang, system, runs, seed, seeds,
            treebank=treebank, track=track, size=size, settings=settings, minutes=minutes,
        )  # fmt: skip
        train_systems(theirs, device=device, jobs=jobs or 1, fresh=fresh, say=say_line)
        return
    from spmrl_bench.experiments.campaign import train_all
    from spmrl_bench.experiments.plan import make_plan
    from spmrl_bench.process.executors.where import parse_where

    where = parse_where(on)
    work = make_plan(
        required_lang(lang),
        treebank=treebank,
        track=track,
        variants=variant,
        size=size,
        seeds=chosen_seeds(seed, seeds),
        settings=parse_settings(settings, minutes),
    )
    train_all([work], runs_dir=runs, device=device, fresh=fresh, jobs=jobs, on=where)


@app.command("eval")
def evaluate(
    lang: Lang = None,
    treebank: TreebankName = None,
    track: Track = None,
    variant: Variant = None,
    size: Size = None,
    seed: Seed = None,
    seeds: Seeds = None,
    jobs: Annotated[int, typer.Option(min=1, help="Runs scored at once.")] = 1,
    on: On = None,
    device: Device = "auto",
    minutes: Minutes = None,
    settings: Settings = None,
    system: SystemName = None,
    runs: RunsFolder = Path("runs"),
    results: ResultsFolder = Path("results"),
    ensemble: Annotated[
        bool,
        typer.Option(
            "--ensemble", help="Also score all runs of the selected variant as one parser."
        ),
    ] = False,
    save_parses: SaveParses = False,
    by: Annotated[
        list[str] | None,
        typer.Option(
            help="Below the results, break the selected variant's test F1 down: by sentence "
            "`length`, `label` or length of the `span`; may be repeated. Keeps the parses.",
            show_default=False,
        ),
    ] = None,
    strict: StrictFiles = False,
) -> None:
    """Select the variant with the best dev F1, score it on test, and print the table.

    Takes the same options as `train` and scores what it trained. With several seeds, the mean
    over the seeds selects. The test split is scored for the runs of the selected variant only.
    Each run leaves a record in the results folder; `spmrl-bench table` shows all of them.

    Examples:

        spmrl-bench eval german

        spmrl-bench eval german --track mini --variant charlstm --seed 2

        spmrl-bench eval german --seeds 5 --ensemble

        spmrl-bench eval german --by label --by length

        spmrl-bench eval basque --system udpipe --minutes 10
    """
    if system is not None:
        refuse_with_system({"variant": variant, "on": on, "ensemble": ensemble, "by": by})
        theirs = runs_of_system(
            lang, system, runs, seed, seeds,
            treebank=treebank, track=track, size=size, settings=settings, minutes=minutes,
        )  # fmt: skip
        eval_systems(
            theirs, results, device=device, jobs=jobs, strict=strict, save_parses=save_parses
        )
        return
    from spmrl_bench.experiments.breakdowns import breakdowns, check_breakdowns
    from spmrl_bench.experiments.plan import make_plan
    from spmrl_bench.experiments.run import evaluate as run_evaluate
    from spmrl_bench.leaderboard.formats import to_markdown
    from spmrl_bench.leaderboard.published import load_published
    from spmrl_bench.leaderboard.record import load_records
    from spmrl_bench.leaderboard.tables import results_markdown
    from spmrl_bench.process.executors.where import parse_where
    from spmrl_bench.scoring.bracket_metric import BRACKETS

    where = parse_where(on)
    work = make_plan(
        required_lang(lang),
        treebank=treebank,
        track=track,
        variants=variant,
        size=size,
        seeds=chosen_seeds(seed, seeds),
        settings=parse_settings(settings, minutes),
    )
    ways = list(dict.fromkeys(by or ()))
    if ways:
        for way in ways:
            check_choice("by", way, BRACKETS.breakdowns)
        check_breakdowns(work)
    published, wrong = load_published()
    name_left_out([*load_records(results / "runs")[1], *wrong], strict)
    records = run_evaluate(
        work,
        runs_dir=runs,
        results_dir=results,
        device=device,
        ensemble=ensemble,
        jobs=jobs,
        on=where,
        save_parses=save_parses or bool(ways),
    )
    typer.echo(results_markdown(records, published), nl=False)
    if ways:
        parts = breakdowns(work, records, ways, runs_dir=runs, results_dir=results)
        typer.echo("\n" + to_markdown(parts), nl=False)
