"""Running a program that may do anything."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from spmrl_bench.errors import ScoreError
from spmrl_bench.scoring.process import Finished, run_program
from tests.conftest import PATIENCE


def run(folder: Path, script: str, *, timeout: float = PATIENCE, limit: int = 1000) -> Finished:
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
    ("script", "timeout", "message"),
    [
        ("sleep 1000", 0.2, "did not finish within 0.2 seconds"),
        ("trap '' TERM INT; while :; do sleep 0.01; done", 0.2, "did not finish"),
        ("yes", PATIENCE, "wrote more than 1,000 bytes on standard output"),
        ("yes >&2", PATIENCE, "wrote more than 1,000 bytes on standard error"),
    ],
)
def test_it_is_stopped(tmp_path: Path, script: str, timeout: float, message: str) -> None:
    with pytest.raises(ScoreError, match=message):
        run(tmp_path, script, timeout=timeout)


def test_it_may_write_as_much_as_it_may(tmp_path: Path) -> None:
    assert len(run(tmp_path, "printf %1000s x").output) == 1000
    with pytest.raises(ScoreError, match="wrote more than 1,000 bytes"):
        run(tmp_path, "printf %1001s x")


def test_what_it_started_is_stopped_with_it(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    reader = os.open(tmp_path / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    with open(reader, "rb") as pipe:
        with pytest.raises(ScoreError, match="wrote more than"):
            run(tmp_path, "exec 3>pipe; (sleep 30; echo survived >&3) & yes")
        os.set_blocking(reader, True)
        assert pipe.read() == b""  # the end of all that could write
