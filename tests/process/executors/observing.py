"""Waiting for what executors do."""

from __future__ import annotations

import time
from collections.abc import Callable

from spmrl_bench.process.executors.units import Executor, Outcome
from tests.conftest import PATIENCE


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


def ways(outcomes: dict[str, Outcome]) -> dict[str, tuple[str, str]]:
    """The statuses of units, and what is said of them."""
    return {title: (each.status, str(each.error)) for title, each in outcomes.items()}
