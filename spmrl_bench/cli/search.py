"""The command that searches for settings."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from spmrl_bench.cli.app import study as group
from spmrl_bench.cli.options import (
    Device,
    Lang,
    On,
    RunsFolder,
    Seed,
    Size,
    Track,
    TreebankName,
    check_choice,
    parse_settings,
    print_rows,
    required_lang,
    say_line,
)
from spmrl_bench.errors import SpmrlError

if TYPE_CHECKING:
    from spmrl_bench.experiments.search import SearchPlan
    from spmrl_bench.leaderboard.record import Search, SearchTrial


@group.command()
def search(
    lang: Lang = None,
    treebank: TreebankName = None,
    track: Track = None,
    variant: Annotated[
        str | None,
        typer.Option(help="The variant of the recipe; needed where there are several."),
    ] = None,
    size: Size = None,
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="KEY=VALUE",
            help="One value for all trials, or several to be searched: 'KEY=LOW:HIGH', "
            "'KEY=log:LOW:HIGH', 'KEY=int:LOW:HIGH', 'KEY=A|B|C'; may be repeated.",
        ),
    ] = None,
    trials: Annotated[int, typer.Option(min=1, help="Trials in all, earlier ones included.")] = 20,
    minutes: Annotated[
        float | None,
        typer.Option(
            min=0,
            help="End each trial, evaluation included, before so many minutes are over. With "
            "others it is another search.",
            show_default=False,
        ),
    ] = None,
    pruner: Annotated[
        str,
        typer.Option(help="What ends trials whose dev curve falls behind: 'median' or 'none'."),
    ] = "median",
    sampler: Annotated[
        str,
        typer.Option(
            help="What chooses settings: 'tpe', which learns from earlier trials, or 'random'."
        ),
    ] = "tpe",
    seed: Seed = None,
    jobs: Annotated[
        int,
        typer.Option(
            min=1,
            help="Trials at once, each with its share of the threads. Only one at a time are they "
            "the same in every repetition of the search.",
        ),
    ] = 1,
    on: On = None,
    device: Device = "auto",
    runs: RunsFolder = Path("runs"),
) -> None:
    """Search for the settings of a variant with the best dev score.

    Each trial is a run of the recipe with other settings; the test split stays closed. The same
    command goes on where it was interrupted, and with more '--trials' adds to them. At the end it
    prints all trials and the command that trains the best; the record of a run that has settings
    of a trial says how much was searched. It needs the extra 'search'.

    Examples:

        spmrl-bench study search german --variant charlstm --set train.learning_rate=log:1e-4:5e-3

        spmrl-bench study search german --variant charlstm --set model.layers=int:1:4 --minutes 5

        spmrl-bench study search german --variant charlstm --set 'train.batch_size=8|16' --trials 2
    """
    from spmrl_bench.experiments.search import PRUNERS, SAMPLERS, plan_search, run_search
    from spmrl_bench.process.executors.backend import parse_backend

    check_choice("pruner", pruner, PRUNERS)
    check_choice("sampler", sampler, SAMPLERS)
    where = parse_backend(on)
    work = plan_search(
        required_lang(lang),
        settings=parse_settings(settings, minutes),
        treebank=treebank,
        track=track,
        variant=variant,
        size=size,
        seed=1 if seed is None else seed,
        sampler=sampler,
        pruner=pruner,
    )
    found = run_search(
        work, runs_dir=runs, trials=trials, jobs=jobs, on=where, device=device, log=say_line
    )
    _print_trials(found)
    if (best := found.best) is None:
        raise SpmrlError(f"none of {len(found.trials)} trials came to its end")
    typer.echo(f"\nBest: trial {best.number}. To train it:\n")
    typer.echo(f"    {_command(str(lang), work, best, runs)}")


def _print_trials(found: Search) -> None:
    from spmrl_bench.leaderboard.record import minutes_text
    from spmrl_bench.scoring.metric import SelectionMetric

    names = {key: key.rpartition(".")[2] for key in found.space}
    title = SelectionMetric.parse(found.select).title
    print_rows(
        ("trial", *names.values(), f"dev {title}", "state", "minutes"),
        (
            (
                str(trial.number),
                *(_text(trial.settings[key]) for key in names),
                "" if trial.dev is None else f"{trial.dev:.2f}",
                trial.state,
                f"{trial.minutes:.1f}",
            )
            for trial in found.trials
        ),
    )
    for trial in found.trials:
        if trial.problem:
            typer.echo(f"trial {trial.number}: {trial.problem}")
    ended = [f"{found.count('complete')} complete"]
    ended += [f"{n} {state}" for state in ("pruned", "failed") if (n := found.count(state))]
    spent = minutes_text(found.minutes)
    typer.echo(f"\n{len(found.trials)} trials ({', '.join(ended)}), {spent} in all")


def _command(lang: str, work: SearchPlan, best: SearchTrial, runs: Path) -> str:
    """What trains the settings of a trial."""
    config = work.first.config
    words = ["spmrl-bench", "train", lang, "--treebank", config.treebank]
    words += ["--variant", config.variant, "--size", config.size, "--seed", str(config.seed)]
    settings: Mapping[str, Any] = {**work.fixed, **best.settings}
    for key, value in settings.items():
        words += ["--set", f"{key}={_text(value)}"]
    if runs != Path("runs"):
        words += ["--runs", str(runs)]
    return shlex.join(words)


def _text(value: Any) -> str:
    """A value as the command line takes it."""
    return value if isinstance(value, str) else json.dumps(value)
