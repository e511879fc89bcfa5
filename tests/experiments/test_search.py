"""A whole search: its trials, its end, and how it goes on after any other end."""

from __future__ import annotations

import json
import pickle
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from typer.testing import Result

from spmrl_bench.errors import CheckpointError
from spmrl_bench.experiments import search as search_module
from spmrl_bench.experiments.search import plan_search
from spmrl_bench.leaderboard.searches import SEARCH, SearchDocument, read_search
from spmrl_bench.parsers.chart import ChartParser
from spmrl_bench.parsers.legacy import short
from tests.builders import cli, refused
from tests.conftest import PATIENCE
from tests.laboratory import Laboratory

ROOT = Path(__file__).resolve().parents[2]
SPACE = ("--set", "train.learning_rate=log:1e-3:5e-2", "--set", "train.batch_size=8|20")
WEIGHTS = ("best/weights.safetensors", "last/weights.safetensors", "last/optimiser.safetensors")

# Training of two epochs, of which the process is killed in place of a save.
KILLED = """\
import os, signal, sys
from spmrl_bench.training import trainer
real, number = trainer.save_checkpoint, int(sys.argv.pop(1))
def save(*arguments):
    global number
    number -= 1
    if number < 0:
        os.kill(os.getpid(), signal.SIGKILL)
    real(*arguments)
trainer.save_checkpoint = save
from spmrl_bench.entry import main
main()
"""


@pytest.fixture
def words(laboratory: Laboratory) -> tuple[str, ...]:
    """A search over a tiny parser, of two epochs with two evaluations each."""
    laboratory.write_recipe(["tiny-open"], train={"evaluations_per_epoch": 2, "max_epochs": 2})
    return "study", "search", str(laboratory.recipe), "--variant", "charlstm", *SPACE


def run(*arguments: str) -> Result:
    result = cli(*arguments)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


def folder_of(runs: str) -> Path:
    (folder,) = Path(runs).glob("tiny-open/search-*")
    return folder


def found(runs: str = "runs") -> SearchDocument:
    document = read_search(folder_of(runs))
    assert document is not None
    return document


def state_of(runs: str) -> tuple[list[dict[str, Any]], list[bytes]]:
    """All trials but for their time, and their weights."""
    trials = [trial.model_dump(exclude={"minutes"}) for trial in found(runs).search.trials]
    folders = sorted((folder_of(runs) / "trials").iterdir())
    return trials, [(folder / name).read_bytes() for folder in folders for name in WEIGHTS]


def test_a_search_tells_its_trials_and_the_command_of_the_best(words: tuple[str, ...]) -> None:
    result = run(*words, "--trials", "3")
    assert result.exit_code == 0, result.output
    search = found().search
    assert [trial.state for trial in search.trials] == ["complete"] * 3
    assert all(1e-3 <= trial.settings["train.learning_rate"] <= 5e-2 for trial in search.trials)
    assert search.best.dev == max(trial.dev or 0 for trial in search.trials)
    lines = result.stdout.splitlines()
    assert lines[0].split()[:3] == ["trial", "batch_size", "learning_rate"]
    assert "3 trials (3 complete), " in result.stdout
    command = lines[-1].split()
    assert command[:2] == ["spmrl-bench", "train"]
    values = [f"{key}={value}" for key, value in search.best.settings.items()]
    assert [command[k + 1] for k, word in enumerate(command) if word == "--set"] == values
    # Nothing takes trials for runs that were trained for their own sake.
    assert run("eval", words[2], "--variant", "charlstm").exit_code == 1
    assert [path.name for path in Path("runs/tiny-open").iterdir()] == [folder_of("runs").name]


def test_the_same_search_has_the_same_trials_and_more_are_added(words: tuple[str, ...]) -> None:
    run(*words, "--trials", "3")
    run(*words, "--trials", "2", "--runs", "again")
    first = state_of("again")
    again = run(*words, "--trials", "2", "--runs", "again")
    assert "started" not in again.stderr
    assert state_of("again") == first
    # As one that was begun when settings were flat.
    path = folder_of("again") / SEARCH
    content = json.loads(path.read_text(encoding="utf-8"))
    content["base"]["model"] = short(content["base"]["model"])
    assert {"lexical", "d_ff"} <= content["base"]["model"].keys()
    path.write_text(json.dumps(content), encoding="utf-8")
    run(*words, "--trials", "3", "--runs", "again")
    assert state_of("again") == state_of("runs")


