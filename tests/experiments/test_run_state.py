"""What the files of a run say of it: its state, how far it is, and what of them is broken."""

from __future__ import annotations

import datetime
import json
import os
import time
from pathlib import Path
from typing import Any

import pytest

from spmrl_bench.errors import SpmrlError
from spmrl_bench.experiments import run_state
from spmrl_bench.experiments.run_events import Event, minutes_left
from spmrl_bench.experiments.run_folder import recording_failure, run_lock
from spmrl_bench.experiments.run_search import find_runs, run_named, states
from spmrl_bench.experiments.run_state import RunState, state_of
from spmrl_bench.storage.living import this_machine
from spmrl_bench.storage.locks import SILENCE

RUN = Path("runs/bank/small-charlstm-seed1")
NOW = datetime.datetime(2026, 1, 1, 12, tzinfo=datetime.UTC)
EVALUATION = {
    "event": "evaluation",
    "epoch": 2.5,
    "dev": 80.0,
    "best_dev": 81.25,
    "tokens_per_second": 1000.5,
    "train_seconds": 250.0,
    "dev_seconds": 50.0,
}


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def begin(folder: Path = RUN, **train: Any) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    settings = {"recipe": "x", "train": {"max_epochs": 10, **train}}
    (folder / "run.json").write_text(json.dumps(settings), encoding="utf-8")


def log(*events: dict[str, Any], folder: Path = RUN) -> None:
    with (folder / "events.jsonl").open("a", encoding="utf-8") as file:
        for event in events:
            file.write(json.dumps({"time": NOW.isoformat(), **event}) + "\n")


def save(folder: Path = RUN, **progress: Any) -> None:
    (folder / "last").mkdir()
    (folder / "last" / "progress.json").write_text(json.dumps(progress), encoding="utf-8")


def found(folder: Path = RUN) -> RunState:
    state = state_of(folder)
    assert state is not None
    return state


def leave_a_lock(**values: Any) -> Path:
    """The lock of a process that has not removed it."""
    lock = RUN.with_name(f".{RUN.name}.lock")
    with run_lock(RUN):
        text = lock.read_text(encoding="utf-8")
    lock.write_text(json.dumps(json.loads(text) | values), encoding="utf-8")
    return lock


def test_nothing_is_no_run() -> None:
    assert state_of(RUN) is None
    RUN.mkdir(parents=True)
    assert state_of(RUN) is None
    assert state_of(RUN.parent) is None


def test_a_run_is_running_while_a_process_owns_it() -> None:
    begin()
    log({"event": "start"}, EVALUATION)
    with run_lock(RUN):
        running = found()
    assert (running.state, running.where) == ("running", this_machine().split()[0])
    assert (running.epoch, running.max_epochs) == (2.5, 10)
    assert (running.dev, running.tokens_per_second) == (81.25, 1000.5)
    assert running.minutes_left is not None
    assert 14 < running.minutes_left <= 15  # 2 minutes an epoch, as of just now
    idle = found()
    assert (idle.state, idle.since, idle.minutes_left) == ("interrupted", NOW, None)


@pytest.mark.parametrize(("silent", "state"), [(-60, "running"), (60, "interrupted")])
def test_an_owner_on_another_machine_is_gone_when_it_is_silent(silent: float, state: str) -> None:
    begin()
    then = time.time() - SILENCE - silent
    lock = leave_a_lock(machine="elsewhere boot space")
    os.utime(lock, (then, then))
    for run in (found(), *states(Path("runs"))):
        assert run.state == state
        assert run.where == ("elsewhere" if state == "running" else "")


def test_who_died_left_the_lock() -> None:
    begin()
    leave_a_lock(birth="0")
    assert (found().state, found().message) == ("interrupted", "its process died")


def test_a_run_is_done_when_its_log_or_its_checkpoint_says_so() -> None:
    begin()
    log({"event": "start"}, EVALUATION, {"event": "stop"})
    assert found().state == "interrupted"  # its checkpoint was deleted: training begins anew
    save(stopped_by="max_epochs")
    done = found()
    assert (done.state, done.since, done.dev, done.epoch) == ("done", NOW, 81.25, 2.5)
    log({"event": "start"}, {"event": "resume"})  # it goes on with more minutes
    assert found().state == "done"
    (RUN / "last" / "progress.json").write_text("{}", encoding="utf-8")
    assert found().state == "interrupted"


def test_a_done_run_needs_no_look_into_its_checkpoint(monkeypatch: pytest.MonkeyPatch) -> None:
    begin()
    save(stopped_by="max_epochs")
    log(EVALUATION, {"event": "stop"})

    def refuse(folder: Path) -> None:
        raise AssertionError(folder)

    monkeypatch.setattr(run_state, "read_progress", refuse)
    assert found().state == "done"
    log({"event": "resume"})
    with pytest.raises(AssertionError):
        found()


def test_logs_of_earlier_versions_lack_the_best_score() -> None:
    begin()
    log({key: value for key, value in EVALUATION.items() if key != "best_dev"}, {"event": "stop"})
    save(stopped_by="max_epochs", best_score=70.5, epoch=10)
    assert (found().state, found().dev, found().epoch) == ("done", 70.5, 2.5)


