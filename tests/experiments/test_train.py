"""Runs: which treebank is used, how it is trained on and where; many of them side by side."""

from __future__ import annotations

import json
import os
import pickle
import re
import shutil
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from typer.testing import Result

from spmrl_bench.errors import (
    CheckpointError,
    ReadError,
    RecipeError,
    RunOwnedError,
    SentenceTooLongError,
    SpmrlError,
    TrainingError,
    TreebankError,
)
from spmrl_bench.experiments.plan import Run
from spmrl_bench.experiments.run_folder import run_lock
from spmrl_bench.experiments.train import chosen_sentences, train_all, usual_jobs
from spmrl_bench.leaderboard.tables import results_markdown
from spmrl_bench.storage.locks import Owner, lock_of
from spmrl_bench.treebanks.catalogue import treebank_status
from spmrl_bench.treebanks.treebank import Treebank
from tests.builders import cli
from tests.experiments.conftest import FIRST, RUNS, evaluate, everything, plan, train
from tests.laboratory import MODEL, QUICK, TRAIN, Laboratory
from tests.reliability.tally import Tally
from tests.twins import torch_threads


def test_the_first_present_treebank_is_used_unless_one_is_named(laboratory: Laboratory) -> None:
    runs = plan(laboratory)
    assert {run.treebank.name for run in runs} == {"tiny-open"}
    assert {run.note for run in runs} == {"using tiny-open, track open (tiny-licensed not present)"}
    assert [run.variant for run in runs] == ["charlstm", "word-charlstm"]
    assert all(run.config.fingerprint == run.treebank.fingerprint for run in runs)
    assert plan(laboratory, track="mini")[0].note == "using tiny-mini, track mini"
    assert plan(laboratory, treebank="tiny-mini")[0].note == "using tiny-mini, as asked"
    assert len(plan(laboratory, variants=["charlstm", "charlstm"])) == 1
    assert [run.config.seed for run in plan(laboratory, seeds=[3, 0, 3])] == [3, 0] * 2
    laboratory.write_treebank("tiny-licensed", "spmrl")
    assert plan(laboratory)[0].note == "using tiny-licensed, track spmrl"


