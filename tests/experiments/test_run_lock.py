"""A run folder has one owner at a time: who it is is told, and of two that start one trains."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import pytest
import torch
from rich.console import Console

from spmrl_bench.errors import CheckpointError, RunOwnedError
from spmrl_bench.experiments.plan import Run, make_runs
from spmrl_bench.experiments.run_folder import run_lock
from spmrl_bench.experiments.train import train_all
from spmrl_bench.storage.locks import SILENCE
from tests.conftest import PATIENCE
from tests.laboratory import Laboratory

FOLDER = Path("runs/tiny/small-charlstm-seed1")
LOCK = FOLDER.with_name(f".{FOLDER.name}.lock")
OWNER = """
import sys, time
from pathlib import Path
from spmrl_bench.experiments.run_folder import run_lock
with run_lock(Path(sys.argv[1])):
    print("mine", flush=True)
    time.sleep(600)
"""


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@contextlib.contextmanager
def another_owner() -> Iterator[subprocess.Popen[str]]:
    """A process that owns the folder until it is killed, which leaves its lock behind."""
    command = [sys.executable, "-c", OWNER, str(FOLDER)]
    path = os.pathsep.join([str(Path(__file__).resolve().parents[2]), *sys.path])
    environment = os.environ | {"PYTHONPATH": path}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as process:
        assert process.stdout.readline() == "mine\n"
        try:
            yield process
        finally:
            process.kill()


def locks() -> list[str]:
    return sorted(path.name for path in FOLDER.parent.glob(".*"))


def test_who_owns_it_is_told_and_its_death_is_noticed() -> None:
    with another_owner() as other:
        assert not FOLDER.exists()  # since nothing was written to it
        with pytest.raises(RunOwnedError) as caught:
            run_lock(FOLDER).__enter__()
        message = str(caught.value)
        assert f": process {other.pid} on " in message
        assert " has been training here since 2" in message
        assert f"end it ('kill {other.pid}' lets it save)" in message
        text = LOCK.read_text(encoding="utf-8")
        elsewhere = FOLDER.with_name("elsewhere")
        lock = LOCK.with_name(".elsewhere.lock")
        lock.write_text(json.dumps(json.loads(text) | {"machine": "elsewhere boot space"}))
        silent = time.time() - SILENCE + 60
        os.utime(lock, (silent, silent))
        with pytest.raises(RunOwnedError, match=r"on elsewhere has .* 5 minutes .*delete .*lock"):
            run_lock(elsewhere).__enter__()
        lock.unlink()
        other.kill()
        # It is gone even while its parent has not asked how it ended.
        os.waitid(os.P_PID, other.pid, os.WEXITED | os.WNOWAIT)
        with run_lock(FOLDER):
            assert locks() == [LOCK.name]
    assert locks() == []


# Training ----------------------------------------------------------------------------------


def run_of(laboratory: Laboratory) -> Run:
    (run,) = make_runs(str(laboratory.recipe), treebank="tiny-open", variants=["charlstm"])
    return replace(run, folder=FOLDER)


def test_a_fresh_start_leaves_the_folder_of_another_alone(laboratory: Laboratory) -> None:
    """And empties no other, of those that it was to empty."""
    other = FOLDER.with_name("other")
    for folder in (other, FOLDER):
        folder.mkdir(parents=True)
        (folder / "mine.txt").write_text("mine", encoding="utf-8")
    run = run_of(laboratory)
    with run_lock(FOLDER), pytest.raises(RunOwnedError):
        train_all([replace(run, folder=other), run], device="cpu", fresh=True)
    assert [path.name for path in other.iterdir()] == ["mine.txt"]
    assert [path.name for path in FOLDER.iterdir()] == ["mine.txt"]


def test_settings_are_checked_again_by_the_owner(laboratory: Laboratory) -> None:
    """Another process may have trained with others since they were checked first."""
    run = run_of(laboratory)
    run.train(None, device="cpu")
    other = replace(run, config=run.config.model_copy(update={"seed": 2}))
    with pytest.raises(CheckpointError, match="other settings: seed is 1 there, 2 now"):
        other.train(None, device="cpu")


class Gate:
    """A text stream that lets the last line of a run wait."""

    encoding = "utf-8"

    def __init__(self, barrier: Any) -> None:
        self._barrier = barrier

    def write(self, text: str) -> int:
        if "best dev F1" in text:
            self._barrier.wait(PATIENCE)
        return len(text)

    def flush(self) -> None:
        """Nothing is held back."""


def contend(run: Run, start: Any, end: Any, results: Any) -> None:
    """Train a run at the same time as another process, and do not end before it has tried."""
    torch.set_num_threads(1)
    console = Console(file=Gate(end))
    start.wait(PATIENCE)
    try:
        run.train(None, device="cpu", console=console)
        results.put((os.getpid(), "trained"))
    except RunOwnedError as error:
        end.wait(PATIENCE)
        results.put((os.getpid(), str(error)))


@pytest.mark.parametrize("rounds", [2, pytest.param(200, marks=pytest.mark.campaign)])
def test_of_two_that_start_at_once_one_trains(laboratory: Laboratory, rounds: int) -> None:
    """In a new folder, and in one whose owner was killed."""
    with another_owner():
        pass
    left_behind = LOCK.read_text(encoding="utf-8")
    LOCK.unlink()
    run, context = run_of(laboratory), get_context("forkserver")
    context.set_forkserver_preload([__name__])
    for number in range(rounds):
        start, end, results = context.Barrier(2), context.Barrier(2), context.SimpleQueue()
        folder = run.folder.with_name(f"run{number - number % 2}")
        lock = folder.with_name(f".{folder.name}.lock")
        if number % 2:
            lock.write_text(left_behind, encoding="utf-8")
            (folder / "last").rename(folder / "elsewhere")  # to be trained again
        arguments = (replace(run, folder=folder), start, end, results)
        pair = [context.Process(target=contend, args=arguments) for _ in range(2)]
        for process in pair:
            process.start()
        found = dict(results.get() for _ in pair)
        for process in pair:
            process.join(PATIENCE)
            assert process.exitcode == 0
        (winner,) = [pid for pid, result in found.items() if result == "trained"]
        (refusal,) = [result for result in found.values() if result != "trained"]
        assert refusal.startswith(f"{folder}: process {winner} on "), (number, found)
        assert locks() == []
        assert (folder / "best" / "weights.safetensors").exists()
