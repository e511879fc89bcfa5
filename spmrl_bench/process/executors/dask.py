"""Units on the workers of a Dask cluster, that of somebody or one that is set up here.

A worker has one unit at a time, which it does in a process of its own, as it would be done here
with as many threads as the worker was started with. So a
unit is asked to save and end as anywhere else, its memory goes with it, and it ends when its worker
is gone. Which worker is next is decided here, by who has nothing in work; Dask brings units there,
watches the workers, and brings the answers.

The workers see the same folders as the driver. A file of the driver's that a worker does not see
is how one that sees others is found out before it has work, and how it is told whether a unit has
failed by itself or because its worker has lost the folder. Such a worker gets no more units until
it sees the folder again.
"""

from __future__ import annotations

import itertools
import multiprocessing
import os
import platform
import secrets
import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

from spmrl_bench import __version__
from spmrl_bench.errors import SpmrlError, TrainingError
from spmrl_bench.process.devices import cards, device_of_job
from spmrl_bench.process.executors.base import Outcome, Status, Unit
from spmrl_bench.process.executors.local import Job, start_job
from spmrl_bench.process.pools import available_threads, interrupts_blocked

#: Seconds between two looks at which workers there are, and at those that were set aside, and in
#: which an answer should come.
_LOOK, _LOOK_AGAIN, _PATIENCE = 1.0, 30.0, 30.0


class _Facts(NamedTuple):
    """What a worker says of itself."""

    host: str
    cards: int
    version: str
    python: str
    sees: bool
    """Whether it sees the driver's file."""


class _Worker(NamedTuple):
    """A worker, its number among those of its host, from 0, and the threads it was started with."""

    address: str
    facts: _Facts
    number: int
    threads: int


class _Given(NamedTuple):
    """A unit, who has it, and what will say how it has ended."""

    unit: Unit
    worker: str
    future: Any