def test_only_the_end_of_a_long_log_is_read() -> None:
    begin()
    log({"event": "nonsense", "epoch": "none"})
    log(*[EVALUATION] * 200, EVALUATION | {"epoch": 7.0}, {"event": "interrupt"})
    with (RUN / "events.jsonl").open("a") as file:
        file.write('{"event": "eval')  # it is being written
    assert (found().epoch, found().broken) == (7.0, "")
    (RUN / "events.jsonl").unlink()
    log(EVALUATION, {"event": "start", "settings": "x" * 20_000}, {"event": "resume"})
    assert (found().epoch, found().since, found().broken) == (None, NOW, "")


def fail() -> None:
    """An attempt to train fails."""
    with pytest.raises(SpmrlError), recording_failure(RUN):
        raise SpmrlError("no such tree")


def test_failed() -> None:
    fail()
    failed = found()
    assert (failed.state, failed.message) == ("failed", "no such tree")
    assert failed.where == this_machine().split()[0]
    with run_lock(RUN):
        assert found().state == "running"
    begin()
    save(stopped_by="max_epochs")
    again = found()
    assert (again.state, again.where) == ("done", "")
    assert again.message == "begun again, it failed: no such tree"
    with pytest.raises(ZeroDivisionError), recording_failure(RUN):
        raise ZeroDivisionError("a \ud800 defect")
    assert "a defect of the program: ZeroDivisionError: a \\ud800 defect" in found().message
    with recording_failure(RUN):
        assert found().message == ""


def test_a_parser_of_somebody_else() -> None:
    begin()
    (RUN / "run.json").write_text('{"system": "udpipe", "minutes": 10.0}', encoding="utf-8")
    with run_lock(RUN):
        left = found().minutes_left
        assert left is not None
        assert 9 < left <= 10
    assert found().state == "interrupted"
    (RUN / "trained.json").write_text("{}", encoding="utf-8")
    assert (found().state, found().epoch, found().broken) == ("done", None, "")
    assert found().since is not None


@pytest.mark.parametrize(
    ("name", "state"),
    [
        ("run.json", "done"),
        ("events.jsonl", "done"),
        ("failed.json", "failed"),
        ("last/progress.json", "interrupted"),
        ("../.small-charlstm-seed1.lock", "running"),
    ],
)
@pytest.mark.parametrize("content", [b"{\n", b"[]\n", b"\xff\n"])
def test_a_broken_file_is_named_and_stops_no_listing(name: str, state: str, content: bytes) -> None:
    other = RUN.with_name("other")
    for folder in (RUN, other):
        begin(folder)
        save(folder, stopped_by=None if state in ("interrupted", "failed") else "max_epochs")
        log(EVALUATION, folder=folder)
    whole = found(other)
    (RUN / name).write_bytes(content)
    same, broken = states(Path("runs"))
    assert (same, same.broken) == (whole, "")
    assert broken.state == state
    if state != "running":  # of a lock that is not whole the age counts
        assert Path(name).name in broken.broken


def test_what_cannot_be_entered_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    begin()

    def refuse(folder: Path) -> list[str]:
        raise PermissionError(13, "Permission denied", str(folder))

    monkeypatch.setattr(os, "listdir", refuse)
    assert found().broken == f"{RUN}: cannot be read: Permission denied"


def test_the_time_left_is_that_of_the_epochs_and_minutes() -> None:
    def left(
        seconds: float = 0, epochs: int | None = 10, minutes: float | None = None, **changes: Any
    ) -> float | None:
        event = Event.model_validate({"time": NOW, **EVALUATION, **changes})
        now = NOW + datetime.timedelta(seconds=seconds)
        return minutes_left(event, NOW - datetime.timedelta(hours=1), now, epochs, minutes)

    assert left() == 15  # 300 seconds for 2.5 epochs, of 10
    assert left(seconds=120) == 13
    assert left(seconds=1e6) == 0
    assert left(minutes=8) == 3  # of which 5 are over
    assert left(minutes=100) == 15
    assert left(epochs=None) is None
    assert left(epoch=0.0) is None
    begun = NOW - datetime.timedelta(minutes=1)
    assert minutes_left(None, begun, NOW, 10, 5) == 4
    assert minutes_left(None, begun, NOW, 10, None) is None


def test_runs_are_found_through_no_links() -> None:
    begin()
    begin(RUN / "inside")  # of a run
    begin(Path("runs/.hidden/run"))
    failed = Path("runs/deep/down/failed")
    with pytest.raises(SpmrlError), recording_failure(failed):
        raise SpmrlError("no")
    leave_a_lock()
    (RUN.parent / "link").symlink_to(RUN.absolute(), target_is_directory=True)
    (RUN.parent / ".lock").touch()
    paths = [run.folder for run in find_runs(Path("runs"))]
    assert paths == [RUN, failed]
    assert [run.folder for run in find_runs(RUN)] == [RUN]
    with pytest.raises(SpmrlError, match="nowhere: no such folder; expected a run or a folder"):
        find_runs(Path("nowhere"))


def test_a_run_has_two_names() -> None:
    begin()
    for name in (str(RUN), "bank/small-charlstm-seed1", str(RUN.absolute())):
        assert run_named(name, Path("runs")).folder.absolute() == RUN.absolute()
    for name in ("bank/small-charlstm-seed2", "bank", "."):
        with pytest.raises(SpmrlError, match=r"unknown run .* Known: bank/small-charlstm-seed1\."):
            run_named(name, Path("runs"))
    for number in range(30):
        begin(Path(f"runs/bank/run{number}"))
    with pytest.raises(SpmrlError, match=r"Did you mean bank/run7.* lists all 31"):
        run_named("run7", Path("runs"))