def test_a_search_that_was_killed_goes_on_with_the_same_trials(
    words: tuple[str, ...], laboratory: Laboratory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the middle of the second trial."""
    run(*words, "--trials", "3", "--pruner", "none")
    home = tmp_path / "home"
    home.mkdir()
    (home / "treebanks").symlink_to(laboratory.manifests)
    with monkeypatch.context() as patch:
        patch.setenv("SPMRL_BENCH_HOME", str(home))
        patch.setenv("PYTHONPATH", str(ROOT))
        patch.setenv("OMP_NUM_THREADS", str(torch.get_num_threads()))
        program = [sys.executable, "-P", "-c", KILLED, "6", *words, "--trials", "3"]
        program += ["--pruner", "none", "--runs", "killed"]
        ended = subprocess.run(program, capture_output=True, check=False, timeout=PATIENCE)
    assert ended.returncode == -signal.SIGKILL, ended.stderr.decode()
    assert [trial.state for trial in found("killed").search.trials] == ["complete", "running"]
    result = run(*words, "--trials", "3", "--pruner", "none", "--runs", "killed")
    assert result.exit_code == 0, result.output
    assert state_of("killed") == state_of("runs")


def test_a_trial_that_fails_counts_and_the_search_goes_on(
    words: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of two batch sizes one diverges; then no settings are left."""
    real = ChartParser.gradients

    def diverging(self: Any, batch: Any, *rest: Any) -> float:
        return float("nan") if len(batch) > 8 else real(self, batch, *rest)

    monkeypatch.setattr(ChartParser, "gradients", diverging)
    words = (*words[:5], "--set", "train.batch_size=8|20", "--trials", "3")
    result = run(*words)
    assert result.exit_code == 0, result.output
    search = found().search
    assert sorted(trial.state for trial in search.trials) == ["complete", "failed"]
    (failed,) = (trial for trial in search.trials if trial.state == "failed")
    assert "training diverged after 0 of 2 batches of epoch 1: the loss is nan" in failed.problem
    assert f"trial {failed.number}: {failed.problem}" in result.stdout
    assert "2 trials (1 complete, 1 failed)" in result.stdout
    assert "no settings are left that none of the 2 trials has had" in result.stderr
    assert run(*words).exit_code == 0
    assert found().search.trials == search.trials


def test_what_is_no_fault_of_a_trial_ends_the_search_and_leaves_it_open(
    words: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise CheckpointError("no room on the disk")

    with monkeypatch.context() as patch:
        patch.setattr("spmrl_bench.training.trainer.save_checkpoint", full)
        result = run(*words, "--trials", "2")
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.endswith("spmrl-bench: no room on the disk\n")
    assert [trial.state for trial in found().search.trials] == ["running"]
    assert run(*words, "--trials", "2").exit_code == 0
    assert [trial.number for trial in found().search.trials] == [1, 2]


def test_bad_trials_are_pruned(words: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    """A rate that learns nothing, after one that does."""
    key = "train.learning_rate"
    drawn = iter(({key: "0.02"}, {key: "1e-9"}))
    monkeypatch.setattr(search_module, "FIRST_TRIALS", 1)
    monkeypatch.setattr(search_module, "draw", lambda *_: next(drawn))
    options = ("--trials", "2", "--set", "train.max_epochs=4")
    result = run(*words[:5], "--set", f"{key}=0.02|1e-9", *options)
    assert result.exit_code == 0, result.output
    assert [trial.state for trial in found().search.trials] == ["complete", "pruned"]
    assert found().search.best.settings == {key: 0.02}
    progress = folder_of("runs") / "trials" / "002" / "last" / "progress.json"
    assert json.loads(progress.read_text(encoding="utf-8"))["epoch"] < 4


def test_another_search_has_another_folder_or_is_refused(
    words: tuple[str, ...], laboratory: Laboratory
) -> None:
    def folder(seed: int = 1, **options: Any) -> Path:
        given = dict(word.split("=") for word in SPACE[1::2]) | options.pop("settings", {})
        work = plan_search(words[2], variant="charlstm", settings=given, seed=seed, **options)
        return pickle.loads(pickle.dumps(work)).folder(Path("runs"))

    others: list[dict[str, Any]] = [{"seed": 2}, {"pruner": "none"}, {"sampler": "random"}]
    others += [{"settings": {"train.max_epochs": "1"}}, {"settings": {"train.batch_size": "8|9"}}]
    assert len({folder(), *(folder(**other) for other in others)}) == 1 + len(others)

    run(*words, "--trials", "1")
    assert folder() == folder_of("runs")
    laboratory.write_recipe(["tiny-open"], train={"evaluations_per_epoch": 2, "max_epochs": 3})
    result = run(*words, "--trials", "2")
    assert result.exit_code == 1
    assert "holds another search: base.train.max_epochs is 2 there, 3 now" in result.stderr
    path = folder_of("runs") / SEARCH
    path.write_text("{}", encoding="utf-8")
    result = run(*words, "--trials", "1")
    assert (result.exit_code, result.stdout) == (1, "")
    assert f"{path}: not the document of a search: " in result.stderr


def test_mistakes_are_told_before_anything_is_trained(
    words: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    for options, message in (
        ("--set model.layers=1:3", "of whole numbers int:LOW:HIGH"),
        ("--set train.batch_size=8|0", "--set train.batch_size=8|0: 0 is refused: "),
        ("--set model.lexical=word|tag", "the variant decides it"),
        ("--set model.layer=int:1:3", "model.layer"),
        ("--set train.max_minutes=1:2", "at the same time"),
        ("--set train.evaluations_per_epoch=int:1:2", "at the same time and evaluations"),
        ("--set train.checkpoint_minutes=1:2", "it does not change what is learnt"),
        ("--set model.layers=1", "nothing to search"),
    ):
        assert message in refused(*words[:5], *options.split())
    wanted = "name it with --variant. The recipe has: charlstm, word-charlstm"
    assert wanted in refused(*words[:3], *SPACE)
    monkeypatch.setitem(sys.modules, "optuna", None)
    assert "pip install 'spmrl-bench[search]'" in refused(*words)
    assert not Path("runs").exists()
