"""Search for settings: trials with values that are drawn, until there are as many as wanted.

A search is a folder beside the runs of its treebank: ``search.json``, and a run folder for each
trial. The file is the one store: Optuna draws from a study in memory that is made of it, with a
seed for each draw, so a search that was interrupted goes on with the trials that it would have had.
"""

from __future__ import annotations

import json
import math
import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from spmrl_bench.errors import (
    CheckpointError,
    RecipeError,
    SentenceTooLongError,
    SpmrlError,
    TrainingError,
)
from spmrl_bench.experiments.plan import make_runs
from spmrl_bench.experiments.recipe import load_recipe
from spmrl_bench.experiments.run_folder import MINUTES, differences, run_lock, unwritable
from spmrl_bench.experiments.train import train_run
from spmrl_bench.leaderboard.environment import find_versions
from spmrl_bench.leaderboard.searches import (
    SEARCH,
    SEARCHES,
    Search,
    SearchDocument,
    SearchTrial,
    TrialState,
    minutes_text,
    read_search,
)
from spmrl_bench.nn.device import choose_device
from spmrl_bench.parsers.legacy import FLAT, leaves
from spmrl_bench.process.console import say
from spmrl_bench.process.executors.backend import LOCAL, Backend
from spmrl_bench.process.executors.units import Outcome, Unit, run_units
from spmrl_bench.scoring.metric import SelectionMetric
from spmrl_bench.scoring.signature import settings_folder
from spmrl_bench.storage.files import write_text
from spmrl_bench.training import LAST
from spmrl_bench.training.schedule import PRUNED, read_progress

if TYPE_CHECKING:
    from optuna import Study

#: Trials whose settings are drawn before any is judged or learnt from.
FIRST_TRIALS = 5

# Draws until one is new, and those of them that learn from earlier trials.
_DRAWS, _LEARNT = 60, 10
# Errors that say that the settings of a trial are no good.
_OWN_FAULT = (TrainingError, SentenceTooLongError, RecipeError)
_RANGE = re.compile(r"\s*(log|int|[-+.\d][-+.\de]*)\s*:", re.IGNORECASE)

Value = str | int | float  # of a trial: a number of a range, or the text of a choice


def read_space(given: Mapping[str, str]) -> tuple[dict[str, str], dict[str, Any]]:
    """The settings that all trials have, and what is searched, by key: any number between two ends
    (``LOW:HIGH``), one whose logarithm is drawn (``log:LOW:HIGH``), a whole number
    (``int:LOW:HIGH``), or one of some values (``A|B|C``)."""
    fixed, space = dict[str, str](), dict[str, Any]()
    for key, text in sorted(given.items()):
        try:
            searched = _distribution(text)
        except ImportError:
            problem = "a search needs optuna: pip install 'spmrl-bench[search]'"
            raise SpmrlError(problem) from None
        except ValueError:
            raise RecipeError(
                f"--set {key}={text}: expected LOW:HIGH, the smaller finite number first; "
                "int:LOW:HIGH with whole ones, log:LOW:HIGH above 0; or different values A|B|C"
            ) from None
        if searched is None:
            fixed[key] = text
        elif key in (MINUTES, "train.evaluations_per_epoch"):
            problem = "trials are compared at the same time and evaluations; give all one value"
            raise RecipeError(f"--set {key}: {problem}")
        else:
            space[key] = searched
    if not space:
        raise RecipeError(
            "nothing to search: give a setting several values, such as "
            "--set train.learning_rate=log:1e-4:5e-3 or --set 'train.batch_size=8|16|32'"
        )
    return fixed, space


def _distribution(text: str) -> Any:
    """What a value says is searched; None for one value. A ValueError says it is neither."""
    from optuna import distributions

    choices = [value.strip() for value in text.split("|")]
    if len(choices) > 1:
        if not all(choices) or len(set(choices)) < len(choices):
            raise ValueError
        return distributions.CategoricalDistribution(choices)
    if not _RANGE.match(text):
        return None  # it may have colons, as the name of a file
    *kind, low, high = (part.strip() for part in text.split(":"))
    if kind == ["int"]:
        return distributions.IntDistribution(int(low), int(high))
    if kind not in ([], ["log"]) or not math.isfinite(float(high) - float(low)):
        raise ValueError
    return distributions.FloatDistribution(float(low), float(high), log=kind == ["log"])


def notation(distribution: Any) -> str:
    """How the command line writes what is searched, the same for all ways to write it."""
    if hasattr(distribution, "choices"):
        return "|".join(distribution.choices)
    kind = "int:" if isinstance(distribution.low, int) else "log:" if distribution.log else ""
    return f"{kind}{distribution.low}:{distribution.high}"


