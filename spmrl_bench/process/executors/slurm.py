"""Units as jobs of SLURM, by way of submitit.

Units that are handed over together are one job array. How one has ended is its result, a file;
where there is none, SLURM says what became of its job, or does not know it any more. ``squeue`` is
asked and not ``sacct``, since many clusters keep no accounts.

Jobs of a driver that was killed go on. The same command finds their runs locked and waits for them,
and a job that begins later finds its run finished (``scancel -n spmrl_bench`` ends them).
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
import traceback
from contextlib import redirect_stderr, suppress
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, StrictFloat, StrictInt, field_validator

from spmrl_bench.errors import SpmrlError, TrainingError, remedy
from spmrl_bench.process.executors.base import Outcome, Status, Unit, status_of
from spmrl_bench.process.executors.local import perform
from spmrl_bench.process.pools import interrupts_blocked
from spmrl_bench.process.signals import interrupt
from spmrl_bench.storage.locks import LockedError, holder, lock_of

if TYPE_CHECKING:
    import submitit

    Job: TypeAlias = submitit.Job[Any]

Count = Annotated[int, Field(ge=1)]
Answer: TypeAlias = tuple[Status, Exception | None]

#: Seconds that the controller may be silent.
PATIENCE = 600.0
# Seconds that one answer of it may take, and after which jobs are told again to stop.
_ONE_ANSWER, _REMIND = 60.0, 30.0
_PROGRAMS = ("sbatch", "srun", "squeue", "scancel")

# States after which a job is not gone on with, with two that SLURM does not name so.
_NEVER_BEGAN, _UNLISTED = "CANCELLED before it began", "no longer listed"
_ENDS = {
    *("BOOT_FAIL", "CANCELLED", "COMPLETED", "DEADLINE", "FAILED", "NODE_FAIL", "OUT_OF_MEMORY"),
    *("PREEMPTED", "REVOKED", "TIMEOUT", _NEVER_BEGAN, _UNLISTED),
}


class SlurmSettings(BaseModel):
    """What each run asks of SLURM (docs/runs.md)."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    partition: str | None = None
    account: str | None = None
    qos: str | None = None
    minutes: Count = 1440
    memory_gb: Annotated[float, Field(gt=0)] = 8.0
    cpus: Count = 1
    gpus: Annotated[int, Field(ge=0, le=1)] = 0
    at_once: Count = 100
    queued: Count = 1000
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


@dataclass(eq=False)
class _Work:
    """A unit that a job has, and since when the job is over without a result."""

    unit: Unit
    job: Job
    missed: float | None = None


