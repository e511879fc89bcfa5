"""The commands that train and evaluate parsers, ours and others', on a treebank or on a track."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer import Option

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
    Track,
    TreebankName,
    Variants,
    name_left_out,
    parse_settings,
    raise_all,
    required_lang,
)
from spmrl_bench.cli.results import verdicts
from spmrl_bench.errors import SpmrlError

if TYPE_CHECKING:
    from spmrl_bench.experiments.score import AnyRun

Languages = Annotated[
    str | None,
    Option(metavar="LANG,...", help="Only these of the track. Default: all with a treebank here."),
]
SystemNames = Annotated[
    list[str] | None,
    Option("--system", metavar="NAME", help="An external parser instead of the variants, as "
           "'spmrl-bench systems list' has it, or its description (.toml); may be repeated. 'all': "
           "the variants and every one that is installed."),
]  # fmt: skip


@app.command()
def train(
    lang: Lang = None,
    track: Track = None,
    languages: Languages = None,
    treebank: TreebankName = None,
    variant: Variants = None,
    system: SystemNames = None,
    size: Size = None,
    seed: Seed = None,
    seeds: Seeds = None,
    minutes: Minutes = None,
    settings: Settings = None,
    jobs: Jobs = None,
    on: On = None,
    device: Device = "auto",
    runs: RunsFolder = Path("runs"),
    fresh: bool = Option(False, "--fresh", help="Delete what the run folders hold, start anew."),
) -> None:
    """Train a recipe's variants on a treebank, or on a whole track.

    The treebank is the first of the recipe that is present. The same command continues what was
    interrupted and leaves alone what is finished. A run that fails does not stop the others.

    Examples:

        spmrl-bench train german

        spmrl-bench train german --seeds 5 --jobs 2 --set model.matrices=full

        spmrl-bench train --track mini --variant charlstm

        spmrl-bench train --track open --system all --minutes 10
    """
    from spmrl_bench.experiments.train import train_all
    from spmrl_bench.process.executors.backend import parse_backend

    where = parse_backend(on)
    work, absent = _chosen(
        lang, track, languages, treebank, variant, system, minutes, settings, seed, seeds,
        size=size, runs_dir=runs,
    )  # fmt: skip
    for name, places in absent.items():
        typer.echo(f"absent: {name} ({places})", err=True)
    train_all(work, device=device, fresh=fresh, jobs=jobs, on=where)


@app.command("eval")
def evaluate(
    lang: Lang = None,
    track: Track = None,
    languages: Languages = None,
    treebank: TreebankName = None,
    variant: Variants = None,
    system: SystemNames = None,
    size: Size = None,
    seed: Seed = None,
    seeds: Seeds = None,
    minutes: Minutes = None,
    settings: Settings = None,
    jobs: int = Option(1, min=1, help="Runs scored at once."),
    on: On = None,
    device: Device = "auto",
    runs: RunsFolder = Path("runs"),
    results: ResultsFolder = Path("results"),
    ensemble: bool = Option(False, "--ensemble", help="Score all runs as one parser too."),
    save_parses: SaveParses = False,
    strict: StrictFiles = False,
) -> None:
    """Select a variant on dev and score it on test.

    Takes the options of 'train' and scores what it trained. Over several seeds the mean on dev
    selects. The test split is scored for the selected variant only. Each run leaves a record,
    which 'spmrl-bench results table' shows; what was scored before is not scored again.

    Examples:

        spmrl-bench eval german

        spmrl-bench eval german --seeds 5 --ensemble

        spmrl-bench eval --track open --system all --minutes 10
    """
    from spmrl_bench.experiments.score import KnownRecords, evaluate_all
    from spmrl_bench.leaderboard.board import load_results
    from spmrl_bench.leaderboard.multilingual import write_track
    from spmrl_bench.leaderboard.published import load_published
    from spmrl_bench.leaderboard.tables import results_markdown
    from spmrl_bench.process.executors.backend import parse_backend

    where = parse_backend(on)
    if system and ensemble:
        raise SpmrlError("--ensemble: not for external parsers (--system)")
    work, absent = _chosen(
        lang, track, languages, treebank, variant, system, minutes, settings, seed, seeds,
        size=size, runs_dir=runs,
    )  # fmt: skip
    known = KnownRecords(results)
    published, wrong = load_published()
    name_left_out([*known.problems.values(), *wrong], strict)
    records, errors = evaluate_all(
        work, known, device=device, ensemble=ensemble, jobs=jobs, on=where, save_parses=save_parses
    )
    if not records:
        raise_all(errors)
    if lang is not None or track is None:
        typer.echo(results_markdown(records, published), nl=False)
    else:
        groups = load_results([results]).groups
        typer.echo(write_track(groups, track, results, published))
        if system:
            typer.echo(verdicts(groups, track, minutes), nl=False)
        if absent:
            typer.echo(f"Absent: {', '.join(absent)}.")
    raise_all(errors)


def _chosen(
    lang: str | None,
    track: str | None,
    languages: str | None,
    treebank: str | None,
    variants: list[str] | None,
    system: list[str] | None,
    minutes: float | None,
    settings: list[str] | None,
    seed: int | None,
    seeds: int | None,
    **options: Any,
) -> tuple[Sequence[AnyRun], dict[str, str]]:
    """The runs that the options of 'train' and 'eval' name, and the recipes without treebank."""
    from spmrl_bench.experiments.plan import make_runs, plan_board, plan_track

    if lang is None and track is None:
        required_lang(lang)
    if seed is not None and seeds is not None:
        raise SpmrlError(f"--seed {seed} and --seeds {seeds}: give one of the two")
    options["seeds"] = list(range(1, seeds + 1)) if seeds else [1 if seed is None else seed]
    names = [name.strip() for name in (languages or "").split(",") if name.strip()]
    if lang is not None and names:
        raise SpmrlError(f"{lang} and --languages: give one of the two")
    if lang is None and treebank is not None and not system:
        raise SpmrlError(f"--treebank {treebank}: name its language too")
    given = parse_settings(settings, minutes)
    one_language = {"treebank": treebank, "track": track, **options}
    ours = not system or "all" in system
    if not system:
        if lang is not None:
            return make_runs(lang, variants=variants, settings=given, **one_language), {}
        return plan_track(str(track), languages=names, variants=variants, settings=given, **options)
    from spmrl_bench.systems.description import load_system, system_paths
    from spmrl_bench.systems.install import is_installed, version_of
    from spmrl_bench.systems.run import system_runs

    if variants and not ours:
        raise SpmrlError("--variant: not for external parsers (--system)")
    others = [load_system(name) for name in system if name != "all"]
    if ours:
        installed = [one for one in map(load_system, system_paths()) if is_installed(one)]
        others += [one for one in installed if one.train]
    for one in others:
        version_of(one)  # raises where it is not installed
    theirs = {} if ours else parse_settings(settings)
    makers = [
        (one.layer, partial(system_runs, system=one, minutes=minutes, settings=theirs))
        for one in others
    ]
    if lang is None:
        board = plan_board(
            str(track), languages=names, treebanks=[treebank] if treebank else None,
            variants=variants if ours else [], others=makers, settings=given, **options,
        )  # fmt: skip
        return board, {}
    own = make_runs(lang, variants=variants, settings=given, **one_language) if ours else []
    work: list[AnyRun] = [*own]
    for layer, make in makers:
        if not own or layer in own[0].treebank.layers:
            work += make(lang, **one_language)
    return work, {}
