"""Run a command of a system: with its limits and a log, and what it took.

The command and all that it starts in its session end with it: when its seconds are over, and when
this process is asked to end. They are asked first and ended by force :data:`GRACE` seconds later.
Where this process dies of a sudden, the operating system (Linux) ends the command itself.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from spmrl_bench.errors import TrainingError
from spmrl_bench.systems import watcher

#: Seconds between asking a command to end and ending it.
GRACE = 20.0
#: Variables by which libraries of linear algebra learn how many threads they may use.
_THREADS = tuple(
    f"{library}_NUM_THREADS" for library in ("OMP", "MKL", "OPENBLAS", "BLIS", "NUMEXPR", "RAYON")
)
#: Variables that would have a system import our libraries in the place of its own.
_OURS = ("PYTHONPATH", "PYTHONHOME")


class ResourceUsage(NamedTuple):
    seconds: float
    processor_seconds: float  # for each thread
    peak_memory_bytes: int  # of its largest process
    out_of_time: bool


def run(
    command: Sequence[str], log: Path, *, threads: int, seconds: float | None = None
) -> ResourceUsage:
    """Run a command to its end, or until its seconds of the processor are over, of each thread; its
    output is at the end of a log.

    A TrainingError, with the last lines of the log, where it cannot be started or fails.
    """
    if shutil.which(command[0]) is None:
        raise TrainingError(f"{command[0]}: cannot be run: no such program")
    inherited = {key: value for key, value in os.environ.items() if key not in _OURS}
    output = {"PYTHONIOENCODING": "utf-8", "PYTHONUNBUFFERED": "1"}
    limits = map(str, (seconds or 0, threads, GRACE))
    with subprocess.Popen(
        [sys.executable, "-I", watcher.__file__, str(log), *limits, *command],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        start_new_session=True,  # Ctrl-C of a terminal is not for it
        preexec_fn=watcher.end_with_parent,
        env=inherited | dict.fromkeys(_THREADS, str(threads)) | output,
        text=True,
    ) as watching:
        try:
            said = watching.communicate()[0]
        except BaseException:  # this process is asked to end
            watching.terminate()
            raise
    status, took, busy, memory, ended = map(float, said.split())
    if status and not ended:
        how = "was ended by signal" if status < 0 else "ended with status"
        lines = log.read_text(encoding="utf-8", errors="replace").splitlines()[-3:]
        end = "\n".join(f"  {line[:300]}" for line in lines)
        how = f"{how} {abs(status):.0f}; its log, {log}, ends"
        raise TrainingError(f"{' '.join(command)}\n{how}\n{end}")
    return ResourceUsage(took, busy, int(memory), bool(ended))
