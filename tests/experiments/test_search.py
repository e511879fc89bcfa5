"""A whole search: its trials, its end, and how it goes on after any other end."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from typer.testing import Result

from spmrl_bench.experiments.search_document import NAME, SearchDocument, read_search
from spmrl_bench.parsers.legacy import short
from spmrl_bench.training.trainer import Trainer
from tests.builders import cli
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
    return "search", str(laboratory.recipe), "--variant", "charlstm", *SPACE


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
    assert lines[0].split() == [
        "trial",
        "batch_size",
        "learning_rate",
        "dev",
        "F1",
        "state",
        "minutes",
    ]
    assert "3 trials (3 complete), " in result.stdout
    command = lines[-1].split()
    assert command[:2] == ["spmrl-bench", "train"]
    values = [f"{key}={value}" for key, value in search.best.settings.items()]
    assert [command[k + 1] for k, word in enumerate(command) if word == "--set"] == values
    # Nothing takes trials for runs that were trained for their own sake.
    assert run("eval", words[1], "--variant", "charlstm").exit_code == 1
    assert [path.name for path in Path("runs/tiny-open").iterdir()] == [folder_of("runs").name]


def test_the_same_search_has_the_same_trials_and_more_are_added(words: tuple[str, ...]) -> None:
    run(*words, "--trials", "3")
    run(*words, "--trials", "2", "--runs", "again")
    first = state_of("again")
    again = run(*words, "--trials", "2", "--runs", "again")
    assert "started" not in again.stderr
    assert state_of("again") == first
    run(*words, "--trials", "3", "--runs", "again")
    assert state_of("again") == state_of("runs")


@pytest.mark.parametrize("saves", [0, 6])
def test_a_search_that_was_killed_goes_on_with_the_same_trials(
    words: tuple[str, ...],
    laboratory: Laboratory,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    saves: int,
) -> None:
    """Before the first checkpoint of all, and in the middle of the second trial."""
    run(*words, "--trials", "3", "--pruner", "none")
    home = tmp_path / "home"
    home.mkdir()
    (home / "treebanks").symlink_to(laboratory.manifests)
    with monkeypatch.context() as patch:
        patch.setenv("SPMRL_BENCH_HOME", str(home))
        patch.setenv("PYTHONPATH", str(ROOT))
        patch.setenv("OMP_NUM_THREADS", str(torch.get_num_threads()))
        program = [sys.executable, "-P", "-c", KILLED, str(saves), *words, "--trials", "3"]
        program += ["--pruner", "none", "--runs", "killed"]
        ended = subprocess.run(program, capture_output=True, check=False, timeout=PATIENCE)
    assert ended.returncode == -signal.SIGKILL, ended.stderr.decode()
    states = [trial.state for trial in found("killed").search.trials]
    assert states == [["running"], ["complete", "running"]][saves > 0]
    result = run(*words, "--trials", "3", "--pruner", "none", "--runs", "killed")
    assert result.exit_code == 0, result.output
    assert state_of("killed") == state_of("runs")


@pytest.mark.parametrize(("number", "status"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_a_search_that_is_asked_to_stop_saves_and_goes_on(
    words: tuple[str, ...], monkeypatch: pytest.MonkeyPatch, number: int, status: int
) -> None:
    run(*words, "--trials", "2")
    steps, step = iter(range(100)), Trainer._step

    def asked(self: Trainer, *arguments: Any) -> None:
        step(self, *arguments)
        if next(steps) == 3:
            signal.raise_signal(number)

    with monkeypatch.context() as patch:
        patch.setattr(Trainer, "_step", asked)
        result = run(*words, "--trials", "2", "--runs", "parts")
    assert result.exit_code == status
    assert "give the same command again" in result.stderr
    (trial,) = found("parts").search.trials
    assert trial.state == "running"
    assert run(*words, "--trials", "2", "--runs", "parts").exit_code == 0
    assert state_of("parts") == state_of("runs")


def test_trials_side_by_side(words: tuple[str, ...]) -> None:
    result = run(*words, "--trials", "2", "--jobs", "2")
    assert result.exit_code == 0, result.output
    assert [trial.state for trial in found().search.trials] == ["complete"] * 2
    assert result.stderr.count(": started") == 2


def test_a_trial_that_fails_counts_and_the_search_goes_on(
    words: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of two batch sizes one diverges, and of three models the recipe refuses one."""
    gradients = "spmrl_bench.parsers.chart.ChartParser.gradients"
    from spmrl_bench.parsers.chart import ChartParser

    real = ChartParser.gradients

    def diverging(self: Any, batch: Any, *rest: Any) -> float:
        return float("nan") if len(batch) > 8 else real(self, batch, *rest)

    monkeypatch.setattr(gradients, diverging)
    result = run(*words[:4], "--set", "train.batch_size=8|20", "--trials", "2")
    assert result.exit_code == 0, result.output
    search = found().search
    assert sorted(trial.state for trial in search.trials) == ["complete", "failed"]
    (failed,) = (trial for trial in search.trials if trial.state == "failed")
    assert "training diverged after 0 of 2 batches of epoch 1: the loss is nan" in failed.problem
    assert f"trial {failed.number}: {failed.problem}" in result.stdout
    assert "2 trials (1 complete, 1 failed)" in result.stdout
    assert run(*words[:4], "--set", "train.batch_size=8|20", "--trials", "2").exit_code == 0
    assert found().search.trials == search.trials


