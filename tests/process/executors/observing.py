"""Waiting for what executors and their jobs do, and what a SLURM that is there says of its jobs."""

from __future__ import annotations

import shutil
import subprocess
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

from spmrl_bench.process.executors.base import Executor, Outcome
from tests.conftest import PATIENCE

#: The folder that jobs are to import this checkout from.
ROOT = Path(__file__).resolve().parents[3]


def until(happened: Callable[[], object]) -> None:
    """Wait for something."""
    end = time.monotonic() + PATIENCE
    while not happened():
        assert time.monotonic() < end
        time.sleep(0.05)


def all_of(executor: Executor, units: int) -> dict[str, Outcome]:
    """How so many units have ended, by their titles."""
    found: dict[str, Outcome] = {}

    def are_found() -> bool:
        found.update({each.unit.title: each for each in executor.outcomes(1.0)})
        return len(found) >= units

    until(are_found)
    return found


def needs_slurm() -> None:
    """Skip the test where this machine can hand jobs to no SLURM."""
    if not _slurm_answers():
        pytest.skip("no SLURM (tests/process/executors/slurm/start.sh start)")


@cache
def _slurm_answers() -> bool:
    if shutil.which("sinfo") is None:
        return False
    return subprocess.run(["sinfo"], capture_output=True, timeout=60, check=False).returncode == 0


def ask(*command: str) -> str:
    """What a command of SLURM prints."""
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    return done.stdout


def queue(states: str = "PENDING,RUNNING,COMPLETING") -> list[str]:
    """The jobs of this user in some states."""
    return ask("squeue", "-h", "-r", f"--states={states}", "--format=%i", "--me").split()
