"""Training many runs, of one treebank or of several, in turn, side by side or elsewhere.

A run that fails stops no other; what failed is said when the rest is done. Runs that are
finished are left alone and interrupted ones continue, so the same call again does what is
left, however the one before it ended.
"""

from __future__ import annotations

import secrets
import signal
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from time import sleep

import torch

from spmrl_bench.errors import (
    CheckpointError,
    ReadError,
    RecipeError,
    RunCancelledError,
    RunOwnedError,
    SpmrlError,
)
from spmrl_bench.experiments.one_run import Run, train_run
from spmrl_bench.experiments.ownership import put_in_order
from spmrl_bench.experiments.plan import Plan
from spmrl_bench.experiments.run_folder import OtherSettingsError, check_settings, finished
from spmrl_bench.experiments.run_notes import withdraw_cancel
from spmrl_bench.nn.device import choose_device
from spmrl_bench.notes import remove_waiting, write_waiting
from spmrl_bench.process.devices import cards
from spmrl_bench.process.executors.backend import LOCAL, Backend, executor_for
from spmrl_bench.process.executors.base import AGAIN, Outcome, Unit, run_units
from spmrl_bench.process.pools import available_threads
from spmrl_bench.process.signals import interrupt, on_signals
from spmrl_bench.training.report import LOG, last_line, messages
from spmrl_bench.training.schedule import Progress

#: The cost of a model (see its configuration) that gains little from a second thread, at most.
SMALL = 1e6


def train_all(
    plans: Sequence[Plan],
    *,
    runs_dir: Path,
    device: str = "auto",
    jobs: int | None = None,
    on: Backend = LOCAL,
    fresh: bool = False,
) -> None:
    """Train all runs of the plans that are not finished.

    Args:
        jobs: how many processes train at once, each with its share of the threads; there are
            never more than the plans have runs, finished ones included, so that a run which
            continues has as many threads as before. 1 trains in this process; without a number
            it is :func:`usual_jobs`.
        on: where they are trained; ``jobs`` is of what is set up here.
        fresh: delete what the folders hold first.

    Raises:
        SpmrlError: before anything is trained: a run folder was trained with other settings,
            or the device is not there. After all else is trained: a run failed, or what its
            folder holds cannot be read.
        Interrupted: Ctrl-C or SIGTERM; every run has saved where it is.
    """
    if jobs is not None and jobs < 1:
        raise RecipeError(f"{jobs} jobs: at least 1 is needed to train anything")
    runs = _runs(plans, runs_dir if on.is_local else runs_dir.absolute())
    at_once = 1
    if on.is_local:
        at_once = min(jobs or usual_jobs(runs, choose_device(device)), len(runs))
    console = messages()

    def say(text: str) -> None:
        console.print(text, markup=False, highlight=False, soft_wrap=True)

    left, done, errors = (runs, [], []) if fresh else _looked_at(runs)
    for run, state in done:
        score = f"best dev {run.config.criterion.title} {state.best_score:.2f}"
        say(f"{run.title}: already trained, {score}")
    for run, error in errors if left else ():
        say(_failed(run, error))
    for run in left:
        if withdraw_cancel(run.folder):
            say(f"{run.title}: was cancelled, and goes on now")
    beginning = secrets.token_hex(8) if fresh else ""
    tried, failures = len(left) + len(errors), [error for _, error in errors]
    notes = _notes(plans, left)
    if jobs is None and at_once > 1 and left:
        say(f"up to {at_once} runs at a time (--jobs 1: one after the other)")
    with on_signals(interrupt, signal.SIGTERM), _noted_as_waiting(left, on):
        if left and (at_once > 1 or not on.is_local):
            units = [_unit(run, notes.get(run.folder), beginning) for run in left]
            executor = executor_for(on, at_once, device=device, shared=runs_dir, log=say)

            def tell(ended: Outcome) -> None:
                if not on.is_local and ended.status == "done" and ended.unit.folder is not None:
                    say(last_line(ended.unit.folder / LOG))

            ended = run_units(units, executor, log=say, on_end=tell)
            failures += [each.error for each in ended if each.error is not None]
        else:
            failures += _train_in_turn(left, notes, device, fresh=beginning, say=say)
    _raise(failures, tried)


