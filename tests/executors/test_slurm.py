"""Jobs of submitit as processes of this machine, and what is said where SLURM is not as it was."""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from spmrl_bench.errors import SpmrlError
from spmrl_bench.executors import slurm_queue
from spmrl_bench.executors.slurm import SlurmExecutor
from spmrl_bench.executors.slurm_queue import SlurmQueue
from spmrl_bench.executors.slurm_settings import SlurmSettings
from spmrl_bench.executors.slurm_submission import JobsRefusedError
from spmrl_bench.executors.unit import Ended, Executor, Unit
from tests.conftest import PATIENCE
from tests.executors.work import die, diverge, note, refuse, stumble, wait

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(autouse=True)
def _this_checkout(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Jobs import what the tests do, and are begun in a folder of their own."""
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.chdir(tmp_path)


def all_of(executor: Executor, units: int) -> dict[str, Ended]:
    found: dict[str, Ended] = {}
    until = time.monotonic() + PATIENCE
    while len(found) < units:
        assert time.monotonic() < until, found
        found |= {each.unit.title: each for each in executor.ended(1.0)}
    return found


def local(folder: Path, **settings: Any) -> SlurmExecutor:
    return SlurmExecutor(SlurmSettings(cluster="local", **settings), folder / ".slurm")


def wait_for(*paths: Path, executor: Executor | None = None) -> None:
    until = time.monotonic() + PATIENCE
    while not all(path.exists() for path in paths):
        assert time.monotonic() < until, paths
        if executor is not None:
            assert executor.ended(0.1) == []
        time.sleep(0.02)


def test_units_end_in_their_own_ways(tmp_path: Path) -> None:
    executor = local(tmp_path, cpus=2)
    units = [
        Unit("note", note, (str(tmp_path / "noted"),)),
        Unit("diverge", diverge, ()),
        Unit("stumble", stumble, ()),
        Unit("refuse", refuse, ()),
        Unit("die", die, ()),
    ]
    for unit in units:
        executor.start(unit)
    found = all_of(executor, len(units))
    executor.close()
    lost = str(found.pop("die"))
    assert "left no result; its log " in lost
    assert {title: (each.how, str(each.error)) for title, each in found.items()} == {
        "note": ("done", "None"),
        "diverge": ("failed", "diverged"),
        "stumble": ("failed", "1"),
        "refuse": ("owned", "process 7 trains here"),
    }
    assert (tmp_path / "noted").read_text(encoding="utf-8") == "cpu 2"
    defect = found["stumble"].error
    assert isinstance(defect, KeyError)
    assert "in stumble" in defect.__notes__[0]
