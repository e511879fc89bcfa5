"""Ctrl-C and SIGTERM at any time end the command soon, in words, and lose nothing."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import PATIENCE
from tests.laboratory import Laboratory
from tests.reliability.faults import hidden
from tests.reliability.tally import Tally

# The handler is in place an instant after the word, before anything heavy is imported.
CODE = "import sys; from spmrl_bench.entry import main; print('begun', flush=True); main()"
SETTINGS = {"max_epochs": 100_000, "stop_patience": 100_000, "batch_size": 8}
SOON = 10.0


@pytest.fixture
def environment(laboratory: Laboratory, monkeypatch: pytest.MonkeyPatch) -> Laboratory:
    """The laboratory as other processes see it; its runs have no end."""
    laboratory.in_use_by_processes(monkeypatch)
    monkeypatch.setenv("OMP_NUM_THREADS", "2")
    laboratory.write_recipe(["tiny-open"], train=dict(SETTINGS))
    return laboratory


@contextlib.contextmanager
def training(laboratory: Laboratory, jobs: int) -> Iterator[subprocess.Popen[str]]:
    """``spmrl-bench train`` of two seeds, in a process group of its own, as a shell starts it."""
    options = ["--variant", "charlstm", "--seeds", "2", "--jobs", str(jobs)]
    process = subprocess.Popen(
        [sys.executable, "-c", CODE, "train", str(laboratory.recipe), *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        encoding="utf-8",
        start_new_session=True,
    )
    try:
        assert process.stdout.readline() == "begun\n"
        yield process
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


def others(process: subprocess.Popen[str]) -> bool:
    """Whether a process of the group is still there."""
    try:
        os.killpg(process.pid, 0)
    except ProcessLookupError:
        return False
    return True


def patience() -> float:
    """Seconds in which all must be over; more on a machine that has other work to do."""
    return SOON * max(1.0, 2 * os.getloadavg()[0] / (os.cpu_count() or 1))


@pytest.mark.parametrize(
    "times", [1, pytest.param(50, marks=pytest.mark.campaign)], ids=["some", "all"]
)
@pytest.mark.parametrize("jobs", [1, pytest.param(2, marks=pytest.mark.campaign)])
def test_a_signal_at_any_time_ends_the_command_soon_and_loses_nothing(
    environment: Laboratory, tally: Tally, jobs: int, times: int
) -> None:
    held = tally("R28", f"signals at random times, --jobs {jobs}")
    choose = random.Random(jobs)
    for time_number in range(times):
        held.add()
        number = (signal.SIGHUP, signal.SIGINT, signal.SIGTERM)[(time_number + jobs - 1) % 3]
        with training(environment, jobs) as process:
            # From the first import to the middle of the training.
            time.sleep(choose.uniform(0, (4, 8, 8, 1)[time_number % 4]))
            sent = time.monotonic()
            if number != signal.SIGTERM:
                os.killpg(process.pid, number)  # as the terminal does
            else:
                process.send_signal(number)
            _, said = process.communicate(timeout=PATIENCE)
            lasted = time.monotonic() - sent
            assert lasted < patience(), (time_number, lasted, said)
            assert process.returncode == 128 + number, (time_number, said)
            assert "Traceback" not in said, said
            assert "Exception ignored" not in said, said
            last = said.rstrip().splitlines()[-1]
            assert last.startswith("spmrl-bench: interrupted"), said
            # The process that cleans up after joblib's has to see that they are gone.
            until = time.monotonic() + patience()
            while others(process) and time.monotonic() < until:
                time.sleep(0.02)
            assert not others(process), time_number
        assert hidden(Path("runs")) == [], time_number
    # What was saved is there, and training goes on from it to the end.
    environment.write_recipe(["tiny-open"], train=SETTINGS | {"max_epochs": 100_000})
    with training(environment, jobs) as process:
        line = ""
        while "  epoch" not in line:
            line = process.stderr.readline()
            assert line, "it ended"
        process.terminate()
        _, said = process.communicate(timeout=PATIENCE)
        assert process.returncode == 143, said
