"""Units as jobs of SLURM, by way of submitit.

Units that are handed over together are one job array. Whether one has ended is known from its
result, a file, and where there is none, from SLURM, which no longer knows the job or says what
became of it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from spmrl_bench.errors import SpmrlError, TrainingError
from spmrl_bench.process.executors.base import Outcome, Unit
from spmrl_bench.process.executors.slurm_files import (
    answer_of,
    end_of_log,
    remove_files,
    results_of,
)
from spmrl_bench.process.executors.slurm_job import Answer
from spmrl_bench.process.executors.slurm_queue import (
    ENDS,
    PATIENCE,
    UNLISTED,
    Listed,
    ProcessQueue,
    Queue,
    SlurmQueue,
)
from spmrl_bench.process.executors.slurm_settings import SlurmSettings
from spmrl_bench.process.executors.slurm_submission import JobsRefusedError, Submission
from spmrl_bench.process.pools import usable_cores
from spmrl_bench.storage.locks import LockedError, holder

if TYPE_CHECKING:
    from spmrl_bench.process.executors.slurm_queue import Job

# Seconds: between two looks whether it is time to look, after which a job is told again to stop,
# and between two tries to hand units over where SLURM takes no more.
_GLANCE, _REMIND, _AGAIN = 0.1, 30.0, 60.0

# Why a job waits that will begin by itself.
_USUAL = {"", "None", "BeginTime", "Cleaning", "JobArrayTaskLimit", "Priority", "Resources"}


@dataclass(eq=False)
class _Work:
    """A unit that a job has.

    Attributes:
        missed: since when its job is over without a result, and ``told``: when it was last told to
            stop; by the clock of :func:`time.monotonic`.
    """

    unit: Unit
    job: Job
    missed: float | None = None
    told: float | None = None


class SlurmExecutor:
    """Jobs of SLURM; any of them may be told to make room for another."""

    preemptible = True

    def __init__(
        self,
        settings: SlurmSettings,
        folder: Path,
        device: str = "auto",
        log: Callable[[str], None] = lambda _: None,
    ) -> None:
        """Nothing is handed over yet.

        Args:
            settings: of the jobs.
            folder: for files of jobs, which all nodes see under the same name.
            device: of units; ``auto`` is a graphics card if the settings have one, else the CPU.
            log: shows a line.

        Raises:
            SpmrlError: submitit or SLURM is not there.
        """
        self._settings, self._log = settings, log
        self._folder = folder.absolute()
        # A card of somebody else may be seen by a job that asked for none.
        self._device = ("cuda" if settings.gpus else "cpu") if device == "auto" else device
        self._local = settings.cluster == "local"
        self._queue: Queue = ProcessQueue() if self._local else SlurmQueue()
        self._submission = Submission(settings, self._folder)
        self._collected: list[Unit] = []
        self._works: list[_Work] = []
        self._leaving: list[Job] = []  # which have left their results, but not yet the queue
        self._next_look = self._next_try = 0.0
        self._mentioned: set[str] = set()  # reasons for which jobs wait
        self._refused: float | None = None
        self._stopping = False

    @property
    def capacity(self) -> int:
        """As many as are queued; of processes, no more than there are cores for."""
        if self._local:
            return max(1, min(self._settings.at_once, usable_cores() // self._settings.cpus))
        return self._settings.queued

    def start(self, unit: Unit) -> str:
        """Take a unit; it is handed over with others at the next look."""
        self._collected.append(unit)
        return "as a process of submitit" if self._local else "as a job of SLURM"

    def outcomes(self, seconds: float) -> list[Outcome]:
        """The units whose jobs have ended; SLURM is asked every few seconds at most.

        Raises:
            SpmrlError: SLURM takes no job, or has not answered for too long.
        """
        until = time.monotonic() + seconds
        while True:
            if (now := time.monotonic()) >= self._next_look:
                found = self._look(now)
                self._next_look = time.monotonic() + self._queue.interval
                if found:
                    return found
            if now >= until:
                return []
            time.sleep(max(0.0, min(_GLANCE, until - now)))

    def ask_to_stop(self) -> None:
        """SIGTERM to jobs that run; those that wait are cancelled."""
        self._stopping = True
        self._next_look = 0.0

    def close(self) -> None:
        """Have all jobs cancelled that are left."""
        jobs = [*self._leaving, *(work.job for work in self._works)]
        listed = None
        with suppress(SpmrlError):  # then they are cancelled unseen
            listed = self._queue.listed(jobs) if jobs else None
        if listed is not None:
            jobs = [job for job in jobs if not listed.get(job.job_id, UNLISTED).is_over]
        self._queue.cancel(jobs)
        self._works.clear()
        self._leaving.clear()
        self._collected.clear()

    # What a look at the queue brings about ----------------------------------------------------

    def _look(self, now: float) -> list[Outcome]:
        """See what has ended, and hand over what was collected."""
        if not self._works and not self._collected:
            return []
        listed = self._queue.listed([work.job for work in self._works])
        if listed is None:
            return []
        results = results_of(work.job for work in self._works)
        found: list[Outcome] = []
        for work in list(self._works):
            job, result = work.job, work.job.paths.result_pickle
            answer = answer_of(job) if result in results else None
            ended = self._judged(work, answer, listed.get(job.job_id, UNLISTED), now)
            if ended is not None:
                found.append(ended)
        if self._stopping:
            self._remind(listed, now)
            stopped = TrainingError("it was not handed over yet")
            found += [Outcome(unit, "stopped", stopped) for unit in self._collected]
            self._collected.clear()
        elif self._collected and now >= self._next_try:
            found += self._hand_over(now)
        return found

    def _judged(
        self, work: _Work, answer: Answer | None, job: Listed, now: float
    ) -> Outcome | None:
        """How a unit has ended, if it has.

        Args:
            work: the unit.
            answer: its result.
            job: what the queue says of its job.
            now: the time.
        """
        if not job.is_over:
            work.missed = None
            # SLURM itself begins one again that was told to make room; and a unit that is to be
            # begun again here had better not meet its own job.
            if answer is None or answer.status in ("stopped", "locked"):
                self._mention(work, job)
                return None
            self._leaving.append(work.job)
        if answer is None:
            work.missed = work.missed or now
            if now - work.missed < self._queue.grace and not job.never_began:
                return None
            answer = self._without_result(work, job)
        self._works.remove(work)
        if answer.status not in ("failed", "lost"):
            remove_files(work.job)
        return Outcome(work.unit, *answer)

    def _without_result(self, work: _Work, job: Listed) -> Answer:
        """What is said of a unit whose job left no result."""
        name = self._name_of(work.job)
        if not work.job.paths.submitted_pickle.exists():  # its files were removed, see _judged
            return Answer("stopped", TrainingError(f"{name} has ended, as another call has seen"))
        if job.never_began:
            error = TrainingError(f"{name} was cancelled before it began")
        else:
            end = ENDS[job.state]
            error = TrainingError(f"{name} {end} and left no result; {end_of_log(work.job)}")
        makes_room = self._stopping or job.state == "PREEMPTED"
        return Answer("stopped" if makes_room else "lost", error)

    def _mention(self, work: _Work, job: Listed) -> None:
        """Say, once for each reason, why a job waits that does not wait for the work of others."""
        if job.state != "PENDING" or job.reason in _USUAL | self._mentioned:
            return
        self._mentioned.add(job.reason)
        name, number = self._name_of(work.job), work.job.job_id
        held = "held" in job.reason.lower()
        advice = f"'scontrol release {number}' lets it begin" if held else "see 'man squeue'"
        self._log(f"{work.unit.title}: {name} waits, and maybe others: {job.reason} ({advice})")

    def _remind(self, listed: Mapping[str, Listed], now: float) -> None:
        """Tell jobs to stop; what they are told before their program has begun they do not hear."""
        due = [work for work in self._works if work.told is None or now - work.told > _REMIND]
        for work in due:
            waits = listed.get(work.job.job_id, Listed("PENDING")).state == "PENDING"
            work.told = None if waits else now
        if due:
            self._queue.tell([work.job for work in due])

    def _name_of(self, job: Job) -> str:
        return f"process {job.job_id}" if self._local else f"SLURM job {job.job_id}"

    # Handing over -----------------------------------------------------------------------------

    def _hand_over(self, now: float) -> list[Outcome]:
        """Hand over what was collected; returns the units that somebody else has in work."""
        ended: list[Outcome] = []
        left: list[Unit] = []
        for unit in self._collected:
            lock = unit.folder and unit.folder.with_name(f".{unit.folder.name}.lock")
            if lock and (owner := holder(lock)):
                ended.append(Outcome(unit, "locked", LockedError(lock, owner)))
            else:
                left.append(unit)
        self._collected = left
        if left:
            self._submit(now)
        return ended

    def _submit(self, now: float) -> None:
        """Hand over what is left; where SLURM takes no more at the moment, that waits.

        Raises:
            SpmrlError: SLURM does not take it at all.
        """
        try:
            jobs = self._submission.submit(self._collected, self._device)
        except JobsRefusedError as refusal:
            first, self._refused = self._refused is None, self._refused or now
            passing = refusal.is_passing and now - self._refused < PATIENCE
            if not passing and not self._works:
                raise
            self._next_try = now + _AGAIN
            if first:
                self._log(f"{refusal.reason}: it is tried again every {_AGAIN:.0f} seconds")
            return
        self._refused = None
        for unit, job in zip(self._collected, jobs, strict=True):
            self._take(unit, job)
        self._collected = []

    def _take(self, unit: Unit, job: Job) -> None:
        """Note that a job has a unit."""
        self._works.append(_Work(unit, job))
