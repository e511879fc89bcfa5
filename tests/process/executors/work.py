"""Units of work of several ends; nothing heavy is imported for them."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

from spmrl_bench.errors import CheckpointError, RunOwnedError, TrainingError


def note(path: str, *, device: str) -> None:
    threads = os.environ["OMP_NUM_THREADS"]
    Path(path).write_text(f"{device} {threads}", encoding="utf-8")


def diverge(*, device: str) -> None:
    raise TrainingError("diverged")


def fail_below(pid: str, *, device: str) -> None:
    """Fail where the process with this number has begun this one."""
    if os.getppid() == int(pid):
        raise CheckpointError("it cannot be written")


def stumble(*, device: str) -> None:
    raise KeyError(1)


def refuse(*, device: str) -> None:
    raise RunOwnedError("process 7 trains here")


def die(*, device: str) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def wait(path: str, *, device: str) -> None:
    partial = Path(f"{path}.partial")
    partial.write_text(str(os.getpid()), encoding="utf-8")
    partial.rename(path)
    time.sleep(60)


def steps(path: str, number: int, whom: str, *, device: str) -> None:
    """Count on in a file by one, and then kill somebody, unless that was the last."""
    file = Path(path)
    done = file.read_text(encoding="utf-8") if file.exists() else ""
    file.write_text(f"{done}{len(done) + 1}", encoding="utf-8")
    if len(done) + 1 < number:
        os.kill(os.getppid() if whom == "parent" else os.getpid(), signal.SIGKILL)
        time.sleep(60)


def tell_oneself(number: int, *, device: str) -> None:
    signal.raise_signal(signal.Signals(number))
