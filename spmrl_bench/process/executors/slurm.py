"""Units as jobs of SLURM, by way of submitit.

Units that are handed over together are one job array. How one has ended is its result, a file;
where there is none, ``squeue`` says what became of its job (many clusters have no ``sacct``). Jobs
of a driver that was killed go on: the same command finds their runs locked.
"""

from __future__ import annotations

import datetime
import io
import os
import pickle
import secrets
import shlex
import shutil
import signal
import subprocess
import sys
import time
from contextlib import redirect_stderr, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias

from pydantic import BaseModel, Field, PositiveInt, StrictFloat, StrictInt, field_validator

from spmrl_bench.errors import SpmrlError, TrainingError, remedy
from spmrl_bench.process.executors.local import perform
from spmrl_bench.process.executors.units import ADVICE, Answer, Outcome, Unit, status_of
from spmrl_bench.process.pools import interrupts_blocked
from spmrl_bench.process.signals import interrupt
from spmrl_bench.storage.locks import LockedError, holder, lock_of

if TYPE_CHECKING:
    import submitit

    Job: TypeAlias = submitit.Job[Any]

#: Seconds that the controller may be silent: in all, and asked once.
PATIENCE, _ONE_ANSWER = 600.0, 60.0
_REMIND = 30.0  # seconds after which jobs are told again to stop

# States after which a job is not gone on with, and what is none of SLURM's.
_UNLISTED = "no longer listed"
_ENDS = {
    *("BOOT_FAIL", "CANCELLED", "COMPLETED", "DEADLINE", "FAILED", "NODE_FAIL", "OUT_OF_MEMORY"),
    *("PREEMPTED", "REVOKED", "TIMEOUT", _UNLISTED),
}


class SlurmSettings(BaseModel, extra="forbid", frozen=True):
    """What each run asks of SLURM (docs/runs.md)."""

    partition: str | None = None
    account: str | None = None
    qos: str | None = None
    minutes: PositiveInt = 1440
    memory_gb: Annotated[float, Field(gt=0)] = 8.0
    cpus: PositiveInt = 1
    gpus: Annotated[int, Field(ge=0, le=1)] = 0
    at_once: PositiveInt = 100
    queued: PositiveInt = 1000
    setup: tuple[str, ...] = ()
    extra: dict[str, str | StrictInt | StrictFloat | Literal[True]] = {}

    @field_validator("extra")
    @classmethod
    def _with_names_of_submitit(cls, options: dict[str, Any]) -> dict[str, Any]:
        named = {name.lstrip("-").replace("-", "_"): value for name, value in options.items()}
        # They say where the files of jobs are and which job is which.
        own = {"array", "error", "job_name", "open_mode", "output", "signal"}
        if taken := own & named.keys():
            raise ValueError(f"{', '.join(sorted(taken))}: set by the program itself")
        return named

    def parameters(self) -> dict[str, Any]:
        """Those of submitit's executor."""
        return self.model_dump(include={"partition", "account", "qos"}) | {
            "job_name": "spmrl_bench",
            "time": self.minutes,
            "signal_delay_s": min(120, 30 * self.minutes),  # to save in
            "nodes": 1,
            "ntasks_per_node": 1,
            "cpus_per_task": self.cpus,
            # Else a step has one core since SLURM 22.05, however many its job has.
            "srun_args": [f"--cpus-per-task={self.cpus}"],
            "gpus_per_node": self.gpus or None,
            "mem": f"{round(1024 * self.memory_gb)}M",
            "array_parallelism": self.at_once,
            "wckey": None,
            "setup": list(self.setup),
            "additional_parameters": {"requeue": True} | self.extra,
        }


