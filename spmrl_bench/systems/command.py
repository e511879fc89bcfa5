"""Run a command of a system: with its limits and a log, and what it took.

The command and all that it starts in its session end with it: when its seconds are over, and when
this process is asked to end. They are asked first and ended by force :data:`GRACE` seconds later.
Where this process dies of a sudden, the system (Linux) ends the command itself.
"""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from spmrl_bench.errors import TrainingError

#: Seconds between asking a command to end and ending it.
GRACE = 20.0
#: Variables by which libraries of linear algebra learn how many threads they may use.
_THREADS = (
    "OMP_NUM_THREADS",
    "MKL_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "BLIS_NUM_THREADS",
    "NUMEXPR_NUM_THREADS",
    "RAYON_NUM_THREADS",
)
#: Variables that would have a system import our libraries in the place of its own.
_OURS = ("PYTHONPATH", "PYTHONHOME")
_GLANCE = 0.05  # seconds between two looks at a command
_LAST = 3  # lines of a log that an error shows
_PR_SET_PDEATHSIG = 1


@dataclass(frozen=True)
class Cost:
    """What a command took; the memory is that of its largest process."""

    seconds: float
    peak_memory_bytes: int
    out_of_time: bool


def run(command: Sequence[str], log: Path, *, threads: int, seconds: float | None = None) -> Cost:
    """Run a command to its end, its output at the end of a log.

    Args:
        threads: that libraries may use.
        seconds: after which it is ended; what it has left is then looked at by the caller.

    Raises:
        TrainingError: it cannot be started, or fails; with the last lines of its log.
        Interrupted: as this process; the command has ended.
    """
    environment = {key: value for key, value in os.environ.items() if key not in _OURS}
    environment |= dict.fromkeys(_THREADS, str(threads))
    environment |= {"PYTHONIOENCODING": "utf-8", "PYTHONUNBUFFERED": "1"}
    begun = time.monotonic()
    with log.open("ab") as out:
        try:
            process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                preexec_fn=_end_with_parent if sys.platform == "linux" else None,
                env=environment,
            )
        except OSError as error:
            raise TrainingError(f"{command[0]}: cannot be run: {error.strerror}") from None
    limit = begun + seconds if seconds else float("inf")
    ended = None
    try:
        while (ended := _ended(process)) is None and time.monotonic() < limit:
            time.sleep(_GLANCE)
        out_of_time = ended is None
    finally:  # also when this process is asked to end
        if ended is None:
            _signal(process.pid, signal.SIGTERM)
            force = time.monotonic() + GRACE
            while (ended := _ended(process)) is None:
                if time.monotonic() > force:
                    _signal(process.pid, signal.SIGKILL)
                time.sleep(_GLANCE)
        took = time.monotonic() - begun
        _signal(process.pid, signal.SIGKILL)  # what it has left behind
    memory = ended[1]
    if process.returncode and not out_of_time:
        how = f"ended with status {process.returncode}"
        if process.returncode < 0:
            how = f"was ended by signal {-process.returncode}"
        lines = log.read_text(encoding="utf-8", errors="replace").splitlines()[-_LAST:]
        end = "\n".join(f"  {line[:300]}" for line in lines)
        raise TrainingError(f"{' '.join(command)}\n{how}; its log, {log}, ends\n{end}")
    return Cost(took, memory, out_of_time)


def _ended(process: subprocess.Popen[bytes]) -> tuple[int, int] | None:
    """Return status and largest memory of a process that has ended."""
    pid, status, usage = os.wait4(process.pid, os.WNOHANG)
    if not pid:
        return None
    process.returncode = os.waitstatus_to_exitcode(status)
    return process.returncode, usage.ru_maxrss * 1024


def _signal(group: int, number: int) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(group, number)


def _end_with_parent() -> None:
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
