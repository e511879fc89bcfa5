"""The trials of a search, in a journal of Optuna: which settings come next, and which trial ends.

The journal is a file that only grows, which any number of processes of any machines may read and
write: one creates a lock beside it exclusively, appends, and removes the lock. A process that was
killed may leave half a line, or the lock; the next start of the search removes the half, and Optuna
takes a lock over after half a minute.

What settings a trial gets is a function of the seed, of its number and of what is known of the
trials before it, so a search that was interrupted goes on with those it would have had anyway.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from spmrl_bench.errors import CheckpointError, SpmrlError, remedy
from spmrl_bench.leaderboard.record import TrialState
from spmrl_bench.search.space import Parameter, Value

if TYPE_CHECKING:
    from optuna.pruners import BasePruner
    from optuna.samplers import BaseSampler

SAMPLERS = ("tpe", "random")
PRUNERS = ("median", "hyperband", "none")

#: Trials whose settings are drawn before any is judged or learnt from.
FIRST_TRIALS = 5

_FILE, _STUDY, _ENDED = "journal.log", "search", "ended"
#: Draws until one is new, and those of them that learn from earlier trials.
_DRAWS, _LEARNT = 60, 10


@dataclass(frozen=True)
class Rules:
    """How settings are drawn and trials judged.

    Attributes:
        sampler, pruner: by name, of :data:`SAMPLERS` and :data:`PRUNERS`.
        seed: of what is drawn.
        epoch: dev evaluations of an epoch; in the first one no trial is pruned.
        longest: dev evaluations of a trial at most.
    """

    sampler: str
    pruner: str
    seed: int
    epoch: int
    longest: int


class Trial(NamedTuple):
    """What the journal has of a trial.

    Attributes:
        number: from 0.
        values: of what is searched, by key.
        state: what has become of it.
        dev: its best score in percent.
        minutes: that it took.
        problem: why it failed.
    """

    number: int
    values: Mapping[str, Value]
    state: TrialState
    dev: float | None
    minutes: float
    problem: str


def require_optuna() -> None:
    """Raise unless Optuna is installed.

    Raises:
        SpmrlError: with what to install.
    """
    try:
        import optuna
    except ImportError as error:
        raise SpmrlError(
            f"a search needs the package optuna ({error}). Install it: "
            "pip install 'spmrl-bench[search]'"
        ) from None
    optuna.logging.set_verbosity(optuna.logging.ERROR)


def mend(folder: Path) -> None:
    """Remove the half of a line that a process which was killed has left in a journal."""
    from optuna.storages.journal import JournalFileOpenLock

    path = folder / _FILE
    with _told(path):
        if not path.exists():
            return
        lock = JournalFileOpenLock(str(path))
        lock.acquire()
        try:
            data = path.read_bytes()
            whole = data.rfind(b"\n") + 1
            if whole < len(data):
                os.truncate(path, whole)
        finally:
            lock.release()


class Journal:
    """The journal of a search, opened by one process; it is there after this, if it was not."""

    def __init__(self, folder: Path, rules: Rules) -> None:
        """Open it.

        Raises:
            CheckpointError: it is broken, or cannot be written.
            SpmrlError: Optuna is not installed.
        """
        require_optuna()
        import optuna
        from optuna.storages import JournalStorage
        from optuna.storages.journal import JournalFileBackend, JournalFileOpenLock

        self.path, self.rules = folder / _FILE, rules
        with _told(self.path):
            folder.mkdir(parents=True, exist_ok=True)
            lock = JournalFileOpenLock(str(self.path))
            self._storage = JournalStorage(JournalFileBackend(str(self.path), lock))
            self._study = optuna.create_study(
                storage=self._storage,
                study_name=_STUDY,
                direction="maximize",
                pruner=_pruner(rules),
                load_if_exists=True,
            )

    def trials(self) -> list[Trial]:
        """All that were begun, in their order."""
        with _told(self.path):
            found = self._study.get_trials(deepcopy=False)
        trials = []
        for one in found:
            ended = one.user_attrs.get(_ENDED, {})
            # The attributes are written before the state: until then it is to be looked at again.
            state = _STATES.get(one.state.name, "running")
            told = ended if state != "running" else {}
            trials.append(
                Trial(
                    number=one.number,
                    values=one.params,
                    state=state,
                    dev=told.get("dev"),
                    minutes=told.get("minutes", 0.0),
                    problem=told.get("problem", ""),
                )
            )
        return trials

    def begin(self, space: Mapping[str, Parameter]) -> Trial | None:
        """Begin another trial with settings that none had before; None if none could be drawn."""
        from optuna.trial import TrialState as OptunaState
        from optuna.trial import create_trial

        distributions = {key: parameter.distribution for key, parameter in space.items()}
        known = self.trials()
        for draw in range(_DRAWS):
            drawn = self._drawn(distributions, len(known), draw)
            values = {key: space[key].value(drawn[key]) for key in space}
            if all(one.values != values for one in known):
                break
        else:
            return None
        # In one step, so that no trial is ever without some of its values.
        trial = create_trial(state=OptunaState.RUNNING, params=values, distributions=distributions)
        with _told(self.path):
            self._study.add_trial(trial)
        return self.trials()[len(known)]

    def _drawn(self, distributions: Mapping[str, Any], number: int, draw: int) -> dict[str, Any]:
        """Values that the sampler chooses, in a copy of the study which is then forgotten."""
        import optuna

        (seed,) = np.random.SeedSequence([self.rules.seed, number, draw]).generate_state(1)
        name = self.rules.sampler if draw < _LEARNT else "random"
        copy = optuna.create_study(
            study_name=_STUDY,
            direction="maximize",
            sampler=_sampler(name, int(seed)),
            pruner=_pruner(self.rules),
        )
        with _told(self.path):
            copy.add_trials(self._study.get_trials(deepcopy=False))
        return copy.ask(dict(distributions)).params

    def report(self, number: int, point: int, score: float) -> bool:
        """Note a dev evaluation of a trial; whether the trial is to end there.

        Args:
            number: of the trial, from 0.
            point: how far it is, see :func:`~spmrl_bench.training.schedule.evaluation_point`.
            score: in percent.
        """
        with _told(self.path):
            study = self._storage.get_study_id_from_name(_STUDY)
            trial = self._storage.get_trial_id_from_study_id_trial_number(study, number)
            self._storage.set_trial_intermediate_value(trial, point, score)
            return self._study.pruner.prune(self._study, self._storage.get_trial(trial))

    def end(
        self,
        number: int,
        state: TrialState,
        *,
        dev: float | None = None,
        minutes: float = 0.0,
        problem: str = "",
    ) -> None:
        """Note what has become of a trial."""
        from optuna.trial import TrialState as OptunaState

        ended = {"dev": dev, "minutes": minutes, "problem": problem}
        with _told(self.path):
            study = self._storage.get_study_id_from_name(_STUDY)
            trial = self._storage.get_trial_id_from_study_id_trial_number(study, number)
            self._storage.set_trial_user_attr(trial, _ENDED, ended)
            if state == "complete":
                self._study.tell(number, dev)
            else:
                told = OptunaState.PRUNED if state == "pruned" else OptunaState.FAIL
                self._study.tell(number, state=told)


_STATES: Mapping[str, TrialState] = {"COMPLETE": "complete", "PRUNED": "pruned", "FAIL": "failed"}


def _sampler(name: str, seed: int) -> BaseSampler:
    from optuna.samplers import RandomSampler, TPESampler

    if name == "random":
        return RandomSampler(seed=seed)
    return TPESampler(seed=seed, n_startup_trials=FIRST_TRIALS)


def _pruner(rules: Rules) -> BasePruner:
    from optuna.pruners import HyperbandPruner, MedianPruner, NopPruner

    if rules.pruner == "median":
        return MedianPruner(n_startup_trials=FIRST_TRIALS, n_warmup_steps=rules.epoch)
    if rules.pruner == "hyperband":
        return HyperbandPruner(min_resource=rules.epoch, max_resource=rules.longest)
    return NopPruner()


@contextmanager
def _told(path: Path) -> Iterator[None]:
    """Within it, what a file can have wrong is told in words."""
    try:
        yield
    except OSError as error:
        raise CheckpointError(
            f"{path}: the journal of the search cannot be written: {error.strerror}. "
            f"{remedy(error)}, then give the same command again to continue"
        ) from None
    except json.JSONDecodeError as error:
        raise CheckpointError(
            f"{path}: the journal of the search is broken ({error}): restore it, or move the "
            "folder away to search anew"
        ) from None
