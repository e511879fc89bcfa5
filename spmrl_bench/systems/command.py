"""Running a command of a system: its limits, its log, and what it took."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from spmrl_bench.errors import TrainingError
from spmrl_bench.systems.supervisor import GRACE

#: Variables by which libraries of linear algebra learn how many threads they may use.
_THREADS = (
    "OMP_NUM_THREADS",
    "MKL_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "BLIS_NUM_THREADS",
    "NUMEXPR_NUM_THREADS",
    "RAYON_NUM_THREADS",
)
_GLANCE = 0.2  # seconds between two looks whether all has to end
_LAST = 3  # lines of a log that an error shows


@dataclass(frozen=True)
class Cost:
    """What a command took."""

    seconds: float
    peak_memory_bytes: int  # of its largest process
    out_of_time: bool


class StoppedError(Exception):
    """The command was ended because everything is to end."""


def run(
    command: Sequence[str],
    log: Path,
    *,
    threads: int,
    seconds: float | None = None,
    stop: threading.Event | None = None,
    variables: Mapping[str, str] | None = None,
) -> Cost:
    """Run a command to its end, its output at the end of a log.

    Args:
        threads: that libraries may use.
        seconds: after which it is ended; what it has left is then looked at by the caller.
        stop: set by another thread when everything is to end.
        variables: of the environment, beside this program's own.

    Raises:
        TrainingError: it cannot be started, or fails; with the last lines of its log.
        StoppedError: it was ended because of ``stop``.
    """
    supervisor = [
        sys.executable, "-P", "-m", "spmrl_bench.systems.supervisor", str(os.getpid()),
        str(seconds or 0), str(log), *command,
    ]  # fmt: skip
    root = str(Path(__file__).resolve().parents[2])
    process = subprocess.Popen(
        supervisor,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        start_new_session=True,
        text=True,
        env=os.environ
        | {"PYTHONPATH": os.pathsep.join(filter(None, (root, os.environ.get("PYTHONPATH"))))}
        | dict.fromkeys(_THREADS, str(threads))
        | {"PYTHONIOENCODING": "utf-8", "PYTHONUNBUFFERED": "1"}
        | dict(variables or {}),
    )
    printed = ""
    try:
        while True:
            try:
                printed, _ = process.communicate(timeout=_GLANCE)
                break
            except subprocess.TimeoutExpired:
                if stop is not None and stop.is_set():
                    process.terminate()
    finally:
        if process.poll() is None:  # an exception in this thread
            process.terminate()
            process.wait(2 * GRACE)
    outcome: dict[str, Any] = (
        json.loads(printed) if printed else {"problem": "its supervisor was killed"}
    )
    if "problem" in outcome:
        raise TrainingError(f"{command[0]}: {outcome['problem']}")
    if outcome["asked_to_end"]:
        raise StoppedError
    if outcome["status"] and not outcome["out_of_time"]:
        how = f"ended with status {outcome['status']}"
        if outcome["status"] < 0:
            how = f"was ended by signal {-outcome['status']}"
        raise TrainingError(f"{' '.join(command)}\n{how}; its log, {log}, ends\n{_end_of(log)}")
    return Cost(outcome["seconds"], outcome["peak_memory_bytes"], outcome["out_of_time"])


def _end_of(log: Path) -> str:
    lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
    return "\n".join(f"  {line[:300]}" for line in lines[-_LAST:])
