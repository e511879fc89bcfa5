"""The commands that train and evaluate parsers, ours and others', on a treebank or on a track."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial, wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Option

from spmrl_bench.cli import options
from spmrl_bench.cli.app import app
from spmrl_bench.cli.results import verdicts
from spmrl_bench.errors import SpmrlError
from spmrl_bench.process.console import echo

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


@dataclass(frozen=True)
class Selection:
    """The options of 'train' and 'eval' that say which runs."""

    lang: options.Lang = None
    track: options.Track = None
    languages: Languages = None
    treebank: options.TreebankName = None
    variant: options.Variants = None
    system: SystemNames = None
    size: options.Size = None
    seed: options.Seed = None
    seeds: options.Seeds = None
    minutes: options.Minutes = None
    settings: options.Settings = None

    def plan(self, runs_dir: Path) -> tuple[Sequence[AnyRun], dict[str, str]]:
        """The runs, and of each recipe without treebank the places that were looked in."""
        from spmrl_bench.experiments.plan import make_runs, plan_board, plan_track
        from spmrl_bench.experiments.recipe import recipe_of
        from spmrl_bench.systems import description
        from spmrl_bench.systems.run import system_runs

        lang, system = self.lang, self.system or []
        if lang is None and self.treebank is not None and not system:
            lang = recipe_of(self.treebank)
        if self.track is None:
            options.required_lang(lang)
        if self.seed is not None and self.seeds is not None:
            raise SpmrlError(f"--seed {self.seed} and --seeds {self.seeds}: give one of the two")
        names = [name.strip() for name in (self.languages or "").split(",") if name.strip()]
        if lang is not None and names:
            raise SpmrlError(f"{lang} and --languages: give one of the two")
        ours = not system or "all" in system
        if self.variant and not ours:
            raise SpmrlError("--variant: not for external parsers (--system)")
        given = options.parse_settings(self.settings, self.minutes)
        seeds = range(1, self.seeds + 1) if self.seeds else [1 if self.seed is None else self.seed]
        common: dict[str, Any] = {"size": self.size, "seeds": seeds, "runs_dir": runs_dir}
        own: dict[str, Any] = {"variants": self.variant if ours else [], "settings": given}
        if lang is None and not system:
            return plan_track(str(self.track), languages=names, **own, **common)
        others = [description.load_system(name) for name in system if name != "all"]
        if "all" in system:
            known, wrong = options.loaded_all(description.load_system, description.system_paths())
            options.name_left_out([*map(str, wrong)], strict=False)
            trained = (one for one in known.values() if one.train)
            others += filter(description.is_installed, trained)
        for one in others:
            description.version_of(one)  # raises where it is not installed
        theirs = {} if ours else options.parse_settings(self.settings)
        makers = [
            (one.layer, partial(system_runs, system=one, minutes=self.minutes, settings=theirs))
            for one in others
        ]
        if lang is None:
            common |= {"treebanks": [self.treebank] if self.treebank else None, "others": makers}
            return plan_board(str(self.track), languages=names, **own, **common), {}
        common |= {"treebank": self.treebank, "track": self.track}
        runs = make_runs(lang, **own, **common) if ours else []
        work: list[AnyRun] = [*runs]
        for layer, make in makers:
            if not runs or layer in runs[0].treebank.layers:
                work += make(lang, **common)
        return work, {}


def _selecting(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options of a Selection, its first argument, in front of its own."""
    _, *own = inspect.signature(command, eval_str=True).parameters.values()
    shared = inspect.signature(Selection, eval_str=True).parameters

    def with_selection(**given: Any) -> None:
        command(Selection(**{name: given.pop(name) for name in shared}), **given)

    made: Any = wraps(command)(with_selection)
    made.__signature__ = inspect.Signature([*shared.values(), *own])
    return made


@app.command()
@_selecting
def train(
    selected: Selection,
    jobs: options.Jobs = None,
    on: options.On = None,
    device: options.Device = "auto",
    runs: options.RunsFolder = Path("runs"),
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
    work, absent = selected.plan(runs)
    for name, places in absent.items():
        echo(f"absent: {name} ({places})", err=True)
    train_all(work, device=device, fresh=fresh, jobs=jobs, on=where)


@app.command("eval")
@_selecting
def evaluate(
    selected: Selection,
    jobs: int = Option(1, min=1, help="Runs scored at once."),
    on: options.On = None,
    device: options.Device = "auto",
    runs: options.RunsFolder = Path("runs"),
    results: options.ResultsFolder = Path("results"),
    ensemble: bool = Option(False, "--ensemble", help="Score all runs as one parser too."),
    save_parses: options.SaveParses = False,
    strict: options.StrictFiles = False,
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

    where, track = parse_backend(on), selected.track
    if selected.system and ensemble:
        raise SpmrlError("--ensemble: not for external parsers (--system)")
    work, absent = selected.plan(runs)
    known = KnownRecords(results, {run.treebank.name for run in work})
    published, wrong = load_published()
    options.name_left_out([*known.problems.values(), *wrong], strict)
    records, errors = evaluate_all(
        work, known, device=device, ensemble=ensemble, jobs=jobs, on=where, save_parses=save_parses
    )
    if not records:
        options.raise_all(errors)
    if selected.lang is not None or track is None:
        echo(results_markdown(records, published), nl=False)
    else:
        groups = load_results([results]).groups
        echo(write_track(groups, track, results, published))
        if selected.system:
            echo(verdicts(groups, track, selected.minutes), nl=False)
        if absent:
            echo(f"Absent: {', '.join(absent)}.")
    options.raise_all(errors)