class SlurmExecutor:
    """Jobs of SLURM; any of them may be told to make room for another."""

    preemptible = True
    #: Seconds between two looks at the queue, and in which a file that a job has left is seen here.
    interval, grace = 5.0, 60.0

    def __init__(self, settings: SlurmSettings, folder: Path, device: str = "auto") -> None:
        """Nothing is handed over yet; a SpmrlError says that submitit or SLURM is not there.

        Args:
            settings: of the jobs.
            folder: for files of jobs, which all nodes see under the same name.
            device: of units; ``auto`` is a graphics card if the settings have one, else the CPU.
        """
        try:
            import submitit
        except ImportError:
            raise SpmrlError(
                "jobs of SLURM need the package submitit: pip install 'spmrl-bench[slurm]'"
            ) from None
        if missing := [name for name in _PROGRAMS if shutil.which(name) is None]:
            raise SpmrlError(
                f"no program '{missing[0]}' here, with which SLURM is told what to do: give the "
                "command on a machine of the cluster"
            )
        self._submitit, self._settings = submitit, settings
        self._folder = folder.absolute()
        # A card of somebody else may be seen by a job that asked for none.
        self._device = ("cuda" if settings.gpus else "cpu") if device == "auto" else device
        self._collected: list[Unit] = []  # not handed over yet
        self._works: list[_Work] = []
        self._next_look = 0.0
        self._next_reminder: float | None = None  # where all are asked to stop
        self._answered = time.monotonic()

    @property
    def capacity(self) -> int:
        return self._settings.queued

    def start(self, unit: Unit) -> str:
        self._collected.append(unit)  # it is handed over with others at the next look
        return "as a job of SLURM"

    def outcomes(self, seconds: float) -> list[Outcome]:
        if (wait := self._next_look - time.monotonic()) > 0:
            time.sleep(min(wait, seconds))
            return []
        now = time.monotonic()
        found = self._ended_jobs(now) if self._works else []
        if self._next_reminder is not None:
            stopped = TrainingError("it was not handed over yet")
            found += [Outcome(unit, "stopped", stopped) for unit in self._collected]
            self._collected = []
            if self._works and now >= self._next_reminder:
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
        if self._works:
            self._scancel()  # they get SIGTERM, and some seconds to save
        self._works, self._collected = [], []

    def _scancel(self, *options: str) -> None:
        """Tell SLURM something about all jobs; those that it does not know any more have ended."""
        _output("scancel", "--quiet", *options, *(work.job.job_id for work in self._works))

    def _ended_jobs(self, now: float) -> list[Outcome]:
        if (states := self._states(now)) is None:
            return []
        # A network's file system tells late of a single file that has appeared.
        files: set[Path] = set()
        for folder in {work.job.paths.folder for work in self._works}:
            with suppress(OSError):
                files.update(folder.iterdir())
        found: list[Outcome] = []
        for work in list(self._works):
            answer = _answer_of(work.job) if work.job.paths.result_pickle in files else None
            if outcome := self._outcome(work, answer, states.get(work.job.job_id, _UNLISTED), now):
                self._works.remove(work)
                if outcome.status not in ("failed", "lost"):
                    _remove_files(work.job)
                found.append(outcome)
        return found

    def _outcome(
        self, work: _Work, answer: Answer | None, state: str, now: float
    ) -> Outcome | None:
        """How a unit has ended, of which its job may have left an answer."""
        if state not in _ENDS:
            work.missed = None
            # SLURM itself begins one again that was told to make room; and a unit that is to be
            # begun again here had better not meet its own job.
            if answer is None or answer[0] in ("stopped", "locked"):
                return None
        if answer is not None:
            return Outcome(work.unit, *answer)
        work.missed = work.missed or now
        problem = f"SLURM job {work.job.job_id} is {state}"
        if state != _NEVER_BEGAN:
            if now - work.missed < self.grace:
                return None
            problem += f", without a result; {_end_of_log(work.job)}"
        made_room = self._next_reminder is not None or state == "PREEMPTED"
        return Outcome(work.unit, "stopped" if made_room else "lost", TrainingError(problem))

    def _states(self, now: float) -> dict[str, str] | None:
        """The states of all jobs of this user, by their numbers; None is no answer now.

        SLURM remembers a job for some minutes after its end. No answer for long is a SpmrlError.
        """
        which = ("--array", "--states=all", f"--user={os.getuid()}", "--format=%i|%T|%M")
        answer, problem = _output("squeue", "--noheader", *which)
        if problem:
            if now - self._answered > PATIENCE:
                raise SpmrlError(
                    f"SLURM has not answered for {PATIENCE / 60:.0f} minutes ({problem}); when it "
                    "answers again, give the same command again (without --fresh)"
                )
            return None
        self._answered = now
        rows = (line.strip().split("|") for line in answer.splitlines())
        return {
            name: _NEVER_BEGAN if (state, used) == ("CANCELLED", "0:00") else state
            for name, state, used in rows
        }

    def _hand_over(self) -> list[Outcome]:
        """Hand over what was collected; returns the units that another process has in work."""
        locked: list[Outcome] = []
        units: list[Unit] = []
        for unit in self._collected:
            if unit.folder is not None and (owner := holder(lock := lock_of(unit.folder))):
                locked.append(Outcome(unit, "locked", LockedError(lock, owner)))
            else:
                units.append(unit)
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
                jobs = [
                    executor.submit(do_unit, pickle.dumps(unit), self._device, cpus)
                    for unit in units
                ]
        except OSError as error:
            raise SpmrlError(
                f"{folder}: cannot be written: {error.strerror}. {remedy(error)}, or choose "
                "another --runs folder"
            ) from None
        except RuntimeError as error:
            shutil.rmtree(folder, ignore_errors=True)
            if self._works:  # it may take them when these have ended
                self._collected = units
                return locked
            lines = [line.removeprefix("sbatch: error: ") for line in str(error).splitlines()]
            raise SpmrlError(
                f"SLURM takes no jobs ({'; '.join(filter(None, map(str.strip, lines)))}). Look at "
                "the settings of [slurm]: partition, account, qos, minutes, memory_gb, cpus, gpus, "
                "queued, extra; 'sinfo' lists what the cluster has"
            ) from None
        self._works += map(_Work, units, jobs)
        return locked


