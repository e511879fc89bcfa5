"""Running a program that may do anything."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from spmrl_bench.errors import ScoreError
from spmrl_bench.scoring.process import Finished, run_program


def run(folder: Path, script: str, *, timeout: float = 60.0, limit: int = 1000) -> Finished:
    return run_program(["/bin/sh", "-c", script], folder, timeout=timeout, limit=limit)


def test_what_it_left_behind(tmp_path: Path) -> None:
    finished = run(tmp_path, "pwd; echo $LC_ALL >&2; exit 3")
    assert finished == Finished(3, f"{tmp_path.resolve()}\n".encode(), b"C\n")
    assert finished.signal is None
    assert run(tmp_path, "cat").output == b""  # nothing to read from


@pytest.mark.parametrize("name", ["SEGV", "KILL", "ABRT"])
def test_the_signal_that_ended_it(tmp_path: Path, name: str) -> None:
    assert run(tmp_path, f"kill -{name} $$").signal == f"SIG{name}"


@pytest.mark.parametrize(
    ("script", "message"),
    [
        ("sleep 100", "did not finish within 0.2 seconds"),
        ("trap '' TERM INT; while :; do sleep 0.01; done", "did not finish"),
        ("yes", "wrote more than 1,000 bytes on standard output"),
        ("yes >&2", "wrote more than 1,000 bytes on standard error"),
    ],
)
def test_it_is_stopped(tmp_path: Path, script: str, message: str) -> None:
    with pytest.raises(ScoreError, match=message):
        run(tmp_path, script, timeout=0.2)


def test_it_may_write_as_much_as_it_may(tmp_path: Path) -> None:
    assert len(run(tmp_path, "printf %1000s x").output) == 1000
    with pytest.raises(ScoreError, match="wrote more than 1,000 bytes"):
        run(tmp_path, "printf %1001s x")


def test_what_it_started_is_stopped_with_it(tmp_path: Path) -> None:
    with pytest.raises(ScoreError, match="did not finish"):
        run(tmp_path, "(sleep 0.6; touch survivor) & wait", timeout=0.2)
    time.sleep(0.8)
    assert not (tmp_path / "survivor").exists()
