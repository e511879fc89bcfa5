"""Search for settings: trials with values that are drawn, until there are as many as wanted.

A search is a folder beside the runs of its treebank: ``search.json``, and a run folder for each
trial, so that nothing takes a trial for a run that was trained for its own sake. The file is the
one store: Optuna draws from a study in memory that is made of it, with a seed of its own for each
draw, so a search that was interrupted goes on with the trials that it would have had anyway. Curves
on dev, by which trials are ended early, stand in the event logs of the trials.
"""

from __future__ import annotations

import json
import signal
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from rich.console import Console

from spmrl_bench.errors import (
    CheckpointError,
    RecipeError,
    SentenceTooLongError,
    TrainingError,
    remedy,
)
from spmrl_bench.experiments.plan import Run
from spmrl_bench.experiments.run_folder import (
    SettingsMismatchError,
    differences,
    final_progress,
    run_lock,
)
from spmrl_bench.experiments.search_document import NAME, SearchDocument, read_search
from spmrl_bench.experiments.search_plan import (
    SearchPlan,
    Value,
    names_of,
    notation,
    probes,
    require_optuna,
    rounded,
    with_leaves,
)
from spmrl_bench.experiments.train import train_run
from spmrl_bench.leaderboard.environment import find_versions
from spmrl_bench.leaderboard.record import Search, SearchTrial, minutes_text
from spmrl_bench.nn.device import choose_device
from spmrl_bench.process.executors.backend import LOCAL, Backend, executor_for
from spmrl_bench.process.executors.base import Outcome, Unit, run_units
from spmrl_bench.process.signals import interrupt, on_signals
from spmrl_bench.storage.files import read_regular, write_text
from spmrl_bench.training import LAST
from spmrl_bench.training.schedule import PRUNED, read_progress

if TYPE_CHECKING:
    from optuna import Study
    from optuna.trial import FrozenTrial

#: Trials whose settings are drawn before any is judged or learnt from.
FIRST_TRIALS = 5

#: Draws until one is new, and those of them that learn from earlier trials.
_DRAWS, _LEARNT = 60, 10
#: Errors that say that the settings of a trial are no good.
_OWN_FAULT = (TrainingError, SentenceTooLongError, RecipeError)


def run_search(
    work: SearchPlan,
    *,
    runs_dir: Path,
    trials: int,
    jobs: int = 1,
    on: Backend = LOCAL,
    device: str = "auto",
    log: Callable[[str], None],
) -> SearchDocument:
    """Search until there are so many trials; return all that is known of them.

    Trials that were begun and have not ended go on first. One that diverges, or whose settings the
    recipe refuses together, has failed and counts. What is no fault of a trial, such as a full
    disk, ends the search as soon as the trials in work have ended.

    Args:
        trials: in all, those of earlier sittings included.
        jobs: how many trials go on at once on this machine; one at a time, the same search has the
            same trials.
        on: where they are trained.

    Raises:
        SpmrlError: Optuna is not installed, the folder holds another search or cannot be written,
            another process searches there, or a trial could not go on for no fault of its own.
        Interrupted: Ctrl-C or SIGTERM; every trial has saved where it is.
    """
    require_optuna()
    if on.is_local:
        choose_device(device)
    folder = work.folder(runs_dir if on.is_local else runs_dir.absolute())
    with run_lock(folder), on_signals(interrupt, signal.SIGTERM):
        sitting = _Sitting(work, folder, trials, jobs, log)
        executor = executor_for(on, jobs, device=device, shared=folder.parent, log=log)
        run_units([], executor, log=log, next_unit=sitting.next_unit, on_end=sitting.on_end)
        if sitting.error is not None:
            raise sitting.error
        return sitting.write()


def trial_folder(folder: Path, number: int) -> Path:
    """Return the run folder of a trial, numbered from 1, in that of its search."""
    return folder / "trials" / f"{number:03}"


def train_trial(
    run: Run,
    work: SearchPlan,
    folder: Path,
    number: int,
    note: str | None,
    *,
    device: str,
    console: Console | None = None,
) -> None:
    """Train a trial to its end, its own or the one that the pruner sets; or go on with it.

    Args:
        folder: of the search.
        number: of the trial, from 1.
        note: what to say of the treebank before it begins.
    """

    def prune(point: int, score: float) -> bool:
        return falls_behind(work, folder, number, point, score)

    if final_progress(run.folder) is None:
        train_run(run, note, device=device, console=console, prune=prune)