def _output(*command: str) -> tuple[str, str]:
    """What a command of SLURM prints, and why it failed; Ctrl-C of a terminal is not for it."""
    try:
        with interrupts_blocked():
            done = subprocess.run(
                command, capture_output=True, text=True, timeout=_ONE_ANSWER, check=False
            )
    except (OSError, subprocess.TimeoutExpired) as error:
        return "", str(error)
    problem = done.stderr.strip().rpartition("\n")[2] or f"status {done.returncode}"
    return done.stdout, problem if done.returncode else ""


# The files of a job: how it ended, what it said -----------------------------------------------


def _answer_of(job: Job) -> Answer:
    """How the unit of a job has ended, as its result says.

    A pickle can do anything when it is read, so that only one of this user is.
    """
    path = job.paths.result_pickle
    try:
        with path.open("rb") as file:
            if os.fstat(file.fileno()).st_uid != os.getuid():
                raise PermissionError("it belongs to somebody else")
            outcome, answer = pickle.load(file)
    except Exception as error:
        return "failed", TrainingError(f"{path}: the result cannot be read: {error}")
    if outcome == "success":
        status, problem = answer
        return status, problem
    last = str(answer).strip().rpartition("\n")[2]
    return "failed", TrainingError(f"its job did not begin: {last}; {_end_of_log(job)}")


def _end_of_log(job: Job) -> str:
    """Where the log of a job is and how it ends, in words."""
    path = job.paths.stderr
    try:
        end = path.read_bytes()[-4096:].decode(errors="replace")
    except OSError:
        return f"it has no log ({path})"
    lines = [line.strip() for line in end.splitlines() if line.strip()]
    return f"its log {path} ends with: {' | '.join(lines[-3:])}"


def _remove_files(job: Job) -> None:
    """Remove what a job has left, and its folder with the last of them."""
    paths = job.paths
    with suppress(OSError):
        for path in (paths.submitted_pickle, paths.result_pickle, paths.stdout, paths.stderr):
            path.unlink(missing_ok=True)
        if not any(path.suffix in (".pkl", ".err") for path in paths.folder.iterdir()):
            shutil.rmtree(paths.folder, ignore_errors=True)


# What a job does ------------------------------------------------------------------------------


def do_unit(pickled: bytes, device: str, threads: int) -> Answer:
    """Do a unit; how it ended is the result of the job, and signals let it save.

    submitit has handlers of its own, which ignore SIGTERM and have the job queued again when its
    time is almost over. Both are to mean the same as on one's own machine: finish the batch, save,
    end. So handlers are replaced before the unit is read, whose modules are many.
    """
    from submitit import JobEnvironment

    environment, near_the_end = JobEnvironment(), False

    def make_way(number: int, frame: FrameType | None) -> None:
        nonlocal near_the_end
        near_the_end = True
        signal.raise_signal(signal.SIGTERM)

    signal.signal(signal.SIGTERM, interrupt)
    signal.signal(signal.Signals[f"SIG{environment.USR_SIG}"], make_way)
    signal.signal(signal.SIGCONT, signal.SIG_DFL)
    try:
        # SLURM starts a job again whose node failed or that made room for another; what the first
        # try had to say, whole or not, is forgotten then.
        result = environment.paths.result_pickle
        for path in (result, result.with_name(f"{result.name}.save_tmp")):
            path.unlink(missing_ok=True)
        perform(pickle.loads(pickled), device, threads)
    except Exception as error:
        if not isinstance(error, SpmrlError):  # a defect, whose traceback is not sent otherwise
            error.add_note("".join(traceback.format_exception(error)))
        return status_of(error), error
    except (KeyboardInterrupt, SystemExit):
        why = "came near its time limit" if near_the_end else "was told to stop"
        return "stopped", TrainingError(f"its job {why}")
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)  # how it ended has still to be written
    return "done", None
