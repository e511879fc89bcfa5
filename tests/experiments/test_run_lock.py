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
from pathlib import Path

import pytest

from spmrl_bench.errors import CheckpointError, RunOwnedError
from spmrl_bench.experiments.plan import Run, make_runs
from spmrl_bench.experiments.run_folder import run_lock
from spmrl_bench.experiments.train import train_all
from spmrl_bench.storage.locks import SILENCE
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