def test_absent_treebanks_are_named_with_their_places(
    laboratory: Laboratory, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(TreebankError, match=r"(?s)tiny-licensed is not.*: Ask the elves\."):
        plan(laboratory, track="spmrl")
    monkeypatch.delenv("TREEBANKS")
    with pytest.raises(TreebankError) as caught:
        plan(laboratory)
    first, *places, _ = str(caught.value).splitlines()
    assert first == "no treebank of recipe elvish is present"
    names = ("tiny-licensed", "tiny-open", "tiny-mini")
    for name, line in zip(names, places, strict=True):
        assert line.startswith(f"  {name}: looked in")
        assert "set TREEBANKS" in line


def test_unknown_names_and_no_seed(laboratory: Laboratory) -> None:
    with pytest.raises(RecipeError, match="no seeds"):
        plan(laboratory, seeds=[])
    with pytest.raises(RecipeError, match=r"unknown track 'opne'. Did you mean open\?"):
        plan(laboratory, track="opne")
    laboratory.write_recipe(["tiny-opne"])
    with pytest.raises(RecipeError, match=r"elvish.toml: treebanks: unknown treebank 'tiny-opne'"):
        plan(laboratory)


def test_a_finished_run_is_left_alone_and_a_fresh_one_trained_anew(
    trained: Laboratory, capsys: pytest.CaptureFixture[str]
) -> None:
    (FIRST / "mine.txt").write_text("mine", encoding="utf-8")
    before = everything(FIRST)
    capsys.readouterr()
    train(trained, variants=["charlstm"])
    assert everything(FIRST) == before
    assert "tiny-open charlstm seed 1: already trained, best dev F1 " in capsys.readouterr().err

    train(trained, variants=["charlstm"], fresh=True)
    after = everything(FIRST)
    assert before.keys() - after.keys() == {FIRST / "mine.txt"}
    weights = FIRST / "best" / "weights.safetensors"
    assert after[weights] == before[weights]
    assert after[FIRST / "events.jsonl"] != before[FIRST / "events.jsonl"]


def test_other_settings_in_the_folder_are_listed(trained: Laboratory) -> None:
    before = everything(FIRST)
    trained.write_base(
        size__small__model=MODEL | {"d_ff": 8}, size__small__train=TRAIN | QUICK | {"max_epochs": 3}
    )
    for work in (train, evaluate):
        with pytest.raises(CheckpointError) as caught:
            work(trained, variants=["charlstm"])
        assert str(caught.value) == (
            f"{FIRST}: holds a run with other settings: model.d_ff is 16 there, 8 now; "
            "train.max_epochs is 1 there, 3 now. "
            "Start anew with --fresh, choose another --runs folder, or give the earlier settings"
        )
    assert everything(FIRST) == before
    train(trained, variants=["charlstm"], fresh=True)
    path = trained.treebanks / "tiny-open" / "dev.mrg"
    path.write_text(path.read_text().replace("dog", "cat"), encoding="utf-8")
    with pytest.raises(CheckpointError, match="other settings: fingerprint is"):
        train(trained, variants=["charlstm"])


def test_a_run_of_before_is_the_same_run(trained: Laboratory) -> None:
    """Its settings and its schedule lack what came in since."""
    for name, section, keys in (
        ("run.json", "train", ("optimiser", "gradient_norm", "decay_batches")),
        ("run.json", "model", ("join", "initialisation")),
        ("run.json", None, ("settings",)),
        ("last/progress.json", None, ("decay_step",)),
    ):
        noted = json.loads((FIRST / name).read_text(encoding="utf-8"))
        for key in keys:
            del (noted[section] if section else noted)[key]
        noted.pop("content", None)
        (FIRST / name).write_text(json.dumps(noted), encoding="utf-8")
    before = everything(FIRST)
    # How often it is saved makes no other run.
    often = {"train.checkpoint_minutes": "1"}
    assert train(trained, variants=["charlstm"], settings=often) == [FIRST]
    assert everything(FIRST) == before
    trained.write_recipe(["tiny-open"], train={"optimiser": "sgd"})
    with pytest.raises(CheckpointError, match=r"train\.optimiser is adam there, sgd now"):
        train(trained, variants=["charlstm"])


@pytest.mark.parametrize("split", ["train", "dev"])
def test_sentences_that_are_too_long_or_no_trees_are_found_before_training(
    laboratory: Laboratory, split: str
) -> None:
    too_long = r"of 42 words.*table allows 30.*max_positions"
    path = laboratory.treebanks / "tiny-open" / f"{split}.mrg"
    for spoil, error, message in (
        (lambda: laboratory.lengthen("tiny-open", split), SentenceTooLongError, too_long),
        (lambda: path.write_text("(S (NP (DT the\n"), ReadError, rf"{split}\.mrg:1"),
    ):
        spoil()
        with pytest.raises(error, match=message):
            train(laboratory, variants=["charlstm"])
        assert {each.name for each in everything(RUNS)} == {"failed.json", "log.txt"}


def test_settings_name_the_folder_the_signature_and_the_record(laboratory: Laboratory) -> None:
    settings = {"train.max_epochs": "2", "model.d_ff": "8", "model.heads": str(MODEL["heads"])}
    options: dict[str, Any] = {"variants": ["charlstm"], "settings": settings}
    (folder,) = train(laboratory, **options)
    assert folder == RUNS / "tiny-open" / "small-charlstm-d_ff=8,max_epochs=2-seed1"
    (record,) = evaluate(laboratory, **options)
    assert record.settings == {"model.d_ff": 8, "train.max_epochs": 2}
    assert (
        "|variant:charlstm|settings:d_ff=8,max_epochs=2|size:small|"
        in record.dev.metrics["brackets"].signature_long
    )
    # The same command with the same settings in other words finds the run and its record.
    settings = {"model.d_ff": "+8", "train.max_epochs": "2"}
    assert train(laboratory, variants=["charlstm"], settings=settings) == [folder]
    assert evaluate(laboratory, variants=["charlstm"], settings=settings) == [record]
    assert len(list(folder.parent.iterdir())) == 1


# More time --------------------------------------------------------------------------------


def test_the_same_command_with_more_minutes_goes_on(laboratory: Laboratory) -> None:
    def run(command: str, *options: str) -> Result:
        return cli(command, str(laboratory.recipe), "--variant", "charlstm", *options)

    def state() -> tuple[Path, dict[str, object]]:
        (path,) = Path("runs").rglob("last/progress.json")
        return path.parents[1], json.loads(path.read_text())

    few, more = ("--minutes", "0.00001"), ("--minutes", "5")
    assert run("train", *few).exit_code == 0
    folder, progress = state()
    assert progress["stopped_by"] == "max_minutes"
    assert "minutes" not in folder.name
    assert run("train", *few).exit_code == 0
    assert state()[1]["steps"] == progress["steps"], "it was finished"
    scored, other = run("eval", *few), run("eval")
    assert (scored.exit_code, other.exit_code) == (0, 1)
    assert "charlstm (max_minutes=1e-05)" in scored.stdout
    assert "train.max_minutes" in other.stderr, "what was cut off is not scored as if it were whole"
    assert run("train", *more).exit_code == 0
    assert state()[0] == folder
    assert state()[1]["stopped_by"] == "max_epochs"
    assert run("eval", *more).exit_code == 0
    assert run("eval").exit_code == 0, "a limit that was not reached has decided nothing"
    assert run("eval", *few).exit_code == 1


def test_a_run_learns_from_no_sentences_but_those_that_were_drawn(laboratory: Laboratory) -> None:
    """More are the same and others; a row says how many there were."""
    drawn = {}
    for seed, number in ((1, 5), (1, 20), (2, 5)):
        drawn[seed, number] = chosen_sentences(number, seed, "some", 40)
        assert drawn[seed, number] == sorted(drawn[seed, number])
        assert len(drawn[seed, number]) == number
    assert set(drawn[1, 5]) < set(drawn[1, 20])
    assert drawn[1, 5] != drawn[2, 5]
    assert chosen_sentences(None, 1, "some", 40) == list(range(40))
    with pytest.raises(TrainingError, match="5 sentences are wanted, but some has 4 to train on"):
        chosen_sentences(5, 1, "some", 4)

    options: dict[str, Any] = {"variants": ["charlstm"], "settings": {"train.sentences": "5"}}
    (folder,) = train(laboratory, **options)
    sentences = plan(laboratory)[0].treebank.examples("train", ("constituents",))
    words = {word for number in drawn[1, 5] for word in sentences[number].words}
    description = json.loads((folder / "best" / "parser.json").read_text())
    assert {word for word, _ in description["vocabulary"]["words"]} == words
    assert "charlstm (sentences=5)" in results_markdown(evaluate(laboratory, **options), [])


# Many at once: none takes another with it -------------------------------------------------


def of_one(laboratory: Laboratory, bank: str = "tiny-open", **options: Any) -> list[Run]:
    return plan(laboratory, treebank=bank, variants=["charlstm"], **options)


def folders(runs: list[Run]) -> list[Path]:
    return [run.folder for run in runs]


def elsewhere(runs: list[Run]) -> list[Run]:
    """The same runs in another folder."""
    return [replace(run, folder=Path("elsewhere", *run.folder.parts[1:])) for run in runs]


def weights(folder: Path) -> bytes:
    return (folder / "best" / "weights.safetensors").read_bytes()


def test_side_by_side_gives_the_weights_that_training_in_turn_gives(
    laboratory: Laboratory,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    tally: Tally,
) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "2")  # one for each of two runs
    held = tally("R16", "runs in another number of processes")
    runs = [*of_one(laboratory, seeds=[1, 2]), *of_one(laboratory, "tiny-mini")]
    train_all([*runs, runs[0]], jobs=2)  # named twice, it is one run
    lines = capfd.readouterr().err.splitlines()
    others = elsewhere(runs)
    with torch_threads(1):
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


