"""A run that is cancelled saves and ends, the others go on; what fails is noted in its folder."""

from __future__ import annotations

import json
import os
import re
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from spmrl_bench.errors import (
    CheckpointError,
    RunCancelledError,
    SentenceTooLongError,
    SpmrlError,
    TrainingError,
)
from spmrl_bench.experiments import one_run
from spmrl_bench.experiments.campaign import train_all
from spmrl_bench.experiments.cancelling import cancel_run
from spmrl_bench.experiments.one_run import Run, train_run
from spmrl_bench.experiments.run_notes import ask_cancel, attempt_noted, cancel_asked, read_failed
from spmrl_bench.experiments.run_state import RunState, state_of
from spmrl_bench.notes import write_waiting
from spmrl_bench.process.signals import Interrupted
from tests.conftest import PATIENCE
from tests.experiments.running import FIRST, FOLDERS, RUNS, plan
from tests.experiments.test_campaign import Odd, lengthen, odd, weights
from tests.laboratory import Laboratory


def found(folder: Path = FIRST) -> RunState:
    state = state_of(folder)
    assert state is not None
    return state


def first_run(laboratory: Laboratory) -> Run:
    work = plan(laboratory)
    return Run(work.treebank, work.configs[0], FIRST)


@pytest.fixture
def at_first_evaluation(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[], None]], None]:
    """Have something happen in the middle of the first dev evaluation."""
    evaluate = one_run.evaluate_parser

    def set_up(happens: Callable[[], None]) -> None:
        left = [happens]

        def evaluated(*arguments: Any) -> Any:
            if left:
                left.pop()()
            return evaluate(*arguments)

        monkeypatch.setattr(one_run, "evaluate_parser", evaluated)

    return set_up


def wait() -> None:
    """Do nothing until a signal comes."""
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until:
        time.sleep(0.01)
    raise AssertionError("no signal came")


def test_a_cancelled_run_is_saved_and_the_next_one_goes_on(
    laboratory: Laboratory,
    at_first_evaluation: Callable[[Callable[[], None]], None],
    capfd: pytest.CaptureFixture[str],
) -> None:
    def cancel() -> None:
        cancel_run(found())
        wait()

    at_first_evaluation(cancel)
    work = plan(laboratory)
    with pytest.raises(RunCancelledError, match=r"tiny-open charlstm seed 1: cancelled; it is sav"):
        train_all([work], runs_dir=RUNS, jobs=1)
    assert [found(folder).state for folder in FOLDERS] == ["cancelled", "done"]
    assert "FAILED" not in capfd.readouterr().err
    assert (FIRST / "log.txt").read_text(encoding="utf-8").endswith("Z cancelled\n")
    assert not (FIRST / "failed.json").exists()

    train_all([work], runs_dir=RUNS, jobs=1)
    assert "seed 1: was cancelled, and goes on now\n" in capfd.readouterr().err
    assert [found(folder).state for folder in FOLDERS] == ["done", "done"]
    log = (FIRST / "log.txt").read_text(encoding="utf-8")
    assert "cancelled" in log  # what was said before stays
    assert ": continuing after " in log
    assert weights(FIRST)


