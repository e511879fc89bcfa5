"""Units of work of several ends; nothing heavy is imported for them."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from typing import Any

from spmrl_bench.errors import RunOwnedError, TrainingError


def note(path: str, *, device: str, console: Any) -> None:
    threads = os.environ["OMP_NUM_THREADS"]
    Path(path).write_text(f"{device} {threads}", encoding="utf-8")


def diverge(*, device: str, console: Any) -> None:
    raise TrainingError("diverged")


def stumble(*, device: str, console: Any) -> None:
    raise KeyError(1)


def refuse(*, device: str, console: Any) -> None:
    raise RunOwnedError("process 7 trains here")


def die(*, device: str, console: Any) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def wait(path: str, *, device: str, console: Any) -> None:
    Path(path).touch()
    time.sleep(60)