@pytest.mark.parametrize("jobs", [1, 2])
def test_runs_that_fail_stop_no_other_and_are_told_in_the_end(
    laboratory: Laboratory, jobs: int, capfd: pytest.CaptureFixture[str]
) -> None:
    laboratory.lengthen("tiny-open")
    runs = [*of_one(laboratory, seeds=[1, 2]), *of_one(laboratory, "tiny-mini")]
    with pytest.raises(SentenceTooLongError, match=r"^tiny-open, split train, sentence 40: "):
        train_all(runs, jobs=jobs)  # the same message once
    failed, _, done = folders(runs)
    assert weights(done)
    assert sorted(path.name for path in failed.iterdir()) == ["failed.json", "log.txt"]
    assert "tiny-open charlstm seed 1: FAILED, tiny-open, split train" in capfd.readouterr().err
    laboratory.lengthen("tiny-mini")
    again = [*of_one(laboratory, seeds=[1, 2]), *of_one(laboratory, "tiny-mini")]
    with pytest.raises(SpmrlError, match=r"^3 of 3 runs failed:\ntiny-open, .*\ntiny-mini, "):
        train_all(elsewhere(again), jobs=jobs)


@pytest.mark.parametrize(("jobs", "file"), [(2, "last/progress.json"), (1, "run.json")])
def test_a_broken_run_folder_keeps_no_other_run_from_being_trained(
    laboratory: Laboratory, jobs: int, file: str, capfd: pytest.CaptureFixture[str]
) -> None:
    work = of_one(laboratory, seeds=[1, 2])
    broken, other = folders(work)
    train_all(of_one(laboratory))
    (broken / file).write_text("{", encoding="utf-8")
    with pytest.raises(CheckpointError, match=rf"{file}: .*Start anew with --fresh"):
        train_all(work, jobs=jobs)
    assert weights(other)
    assert "tiny-open charlstm seed 1: FAILED, " in capfd.readouterr().err
    with pytest.raises(CheckpointError, match="Start anew with --fresh"):
        train_all(work, jobs=1)  # the other one is trained already
    train_all(of_one(laboratory), jobs=1, fresh=True)


