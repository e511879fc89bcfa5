"""What folders of runs show: the state of each, its log, and the room that can be made."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from spmrl_bench.errors import SpmrlError, TrainingError
from spmrl_bench.experiments.run_folder import (
    RunState,
    clean_runs,
    find_runs,
    recording_failure,
    run_lock,
    state_of,
)
from spmrl_bench.parsing.models import load_parser
from spmrl_bench.storage.living import this_machine
from tests.builders import cli, refused
from tests.experiments.conftest import FIRST, FOLDERS, RUNS, change, evaluate, everything, train
from tests.laboratory import Laboratory

RUN = Path("runs/bank/small-charlstm-seed1")


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if "laboratory" not in os.getcwd():
        monkeypatch.chdir(tmp_path)


def begin(folder: Path = RUN, **progress: Any) -> None:
    """A run with settings and, where something is known of it, a checkpoint."""
    folder.mkdir(parents=True, exist_ok=True)
    settings = {"recipe": "x", "train": {"max_epochs": 10}}
    (folder / "run.json").write_text(json.dumps(settings), encoding="utf-8")
    if progress:
        (folder / "last").mkdir(exist_ok=True)
        (folder / "last" / "progress.json").write_text(json.dumps(progress), encoding="utf-8")


def fail(folder: Path, error: Exception) -> None:
    with pytest.raises(type(error)), recording_failure(folder):
        raise error


def test_the_state_of_a_run_is_what_its_files_say() -> None:
    here = this_machine().split()[0]
    begin()
    assert state_of(RUN) == RunState(RUN, max_epochs=10)
    begin(epoch=2, best_score=81.25)
    idle = state_of(RUN)
    assert (idle.state, idle.epoch, idle.max_epochs, idle.dev) == ("interrupted", 2, 10, 81.25)
    with run_lock(RUN):
        assert state_of(RUN) == RunState(RUN, "running", here, 2, 10, 81.25)
    fail(RUN, TrainingError("diverged"))
    failed = state_of(RUN)
    assert (failed.state, failed.host, failed.message) == ("failed", here, "diverged")
    begin(epoch=10, best_score=81.25, stopped_by="max_epochs")
    done = state_of(RUN)
    assert (done.state, done.message) == ("done", "begun again, it failed: diverged")
    theirs = RUN.with_name("theirs")
    begin(theirs)
    (theirs / "run.json").write_text('{"system": "udpipe", "minutes": 10.0}', encoding="utf-8")
    assert state_of(theirs).state == "interrupted"
    (theirs / "trained.json").write_text("{}", encoding="utf-8")
    assert (state_of(theirs).state, state_of(theirs).broken) == ("done", "")


def test_who_died_left_the_lock() -> None:
    begin()
    lock = RUN.with_name(f".{RUN.name}.lock")
    with run_lock(RUN):
        owner = json.loads(lock.read_text(encoding="utf-8"))
    lock.write_text(json.dumps(owner | {"birth": "0"}), encoding="utf-8")
    assert (state_of(RUN).state, state_of(RUN).message) == ("interrupted", "its process died")


def test_a_broken_file_is_named_and_stops_no_listing() -> None:
    for name, state in (
        ("run.json", "done"),
        ("last/progress.json", "failed"),
        ("failed.json", "failed"),
        ("../.small-charlstm-seed1.lock", "running"),
    ):
        for content in (b"{\n", b"[]\n", b"\xff\n"):
            begin(stopped_by="max_epochs" if state == "done" else None)
            fail(RUN, TrainingError("no"))
            (RUN / name).write_bytes(content)
            found = state_of(RUN)
            assert found.state == state, (name, content)
            if state != "running":  # of a lock that is not whole the age counts
                assert Path(name).name in found.broken, (name, content)
                assert f"BROKEN: {found.broken[:20]}" in cli("runs", "list").stdout
            (RUN / name).unlink()


def test_runs_are_found_through_no_links() -> None:
    begin()
    begin(RUN / "inside")  # of a run
    begin(Path("runs/.hidden/run"))
    fail(Path("runs/deep/down/failed"), SpmrlError("no"))
    (RUN.parent / "link").symlink_to(RUN.absolute(), target_is_directory=True)
    assert find_runs(Path("runs")) == [RUN, Path("runs/deep/down/failed")]
    assert find_runs(RUN) == [RUN]
    with pytest.raises(SpmrlError, match="nowhere: no such folder; expected a run or a folder"):
        find_runs(Path("nowhere"))


def test_a_listing_has_a_row_or_an_object_for_each_run() -> None:
    begin(Path("runs/bank/three"), epoch=4, best_score=81.25, stopped_by="stop_patience")
    fail(Path("runs/bank/two"), SpmrlError("no tree\nin line 7"))

    def rows(*options: str) -> list[list[str]]:
        result = cli("runs", "list", *options)
        assert (result.exit_code, result.stderr) == (0, "")
        return [line.split() for line in result.stdout.splitlines()[2:-1]]

    done, failed = rows()
    assert done == ["bank/three", "done", "4/10", "81.25"]
    assert failed == [
        "bank/two",
        "failed",
        this_machine().split()[0],
        *["no", "tree", "in", "line", "7"],
    ]
    assert cli("runs", "list").stdout.splitlines()[-1] == "2 runs: 1 failed, 1 done"
    done, failed = map(json.loads, cli("runs", "list", "--json").stdout.splitlines())
    assert (done["run"], done["folder"], done["dev"]) == ("bank/three", "runs/bank/three", 81.25)
    assert failed["message"] == "no tree\nin line 7"

    assert [row[0] for row in rows("--state", "failed", "--state", "running")] == ["bank/two"]
    assert cli("runs", "list", "--state", "running").stdout == "0 runs\n"
    for options in (["bank/two", "bank/three"], ["runs/bank/two", "runs/bank/three", "bank/two"]):
        assert sorted(row[0] for row in rows(*options)) == ["bank/three", "bank/two"]
    assert len(rows("runs/bank")) == len(rows("bank")) == 2
    assert [row[0] for row in rows("--runs", "runs/bank", "--state", "done")] == ["three"]
    for wrong, message in (
        (("--state", "asleep"), "unknown state 'asleep'"),
        (("bank/four",), "unknown run 'bank/four'"),
        (("--runs", "nowhere"), "nowhere: no such folder"),
    ):
        assert message in refused("runs", "list", *wrong)


def test_the_log_of_a_run() -> None:
    begin()
    for name in ("log.txt", "train.log"):  # the second of a parser of somebody else
        (RUN / name).write_bytes("Elfen\nÄpfel\n".encode() * 1000 + b"\xff")
        assert cli("runs", "log", str(RUN)).stdout == "Elfen\nÄpfel\n" * 1000 + "\ufffd"
        (RUN / name).unlink()
    assert f"{RUN}: has no log: nothing was said there" in refused("runs", "log", RUN)


def test_only_checkpoints_go_and_the_runs_are_finished_and_scored_as_before(
    trained: Laboratory, capfd: pytest.CaptureFixture[str]
) -> None:
    before = everything()
    gone = {
        path: len(data)
        for path, data in before.items()
        if path.parent.name == "last" and path.name != "progress.json"
    }
    assert len(gone) == 6
    dry = cli("runs", "clean", "--dry-run")
    assert everything() == before
    one = cli("runs", "clean", str(FIRST))
    assert one.stdout.splitlines()[-1].endswith("freed in 1 run, 0 runs kept")
    result = cli("runs", "clean")
    assert (result.exit_code, result.stderr) == (0, "")
    assert everything() == {path: data for path, data in before.items() if path not in gone}
    freed = f"{sum(gone.values()) / 1e6:.1f} MB"
    assert dry.stdout.splitlines()[-1] == f"{freed} would be freed in 2 runs, 0 runs kept"
    assert cli("runs", "clean").stdout == "0.0 MB freed in 0 runs, 0 runs kept\n"
    capfd.readouterr()
    train(trained)
    assert capfd.readouterr().err.count("already trained") == 2
    assert len(evaluate(trained)) == 2
    assert next(load_parser(FIRST, "cpu").parse([["the", "dog"]])).words == ("the", "dog")


def test_what_can_go_on_is_broken_or_in_use_is_kept(trained: Laboratory) -> None:
    theirs = RUNS / "bank" / "theirs"
    theirs.mkdir(parents=True)
    for name in ("run.json", "trained.json"):
        (theirs / name).write_text("{}")

    def kept(folder: Path, reason: str) -> None:
        before = everything()
        for dry_run in (True, False):
            (answer,) = clean_runs(folder, dry_run=dry_run)
            assert answer.freed == 0
            assert reason in answer.kept
        assert everything() == before

    kept(theirs, "somebody else")
    with run_lock(FIRST):
        kept(FIRST, "has been training here since")
    change(FIRST, stopped_by=None)
    kept(FIRST, "training has not ended")
    change(FIRST, stopped_by="max_minutes")
    kept(FIRST, "its time was over; with more --minutes it goes on")
    (FIRST / "last" / "progress.json").write_text("{")
    kept(FIRST, "incomplete checkpoint")
    shutil.rmtree(FOLDERS[1] / "best")
    kept(FOLDERS[1], "it has no whole parser in best/")
    said = cli("runs", "clean").stdout.splitlines()
    assert f"{FOLDERS[1]}: kept, it has no whole parser in best/" in said
    assert said[-1].endswith("freed in 0 runs, 3 runs kept")