class SlurmExecutor:
    """Jobs of SLURM; any of them may be told to make room for another."""

    preemptible = True
    #: Seconds between two looks at the queue, and in which a file that a job has left is seen here.
    interval, grace = 5.0, 60.0

    def __init__(self, settings: SlurmSettings, folder: Path, device: str = "auto") -> None:
        """All nodes see the ``folder``, for files of jobs; a SpmrlError if SLURM is not there."""
        import submitit

        if shutil.which("sbatch") is None:
            raise SpmrlError("no program 'sbatch' here: give the command on a machine of SLURM's")
        self._submitit, self._settings, self.capacity = submitit, settings, settings.queued
        self._folder = folder.absolute()
        # A card of somebody else may be seen by a job that asked for none.
        self._device = ("cuda" if settings.gpus else "cpu") if device == "auto" else device
        self._collected: list[Unit] = []  # not handed over yet
        self._jobs: dict[Job, Unit] = {}
        self._missed: dict[Job, float] = {}  # since when those are over that have no result
        self._next_look = 0.0
        self._next_reminder: float | None = None  # where all are asked to stop
        self._answered = time.monotonic()

    def start(self, unit: Unit) -> str:
        self._collected.append(unit)  # it is handed over with others at the next look
        return "as a job of SLURM"

    def outcomes(self, seconds: float) -> list[Outcome]:
        if (wait := self._next_look - time.monotonic()) > 0:
            time.sleep(min(wait, seconds))
            return []
        now = time.monotonic()
        found = self._ended_jobs(now) if self._jobs else []
        if self._next_reminder is not None:
            stopped = TrainingError("it was not handed over yet")
            found += [Outcome(unit, "stopped", stopped) for unit in self._collected]
            self._collected = []
            if self._jobs and now >= self._next_reminder:
                # What they are told before their program has begun they do not hear.
                self._next_reminder = now + _REMIND
                self._scancel("--state=PENDING")
                self._scancel("--state=RUNNING", "--signal=TERM")
        elif self._collected:
            found += self._hand_over()
        self._next_look = time.monotonic() + self.interval
        return found

    def ask_to_stop(self) -> None:
        self._next_reminder = self._next_look = 0.0

    def close(self) -> None:
        if self._jobs:
            self._scancel()  # they get SIGTERM, and some seconds to save

    def _scancel(self, *options: str) -> None:
        _output("scancel", "--quiet", *options, *(job.job_id for job in self._jobs))

    def _ended_jobs(self, now: float) -> list[Outcome]:
        if (states := self._states(now)) is None:
            return []
        # A network's file system tells late of a single file that has appeared.
        files: set[Path] = set()
        for folder in {job.paths.folder for job in self._jobs}:
            with suppress(OSError):
                files.update(folder.iterdir())
        found: list[Outcome] = []
        for job, unit in list(self._jobs.items()):
            left = _answer_of(job) if job.paths.result_pickle in files else None
            if answer := self._answer(job, left, states.get(job.job_id, _UNLISTED), now):
                del self._jobs[job]
                if answer[0] not in ("failed", "lost"):
                    _remove_files(job)
                found.append(Outcome(unit, *answer))
        return found

    def _answer(self, job: Job, left: Answer | None, state: str, now: float) -> Answer | None:
        """How the unit of a job has ended, of which it may have left an answer."""
        if state not in _ENDS:
            self._missed.pop(job, None)
            # SLURM itself begins one again that was told to make room; and a unit that is to be
            # begun again here had better not meet its own job.
            return None if left is not None and left[0] in ("stopped", "locked") else left
        if left is not None:
            return left
        stopping = self._next_reminder is not None
        # Of one that was cancelled while it waited nothing is to come.
        waits = 0.0 if stopping and state == "CANCELLED" else self.grace
        if now - self._missed.setdefault(job, now) < waits:
            return None
        problem = f"SLURM job {job.job_id} is {state}, without a result; {_end_of_log(job)}"
        made_room = stopping or state == "PREEMPTED"
        return "stopped" if made_room else "lost", TrainingError(problem)

    def _states(self, now: float) -> dict[str, str] | None:
        """The states of all jobs of this user; None is no answer, which for long is an error."""
        which = ("--noheader", "--array", "--states=all", f"--user={os.getuid()}")
        answer, problem = _output("squeue", *which, "--format=%i|%T")
        if not problem:
            self._answered = now
            return dict(line.strip().split("|") for line in answer.splitlines())
        if now - self._answered > PATIENCE:
            silent = f"SLURM has not answered for {PATIENCE / 60:.0f} minutes ({problem})"
            raise SpmrlError(f"{silent}; when it does, {ADVICE}")
        return None

    def _hand_over(self) -> list[Outcome]:
        """Hand over what was collected; returns the units that another process has in work."""
        locked = [
            Outcome(unit, "locked", LockedError(lock, owner))
            for unit in self._collected
            if unit.folder and (owner := holder(lock := lock_of(unit.folder)))
        ]
        in_work = {each.unit for each in locked}
        units = [unit for unit in self._collected if unit not in in_work]
        self._collected = []
        if not units:
            return locked
        # Each time another folder, so that what a job is called does not say where its files are.
        day = datetime.datetime.now(datetime.UTC)
        folder = self._folder / f"{day:%Y%m%d-%H%M%S}-{secrets.token_hex(3)}"
        cpus = self._settings.cpus
        python = f"env OMP_NUM_THREADS={cpus} PYTHONIOENCODING=utf-8 {shlex.quote(sys.executable)}"
        try:
            folder.mkdir(parents=True)
            executor = self._submitit.SlurmExecutor(folder, python=f"{python} -P")
            executor.update_parameters(**self._settings.parameters())
            # submitit prints what sbatch says, besides raising it.
            with redirect_stderr(io.StringIO()), interrupts_blocked(), executor.batch():
                pickled = map(pickle.dumps, units)
                jobs = [executor.submit(do_unit, each, self._device, cpus) for each in pickled]
        except OSError as error:
            advice = f"{remedy(error)}, or choose another --runs folder"
            raise SpmrlError(f"{folder}: cannot be written: {error.strerror}. {advice}") from None
        except RuntimeError as error:
            shutil.rmtree(folder, ignore_errors=True)
            if self._jobs:  # it may take them when these have ended
                self._collected = units
                return locked
            lines = [line.removeprefix("sbatch: error: ") for line in str(error).splitlines()]
            raise SpmrlError(
                f"SLURM takes no jobs ({'; '.join(filter(None, map(str.strip, lines)))}). Look at "
                "the settings of [slurm]: partition, account, qos, minutes, memory_gb, cpus, gpus, "
                "queued, extra; 'sinfo' lists what the cluster has"
            ) from None
        self._jobs.update(zip(jobs, units, strict=True))
        return locked