def test_a_folder_that_is_removed_while_it_trains_is_no_finished_run(
    laboratory: Laboratory, monkeypatch: pytest.MonkeyPatch
) -> None:
    (run,) = of_one(laboratory, settings={"train.max_epochs": "3"})
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
    good, (bad,) = of_one(laboratory, "tiny-mini"), of_one(laboratory)
    status = treebank_status(bad.treebank.manifest)
    with pytest.raises(ZeroDivisionError) as caught:
        train_all([replace(bad, treebank=Odd(status, status.files)), *good], jobs=2)
    assert "in examples" in str(caught.value.__cause__)
    assert weights(good[0].folder)


def test_what_can_be_known_before_is_said_before_anything_is_trained(
    laboratory: Laboratory,
) -> None:
    with pytest.raises(RecipeError, match="unknown device 'gpu'"):
        train_all(of_one(laboratory), device="gpu")
    first, second = of_one(laboratory), of_one(laboratory, "tiny-mini")
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
    runs = of_one(laboratory, seeds=[1, 2, 3])
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


def test_who_owns_it_is_told(laboratory: Laboratory) -> None:
    with run_lock(FOLDER):
        assert not FOLDER.exists()  # since nothing was written to it
        with pytest.raises(RunOwnedError) as caught:
            run_lock(FOLDER).__enter__()
    message = str(caught.value)
    assert re.search(rf": process {os.getpid()} on .* has been training here since 2", message)
    assert f"end it ('kill {os.getpid()}' lets it save)" in message
    owner = Owner(machine="elsewhere", pid=1, birth="", since=datetime(2026, 1, 1), token="")
    lock_of(FOLDER).write_text(owner.model_dump_json(), encoding="utf-8")
    with pytest.raises(RunOwnedError, match=r"on elsewhere has .* 5 minutes .*delete .*lock"):
        run_lock(FOLDER).__enter__()


def test_a_fresh_start_leaves_the_folder_of_another_alone(laboratory: Laboratory) -> None:
    (run,) = of_one(laboratory)
    places = [FOLDER.with_name("other"), FOLDER]
    for folder in places:
        folder.mkdir(parents=True)
        (folder / "mine.txt").write_text("mine", encoding="utf-8")
    with run_lock(FOLDER), pytest.raises(RunOwnedError):
        train_all([replace(run, folder=folder) for folder in places], fresh=True)
    assert all((folder / "mine.txt").exists() for folder in places)


def test_settings_are_checked_again_by_the_owner(laboratory: Laboratory) -> None:
    """Another process may have trained with others since they were checked first."""
    (run,) = of_one(laboratory)
    run.train(device="cpu")
    other = replace(run, config=run.config.model_copy(update={"seed": 2}))
    with pytest.raises(CheckpointError, match="other settings: seed is 1 there, 2 now"):
        other.train(device="cpu")
