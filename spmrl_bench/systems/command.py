"""Run a command of a system: with its limits and a log, and what it took.

The command and all that it starts in its session end with it: when its seconds are over, and when
this process is asked to end. They are asked first and ended by force :data:`GRACE` seconds later.
Where this process dies of a sudden, the system (Linux) ends the command itself.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from spmrl_bench.errors import TrainingError
from spmrl_bench.systems import watcher as watching

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
    if shutil.which(command[0]) is None:
        raise TrainingError(f"{command[0]}: cannot be run: no such program")
    begun = time.monotonic()
    limit = begun + seconds if seconds else float("inf")
    watcher = subprocess.Popen(
        [sys.executable, "-I", watching.__file__, str(log), *command],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        start_new_session=True,  # Ctrl-C of a terminal is not for it
        preexec_fn=watching.end_with_parent,
        env=environment,
        text=True,
    )
    assert watcher.stdout is not None
    group = int(watcher.stdout.readline())
    try:
        while watcher.poll() is None and time.monotonic() < limit:
            time.sleep(_GLANCE)
    finally:  # also when this process is asked to end
        out_of_time = watcher.poll() is None
        if out_of_time:
            _signal(group, signal.SIGTERM)
            with suppress(subprocess.TimeoutExpired):
                watcher.wait(GRACE)
        took = time.monotonic() - begun
        _signal(group, signal.SIGKILL)  # what it has left behind, too
        watcher.wait()
    status, memory = map(int, watcher.stdout.read().split())
    if status and not out_of_time:
        how = f"ended with status {status}"
        if status < 0:
            how = f"was ended by signal {-status}"
        lines = log.read_text(encoding="utf-8", errors="replace").splitlines()[-_LAST:]
        end = "\n".join(f"  {line[:300]}" for line in lines)
        raise TrainingError(f"{' '.join(command)}\n{how}; its log, {log}, ends\n{end}")
    return Cost(took, memory, out_of_time)


def _signal(group: int, number: int) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(group, number)