class DaskExecutor:
    """The workers of a Dask cluster."""

    preemptible = False

    def __init__(
        self,
        address: str | None,
        shared: Path,
        *,
        jobs: int = 1,
        device: str = "auto",
        log: Callable[[str], None] = lambda _: None,
    ) -> None:
        """Connect to a cluster, or set one up.

        Args:
            address: of a scheduler, such as ``tcp://host:8786``; None for a cluster of ``jobs``
                workers on this machine, which ends with this process.
            shared: a folder that all workers should see, which is made if it is not there.
            device: as of training. Where the workers of a host see several graphics cards and it
                names none, they take turns.
            log: shows a line.

        Raises:
            SpmrlError: the libraries are not installed, or there is no such cluster.
        """
        try:
            import distributed
        except ImportError:
            raise SpmrlError(
                "--on dask needs Dask's scheduler: pip install 'spmrl-bench[dask]'"
            ) from None
        self._distributed = distributed
        self._device, self._here, self._log = device, address is None, log
        self._token, self._numbers = secrets.token_hex(4), itertools.count(1)
        self._given: dict[str, _Given] = {}
        self._workers: dict[str, _Worker] = {}
        self._aside: dict[str, float] = {}  # workers that cannot work, and when to look again
        self._had_workers = False
        self._news = threading.Event()  # a worker has answered
        self._looked = float("-inf")
        shared.mkdir(parents=True, exist_ok=True)
        self._sign = shared.absolute() / f".driver-{self._token}"
        self._to_see = str(self._sign)
        self._cluster = self._set_up(jobs) if self._here else None
        where = self._cluster if address is None else address
        try:
            self._client = distributed.Client(where, timeout=_PATIENCE, set_as_default=False)
        except (OSError, ValueError) as error:
            raise SpmrlError(
                f"--on dask://{_short(address or '')}: no answer from a Dask scheduler there "
                f"({error}); start one with 'dask scheduler' and workers with 'dask worker'"
            ) from None
        self._sign.touch()

    def _set_up(self, jobs: int) -> Any:
        """A cluster of this machine, without a page to look at and without limits of memory."""
        import dask

        with interrupts_blocked(), dask.config.set({"distributed.worker.daemon": False}):
            return self._distributed.LocalCluster(
                n_workers=jobs,
                threads_per_worker=max(1, available_threads() // jobs),
                memory_limit=0,
                dashboard_address="127.0.0.1:0",  # any port that is free
                silence_logs=50,  # nothing below the worst
            )

    @property
    def capacity(self) -> int:
        """As many units as there are workers."""
        self._look()
        return len(self._workers)

    def start(self, unit: Unit) -> str:
        """Give a unit to a worker that has none."""
        worker = self._free_worker()
        key = f"{unit.title} {self._token}-{next(self._numbers)}"
        facts = worker.facts
        device = device_of_job(worker.number, self._device, facts.cards)
        with self._answering():
            future = self._client.submit(
                _work, unit, device, worker.threads, key, self._to_see,
                key=key, pure=False, workers=[worker.address], retries=0,
            )  # fmt: skip
        future.add_done_callback(lambda _: self._news.set())
        self._given[key] = _Given(unit, worker.address, future)
        where = "" if self._here else f" of {facts.host}"
        return f"on worker {_short(worker.address)}{where}"

    def _free_worker(self) -> _Worker:
        """The first that has no unit."""
        busy = {given.worker for given in self._given.values()}
        return next(one for one in self._workers.values() if one.address not in busy)

    def outcomes(self, seconds: float) -> list[Outcome]:
        """The units whose workers have answered or are gone."""
        if not self._given:
            return []
        self._news.wait(seconds)
        self._news.clear()
        self._look()
        found = []
        for key, given in list(self._given.items()):
            if (ended := self._end_of(given)) is not None:
                del self._given[key]
                found.append(ended)
        return found

    def ask_to_stop(self) -> None:
        """Tell the workers to ask what they have in work."""
        with suppress(SpmrlError):  # then they are gone
            self._run(_ask, self._token)

    def close(self) -> None:
        """End what is left; a cluster that was set up here ends too."""
        if self._given:
            with suppress(SpmrlError):
                self._run(_kill, self._token)
        with suppress(Exception):  # the cluster may be gone, and nothing is wanted of it any more
            self._client.close(timeout=_LOOK)
        if self._cluster is not None:
            self._cluster.close(timeout=_PATIENCE)
        self._sign.unlink(missing_ok=True)

    def _end_of(self, given: _Given) -> Outcome | None:
        """How a unit has ended; None if it has not."""
        status = given.future.status
        if status == "pending" and given.worker in self._workers:
            return None
        if status == "finished":
            with self._answering():
                status, error, sees = given.future.result(timeout=_PATIENCE)
            if sees:
                return Outcome(given.unit, status, error)
            problem = f"worker {_short(given.worker)} does not see {self._sign.parent} any more"
            self._set_aside(given.worker, problem)
            return Outcome(given.unit, "lost", TrainingError(f"its {problem}"))
        if status == "error" and given.worker in self._workers:
            error = given.future.exception(timeout=_PATIENCE)
            if isinstance(error, Exception) and not isinstance(
                error, self._distributed.scheduler.KilledWorker
            ):
                return Outcome(given.unit, "failed", error)
        given.future.cancel()
        return Outcome(
            given.unit, "lost", TrainingError(f"its worker {_short(given.worker)} is gone")
        )

    def _look(self) -> None:
        """Which workers there are, at most once a second."""
        now = time.monotonic()
        if now - self._looked < _LOOK:
            return
        with self._answering():
            there = self._client.nthreads()
        for known in (self._workers, self._aside):
            for gone in known.keys() - there.keys():
                del known[gone]
        new = sorted(there.keys() - self._workers.keys())
        if new := [address for address in new if self._aside.get(address, now) <= now]:
            self._welcome({address: there[address] for address in new})
        self._looked = time.monotonic()

    def _welcome(self, threads: Mapping[str, int]) -> None:
        """Take workers in, each with so many threads, after a look whether they can do their work.

        Raises:
            SpmrlError: none can, and none ever could.
        """
        with suppress(OSError):  # what it is in was gone, for the driver too, and is there again
            self._sign.touch()
        for address, facts in self._run(_facts, self._to_see, workers=[*threads]).items():
            if problem := self._problem_of(address, facts):
                if not self._had_workers:
                    raise SpmrlError(problem)
                self._set_aside(address, problem)
                continue
            self._aside.pop(address, None)
            others = [one for one in self._workers.values() if one.facts.host == facts.host]
            number = min({*range(len(others) + 1)} - {one.number for one in others})
            self._workers[address] = _Worker(address, facts, number, threads[address])
            self._had_workers = True

    def _problem_of(self, address: str, facts: _Facts | Exception) -> str:
        """Why a worker cannot do any work, in words; empty if it can."""
        if isinstance(facts, Exception):
            return (
                f"worker {_short(address)}: cannot do any work: {facts}; is spmrl-bench "
                "installed where it runs?"
            )
        place = f"worker {_short(address)} of {facts.host}"
        own = (__version__, platform.python_version())
        if (facts.version, facts.python) != own:
            return (
                f"{place}: has spmrl-bench {facts.version} and Python {facts.python}; here "
                f"they are {own[0]} and {own[1]}: install the same on both"
            )
        if not facts.sees:
            return (
                f"{place}: does not see {self._sign.parent}: workers need the runs on a folder "
                "that all machines share; name one with --runs"
            )
        return ""

    def _set_aside(self, address: str, problem: str) -> None:
        """Give a worker no more work until there is nothing wrong with it any more."""
        if address not in self._aside:
            self._log(f"{problem}. It gets no work before that is in order")
        self._workers.pop(address, None)
        self._aside[address] = time.monotonic() + _LOOK_AGAIN

    def _run(self, function: Any, *arguments: Any, workers: list[str] | None = None) -> Any:
        """What a function gives on each worker beside its work, or its exception."""
        with self._answering():
            return self._client.run(function, *arguments, workers=workers, on_error="return")

    @contextmanager
    def _answering(self) -> Iterator[None]:
        """Within it, a scheduler that is gone is an error for the user."""
        try:
            yield
        except self._distributed.TimeoutError:
            raise
        except (OSError, RuntimeError, self._distributed.CancelledError) as error:
            raise SpmrlError(
                f"the Dask scheduler does not answer any more ({error}); what was in work has its "
                "last checkpoint: give the same command again when the cluster is there"
            ) from None


def _short(address: str) -> str:
    return address.partition("://")[2] or address


# What workers do ---------------------------------------------------------------------------

_jobs: dict[str, Job] = {}  # of this worker, by the keys of their units
_asked: set[str] = set()  # drivers that want no more
_starting = threading.Lock()


def _facts(sign: str) -> _Facts:
    return _Facts(
        host=socket.gethostname(),
        cards=cards(),
        version=__version__,
        python=platform.python_version(),
        sees=_sees(sign),
    )


def _sees(sign: str) -> bool:
    """Whether the file of the driver's is there."""
    try:
        return Path(sign).exists()
    except OSError:  # the file system is gone
        return False


def _work(
    unit: Unit, device: str, threads: int, key: str, sign: str
) -> tuple[Status, Exception | None, bool]:
    """Do a unit in a process of its own.

    Returns:
        How it has ended, and whether that was for no loss of the folder.
    """
    with _starting:
        if _driver_of(key) in _asked:
            return "stopped", TrainingError("was told to stop"), True
        # Dask marks its workers as processes that may have no children, unless it is configured
        # otherwise; it means only that it would not end them. Ours end by themselves.
        multiprocessing.current_process()._config.pop("daemon", None)  # type: ignore[attr-defined]
        # Dask has its workers give memory back at once, which makes training twice as slow.
        os.environ.pop("MALLOC_TRIM_THRESHOLD_", None)
        _jobs[key] = start_job(unit, device, threads)
    try:
        _, status, error = _jobs[key].outcome()
        return status, error, status not in ("failed", "lost") or _sees(sign)
    finally:
        del _jobs[key]


def _driver_of(key: str) -> str:
    return key.rpartition(" ")[2].partition("-")[0]


def _ask(driver: str) -> None:
    with _starting:
        _asked.add(driver)
        for key, job in _jobs.items():
            if _driver_of(key) == driver:
                job.process.terminate()


def _kill(driver: str) -> None:
    _ask(driver)
    for key, job in list(_jobs.items()):
        if _driver_of(key) == driver:
            job.kill()
