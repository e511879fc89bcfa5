"""A unit in a process of its own on this machine, which ends with it.

joblib starts the process, watches it and brings back how it ended. One pool for all units would
break as a whole when one of its workers is killed, and keep what a unit has left in memory for the
next one. So each unit has a pool of one worker. It is asked to stop by SIGTERM, by itself too when
the process that started it is gone.

A unit computes with the same number of threads and in the same order as it would alone: what
comes out is the same to the last bit.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing import active_children
from multiprocessing.process import BaseProcess

from joblib.externals.loky import ProcessPoolExecutor
from joblib.externals.loky.process_executor import TerminatedWorkerError
from rich.console import Console

from spmrl_bench.errors import RunOwnedError, TrainingError
from spmrl_bench.process.executors.unit import Ended, Unit
from spmrl_bench.process.pools import ending, interrupts_blocked, worker_pool
from spmrl_bench.process.signals import interrupt

# Seconds in which a dead process has a status, and in which one without parent has saved.
_PATIENCE, _LAST = 10, 30

_idle = threading.Event()  # nothing is in work in this process


@dataclass(frozen=True, eq=False)
class Job:
    """A unit, the pool of one process that does it, and how it will have ended."""

    unit: Unit
    pool: ProcessPoolExecutor
    process: BaseProcess
    future: Future[None]

    def terminate(self) -> None:
        """Ask it to save and end."""
        self.process.terminate()

    def kill(self) -> None:
        """End it at once; the pool's own way needs a program that small systems lack."""
        if self.process.pid is not None:
            with suppress(ProcessLookupError):
                os.kill(self.process.pid, signal.SIGKILL)

    def ended(self) -> Ended:
        """How it has ended; waits for that, and for the end of the process."""
        error = self.future.exception()
        self.pool.shutdown()
        if error is None:
            return Ended(self.unit, "done")
        if isinstance(error, RunOwnedError):
            return Ended(self.unit, "owned", error)
        if isinstance(error, TerminatedWorkerError):
            how = ending(self.process, _PATIENCE, self.unit.at_once)
            return Ended(self.unit, "lost", TrainingError(f"its process {how}"))
        if isinstance(error, Exception):
            return Ended(self.unit, "failed", error)
        return Ended(self.unit, "stopped", TrainingError("its process was told to stop"))


def start_job(unit: Unit, device: str, threads: int) -> Job:
    """Start a process that does a unit with so many threads; Ctrl-C of a terminal is not for it."""
    with interrupts_blocked():
        pool = worker_pool(1, threads, _stop_with_parent)
        before = set(active_children())
        future = pool.submit(perform, unit, device, threads)
        (process,) = set(active_children()) - before
    return Job(unit, pool, process, future)


def _stop_with_parent(parent: int) -> None:
    """Ask this process to save and end when the one with this number, which started it, is gone."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(0.5)
        os.kill(os.getpid(), signal.SIGTERM)
        _idle.wait(_LAST)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def perform(unit: Unit, device: str, threads: int) -> None:
    """Do a unit; this is what its process does."""
    signal.signal(signal.SIGTERM, interrupt)  # where the unit says nothing else
    try:
        if "torch" in sys.modules:  # the unit brought it along
            import torch

            torch.set_num_threads(threads)  # where another variable says otherwise
        # Lines only, even where a variable of the environment asks for a terminal's display.
        console = Console(stderr=True, force_terminal=False)
        unit.function(*unit.arguments, device=device, console=console)
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)  # how it ended has still to be sent
        _idle.set()