def probes(distribution: Any) -> tuple[Value, ...]:
    """All choices; or the ends, and a number between them that is not round."""
    if hasattr(distribution, "choices"):
        return tuple(distribution.choices)
    low, high = distribution.low, distribution.high
    return low, type(low)(low + 0.382 * (high - low)), high


class Tried(NamedTuple):
    """What the folder of a trial says of it."""

    minutes: float
    state: TrialState = "running"
    dev: float | None = None
    curve: Sequence[float] = ()  # the scores of all evaluations


@dataclass(frozen=True)
class SearchPlan:
    """A search over one variant of a recipe on one treebank."""

    make: Callable[..., Sequence[Any]]  # the one run with the ``settings`` of a trial
    first: Any  # the run with the first value of all that is searched
    fixed: Mapping[str, str]  # what all trials have
    space: Mapping[str, Any]  # what is searched, by key
    sampler: str
    pruner: str
    #: A choice as it was given, by key and what the recipe makes of it: 1e-3 of 0.001.
    texts: dict[str, Value] = field(default_factory=dict)

    @property
    def select(self) -> str:
        """What trials are compared by."""
        return str(self.first.config.select)

    def run(self, values: Mapping[str, Value]) -> Any:
        """The run of a trial; a RecipeError says that its values are refused together."""
        settings = {**self.fixed, **{key: str(value) for key, value in values.items()}}
        (run,) = self.make(settings=settings)
        return replace(run, treebank=self.first.treebank)

    def recipe(self, run: Any) -> dict[str, Any]:
        """What a record of a run has as its recipe, and its treebank."""
        return run.config.model_dump(mode="json")

    def divided(self, run: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        """Settings as in JSON, those of the parser by dotted key, without what is searched."""
        found, searched = self.recipe(run), {}
        found["model"] = leaves(found["model"])
        for key in self.space:
            section, _, name = key.partition(".")
            # An old name of a setting of the parser stands for several.
            places = [name, *(FLAT.get(name, ()) if section == "model" else ())]
            values = [found[section].pop(place) for place in places if place in found[section]]
            if not values:
                raise RecipeError("it does not change what is learnt")
            searched[key] = values[0]
            for table in ("settings", "files"):
                found[table].pop(key, None)
        return found, searched

    def values_of(self, trial: SearchTrial) -> dict[str, Value]:
        """The values of a trial as they were drawn."""
        found = {key: trial.settings[key] for key in self.space}
        return {key: self.texts.get(f"{key}={value}", value) for key, value in found.items()}

    def folder(self, runs_dir: Path) -> Path:
        """The folder of the search; its name has what makes it another."""
        given: dict[str, Any] = dict(self.fixed)
        for key, searched in self.space.items():
            given[key] = notation(searched).replace("|", ":").split(":")
        first = self.first.config
        parts = (settings_folder(given), self.sampler, self.pruner, f"seed{first.seed}")
        return runs_dir / first.treebank / "-".join((SEARCHES + first.size, self.name, *parts))

    @property
    def name(self) -> str:
        """Of what is trained, in the name of the folder."""
        return str(self.first.config.variant)

    @property
    def options(self) -> Sequence[str]:
        """The options of ``train`` that ask for that."""
        return "--variant", self.name

    def train(self, number: int, folder: Path) -> Callable[..., None]:
        """What trains a trial by its number, in the folder of the search."""
        return partial(train_run, prune=partial(falls_behind, self, folder, number))

    def tried(self, folder: Path) -> Tried | None:
        """What the folder of a trial says, None before it says anything."""
        if (progress := read_progress(folder / LAST)) is None:
            return None
        spent = (progress.train_seconds + progress.dev_seconds) / 60
        curve = [score for _, score in progress.curve]
        if progress.stopped_by is None:
            return Tried(spent, curve=curve)
        state: TrialState = "pruned" if progress.stopped_by == PRUNED else "complete"
        return Tried(spent, state, progress.best_score, curve)

    def command(self, lang: str, best: SearchTrial, runs: Path) -> str:
        """The command line that trains the settings of a trial."""
        config = self.first.config
        words = ["spmrl-bench", "train", lang, "--treebank", config.treebank]
        words += [*self.options, "--size", config.size, "--seed", str(config.seed)]
        for key, value in {**self.fixed, **best.settings}.items():
            words += ["--set", f"{key}={_text(value)}"]
        return shlex.join([*words, *(["--runs", str(runs)] if runs != Path("runs") else [])])


def trials_report(found: Search) -> str:
    """A table of all trials, what is wrong with those that failed, and how many there are."""
    from tabulate import tabulate

    names = [key.rpartition(".")[2] for key in found.space]
    heads = ["trial", *names, f"dev {SelectionMetric.parse(found.select).title}", "state"]
    rows = []
    for one in found.trials:
        values = (_text(one.settings[key]) for key in found.space)
        dev = "" if one.dev is None else f"{one.dev:.2f}"
        rows.append((str(one.number), *values, dev, one.state, f"{one.minutes:.1f}"))
    lines = [tabulate(rows, [*heads, "minutes"], tablefmt="simple", disable_numparse=True)]
    lines += [f"trial {one.number}: {one.problem}" for one in found.trials if one.problem]
    ended = [f"{found.count('complete')} complete"]
    ended += [f"{n} {state}" for state in ("pruned", "failed") if (n := found.count(state))]
    spent = minutes_text(found.minutes)
    return "\n".join([*lines, f"\n{len(rows)} trials ({', '.join(ended)}), {spent} in all"])


def _text(value: Any) -> str:
    """A value as the command line takes it."""
    return value if isinstance(value, str) else json.dumps(value)


def plan_search(
    lang: str,
    *,
    settings: Mapping[str, str],
    seed: int = 1,
    sampler: str = "tpe",
    pruner: str = "median",
    make: Callable[..., Sequence[Any]] = make_runs,
    of: type[SearchPlan] = SearchPlan,
    **chosen: Any,
) -> SearchPlan:
    """Try the recipe on both ends of every range, a number between them, and every choice, so that
    nothing is refused after hours. Options ``chosen`` besides, and errors, are those of what makes
    the runs, such as :func:`~spmrl_bench.experiments.plan.make_runs`."""
    fixed, space = read_space(settings)
    first = {key: probes(searched)[0] for key, searched in space.items()}
    given = {**fixed, **{key: str(value) for key, value in first.items()}}
    asked = {"lang": lang, "seeds": [seed], **chosen}
    run, *others = make(**asked, settings=given)
    if others:
        variants = ", ".join(load_recipe(lang).variants)
        problem = "a search is over one variant: name it with --variant. The recipe has"
        raise RecipeError(f"{problem}: {variants}")
    asked |= {"treebank": run.config.treebank, "track": None}
    work = of(partial(make, **asked), run, fixed, space, sampler, pruner)
    for key, searched in space.items():
        for value in probes(searched):
            try:
                _, found = work.divided(work.run({**first, key: value}))
            except RecipeError as error:
                hint = "; of whole numbers int:LOW:HIGH is a range" * isinstance(value, float)
                text = f"--set {key}={notation(searched)}: {value} is refused: {error}{hint}"
                raise RecipeError(text) from None
            if isinstance(value, str):
                work.texts[f"{key}={found[key]}"] = value
    return work


def run_search(
    work: SearchPlan,
    *,
    runs_dir: Path,
    trials: int,
    jobs: int = 1,
    on: Backend = LOCAL,
    device: str = "auto",
) -> Search:
    """Search until there are so many trials, those of earlier calls included; those that have begun
    and not ended go on first. With one of ``jobs`` at a time, the same search has the same trials.
    A SpmrlError says that the folder is of another search or process, or that a trial cannot go on
    for no fault of its own. On Ctrl-C and SIGTERM every trial has saved where it is."""
    if on.is_local:
        choose_device(device)
    folder = work.folder(runs_dir if on.is_local else runs_dir.absolute())
    with run_lock(folder):
        document = _document(work, folder)
        begun, in_work = document.search.trials, dict[Unit, int]()

        def next_unit() -> Unit | None:
            if len(in_work) >= jobs:
                return None
            left = (trial for trial in begun if trial.state == "running")
            trial = next((one for one in left if one.number not in in_work.values()), None)
            while trial is None or trial.state == "failed":
                values = draw(work, folder, begun) if len(begun) < trials else None
                if values is None:
                    return None
                begun.append(SearchTrial(number=len(begun) + 1, settings=values, state="running"))
                try:
                    drawn = work.run(values)
                    begun[-1].settings.update(work.divided(drawn)[1])
                    document.recipes[len(begun)] = work.recipe(drawn)
                    _write(work, folder, document)
                except RecipeError as error:
                    _write(work, folder, document, {len(begun): error})
                trial = begun[-1]
            place = trial_folder(folder, trial.number)
            run = replace(work.run(work.values_of(trial)), folder=place, note="")
            title = f"trial {trial.number} of {trials}: {run.title}"
            unit = Unit(title, work.train(trial.number, folder), (run,), folder=place)
            in_work[unit] = trial.number
            return unit

        def on_end(outcome: Outcome) -> None:
            number = in_work.pop(outcome.unit)
            _write(work, folder, document, {number: outcome.error})
            if outcome.error is None:
                say(f"trial {number} of {trials}: {begun[number - 1].state}")
            elif begun[number - 1].state != "failed":
                raise outcome.error

        _write(work, folder, document)
        say(work.first.note)
        executor = on.executor(jobs, device=device, shared=folder.parent)
        try:
            run_units([], executor, next_unit=next_unit, on_end=on_end)
        finally:
            _write(work, folder, document)
        if len(begun) < trials:
            say(f"no settings are left that none of the {len(begun)} trials has had")
        return document.search


def trial_folder(folder: Path, number: int) -> Path:
    """The run folder of a trial, numbered from 1, in that of its search."""
    return folder / "trials" / f"{number:03}"


def _document(work: SearchPlan, folder: Path) -> SearchDocument:
    """The document of the search that goes on, or of a new one."""
    config, earlier = work.first.config, read_search(folder)
    base, _ = work.divided(work.first)
    if earlier is None:
        search = Search(
            space={key: notation(searched) for key, searched in work.space.items()},
            sampler=work.sampler,
            pruner=work.pruner,
            seed=config.seed,
            treebank=config.treebank,
            select=work.select,
            trials=[],
        )
        return SearchDocument(search=search, base=base, recipes={}, versions=find_versions())
    # A setting that is newer than the search, and not given, differs in nothing.
    if differing := differences({"base": earlier.base}, {"base": base}):
        raise CheckpointError(
            f"{folder}: holds another search: {'; '.join(differing)}. Choose another --runs "
            "folder, move that one away, or give the earlier settings"
        )
    return earlier.model_copy(update={"versions": find_versions()})


def _write(
    work: SearchPlan,
    folder: Path,
    document: SearchDocument,
    errors: Mapping[int, Exception | None] = {},
) -> None:
    """Write the document, with what the folders and errors of running trials say of them."""
    for number, trial in enumerate(document.search.trials, start=1):
        if trial.state != "running":
            continue
        found: dict[str, Any] = {}
        if tried := work.tried(trial_folder(folder, number)):
            found = {"minutes": round(tried.minutes, 4), "state": tried.state, "dev": tried.dev}
        if isinstance(error := errors.get(number), _OWN_FAULT):
            found |= {"state": "failed", "problem": str(error).partition("\n")[0]}
        document.search.trials[number - 1] = trial.model_copy(update=found)
    try:
        write_text(folder / SEARCH, document.model_dump_json(indent=1) + "\n")
    except OSError as error:
        raise unwritable(folder, error) from None


def draw(work: SearchPlan, folder: Path, trials: Sequence[SearchTrial]) -> dict[str, Value] | None:
    """Values that no trial has had yet, as a function of the seed and of the trials so far."""
    from optuna.samplers import RandomSampler, TPESampler

    known = [work.values_of(trial) for trial in trials]
    for number in range(_DRAWS):
        mixed = np.random.SeedSequence([work.first.config.seed, len(trials), number])
        seed = int(mixed.generate_state(1)[0])
        learns = work.sampler == "tpe" and number < _LEARNT
        sampler = TPESampler(seed=seed, n_startup_trials=FIRST_TRIALS) if learns else None
        study = _study(work, folder, trials, sampler or RandomSampler(seed=seed))
        drawn = study.ask(dict(work.space)).params
        values: dict[str, Value] = {key: drawn[key] for key in work.space}
        for key, searched in work.space.items():
            if isinstance(value := drawn[key], float):  # four digits are read easily
                values[key] = min(searched.high, max(searched.low, float(f"{value:.4g}")))
        if values not in known:
            return values
    return None


def falls_behind(work: SearchPlan, folder: Path, number: int, point: int, score: float) -> bool:
    """Whether a trial, by its number, is to end: after its first epoch, if its best score on dev is
    below the median of those of the complete trials at this
    :func:`~spmrl_bench.training.schedule.evaluation_point`; scores are in percent."""
    from optuna.pruners import MedianPruner

    if work.pruner == "none" or (document := read_search(folder)) is None:
        return False
    warm_up = work.first.config.train.evaluations_per_epoch
    pruner = MedianPruner(n_startup_trials=FIRST_TRIALS, n_warmup_steps=warm_up)
    study = _study(work, folder, document.search.trials)
    own = study.trials[number - 1]
    own.intermediate_values[point] = score
    return pruner.prune(study, own)


def _study(
    work: SearchPlan, folder: Path, trials: Sequence[SearchTrial], sampler: Any = None
) -> Study:
    """The trials as Optuna has them, with their curves on dev."""
    import optuna

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    states = {each.name.lower(): each for each in optuna.trial.TrialState}
    states["failed"] = states["fail"]
    study = optuna.create_study(direction="maximize", sampler=sampler)
    for trial in trials:
        tried = work.tried(trial_folder(folder, trial.number))
        curve = tried.curve if tried is not None else ()
        study.add_trial(
            optuna.trial.create_trial(
                state=states[trial.state],
                value=trial.dev if trial.state == "complete" else None,
                params=work.values_of(trial),
                distributions=dict(work.space),
                intermediate_values=dict(enumerate(curve, start=1)),
            )
        )
    return study
