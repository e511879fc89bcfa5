"""What SLURM says of its jobs, and what it is told to do with them.

``squeue`` is asked, once for all jobs, and not ``sacct``: many clusters keep no accounts. SLURM
remembers a job for some minutes after its end, and then no more. Its controller may be busy or
started anew; then it does not answer for a while, and the jobs go on.

For trying things out there is another queue, that of submitit's jobs which are processes of this
machine.
"""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeAlias

from spmrl_bench.errors import SpmrlError
from spmrl_bench.process.pools import interrupts_blocked

if TYPE_CHECKING:
    import submitit

    Job: TypeAlias = submitit.Job[Any]

#: Seconds that the controller may be silent, and that one answer may take.
PATIENCE, ONE_ANSWER = 1800.0, 60.0
#: States after which a job is not gone on with, and what each means to a user.
ENDS = {
    "BOOT_FAIL": "had a node that did not start",
    "CANCELLED": "was cancelled",
    "COMPLETED": "ended",
    "DEADLINE": "came to its deadline",
    "FAILED": "ended with an error",
    "NODE_FAIL": "lost its node",
    "OUT_OF_MEMORY": "ran out of memory (memory_gb)",
    "PREEMPTED": "made room for another",
    "REVOKED": "was revoked",
    "TIMEOUT": "ran out of its time (minutes)",
    "UNLISTED": "is no longer listed",
}

_AT_ONCE = 500  # jobs named in one command


class Listed(NamedTuple):
    """What a queue says of a job."""

    state: str
    reason: str = ""
    """Why it waits."""
    never_began: bool = False
    """Whether it was cancelled while it waited."""

    @property
    def is_over(self) -> bool:
        """Whether it is not gone on with."""
        return self.state in ENDS


#: What is known of a job that a queue says nothing of.
UNLISTED = Listed("UNLISTED")


class Queue(Protocol):
    """Where jobs are.

    Attributes:
        interval: seconds between two looks at it.
        grace: seconds after which a file that a job has left is seen here.
    """

    interval: float
    grace: float

    def listed(self, jobs: Iterable[Job]) -> dict[str, Listed] | None:
        """What is said of jobs, these and maybe others, by their numbers; None is no answer now.

        Raises:
            SpmrlError: there has been none for too long.
        """

    def tell(self, jobs: Iterable[Job]) -> None:
        """Have those that wait cancelled, and send SIGTERM to those that run."""

    def cancel(self, jobs: Iterable[Job]) -> None:
        """End them."""


class SlurmQueue:
    """That of SLURM."""

    interval, grace = 5.0, 60.0

    def __init__(self) -> None:
        self._answered = time.monotonic()

    def listed(self, jobs: Iterable[Job]) -> dict[str, Listed] | None:
        """All jobs of this user."""
        command = ["squeue", "--noheader", "--array", "--states=all", f"--user={os.getuid()}"]
        answer, problem = _asked([*command, "--format=%i|%T|%M|%r"])
        if problem:
            if time.monotonic() - self._answered > PATIENCE:
                raise SpmrlError(
                    f"SLURM has not answered for {PATIENCE / 60:.0f} minutes ({problem}). Jobs "
                    "that wait or run go on; when it answers again, give the same command again "
                    "(without --fresh)"
                )
            return None
        self._answered = time.monotonic()
        rows = (line.strip().split("|", 3) for line in answer.splitlines())
        return {
            name: Listed(state, reason, state == "CANCELLED" and time_used == "0:00")
            for name, state, time_used, reason in rows
        }

    def tell(self, jobs: Iterable[Job]) -> None:
        """A job that begins between the two commands is told the next time."""
        _scancel(["--state=PENDING"], jobs)
        _scancel(["--state=RUNNING", "--signal=TERM"], jobs)

    def cancel(self, jobs: Iterable[Job]) -> None:
        """They get SIGTERM, and some seconds to save."""
        _scancel([], jobs)


class ProcessQueue:
    """That of submitit's jobs on this machine, each with a process that watches over it."""

    interval, grace = 0.1, 0.0

    def listed(self, jobs: Iterable[Job]) -> dict[str, Listed] | None:
        """Whether the processes are there."""
        return {job.job_id: Listed("COMPLETED" if job.done() else "RUNNING") for job in jobs}

    def tell(self, jobs: Iterable[Job]) -> None:
        """The process that watches over a job hands the signal on."""
        for job in jobs:
            with suppress(ProcessLookupError):
                os.kill(int(job.job_id), signal.SIGTERM)

    def cancel(self, jobs: Iterable[Job]) -> None:
        """The watching process is held first, so that it starts nothing more."""
        for job in jobs:
            watching = int(job.job_id)
            with suppress(OSError):
                os.kill(watching, signal.SIGSTOP)
                below = Path(f"/proc/{watching}/task/{watching}/children").read_text().split()
                for pid in [*map(int, below), watching]:
                    os.kill(pid, signal.SIGKILL)


def _scancel(options: Sequence[str], jobs: Iterable[Job]) -> None:
    """Tell SLURM something about jobs; those that it does not know any more have ended."""
    names = [job.job_id for job in jobs]
    for first in range(0, len(names), _AT_ONCE):
        _asked(["scancel", "--quiet", *options, *names[first : first + _AT_ONCE]])


def _asked(command: list[str]) -> tuple[str, str]:
    """What a command of SLURM prints, and why it failed; Ctrl-C of a terminal is not for it."""
    try:
        with interrupts_blocked():
            done = subprocess.run(
                command, capture_output=True, text=True, timeout=ONE_ANSWER, check=False
            )
    except (OSError, subprocess.TimeoutExpired) as error:
        return "", str(error)
    problem = done.stderr.strip().rpartition("\n")[2] or f"status {done.returncode}"
    return done.stdout, problem if done.returncode else ""