def test_what_is_no_fault_of_a_trial_ends_the_search_and_leaves_it_open(
    words: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    from spmrl_bench.errors import CheckpointError

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


def test_bad_trials_are_pruned(words: tuple[str, ...]) -> None:
    """Rates that learn nothing, after five trials with rates that do."""
    rates = "|".join([*(f"0.0{k}" for k in range(1, 6)), *(f"1e-{k}" for k in range(9, 15))])
    options = ("--sampler", "random", "--trials", "11", "--set", "train.max_epochs=4")
    result = run(*words[:4], "--set", f"train.learning_rate={rates}", *options)
    assert result.exit_code == 0, result.output
    search = found().search
    pruned = [trial for trial in search.trials if trial.state == "pruned"]
    assert pruned
    assert all(trial.number > 5 for trial in pruned)
    assert search.best.settings["train.learning_rate"] >= 0.01
    for trial in pruned:
        assert trial.settings["train.learning_rate"] < 0.01
        progress = folder_of("runs") / "trials" / f"{trial.number:03}" / "last" / "progress.json"
        state = json.loads(progress.read_text(encoding="utf-8"))
        assert state["stopped_by"] == "pruner"
        assert state["epoch"] < 4


def test_a_search_begun_when_settings_were_flat_goes_on(words: tuple[str, ...]) -> None:
    run(*words, "--trials", "1")
    path = folder_of("runs") / "search.json"
    content = json.loads(path.read_text(encoding="utf-8"))
    content["base"]["model"] = short(content["base"]["model"])
    assert {"lexical", "d_ff"} <= content["base"]["model"].keys()
    path.write_text(json.dumps(content), encoding="utf-8")
    result = run(*words, "--trials", "2")
    assert result.exit_code == 0, result.output
    assert len(found().search.trials) == 2


def test_another_search_has_another_folder_or_is_refused(
    words: tuple[str, ...], laboratory: Laboratory
) -> None:
    run(*words, "--trials", "1")
    others = [("--seed", "2"), ("--pruner", "none"), ("--set", "train.max_epochs=1")]
    others += [("--minutes", "5"), ("--set", "train.batch_size=8|16"), ("--sampler", "random")]
    for other in others:
        assert run(*words, *other, "--trials", "1").exit_code == 0
    assert len(list(Path("runs/tiny-open").iterdir())) == 1 + len(others)
    laboratory.write_recipe(["tiny-open"], train={"evaluations_per_epoch": 2, "max_epochs": 3})
    result = run(*words, "--trials", "2")
    assert result.exit_code == 1
    assert "holds another search: base.train.max_epochs is 2 there, 3 now" in result.stderr


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--set", "model.layers=1:3"), "1.764 is refused: .*of whole numbers int:LOW:HIGH"),
        (("--set", "train.batch_size=8|0"), "--set train.batch_size=8|0: 0 is refused: "),
        (("--set", "model.lexical=word|tag"), "the variant decides it"),
        (("--set", "model.layer=int:1:3"), "model.layer"),
        (("--set", "train.max_minutes=1:2"), "--minutes gives all the same"),
        (("--set", "train.evaluations_per_epoch=int:1:2"), "at the same evaluations"),
        (("--set", "train.checkpoint_minutes=1:2"), "it does not change what is learnt"),
        (("--set", "model.layers=1|2", "--pruner", "medium"), "Did you mean median"),
        (("--set", "model.layers=1"), "nothing to search"),
    ],
)
def test_mistakes_are_told_before_anything_is_trained(
    words: tuple[str, ...], options: tuple[str, ...], message: str
) -> None:
    result = run(*words[:4], *options)
    assert (result.exit_code, result.stdout) == (1, "")
    assert len(result.stderr.splitlines()) == 1
    with pytest.raises(AssertionError, match=message.replace("|", r"\|")):
        raise AssertionError(result.stderr)
    assert not Path("runs").exists()


def test_one_variant_is_searched(laboratory: Laboratory) -> None:
    result = run("search", str(laboratory.recipe), *SPACE)
    assert result.exit_code == 1
    assert "name it with --variant. Recipe elvish has: charlstm, word-charlstm" in result.stderr


def test_without_optuna_the_message_says_what_to_install(
    words: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "optuna", None)
    result = run(*words)
    assert (result.exit_code, result.stdout) == (1, "")
    assert "pip install 'spmrl-bench[search]'" in result.stderr


def test_the_document_is_told_to_be_broken_in_words(words: tuple[str, ...]) -> None:
    run(*words, "--trials", "1")
    path = folder_of("runs") / NAME
    path.write_text("{}", encoding="utf-8")
    result = run(*words, "--trials", "1")
    assert (result.exit_code, result.stdout) == (1, "")
    assert f"{path}: not the document of a search: " in result.stderr