def _output(*command: str) -> tuple[str, str]:
    """What a command of SLURM prints, and why it failed; Ctrl-C of a terminal is not for it."""
    options: Any = {"capture_output": True, "text": True, "timeout": _ONE_ANSWER}
    try:
        with interrupts_blocked():
            done = subprocess.run(command, check=False, **options)
    except (OSError, subprocess.TimeoutExpired) as error:
        return "", str(error)
    problem = done.stderr.strip().rpartition("\n")[2] or f"status {done.returncode}"
    return done.stdout, problem if done.returncode else ""


def _answer_of(job: Job) -> Answer:
    path = job.paths.result_pickle
    try:
        with path.open("rb") as file:
            # A pickle can do anything when it is read.
            if os.fstat(file.fileno()).st_uid != os.getuid():
                raise PermissionError("it belongs to somebody else")
            outcome, answer = pickle.load(file)
    except Exception as error:
        return "failed", TrainingError(f"{path}: the result cannot be read: {error}")
    if outcome == "success":
        status, problem = answer
        return status, problem
    last = str(answer).strip().rpartition("\n")[2]
    return "failed", TrainingError(f"its job ended with {last}; {_end_of_log(job)}")


def _end_of_log(job: Job) -> str:
    path = job.paths.stderr
    with suppress(OSError):
        lines = path.read_text(encoding="utf-8", errors="replace").split("\n")
        return f"its log {path} ends with: {' | '.join(filter(None, lines[-4:]))}"
    return f"it has no log ({path})"


def _remove_files(job: Job) -> None:
    """Remove what a job has left, and its folder with the last job."""
    paths = job.paths
    with suppress(OSError):
        for path in (paths.submitted_pickle, paths.result_pickle, paths.stdout, paths.stderr):
            path.unlink(missing_ok=True)
        if not any(path.suffix in (".pkl", ".err") for path in paths.folder.iterdir()):
            shutil.rmtree(paths.folder, ignore_errors=True)


# What a job does ------------------------------------------------------------------------------


def do_unit(pickled: bytes, device: str, threads: int) -> Answer:
    """Do a unit; how it ended is the result of the job. A defect is raised: submitit notes it."""
    from submitit import JobEnvironment

    # submitit's handlers ignore SIGTERM and have the job queued again when its time is almost over.
    # Both are to mean the same as elsewhere: finish the batch, save, end.
    environment = JobEnvironment()
    almost_over = signal.Signals[f"SIG{environment.USR_SIG}"]
    signal.signal(signal.SIGTERM, interrupt)
    signal.signal(almost_over, lambda *_: signal.raise_signal(signal.SIGTERM))
    signal.signal(signal.SIGCONT, signal.SIG_DFL)
    try:
        # SLURM starts a job again whose node failed or that made room for another; what the first
        # try had to say, whole or not, is forgotten then.
        result = environment.paths.result_pickle
        for path in (result, result.with_name(f"{result.name}.save_tmp")):
            path.unlink(missing_ok=True)
        perform(pickle.loads(pickled), device, threads)
    except SpmrlError as error:
        return status_of(error), error
    except (KeyboardInterrupt, SystemExit):
        return "stopped", TrainingError("its job was told to stop, or its time is almost over")
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)  # how it ended has still to be written
    return "done", None
