"""A run folder has one owner at a time: who it is is told, and of two that start one trains."""

from __future__ import annotations

import json
import os
import time
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


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_who_owns_it_is_told() -> None:
    with run_lock(FOLDER):
        assert not FOLDER.exists()  # since nothing was written to it
        with pytest.raises(RunOwnedError) as caught:
            run_lock(FOLDER).__enter__()
        text = LOCK.read_text(encoding="utf-8")
    message = str(caught.value)
    assert f": process {os.getpid()} on " in message
    assert " has been training here since 2" in message
    assert f"end it ('kill {os.getpid()}' lets it save)" in message
    LOCK.write_text(json.dumps(json.loads(text) | {"machine": "elsewhere boot space"}))
    silent = time.time() - SILENCE + 60
    os.utime(LOCK, (silent, silent))
    with pytest.raises(RunOwnedError, match=r"on elsewhere has .* 5 minutes .*delete .*lock"):
        run_lock(FOLDER).__enter__()
    os.utime(LOCK, (silent - 120, silent - 120))
    with run_lock(FOLDER):
        pass
    assert not LOCK.exists()


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
    assert all((folder / "mine.txt").exists() for folder in (other, FOLDER))


def test_settings_are_checked_again_by_the_owner(laboratory: Laboratory) -> None:
    """Another process may have trained with others since they were checked first."""
    run = run_of(laboratory)
    run.train(None, device="cpu")
    other = replace(run, config=run.config.model_copy(update={"seed": 2}))
    with pytest.raises(CheckpointError, match="other settings: seed is 1 there, 2 now"):
        other.train(None, device="cpu")
