"""Many runs: side by side they give what they give in turn, and none takes another with it."""

from __future__ import annotations

import json
import os
import pickle
import re
import shutil
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from spmrl_bench.errors import (
    CheckpointError,
    ReadError,
    RecipeError,
    RunOwnedError,
    SentenceTooLongError,
    SpmrlError,
)
from spmrl_bench.experiments.plan import Run
from spmrl_bench.experiments.run_folder import run_lock
from spmrl_bench.experiments.train import train_all, usual_jobs
from spmrl_bench.storage.locks import Owner
from spmrl_bench.treebanks.catalogue import treebank_status
from spmrl_bench.treebanks.treebank import Treebank
from tests.experiments import running
from tests.laboratory import Laboratory
from tests.reliability.tally import Tally

RUNS = Path("runs")


def plan(laboratory: Laboratory, bank: str = "tiny-open", **options: Any) -> list[Run]:
    return running.plan(laboratory, treebank=bank, variants=["charlstm"], **options)


def folders(runs: list[Run]) -> list[Path]:
    return [run.folder for run in runs]


def elsewhere(runs: list[Run]) -> list[Run]:
    """The same runs in another folder."""
    return [replace(run, folder=Path("elsewhere", *run.folder.parts[1:])) for run in runs]


def weights(folder: Path) -> bytes:
    return (folder / "best" / "weights.safetensors").read_bytes()


def lengthen(laboratory: Laboratory, bank: str) -> None:
    """Give a treebank a training sentence that no model of the laboratory can take."""
    path = laboratory.treebanks / bank / "train.mrg"
    lines = path.read_text(encoding="utf-8").splitlines()
    lines[-1] = f"(S (NP {'(DT the) ' * 40}(NN dog)) (VBZ sees))"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


