"""Waiting for what executors and their jobs do."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from spmrl_bench.executors.unit import Ended, Executor
from tests.conftest import PATIENCE

#: The folder that jobs are to import this checkout from.
ROOT = Path(__file__).resolve().parents[2]


def all_of(executor: Executor, units: int) -> dict[str, Ended]:
    """How so many units have ended, by their titles."""
    found: dict[str, Ended] = {}
    until = time.monotonic() + PATIENCE
    while len(found) < units:
        assert time.monotonic() < until, found
        found |= {each.unit.title: each for each in executor.ended(1.0)}
    return found


def observe(executor: Executor, happened: Callable[[], bool]) -> None:
    """Look at an executor, of which no unit ends, until something has happened."""
    until = time.monotonic() + PATIENCE
    while not happened():
        assert time.monotonic() < until
        assert executor.ended(0.1) == []
