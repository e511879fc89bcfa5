"""In what state a run is, as its files say.

The files are those that training leaves anyway, and a note of what ended them. Folders of runs
grow large and are looked at over the network, so of each run few small files are read: its
settings, the end of its events, and whatever else the names of its files are a sign of. What is
broken is said of the run, and is no error.

Nothing here brings torch along.
"""

from __future__ import annotations

import datetime
import os
from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, TypeVar, get_args

from pydantic import BaseModel, ValidationError

from spmrl_bench.errors import CheckpointError
from spmrl_bench.experiments.run_events import EVENTS, End, end_of_events, minutes_left
from spmrl_bench.experiments.run_folder import FAILED, TRAINED, read_failed
from spmrl_bench.storage.files import read_regular
from spmrl_bench.storage.locks import Owner, holder, lock_of
from spmrl_bench.training import LAST
from spmrl_bench.training.schedule import Progress, read_progress

State = Literal["running", "failed", "interrupted", "done"]
#: All states.
STATES: tuple[State, ...] = get_args(State)

_SETTINGS = "run.json"
#: Files of which each makes a folder that of a run, and the endings of the notes beside one.
OWN_FILES, NOTES = frozenset({_SETTINGS, FAILED}), (".lock",)

Value = TypeVar("Value")


@dataclass(frozen=True)
class RunState:
    """How a run stands."""

    folder: Path
    state: State = "interrupted"
    where: str = ""
    """The host that it runs or failed on."""
    since: datetime.datetime | None = None
    """Since when it runs, or when it ended."""
    epoch: float | None = None
    """Epochs done at the last dev evaluation."""
    max_epochs: int | None = None
    dev: float | None = None
    """The best dev score, in percent."""
    tokens_per_second: float | None = None
    """Of training so far, dev evaluations left out."""
    minutes_left: float | None = None
    """That a running one takes at most."""
    message: str = ""
    """What is to be known of its state, such as what it failed of."""
    broken: str = ""
    """What of its files cannot be read; empty where all can."""


class _Train(BaseModel):
    max_epochs: int | None = None
    max_minutes: float | None = None


class _Settings(BaseModel):
    """What is looked at of ``run.json``, our own or that of a parser of somebody else."""

    train: _Train = _Train()
    minutes: float | None = None


def state_of(folder: Path) -> RunState | None:
    """The state of a run; None where there is neither its folder nor a note of it."""
    names: list[str] = []
    if folder.is_dir():
        try:
            names = os.listdir(folder)
        except OSError as error:
            return RunState(folder, broken=f"{folder}: cannot be read: {error.strerror}")
    notes = NOTES if lock_of(folder).exists() else ()
    known = notes or not OWN_FILES.isdisjoint(names)
    return state_by_names(folder, names, notes) if known else None


def state_by_names(
    folder: Path,
    names: Collection[str],
    notes: Collection[str],
) -> RunState:
    """The state of a run whose files are known by name.

    Args:
        folder: of the run.
        names: of what is in it.
        notes: those of :data:`NOTES` that are beside it.
    """
    look = _Look(folder, names, notes)
    found = look.state()
    return replace(found, broken="; ".join(look.broken)) if look.broken else found