class _Sitting:
    """One call of a search."""

    def __init__(
        self, work: SearchPlan, folder: Path, most: int, jobs: int, log: Callable[[str], None]
    ) -> None:
        self.work, self.folder, self.log = work, folder, log
        self.most, self.jobs = most, jobs
        self.note: str | None = work.note
        self.error: Exception | None = None
        self.exhausted = False
        self.in_work: dict[Unit, SearchTrial] = {}
        self.document = self._begin()
        self.trials = self.document.search.trials
        self.left = [trial for trial in self.trials if trial.state == "running"]
        self.write()

    def _begin(self) -> SearchDocument:
        """Return the document of the search that goes on, or of a new one."""
        work = self.work
        search = Search(
            space={key: notation(searched) for key, searched in work.space.items()},
            sampler=work.sampler,
            pruner=work.pruner,
            seed=work.first.seed,
            select=work.first.select,
            trials=[],
        )
        new = SearchDocument(search=search, base=work.base, recipes={}, versions=find_versions())
        earlier = read_search(self.folder)
        if earlier is None:
            return new
        if earlier.definition != new.definition:
            differing = "; ".join(differences(earlier.definition, new.definition))
            raise SettingsMismatchError(
                f"{self.folder}: holds another search: {differing}. Choose another --runs folder, "
                "move that one away, or give the earlier settings"
            )
        return earlier.model_copy(update={"base": new.base, "versions": new.versions})

    def next_unit(self) -> Unit | None:
        """Return the training of the next trial; None while there is none."""
        while self.error is None and len(self.in_work) < self.jobs:
            if self.left:
                trial = self.left.pop(0)
            elif len(self.trials) >= self.most:
                return None
            elif (values := draw(self.work, self.folder, self.trials)) is None:
                if not self.exhausted:
                    count = len(self.trials)
                    self.log(f"no settings are left that none of the {count} trials has had")
                self.exhausted = True
                return None
            else:
                trial = self._add(values)
            if trial.state == "running":
                return self._unit(trial)
        return None

    def _add(self, values: Mapping[str, Value]) -> SearchTrial:
        """Note a trial that begins, or that the recipe refuses."""
        number = len(self.trials) + 1
        trial = SearchTrial(number=number, settings=dict(values), state="running")
        try:
            config = self.work.resolve(values)
        except RecipeError as error:
            trial = trial.model_copy(update={"state": "failed", "problem": _first_line(error)})
            self.log(f"trial {number}: FAILED, {trial.problem}")
        else:
            own = with_leaves(config)
            settings = {key: _setting(key, own) for key in values}
            trial = trial.model_copy(update={"settings": settings})
            self.document.recipes[number] = config.model_dump(mode="json")
        self.trials.append(trial)
        self.write()
        return trial

    def _unit(self, trial: SearchTrial) -> Unit:
        place = trial_folder(self.folder, trial.number)
        config = self.work.resolve(_values(self.work, trial))
        run = Run(self.work.treebank, config, place, self.work.note)
        title = f"trial {trial.number} of {self.most}: {run.title}"
        arguments = (run, self.work, self.folder, trial.number, self.note)
        unit = Unit(title, train_trial, arguments, folder=place)
        self.note = None
        self.in_work[unit] = trial
        return unit

    def on_end(self, outcome: Outcome) -> None:
        """Note how a trial has ended, if its settings are to blame or it came to an end."""
        trial = self.in_work.pop(outcome.unit)
        place = trial_folder(self.folder, trial.number)
        ended: dict[str, Any] = {"minutes": _minutes(place)}
        if outcome.error is None:
            progress = final_progress(place)
            if progress is None:
                raise CheckpointError(f"{place}: the checkpoint of a trial is gone")
            state = "pruned" if progress.stopped_by == PRUNED else "complete"
            ended |= {"state": state, "dev": progress.best_score}
            took = minutes_text(ended["minutes"])
            title = f"trial {trial.number} of {self.most}"
            self.log(f"{title}: {state}, dev {progress.best_score:.2f}, {took}")
        elif isinstance(outcome.error, _OWN_FAULT):
            ended |= {"state": "failed", "problem": _first_line(outcome.error)}
        else:
            self.error = self.error or outcome.error
            ended = {}
        self.trials[trial.number - 1] = trial.model_copy(update=ended)
        self.write()

    def write(self) -> SearchDocument:
        """Write the document of the search as it is now, and return it.

        Raises:
            CheckpointError: it cannot be written.
        """
        for trial in self.in_work.values():
            minutes = _minutes(trial_folder(self.folder, trial.number))
            self.trials[trial.number - 1] = trial.model_copy(update={"minutes": minutes})
        path = self.folder / NAME
        try:
            write_text(path, self.document.model_dump_json(indent=1) + "\n")
        except OSError as error:
            raise CheckpointError(
                f"{path}: cannot be written: {error.strerror}. {remedy(error)}, then give the same "
                "command again to continue"
            ) from None
        return self.document


