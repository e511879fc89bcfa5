"""Several runs trained at once, each in a process of its own.

joblib starts the processes, watches them and brings back how they ended. One pool for all runs
would break as a whole when one of its workers is killed, and keep what a run has left in memory
for the next one. So each run has a pool of one worker, which ends with it. A run is asked to
stop by SIGTERM, at which it saves after the batch, and its process ends by itself when the one
that started it is gone. Checkpoints are written whole or not at all, so any end leaves a run
that continues.

A run computes with the same number of threads and in the same order as it would alone: the
weights are the same to the last bit. Its lines go where this process' lines go, one at a time.
"""

from __future__ import annotations

import os
import signal
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing import active_children
from multiprocessing.process import BaseProcess
from pathlib import Path
from types import FrameType

import torch
from joblib.externals.loky import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from joblib.externals.loky.process_executor import TerminatedWorkerError
from rich.console import Console

from spmrl_bench.errors import TrainingError
from spmrl_bench.experiments.one_run import Failure, Run, train_run
from spmrl_bench.interrupts import Interrupted, interrupt, on_signals
from spmrl_bench.parsers.device import cards, device_of_job
from spmrl_bench.processes import available_threads, ending, interrupts_blocked, worker_pool

# Seconds between two looks whether a signal has come, and in which a dead process has a status.
_GLANCE, _PATIENCE = 0.2, 10
_AGAIN = "give the same command again (without --fresh) to continue from the last checkpoint"


def train_side_by_side(
    runs: Sequence[Run],
    notes: dict[Path, str],
    device: str,
    *,
    fresh: bool,
    jobs: int,
    say: Callable[[str], None],
) -> list[Failure]:
    """Train runs, ``jobs`` at a time, the longest first; returns what failed.

    Where there are several graphics cards and ``device`` names none of them, they take turns.

    Args:
        notes: by folder of a run, what to say of its treebank before it begins.
        say: shows a line.

    Raises:
        Interrupted: Ctrl-C or SIGTERM, after every run has saved where it is.
        KeyboardInterrupt: Ctrl-C again; every run continues from its last checkpoint.
    """
    threads = max(1, available_threads() // jobs)
    waiting = deque(sorted(runs, key=_length, reverse=True))
    free, there = list(range(jobs)), cards()
    busy: dict[Future, _Job] = {}
    failures: list[Failure] = []
    asked: list[int] = []
    told = interrupted = False

    def ask(number: int, frame: FrameType | None) -> None:
        if asked and number == signal.SIGINT:
            raise KeyboardInterrupt
        if not asked:
            say("finishing the batches and saving; press Ctrl-C again to stop at once")
        asked.append(number)

    with on_signals(ask, signal.SIGINT, signal.SIGTERM):
        try:
            while busy or (waiting and not asked):
                while waiting and len(busy) < jobs and not asked:
                    run = waiting.popleft()
                    number = free.pop(free.index(min(free)))
                    own = device_of_job(number, device, there)
                    where = f" on {own}" if own != device else ""
                    begun = len(runs) - len(waiting)
                    say(f"{run.title}: started{where} ({begun} of {len(runs)})")
                    # The terminal sends Ctrl-C to all processes; a run should hear of it from here.
                    with interrupts_blocked():
                        job = _start(run, number, own, fresh, notes.get(run.folder), threads)
                        busy[job.future] = job
                if asked and not told:
                    told = True
                    for job in busy.values():
                        job.process.terminate()
                for future in wait(busy, _GLANCE, FIRST_COMPLETED).done:
                    job, error = busy.pop(future), future.exception()
                    job.pool.shutdown()
                    free.append(job.number)
                    if told and isinstance(error, KeyboardInterrupt | TerminatedWorkerError):
                        interrupted = True
                    elif error is not None:
                        failures.append(job.failure(error))
                        say(str(failures[-1]))
        finally:
            for job in busy.values():
                job.kill()
            for job in busy.values():
                job.pool.shutdown()
    if asked and (interrupted or waiting):
        raise Interrupted(asked[0])
    return failures


#: Sentences of a treebank that does not declare how many it has.
_USUAL = 5000


def _length(run: Run) -> float:
    """How long a run may take, compared with others: sentences to learn times weights, roughly."""
    declared = run.treebank.manifest.splits.train.sentences
    sentences = max(declared) if isinstance(declared, tuple) else declared or _USUAL
    return float(sentences) * run.config.train.max_epochs * run.config.model.cost


@dataclass(frozen=True)
class _Job:
    """A run, the pool of one process that trains it, and how it will have ended.

    Its number is one that no other job has that goes on at the same time.
    """

    run: Run
    number: int
    pool: ProcessPoolExecutor
    process: BaseProcess
    future: Future

    def kill(self) -> None:
        """End it at once; the pool's own way needs a program that small systems lack."""
        if self.process.pid is not None:
            with suppress(ProcessLookupError):
                os.kill(self.process.pid, signal.SIGKILL)

    def failure(self, error: BaseException) -> Failure:
        """What ended the run, in words where it is no error of its own."""
        if isinstance(error, Exception) and not isinstance(error, TerminatedWorkerError):
            return Failure(self.run, error)
        how = "was told to stop"
        if isinstance(error, TerminatedWorkerError):
            how = ending(self.process, _PATIENCE, "--jobs")
        problem = f"{self.run.title}: its process {how}; {_AGAIN}"
        return Failure(self.run, TrainingError(problem))


def _start(run: Run, number: int, device: str, fresh: bool, note: str | None, threads: int) -> _Job:
    pool = worker_pool(1, threads)
    before = set(active_children())
    future = pool.submit(_train, run, device, fresh, note, threads)
    (process,) = set(active_children()) - before
    return _Job(run, number, pool, process, future)


def _train(run: Run, device: str, fresh: bool, note: str | None, threads: int) -> None:
    """Train a run; this is what its process does."""
    signal.signal(signal.SIGTERM, interrupt)  # while it is not training
    try:
        torch.set_num_threads(threads)  # where another variable says otherwise
        # Lines only, even where a variable of the environment asks for a terminal's display.
        console = Console(stderr=True, force_terminal=False)
        train_run(run, device, fresh=fresh, note=note, console=console)
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)  # how it ended has still to be sent
