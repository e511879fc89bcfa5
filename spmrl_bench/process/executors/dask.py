"""Units on the workers of a Dask cluster.

A worker does one unit at a time, in a process of its own with the threads of the worker: so it is
asked to save and end as anywhere else, and ends when its worker is gone. A file of the driver's,
the sign, tells a worker that sees other folders, which gets no work, and a unit that has failed by
itself from one whose worker has lost the folder.
"""

from __future__ import annotations

import multiprocessing
import os
import platform
import secrets
import socket
import threading
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

from spmrl_bench import __version__
from spmrl_bench.errors import SpmrlError, TrainingError
from spmrl_bench.process.console import say
from spmrl_bench.process.executors.local import Job
from spmrl_bench.process.executors.units import Answer, Outcome, Unit
from spmrl_bench.process.pools import kill

#: Seconds between two looks at which workers there are, and in which an answer should come.
_LOOK, _PATIENCE = 1.0, 30.0


class DaskExecutor:
    """The workers of a Dask cluster; they may come and go."""

    preemptible = False

    def __init__(self, address: str, shared: Path, *, device: str) -> None:
        """Connect to a scheduler, such as ``tcp://host:8786``, whose workers should see ``shared``;
        a SpmrlError if there is none."""
        import distributed

        self._distributed, self._device = distributed, device
        self._token = secrets.token_hex(4)
        self._given: dict[Any, tuple[Unit, str]] = {}  # by their futures, with their workers
        self._threads: dict[str, int] = {}  # of the workers; 0 of those that cannot work
        self._had_workers = False
        self._next_look = 0.0
        try:
            self._client = distributed.Client(address, timeout=_PATIENCE, set_as_default=False)
        except (OSError, ValueError) as error:
            raise SpmrlError(
                f"--on dask://{_short(address)}: no answer from a Dask scheduler there "
                f"({error}); start one with 'dask scheduler' and workers with 'dask worker'"
            ) from None
        shared.mkdir(parents=True, exist_ok=True)
        self._sign = shared.absolute() / f".driver-{self._token}"
        self._sign.touch()

    @property
    def capacity(self) -> int:
        self._look()
        return sum(map(bool, self._threads.values()))

    def start(self, unit: Unit) -> str:
        busy = {worker for _, worker in self._given.values()}
        worker = next(at for at, threads in self._threads.items() if threads and at not in busy)
        with self._answering():
            future = self._client.submit(
                _work, unit, self._device, self._threads[worker], self._token, str(self._sign),
                key=f"{unit.title} {secrets.token_hex(8)}", workers=[worker],
            )  # fmt: skip
        self._given[future] = unit, worker
        return f"on worker {_short(worker)}"

    def outcomes(self, seconds: float) -> list[Outcome]:
        if not self._given:
            return []
        time.sleep(seconds)
        self._look()
        found = []
        for future, (unit, worker) in list(self._given.items()):
            if answer := self._answer(worker, future):
                del self._given[future]
                found.append(Outcome(unit, *answer))
        return found

    def ask_to_stop(self) -> None:
        with suppress(SpmrlError):  # then they are gone
            self._run(_stop, self._token, False)

    def close(self) -> None:
        if self._given:
            with suppress(SpmrlError):
                self._run(_stop, self._token, True)
        with suppress(Exception):  # the cluster may be gone, and nothing is wanted of it any more
            self._client.close(timeout=_LOOK)
        self._sign.unlink(missing_ok=True)

    def _answer(self, worker: str, future: Any) -> Answer | None:
        status = future.status
        if status == "pending" and worker in self._threads:
            return None
        if status == "finished":
            with self._answering():
                answer: Answer = future.result(timeout=_PATIENCE)
            if answer[0] == "lost":  # whether it can go on is seen at the next look
                self._threads.pop(worker, None)
            return answer
        if status == "error" and worker in self._threads:
            return "failed", future.exception(timeout=_PATIENCE)
        future.cancel()
        return "lost", TrainingError(f"its worker {_short(worker)} is gone")

    def _look(self) -> None:
        """See which workers there are; if none ever could work, it is an error that one cannot."""
        if time.monotonic() < self._next_look:
            return
        with self._answering():
            there = self._client.nthreads()
        for gone in self._threads.keys() - there.keys():
            del self._threads[gone]
        if new := sorted(at for at in there if not self._threads.get(at)):
            asked = (_problem, __version__, platform.python_version(), str(self._sign))
            for worker, problem in self._run(*asked, workers=new).items():
                if isinstance(problem, Exception):
                    problem = f"cannot do any work: {problem}; is spmrl-bench installed there?"
                said = f"worker {_short(worker)}: {problem}"
                self._had_workers |= not problem
                if not self._had_workers:
                    raise SpmrlError(said)
                if problem and worker not in self._threads:
                    say(f"{said}. It gets no work before that is in order")
                self._threads[worker] = 0 if problem else there[worker]
        self._next_look = time.monotonic() + _LOOK

    def _run(self, function: Any, *arguments: Any, workers: list[str] | None = None) -> Any:
        """What a function gives on each worker beside its work, or its exception."""
        with self._answering():
            return self._client.run(function, *arguments, workers=workers, on_error="return")

    @contextmanager
    def _answering(self) -> Iterator[None]:
        """Within it, a scheduler that is gone is an error for the user."""
        try:
            yield
        except (OSError, RuntimeError, self._distributed.CancelledError) as error:
            raise SpmrlError(
                f"the Dask scheduler does not answer any more ({error}); what was in work has its "
                "last checkpoint: give the same command again when the cluster is there"
            ) from None


def _short(address: str) -> str:
    return address.partition("://")[2] or address


# What workers do ------------------------------------------------------------------------------

_jobs: dict[str, set[Job]] = defaultdict(set)  # of this worker, by their drivers
_asked: set[str] = set()  # drivers that want no more
_starting = threading.Lock()


def _problem(version: str, python: str, sign: str) -> str:
    """Why this worker cannot do any work for such a driver; empty if it can."""
    host, own = socket.gethostname(), platform.python_version()
    if (version, python) != (__version__, own):
        return (
            f"{host} has spmrl-bench {__version__} and Python {own}; here they are "
            f"{version} and {python}: install the same on both"
        )
    needed = "the runs in a folder that all machines share; name one with --runs"
    return "" if _sees(sign) else f"{host} does not see {Path(sign).parent}: workers need {needed}"


def _sees(sign: str) -> bool:
    return os.path.exists(sign)  # false where the file system is gone, too


def _work(unit: Unit, device: str, threads: int, driver: str, sign: str) -> Answer:
    with _starting:
        if driver in _asked:
            return "stopped", TrainingError("was told to stop")
        # Dask's workers may have no children unless configured so; ours end by themselves.
        multiprocessing.current_process()._config.pop("daemon", None)  # type: ignore[attr-defined]
        # Dask has its workers give memory back at once, which makes training twice as slow.
        os.environ.pop("MALLOC_TRIM_THRESHOLD_", None)
        job = Job(unit, device, threads)
        _jobs[driver].add(job)
    try:
        _, status, error = job.outcome()
    finally:
        _jobs[driver].discard(job)
    if status in ("failed", "lost") and not _sees(sign):
        problem = f"its worker on {socket.gethostname()} does not see {Path(sign).parent} any more"
        return "lost", TrainingError(problem)
    return status, error


def _stop(driver: str, at_once: bool) -> None:
    with _starting:
        _asked.add(driver)
        for job in list(_jobs[driver]):
            (kill if at_once else BaseProcess.terminate)(job.process)
