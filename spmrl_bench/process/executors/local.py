"""Units on this machine: in this process, one after the other, or side by side in processes.

Each unit has a pool of joblib's with one worker, which SIGTERM asks to stop: a pool for all would
break as a whole when a worker is killed, and keep what a unit has left in memory. With the same
number of threads a unit computes the same to the last bit as it would alone.
"""

from __future__ import annotations

import signal
import sys
from concurrent.futures import FIRST_COMPLETED, wait
from multiprocessing import active_children

from joblib.externals.loky.process_executor import TerminatedWorkerError

from spmrl_bench.errors import TrainingError
from spmrl_bench.process import pools
from spmrl_bench.process.console import beside_others
from spmrl_bench.process.executors.units import Outcome, Unit, status_of
from spmrl_bench.process.signals import STOPPING, interrupt, on_signals


class InProcess:
    """One unit after the other in this process, with all threads; signals are the unit's."""

    preemptible = False
    capacity = 1

    def __init__(self, device: str = "auto") -> None:
        self._device = device
        self._outcomes: list[Outcome] = []

    def start(self, unit: Unit) -> None:
        error = None
        try:
            with on_signals(interrupt, *STOPPING):
                unit.function(*unit.arguments, device=self._device)
        except Exception as problem:
            error = problem
        self._outcomes.append(Outcome(unit, status_of(error), error))

    def outcomes(self, seconds: float) -> list[Outcome]:
        found, self._outcomes = self._outcomes, []
        return found

    def ask_to_stop(self) -> None:
        """Nothing is in work."""

    def close(self) -> None:
        """Nothing is left."""


class LocalExecutor:
    """Processes of joblib, each with its share of the threads; graphics cards take turns."""

    preemptible = False

    def __init__(self, jobs: int, device: str = "auto") -> None:
        self.capacity = jobs
        self._device = device
        self._cards = pools.cards()
        self._threads = max(1, pools.available_threads() // jobs)
        self._jobs: dict[Job, int] = {}  # with a number that no other has at the same time

    def start(self, unit: Unit) -> str:
        number = min({*range(self.capacity)} - {*self._jobs.values()})
        device = self._device
        if device in ("auto", "cuda") and self._cards > 1:
            device = f"cuda:{number % self._cards}"
        self._jobs[Job(unit, device, self._threads)] = number
        return f"on {device}" if device != self._device else ""

    def outcomes(self, seconds: float) -> list[Outcome]:
        futures = {job.future: job for job in self._jobs}
        over = [futures[each] for each in wait(futures, seconds, FIRST_COMPLETED).done]
        for job in over:
            del self._jobs[job]
        return [job.outcome() for job in over]

    def ask_to_stop(self) -> None:
        for job in self._jobs:
            job.process.terminate()

    def close(self) -> None:
        for job in self._jobs:
            pools.kill(job.process)
        for job in self._jobs:
            job.pool.shutdown()
        self._jobs.clear()


class Job:
    """A process that does a unit with so many threads; Ctrl-C of a terminal is not for it."""

    def __init__(self, unit: Unit, device: str, threads: int) -> None:
        self.unit = unit
        with pools.interrupts_blocked():
            self.pool = pools.worker_pool(1, threads)
            before = set(active_children())
            self.future = self.pool.submit(perform, unit, device, threads)
            (self.process,) = set(active_children()) - before

    def outcome(self) -> Outcome:
        """How it has ended; waits for that, and for the end of the process."""
        error = self.future.exception()
        self.pool.shutdown()
        if isinstance(error, TerminatedWorkerError):
            problem = TrainingError(f"its process {pools.how_ended(error)}")
            return Outcome(self.unit, "lost", problem)
        if error is None or isinstance(error, Exception):
            return Outcome(self.unit, status_of(error), error)
        return Outcome(self.unit, "stopped", TrainingError("its process was told to stop"))


def perform(unit: Unit, device: str, threads: int) -> None:
    """Do a unit; this is what its process does."""
    signal.signal(signal.SIGTERM, interrupt)  # where the unit says nothing else
    try:
        if "torch" in sys.modules:  # the unit brought it along
            import torch

            torch.set_num_threads(threads)  # where another variable says otherwise
        beside_others.set()
        unit.function(*unit.arguments, device=device)
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)  # how it ended has still to be sent
        pools.saved.set()