def test_the_owner_finds_the_note_that_another_machine_left(
    laboratory: Laboratory,
    at_first_evaluation: Callable[[Callable[[], None]], None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:

    def cancel() -> None:
        ask_cancel(FIRST)
        wait()

    at_first_evaluation(cancel)
    with pytest.raises(RunCancelledError):
        train_run(first_run(laboratory), "", None, device="cpu")
    assert found().state == "cancelled"
    assert (FIRST / "last" / "progress.json").exists()


@pytest.mark.parametrize("cancelled", [False, True])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_other_ways_to_end_a_run_are_no_cancelling(
    laboratory: Laboratory,
    at_first_evaluation: Callable[[Callable[[], None]], None],
    number: signal.Signals,
    cancelled: bool,
) -> None:
    def end() -> None:
        if cancelled:
            ask_cancel(FIRST)
        os.kill(os.getpid(), number)
        wait()

    at_first_evaluation(end)
    told = cancelled and number == signal.SIGTERM
    with pytest.raises(RunCancelledError if told else Interrupted):
        train_run(first_run(laboratory), "", None, device="cpu")


def test_one_of_several_side_by_side_is_cancelled(laboratory: Laboratory) -> None:
    """It ends long before its epochs are over, and the other one does not."""
    long = {"train.max_epochs": "100000", "train.stop_patience": "100000"}
    work = plan(laboratory, variants=["charlstm"], settings=long)
    other = plan(laboratory, variants=["charlstm"])
    folder = work.folder(RUNS, work.configs[0])
    said: list[str] = []

    def cancel() -> None:
        until = time.monotonic() + PATIENCE
        while time.monotonic() < until:
            run = state_of(folder)
            if run is not None and run.state == "running" and run.epoch:
                said.append(cancel_run(run))
                return
            time.sleep(0.05)

    cancelling = threading.Thread(target=cancel)
    cancelling.start()
    with pytest.raises(RunCancelledError, match=r"charlstm.* seed 1: cancelled; it is saved"):
        train_all([work, other], runs_dir=RUNS, jobs=2)
    cancelling.join()
    assert (found(folder).state, found().state) == ("cancelled", "done")
    assert re.match(
        r".*: cancelled; process \d+ on .* finishes the batch, saves and ends\.", said[0]
    )


def test_a_cancelled_run_is_not_begun(laboratory: Laboratory) -> None:
    write_waiting(FIRST, "dask")
    assert cancel_run(found()).startswith(f"{FIRST}: cancelled; it will not be begun. When it is")
    assert cancel_asked(FIRST)
    with pytest.raises(RunCancelledError, match="cancelled before it was begun"):
        train_run(first_run(laboratory), "", None, device="cpu")
    assert not FIRST.exists()
    assert found().state == "cancelled"
    assert sorted(path.name for path in FIRST.parent.iterdir()) == [f".{FIRST.name}.cancel"]


@pytest.mark.usefixtures("trained")
def test_what_cannot_be_cancelled_is_said() -> None:
    with pytest.raises(CheckpointError, match="nothing to cancel, since training has ended"):
        cancel_run(found())
    state = json.loads((FIRST / "last" / "progress.json").read_text(encoding="utf-8"))
    text = json.dumps(state | {"stopped_by": None})
    (FIRST / "last" / "progress.json").write_text(text, encoding="utf-8")
    (FIRST / "events.jsonl").unlink()
    assert "nobody goes on with it" in cancel_run(found())
    with pytest.raises(CheckpointError, match="is cancelled already"):
        cancel_run(found())
    (FIRST / "failed.json").write_text("{}", encoding="utf-8")
    with pytest.raises(CheckpointError, match="nothing to cancel, since it has failed"):
        cancel_run(found())


# What fails ---------------------------------------------------------------------------------


def test_what_ended_a_run_is_noted_until_it_is_begun_again(laboratory: Laboratory) -> None:
    lengthen(laboratory, "tiny-open")
    with pytest.raises(SentenceTooLongError) as caught:
        train_all([plan(laboratory, variants=["charlstm"])], runs_dir=RUNS)
    note = read_failed(FIRST)
    assert (note.message, note.traceback) == (str(caught.value), None)
    assert found().state == "failed"
    log = (FIRST / "log.txt").read_text(encoding="utf-8")
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ FAILED: .*\n", log)
    assert note.message in log

    with attempt_noted(FIRST):
        assert read_failed(FIRST) is None
    assert read_failed(FIRST) is None


def test_a_defect_of_the_program_is_noted_with_its_traceback(laboratory: Laboratory) -> None:
    bad = odd(Odd, laboratory, variants=["charlstm"])
    with pytest.raises(ZeroDivisionError):
        train_all([bad], runs_dir=RUNS, jobs=1)
    note = read_failed(FIRST)
    assert note.message == "a defect of the program: ZeroDivisionError: train"
    assert note.traceback is not None
    for text in (note.traceback, (FIRST / "log.txt").read_text(encoding="utf-8")):
        assert "in examples\n" in text


def test_a_note_that_cannot_be_written_hides_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("spmrl_bench.experiments.run_notes.write_text", full)
    monkeypatch.setattr("spmrl_bench.notes.write_text", full)
    monkeypatch.setattr("spmrl_bench.training.report.append", full)
    with pytest.raises(TrainingError, match="diverged"), attempt_noted(FIRST):
        raise TrainingError("diverged")
    with pytest.raises(CheckpointError, match=r"\.cancel: cannot be written: No space.* Make room"):
        ask_cancel(FIRST)


def test_a_message_may_hold_what_no_file_can(laboratory: Laboratory) -> None:
    with pytest.raises(SpmrlError), attempt_noted(FIRST):
        raise SpmrlError("caf\udce9.mrg")
    assert found().message == "caf\\udce9.mrg"


@pytest.mark.usefixtures("trained")
def test_a_fresh_start_discards_the_log(laboratory: Laboratory) -> None:
    log = FIRST / "log.txt"
    log.write_text("of earlier\n", encoding="utf-8")
    train_run(first_run(laboratory), "once", "using tiny-open", device="cpu")
    lines = log.read_text(encoding="utf-8").splitlines()
    assert "using tiny-open: 40 training, 8 dev sentences" in lines[0]
    assert " epoch " in lines[1]
    assert ": best dev F1 " in lines[-1]