@pytest.fixture
def one_thread() -> Iterator[None]:
    """As many threads in this process as side by side on a machine of two cores."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OMP_NUM_THREADS", "2")
        yield
    torch.set_num_threads(before)


def test_side_by_side_gives_the_weights_that_training_in_turn_gives(
    laboratory: Laboratory, one_thread: None, capfd: pytest.CaptureFixture[str], tally: Tally
) -> None:
    held = tally("R16", "runs in another number of processes")
    runs = [*plan(laboratory, seeds=[1, 2]), *plan(laboratory, "tiny-mini")]
    train_all([*runs, runs[0]], jobs=2)  # named twice, it is one run
    lines = capfd.readouterr().err.splitlines()
    others = elsewhere(runs)
    train_all(others, jobs=1)
    for folder, other in zip(folders(runs), folders(others), strict=True):
        held.add()
        assert weights(folder) == weights(other)
        noted = (folder / "events.jsonl").read_text(encoding="utf-8").splitlines()
        events = [json.loads(line) for line in noted]
        assert [event["event"] for event in events] == ["start", "evaluation", "stop"]
    # One line for the beginning, the evaluation and the end of each, one for each treebank, and
    # one for how much is left after all but the last.
    assert len(lines) == 3 * 3 + 2 + 2
    assert [line.partition(" done")[0] for line in lines if " done" in line] == ["1 of 3", "2 of 3"]
    assert sum(line.startswith("using tiny-") for line in lines) == 2

    train_all(runs, jobs=2)
    again = capfd.readouterr().err.splitlines()[-3:]
    assert all(": already trained, best dev F1 " in line for line in again)


@pytest.mark.parametrize("jobs", [1, 2])
def test_runs_that_fail_stop_no_other_and_are_told_in_the_end(
    laboratory: Laboratory, jobs: int, capfd: pytest.CaptureFixture[str]
) -> None:
    lengthen(laboratory, "tiny-open")
    runs = [*plan(laboratory, seeds=[1, 2]), *plan(laboratory, "tiny-mini")]
    with pytest.raises(SentenceTooLongError, match=r"^tiny-open, split train, sentence 40: "):
        train_all(runs, jobs=jobs)  # the same message once
    failed, _, done = folders(runs)
    assert weights(done)
    assert sorted(path.name for path in failed.iterdir()) == ["failed.json", "log.txt"]
    assert "tiny-open charlstm seed 1: FAILED, tiny-open, split train" in capfd.readouterr().err
    lengthen(laboratory, "tiny-mini")
    again = [*plan(laboratory, seeds=[1, 2]), *plan(laboratory, "tiny-mini")]
    with pytest.raises(SpmrlError, match=r"^3 of 3 runs failed:\ntiny-open, .*\ntiny-mini, "):
        train_all(elsewhere(again), jobs=jobs)


@pytest.mark.parametrize(("jobs", "file"), [(2, "last/progress.json"), (1, "run.json")])
def test_a_broken_run_folder_keeps_no_other_run_from_being_trained(
    laboratory: Laboratory, jobs: int, file: str, capfd: pytest.CaptureFixture[str]
) -> None:
    work = plan(laboratory, seeds=[1, 2])
    broken, other = folders(work)
    train_all(plan(laboratory))
    (broken / file).write_text("{", encoding="utf-8")
    with pytest.raises(CheckpointError, match=rf"{file}: .*Start anew with --fresh"):
        train_all(work, jobs=jobs)
    assert weights(other)
    assert "tiny-open charlstm seed 1: FAILED, " in capfd.readouterr().err
    with pytest.raises(CheckpointError, match="Start anew with --fresh"):
        train_all(work, jobs=1)  # the other one is trained already
    train_all(plan(laboratory), jobs=1, fresh=True)


def test_a_folder_that_is_removed_while_it_trains_is_no_finished_run(
    laboratory: Laboratory, monkeypatch: pytest.MonkeyPatch
) -> None:
    (run,) = plan(laboratory, settings={"train.max_epochs": "3"})
    scores = iter([50.0, 40.0, 30.0])

    def scored(*_: object) -> SimpleNamespace:
        score = next(scores)
        if score == 30.0:
            shutil.rmtree(run.folder)
        return SimpleNamespace(score=lambda _: score)

    with monkeypatch.context() as patch:
        patch.setattr("spmrl_bench.experiments.train.evaluate_parser", scored)
        for _ in range(2):  # it is not taken for a finished one later either
            with pytest.raises(CheckpointError, match=r"best: no weights .* anew with --fresh"):
                train_all([run])
    train_all([run], fresh=True)
    assert weights(run.folder)


class Odd(Treebank):
    """A treebank that does something else when it is read."""

    def examples(self, split: str, layers: Any = None) -> list[Any]:
        raise ZeroDivisionError(split)


def test_a_defect_of_the_program_keeps_its_traceback(laboratory: Laboratory) -> None:
    good, (bad,) = plan(laboratory, "tiny-mini"), plan(laboratory)
    status = treebank_status(bad.treebank.manifest)
    with pytest.raises(ZeroDivisionError) as caught:
        train_all([replace(bad, treebank=Odd(status, status.files)), *good], jobs=2)
    assert "in examples" in str(caught.value.__cause__)
    assert weights(good[0].folder)


def test_what_can_be_known_before_is_said_before_anything_is_trained(
    laboratory: Laboratory,
) -> None:
    with pytest.raises(RecipeError, match="unknown device 'gpu'"):
        train_all(plan(laboratory), device="gpu")
    first, second = plan(laboratory), plan(laboratory, "tiny-mini")
    train_all(second)
    laboratory.write_base(size__small__train={"max_epochs": 7})
    laboratory.write_recipe(["tiny-open"], train={"learning_rate": 0.5})
    noted = RUNS / "tiny-mini" / "small-charlstm-seed1" / "run.json"
    noted.write_text(noted.read_text().replace('"d_ff": 16', '"d_ff": 8'), encoding="utf-8")
    with pytest.raises(CheckpointError, match=r"other settings: model.d_ff is 8 there, 16 now"):
        train_all([*first, *second])
    assert not first[0].folder.exists()


def test_small_models_share_out_the_threads_and_each_card_gets_a_run(
    laboratory: Laboratory, monkeypatch: pytest.MonkeyPatch
) -> None:
    large = {"d_model": 1024, "encoder": {"lstm": {"layers": 8, "dropout": 0.1}}}
    with_files = {"inputs": {"vectors": {"file": "words.txt", "dropout": 0.1}}}
    runs = plan(laboratory, seeds=[1, 2, 3])
    last = runs[-1].config
    for threads, cards, changes, device, expected in (
        (8, 0, {}, "cpu", 3),  # as many as there are runs
        (2, 0, {}, "cpu", 2),
        (8, 0, large, "cpu", 1),
        (8, 0, with_files, "cpu", 1),
        (8, 1, {}, "cuda", 1),
        (8, 2, large, "cuda", 2),
        (8, 9, {}, "cuda", 3),
        (8, 4, {}, "cuda:2", 1),
    ):
        monkeypatch.setenv("OMP_NUM_THREADS", str(threads))
        monkeypatch.setattr("spmrl_bench.experiments.train.cards", lambda found=cards: found)
        model = type(last.model).model_validate(last.model.model_dump() | changes)
        runs[-1] = replace(runs[-1], config=last.model_copy(update={"model": model}))
        assert usual_jobs(runs, torch.device(device)) == expected


def test_errors_keep_their_class_on_the_way_between_processes() -> None:
    """Also those whose constructor wants more than a message."""
    error = pickle.loads(pickle.dumps(ReadError("no tree", path="f.mrg", line=1)))
    assert (type(error), str(error), error.line) == (ReadError, "f.mrg:1: no tree", 1)


FOLDER = RUNS / "tiny" / "small-charlstm-seed1"
LOCK = FOLDER.with_name(f".{FOLDER.name}.lock")


def test_who_owns_it_is_told(laboratory: Laboratory) -> None:
    with run_lock(FOLDER):
        assert not FOLDER.exists()  # since nothing was written to it
        with pytest.raises(RunOwnedError) as caught:
            run_lock(FOLDER).__enter__()
    message = str(caught.value)
    assert re.search(rf": process {os.getpid()} on .* has been training here since 2", message)
    assert f"end it ('kill {os.getpid()}' lets it save)" in message
    owner = Owner(machine="elsewhere", pid=1, birth="", since=datetime(2026, 1, 1), token="")
    LOCK.write_text(owner.model_dump_json(), encoding="utf-8")
    with pytest.raises(RunOwnedError, match=r"on elsewhere has .* 5 minutes .*delete .*lock"):
        run_lock(FOLDER).__enter__()


def test_a_fresh_start_leaves_the_folder_of_another_alone(laboratory: Laboratory) -> None:
    (run,) = plan(laboratory)
    places = [FOLDER.with_name("other"), FOLDER]
    for folder in places:
        folder.mkdir(parents=True)
        (folder / "mine.txt").write_text("mine", encoding="utf-8")
    with run_lock(FOLDER), pytest.raises(RunOwnedError):
        train_all([replace(run, folder=folder) for folder in places], fresh=True)
    assert all((folder / "mine.txt").exists() for folder in places)


def test_settings_are_checked_again_by_the_owner(laboratory: Laboratory) -> None:
    """Another process may have trained with others since they were checked first."""
    (run,) = plan(laboratory)
    run.train(None, device="cpu")
    other = replace(run, config=run.config.model_copy(update={"seed": 2}))
    with pytest.raises(CheckpointError, match="other settings: seed is 1 there, 2 now"):
        other.train(None, device="cpu")