def _minutes(place: Path) -> float:
    """Return what a trial has taken until its last checkpoint."""
    with suppress(CheckpointError):
        if (state := read_progress(place / LAST)) is not None:
            return round((state.train_seconds + state.dev_seconds) / 60, 4)
    return 0.0


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0]


# Which settings come next, and which trial ends --------------------------------------------------


def draw(work: SearchPlan, folder: Path, trials: list[SearchTrial]) -> dict[str, Value] | None:
    """Draw values that no trial has had yet; None if none could be drawn.

    They are a function of the seed and of what is known of the trials so far.
    """
    from optuna.samplers import RandomSampler, TPESampler

    known = [_values(work, trial) for trial in trials]
    past = [_frozen(work, folder, trial) for trial in trials]
    for number in range(_DRAWS):
        mixed = np.random.SeedSequence([work.first.seed, len(trials), number])
        seed = int(mixed.generate_state(1)[0])
        learns = work.sampler == "tpe" and number < _LEARNT
        sampler = TPESampler(seed=seed, n_startup_trials=FIRST_TRIALS) if learns else None
        study = _study(sampler or RandomSampler(seed=seed), past)
        drawn = study.ask(dict(work.space)).params
        values = {key: rounded(searched, drawn[key]) for key, searched in work.space.items()}
        if values not in known:
            return values
    return None


def falls_behind(work: SearchPlan, folder: Path, number: int, point: int, score: float) -> bool:
    """Return whether a trial is to end at a dev evaluation: after its first epoch, if its best
    score is below the median of those of the complete trials so far.

    Args:
        folder: of the search.
        number: of the trial, from 1.
        point: how far it is, see :func:`~spmrl_bench.training.schedule.evaluation_point`.
        score: in percent.
    """
    from optuna.pruners import MedianPruner

    document = read_search(folder)
    if work.pruner == "none" or document is None:
        return False
    *others, own = [trial for trial in document.search.trials if trial.number <= number]
    others += [trial for trial in document.search.trials if trial.number > number]
    frozen = _frozen(work, folder, own)
    frozen.intermediate_values[point] = score
    warm_up = work.first.train.evaluations_per_epoch
    pruner = MedianPruner(n_startup_trials=FIRST_TRIALS, n_warmup_steps=warm_up)
    return pruner.prune(_study(None, [_frozen(work, folder, trial) for trial in others]), frozen)


def _study(sampler: Any, trials: list[FrozenTrial]) -> Study:
    import optuna

    study = optuna.create_study(direction="maximize", sampler=sampler)
    study.add_trials(trials)
    return study


def _frozen(work: SearchPlan, folder: Path, trial: SearchTrial) -> FrozenTrial:
    """Return a trial as Optuna has it."""
    from optuna.trial import TrialState, create_trial

    states = {"complete": TrialState.COMPLETE, "pruned": TrialState.PRUNED}
    states |= {"failed": TrialState.FAIL, "running": TrialState.RUNNING}
    return create_trial(
        state=states[trial.state],
        value=trial.dev if trial.state == "complete" else None,
        params=_values(work, trial),
        distributions=dict(work.space),
        intermediate_values=_curve(work, trial_folder(folder, trial.number)),
    )


def _values(work: SearchPlan, trial: SearchTrial) -> dict[str, Value]:
    """Return the values of a trial as they were drawn: of a choice, the text."""

    def text(key: str, value: Value) -> Value:
        """8 or 0.001, as the recipe has read them, of 8|1e-3."""
        choices = getattr(work.space[key], "choices", (value,))
        same = (one for one in choices if _resolved(work, key, one) == value)
        return value if value in choices else next(same, choices[0])

    return {key: text(key, trial.settings[key]) for key in work.space}


def _curve(work: SearchPlan, place: Path) -> dict[int, float]:
    """Return the dev scores of a trial so far, by point."""
    try:
        lines = read_regular(place / "events.jsonl").splitlines()
    except OSError:
        return {}
    curve, evaluations = {}, work.first.train.evaluations_per_epoch
    for line in lines:
        with suppress(ValueError, KeyError, TypeError):  # of a line that is half written
            event = json.loads(line)
            if event["event"] == "evaluation":
                curve[round(evaluations * event["epoch"])] = float(event["dev"])
    return curve


def _resolved(work: SearchPlan, key: str, value: Value) -> Any:
    """Return what the recipe makes of one value of what is searched; None of one it refuses."""
    first = {each: probes(searched)[0] for each, searched in work.space.items()}
    with suppress(RecipeError):
        return _setting(key, with_leaves(work.resolve({**first, key: value})))
    return None


def _setting(key: str, settings: Mapping[str, Any]) -> Any:
    return settings[key.partition(".")[0]][names_of(key, settings)[0]]
