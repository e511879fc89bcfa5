"""Commands that train and evaluate parsers."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

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
    chosen_seeds,
    name_left_out,
    parse_settings,
    raise_all,
    required_lang,
)
from spmrl_bench.errors import SpmrlError

if TYPE_CHECKING:
    from spmrl_bench.experiments.plan import Run
    from spmrl_bench.systems.run import SystemRun


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
    from spmrl_bench.experiments.train import train_all
    from spmrl_bench.process.executors.backend import parse_backend

    backend = parse_backend(on)
    work = _runs(
        lang, system, variant, minutes, settings, runs_dir=runs, treebank=treebank, track=track,
        size=size, seeds=chosen_seeds(seed, seeds),
    )  # fmt: skip
    train_all(work, device=device, fresh=fresh, jobs=jobs, on=backend)


def _runs(
    lang: str | None,
    system: str | None,
    variants: list[str] | None,
    minutes: float | None,
    settings: list[str] | None,
    **options: Any,
) -> Sequence[Run | SystemRun]:
    """The runs that the options of `train` and `eval` name."""
    from spmrl_bench.experiments.plan import make_runs

    if system is None:
        given = parse_settings(settings, minutes)
        return make_runs(required_lang(lang), variants=variants, settings=given, **options)
    if variants:
        raise SpmrlError("--variant: not for the parsers of others (--system)")
    from spmrl_bench.systems.description import load_system
    from spmrl_bench.systems.run import system_runs

    known, given = load_system(system), parse_settings(settings)
    return system_runs(required_lang(lang), known, settings=given, minutes=minutes, **options)


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

        spmrl-bench eval basque --system udpipe --minutes 10
    """
    from spmrl_bench.experiments.score import KnownRecords, evaluate_all
    from spmrl_bench.leaderboard.published import load_published
    from spmrl_bench.leaderboard.tables import results_markdown
    from spmrl_bench.process.executors.backend import parse_backend

    backend = parse_backend(on)
    if system is not None and ensemble:
        raise SpmrlError("--ensemble: not for the parsers of others (--system)")
    work = _runs(
        lang, system, variant, minutes, settings, runs_dir=runs, treebank=treebank, track=track,
        size=size, seeds=chosen_seeds(seed, seeds),
    )  # fmt: skip
    known = KnownRecords(results)
    published, wrong = load_published()
    name_left_out([*known.problems.values(), *wrong], strict)
    records, errors = evaluate_all(
        work,
        known,
        device=device,
        ensemble=ensemble,
        jobs=jobs,
        on=backend,
        save_parses=save_parses,
    )
    raise_all(errors)
    typer.echo(results_markdown(records, published), nl=False)
