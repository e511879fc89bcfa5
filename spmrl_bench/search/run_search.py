"""A search from its beginning, or from where it was interrupted, to its last trial.

The journal says which trials there are. Those that were begun and have not ended go on first; then
others are begun, until there are as many as were asked for. A trial that diverges, or whose
settings the recipe refuses together, has failed and counts. What is no fault of a trial, such as a
full disk, ends the search as soon as the other trials have ended; all that was begun goes on with
the same command.
"""

from __future__ import annotations

import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

from spmrl_bench.errors import (
    CheckpointError,
    RecipeError,
    SentenceTooLongError,
    SpmrlError,
    TrainingError,
)
from spmrl_bench.experiments.plan import Run
from spmrl_bench.experiments.run_folder import final_progress, run_lock
from spmrl_bench.leaderboard.environment import find_versions
from spmrl_bench.leaderboard.searched import Search, SearchTrial, TrialState, minutes_text
from spmrl_bench.nn.device import choose_device
from spmrl_bench.process.executors.backend import LOCAL, Backend, executor_for
from spmrl_bench.process.executors.base import Executor, Outcome, Unit, run_units
from spmrl_bench.process.signals import interrupt, on_signals
from spmrl_bench.search.document import SearchDocument, read_search, write_search
from spmrl_bench.search.journal import Journal, Trial, mend, require_optuna
from spmrl_bench.search.plan import SearchPlan, names_of, with_leaves
from spmrl_bench.search.trials import train_trial, trial_folder
from spmrl_bench.training import LAST
from spmrl_bench.training.schedule import PRUNED, read_progress

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
    say: Callable[[str], None],
) -> SearchDocument:
    """Search until there are so many trials; returns all that is known of them.

    Args:
        work: what is searched.
        runs_dir: where its folder is.
        trials: in all, those of earlier sittings included.
        jobs: how many trials go on at once, each in a process with its share of the threads. One
            at a time is trained in this process, and then the same search has the same trials.
        on: where they are trained.
        device: where trials are trained.
        say: shows a line.

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
        sitting = _Sitting(work, folder, trials, jobs, say)
        if jobs == 1 and on.is_local:
            return sitting.train_here(device)
        executor = executor_for(on, jobs, device=device, shared=folder.parent, log=say)
        return sitting.train_with(executor)


class _Sitting:
    """One call of a search."""

    def __init__(
        self, work: SearchPlan, folder: Path, trials: int, jobs: int, say: Callable[[str], None]
    ) -> None:
        self.work, self.folder, self.say = work, folder, say
        self.most, self.jobs = trials, jobs
        self.resolved: dict[int, tuple[dict[str, Any], dict[str, Any]]] = {}
        if (earlier := read_search(folder)) is not None:
            earlier.check_same(self._document([]), folder)
        mend(folder)
        self.journal = Journal(folder, work.rules)
        self.note: str | None = work.note
        self.error: Exception | None = None
        self.exhausted = False
        found = self.journal.trials()
        self.left = [trial for trial in found if trial.state == "running"]
        self.in_work: dict[Unit, Trial] = {}

    def train_with(self, executor: Executor) -> SearchDocument:
        """Have the trials trained by an executor."""
        self._note_trials()
        run_units([], executor, log=self.say, next_unit=self._more, on_end=self._over)
        return self._ended()

    def train_here(self, device: str) -> SearchDocument:
        """Train one trial after the other in this process."""
        self._note_trials()
        while (unit := self._more()) is not None:
            self.say(f"{unit.title}: started")
            try:
                unit.function(*unit.arguments, device=device)
            except SpmrlError as error:
                self.say(f"{unit.title}: FAILED, {_first_line(error)}")
                self._over(Outcome(unit, "failed", error))
            else:
                self._over(Outcome(unit, "done"))
        return self._ended()

    def _ended(self) -> SearchDocument:
        if self.error is not None:
            raise self.error
        return self._note_trials()

    def _more(self) -> Unit | None:
        """The next trial to be trained; None while there is none."""
        while self.error is None and len(self.in_work) < self.jobs:
            if self.left:
                trial = self.left.pop(0)
            elif (number := len(self.journal.trials())) >= self.most:
                return None
            elif (begun := self.journal.begin(self.work.settings.space)) is None:
                if not self.exhausted:
                    self.say(f"no settings are left that none of the {number} trials has had")
                self.exhausted = True
                return None
            else:
                trial = begun
                self._note_trials()
            try:
                return self._unit(trial)
            except RecipeError as error:
                self.journal.end(trial.number, "failed", problem=_first_line(error))
                self._note_trials()
                self.say(f"trial {trial.number + 1}: FAILED, {_first_line(error)}")
        return None

    def _unit(self, trial: Trial) -> Unit:
        """The training of a trial.

        Raises:
            RecipeError: its settings cannot be together.
        """
        config = self.work.resolve(trial.values)
        place = trial_folder(self.folder, trial.number)
        run = Run(self.work.treebank, config, place)
        unit = Unit(
            title=f"trial {trial.number + 1} of {self.most}: {run.title}",
            function=train_trial,
            arguments=(run, self.folder, trial.number, self.work.rules, self.note),
            folder=place,
        )
        self.note = None
        self.in_work[unit] = trial
        return unit

    def _over(self, ended: Outcome) -> None:
        """Note how a trial has ended, if its settings are to blame or it came to an end."""
        trial = self.in_work.pop(ended.unit)
        place = trial_folder(self.folder, trial.number)
        if ended.error is None:
            state = final_progress(place)
            if state is None:
                raise CheckpointError(f"{place}: the checkpoint of a trial is gone")
            how: TrialState = "pruned" if state.stopped_by == PRUNED else "complete"
            dev, minutes = state.best_score, _minutes(place)
            self.journal.end(trial.number, how, dev=dev, minutes=minutes)
            title = f"trial {trial.number + 1} of {self.most}"
            self.say(f"{title}: {how}, dev {dev:.2f}, {minutes_text(minutes)}")
        elif isinstance(ended.error, _OWN_FAULT):
            self.journal.end(
                trial.number, "failed", minutes=_minutes(place), problem=_first_line(ended.error)
            )
        else:
            self.error = self.error or ended.error
        self._note_trials()

    def _note_trials(self) -> SearchDocument:
        """Write the document of the search as it is now."""
        document = self._document(self.journal.trials())
        write_search(self.folder, document)
        return document

    def _document(self, trials: list[Trial]) -> SearchDocument:
        rules, recipes = self.work.rules, dict[int, dict[str, Any]]()
        listed = []
        for trial in trials:
            if trial.number not in self.resolved:
                self.resolved[trial.number] = _resolved(self.work, trial)
            settings, recipe = self.resolved[trial.number]
            if recipe:
                recipes[trial.number + 1] = recipe
            running = trial.state == "running"
            place = trial_folder(self.folder, trial.number)
            listed.append(
                SearchTrial(
                    number=trial.number + 1,
                    settings=settings,
                    state=trial.state,
                    dev=trial.dev,
                    minutes=_minutes(place) if running else trial.minutes,
                    problem=trial.problem,
                )
            )
        space = {key: parameter.text for key, parameter in self.work.settings.space.items()}
        search = Search(
            space=space,
            sampler=rules.sampler,
            pruner=rules.pruner,
            seed=rules.seed,
            select=self.work.first.select,
            trials=listed,
        )
        return SearchDocument(
            search=search, base=self.work.base, recipes=recipes, versions=find_versions()
        )


def _resolved(work: SearchPlan, trial: Trial) -> tuple[dict[str, Any], dict[str, Any]]:
    """The values of a trial, and all of its settings unless they are refused; as in JSON."""
    try:
        config = work.resolve(trial.values)
    except RecipeError:
        return dict(trial.values), {}
    own = with_leaves(config)
    values = {
        key: own[key.partition(".")[0]][name]
        for key in trial.values
        for name in names_of(key, own)[:1]
    }
    return values, config.model_dump(mode="json")


def _minutes(place: Path) -> float:
    """What a trial has taken until its last checkpoint."""
    try:
        state = read_progress(place / LAST)
    except CheckpointError:
        return 0.0
    return 0.0 if state is None else round((state.train_seconds + state.dev_seconds) / 60, 4)


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0]