def _looked_at(
    runs: Sequence[Run],
) -> tuple[list[Run], list[tuple[Run, Progress]], list[tuple[Run, Exception]]]:
    """The runs that are to be trained, those that are, and those whose folders are broken.

    Raises:
        OtherSettingsError: a folder was trained with other settings.
    """
    left: list[Run] = []
    done: list[tuple[Run, Progress]] = []
    failures: list[tuple[Run, Exception]] = []
    for run in runs:
        try:
            check_settings(run.folder, run.config, other_minutes=True)
            state = finished(run.folder, run.config)
        except OtherSettingsError:
            raise
        except CheckpointError as error:
            failures.append((run, error))
            continue
        if state is None:
            left.append(run)
        else:
            done.append((run, state))
            put_in_order(run.folder)
    return left, done, failures


def usual_jobs(runs: Sequence[Run], device: torch.device) -> int:
    """How many runs train fastest at once.

    Models that are small gain little from a second thread, so that on a CPU as many runs as
    there are threads go on at once. Larger ones share the threads out themselves, and several of
    them might not fit into memory. A graphics card is for one run; where there are several cards
    and none of them was named, each gets one.
    """
    if device.type == "cuda" and device.index is None:
        return max(1, min(len(runs), cards()))
    models = [run.config.model for run in runs]
    if device.type != "cpu" or any(model.cost() > SMALL or model.files() for model in models):
        return 1
    return max(1, min(len(runs), available_threads()))


def _runs(plans: Sequence[Plan], runs_dir: Path) -> list[Run]:
    """The runs of all plans; one that several plans name is one run."""
    runs: dict[Path, Run] = {}
    for plan in plans:
        for config in plan.configs:
            folder = plan.folder(runs_dir, config)
            runs.setdefault(folder, Run(plan.treebank, config, folder))
    return list(runs.values())


def _notes(plans: Sequence[Plan], left: Sequence[Run]) -> dict[Path, str]:
    """By folder of the first run that is left of each plan: which treebank was taken and why."""
    notes: dict[Path, str] = {}
    for plan in plans:
        first = next((run for run in left if run.treebank is plan.treebank), None)
        if first is not None:
            notes[first.folder] = plan.note
    return notes


def _train_in_turn(
    runs: Sequence[Run],
    notes: dict[Path, str],
    device: str,
    *,
    fresh: str,
    say: Callable[[str], None],
) -> list[Exception]:
    """Train in this process; returns what failed.

    A run that another process has in work comes last, and is waited for.
    """
    failures: list[Exception] = []
    waiting, told = deque(runs), set[Path]()
    while waiting:
        run = waiting.popleft()
        if run.folder in told:
            sleep(AGAIN)
        try:
            train_run(run, fresh, notes.get(run.folder), device=device)
        except RunOwnedError as error:
            waiting.append(run)
            if run.folder not in told:
                told.add(run.folder)
                say(f"{run.title}: waiting, {error}")
        except SpmrlError as error:
            failures.append(error)
            if waiting:
                say(_failed(run, error))
    return failures


#: Sentences of a treebank that does not declare how many it has.
_USUAL = 5000


def _unit(run: Run, note: str | None, fresh: str) -> Unit:
    """The training of a run. How long it takes: sentences to learn times weights, roughly."""
    declared = run.treebank.manifest.splits.train.sentences
    sentences = max(declared) if isinstance(declared, tuple) else declared or _USUAL
    return Unit(
        title=run.title,
        function=train_run,
        arguments=(run, fresh, note),
        cost=float(sentences) * run.config.train.max_epochs * run.config.model.cost(),
        folder=run.folder,
    )


@contextmanager
def _noted_as_waiting(runs: Sequence[Run], on: Backend) -> Iterator[None]:
    """Within it, these runs wait to be begun, which takes the notes away one by one."""
    try:
        for run in runs[1:] if on.is_local else runs:
            write_waiting(run.folder, on.kind)
        yield
    finally:
        for run in runs:
            remove_waiting(run.folder)


def _failed(run: Run, error: Exception) -> str:
    """For one line of a log."""
    if isinstance(error, RunCancelledError):
        return str(error)
    beginning = str(error).partition("\n")[0]
    return f"{run.title}: FAILED, {beginning}"


def _raise(failures: Sequence[Exception], of: int) -> None:
    """Raise what failed, if anything did: each message once, a defect of the program first."""
    errors: dict[str, Exception] = {}
    for error in failures:
        if not isinstance(error, SpmrlError):
            raise error
        errors.setdefault(str(error), error)
    if not errors:
        return
    if len(errors) == 1:
        raise next(iter(errors.values()))
    kinds = {type(error) for error in errors.values()} - {ReadError}
    kind = kinds.pop() if len(kinds) == 1 else SpmrlError
    cancelled = any(isinstance(error, RunCancelledError) for error in errors.values())
    how = "failed or were cancelled" if cancelled else "failed"
    raise kind(f"{len(failures)} of {of} runs {how}:\n" + "\n".join(errors))