class _Look:
    """One look at the files of a run, at which what is broken of them comes to light."""

    def __init__(
        self,
        folder: Path,
        names: Collection[str],
        notes: Collection[str],
    ) -> None:
        self.folder, self.names, self.notes = folder, names, notes
        self.broken: list[str] = []
        self.owner: Owner | None = None
        self.settings, self.end = _Settings(), End()
        self.progress: Progress | None = None
        if notes:
            self.owner = self._tried(lambda: holder(lock_of(folder)))
        if _SETTINGS in names:
            settings = self._tried(lambda: _read_settings(folder / _SETTINGS))
            self.settings = settings or self.settings
        if EVENTS in names:
            self.end = self._tried(lambda: end_of_events(folder / EVENTS)) or self.end
        if self._is_progress_needed():
            self.progress = self._tried(lambda: read_progress(folder / LAST))

    def state(self) -> RunState:
        """The first state of which there is a sign."""
        known = self._figures()
        ways = (self._running, self._done, self._failed)
        return next(filter(None, (way(known) for way in ways)), None) or self._interrupted(known)

    def _tried(self, read: Callable[[], Value]) -> Value | None:
        """What a function reads; None where that cannot be read."""
        try:
            return read()
        except CheckpointError as error:
            self.broken.append(str(error))
        except OSError as error:
            self.broken.append(f"{error.filename}: cannot be read: {error.strerror}")
        return None

    def _is_progress_needed(self) -> bool:
        """Whether the checkpoint is to be asked.

        The log mostly says all. But logs of earlier versions lack the best score, and a process
        may have died between its last checkpoint and the last line.
        """
        if not any(name == LAST or name.startswith(f".{LAST}.") for name in self.names):
            return False
        evaluation = self.end.evaluation
        without_score = evaluation is None or evaluation.best_dev is None
        return without_score or (self.owner is None and not self._has_stopped())

    def _has_stopped(self) -> bool:
        last = self.end.last
        return last is not None and last.event == "stop" and LAST in self.names

    def _figures(self) -> RunState:
        """How far the run is."""
        (last, evaluation), progress = self.end, self.progress
        run = RunState(
            self.folder,
            since=None if last is None else last.time,
            max_epochs=self.settings.train.max_epochs,
        )
        if progress is not None:
            run = replace(run, epoch=progress.epoch, dev=progress.best_score)
        if evaluation is not None:
            dev = run.dev if evaluation.best_dev is None else evaluation.best_dev
            speed = evaluation.tokens_per_second
            run = replace(run, epoch=evaluation.epoch, dev=dev, tokens_per_second=speed)
        return run

    def _running(self, run: RunState) -> RunState | None:
        if (owner := self.owner) is None:
            return None
        train, now = self.settings.train, datetime.datetime.now(datetime.UTC)
        minutes = train.max_minutes or self.settings.minutes
        left = minutes_left(self.end.evaluation, owner.since, now, train.max_epochs, minutes)
        return replace(
            run,
            state="running",
            where=owner.host,
            since=owner.since,
            minutes_left=left,
        )

    def _done(self, run: RunState) -> RunState | None:
        ended = self.progress is not None and self.progress.stopped_by is not None
        if not (ended or self._has_stopped() or TRAINED in self.names):
            return None
        run = replace(run, state="done")
        if TRAINED in self.names:
            run = replace(run, since=_changed(self.folder / TRAINED))
        if (failed := self._failed(run)) is None:
            return run
        # Begun anew or given more time, it came to nothing: what there was is as it was.
        return replace(run, message=f"begun again, it failed: {failed.message}")

    def _failed(self, run: RunState) -> RunState | None:
        if FAILED not in self.names:
            return None
        run = replace(run, state="failed")
        if (note := self._tried(lambda: read_failed(self.folder))) is None:
            return run
        return replace(run, where=note.host, since=note.time, message=note.message)

    def _interrupted(self, run: RunState) -> RunState:
        return replace(run, message="its process died" if self.notes else "")


def _read_settings(path: Path) -> _Settings:
    try:
        return _Settings.model_validate_json(read_regular(path))
    except OSError as error:
        raise CheckpointError(f"{path}: cannot be read: {error.strerror}") from None
    except ValidationError as error:
        mistake = error.errors()[0]["msg"]
        raise CheckpointError(f"{path}: not the settings of a run: {mistake}") from None


def _changed(path: Path) -> datetime.datetime | None:
    """When a file was written; None where it is gone."""
    try:
        return datetime.datetime.fromtimestamp(path.stat().st_mtime, datetime.UTC)
    except OSError:
        return None
