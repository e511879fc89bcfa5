"""Cleaning drops what finished runs need no more, and nothing else."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from spmrl_bench import load_parser
from spmrl_bench.errors import CheckpointError, SpmrlError
from spmrl_bench.experiments import clean
from spmrl_bench.experiments.clean import Cleaned, clean_runs, run_folders
from spmrl_bench.experiments.run_folder import final_progress as state_of
from spmrl_bench.experiments.run_folder import run_lock
from tests.builders import cli
from tests.experiments.running import FIRST, FOLDERS, RUNS, evaluate, train
from tests.laboratory import Laboratory

pytestmark = pytest.mark.usefixtures("trained")


def files() -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in RUNS.rglob("*") if path.is_file()}


def change(folder: Path, **values: object) -> None:
    path = folder / "last" / "progress.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | values))


def test_only_the_checkpoints_go_and_their_size_is_said() -> None:
    before = files()
    gone = {
        name: len(data)
        for name, data in before.items()
        if "/last/" in name and not name.endswith("progress.json")
    }
    assert len(gone) == 6
    result = cli("runs", "clean")
    assert (result.exit_code, result.stderr) == (0, "")
    assert files() == {name: data for name, data in before.items() if name not in gone}
    freed = sum(gone.values())
    assert result.stdout.splitlines()[-1] == f"{freed / 1e6:.1f} MB freed in 2 runs, 0 runs kept"
    assert cli("runs", "clean").stdout == "0.0 MB freed in 0 runs, 0 runs kept\n"


def test_a_cleaned_run_is_finished_and_scored_as_before(
    trained: Laboratory, capfd: pytest.CaptureFixture[str]
) -> None:
    cli("runs", "clean")
    before = files()
    train(trained)
    assert capfd.readouterr().err.count("already trained") == 2
    assert files() == before
    assert len(evaluate(trained)) == 2
    assert next(load_parser(FIRST, "cpu").parse([["the", "dog"]])).words == ("the", "dog")


def test_a_dry_run_says_the_same_and_changes_nothing() -> None:
    before, names = files(), sorted(RUNS.rglob("*"))
    said = cli("runs", "clean", "--dry-run")
    assert (files(), sorted(RUNS.rglob("*"))) == (before, names)
    assert said.stdout.replace("would be freed", "freed") == cli("runs", "clean").stdout


def test_what_can_go_on_is_kept() -> None:
    change(FOLDERS[0], stopped_by=None)
    change(FOLDERS[1], stopped_by="max_minutes")
    before = files()
    for options in ((), ("--dry-run",)):
        lines = cli("runs", "clean", *options).stdout.splitlines()
        assert lines[0] == f"{FOLDERS[0]}: kept, training has not ended"
        assert lines[1].startswith(f"{FOLDERS[1]}: kept, its time was over; with more --minutes")
        assert lines[2].endswith("in 0 runs, 2 runs kept")
    assert files() == before


def test_what_is_broken_is_kept() -> None:
    (FOLDERS[0] / "last" / "progress.json").write_text("{")
    shutil.rmtree(FOLDERS[1] / "best")
    before = files()
    one, other = clean_runs(RUNS)
    assert "incomplete checkpoint" in one.kept
    assert other.kept == "it has no whole parser in best/"
    assert files() == before


def test_what_another_process_owns_is_kept() -> None:
    before = files()
    with run_lock(FIRST):
        for dry_run in (True, False):
            (answer,) = clean_runs(FIRST, dry_run=dry_run)
            assert answer.freed == 0
            assert "has been training here since" in answer.kept
        for name, data in before.items():
            assert Path(name).read_bytes() == data
    assert next(clean_runs(FIRST, dry_run=True)).kept == ""


def test_runs_and_folders_of_runs_can_be_named() -> None:
    assert run_folders(RUNS) == sorted(FOLDERS)
    assert run_folders(FIRST) == [FIRST]
    (RUNS / "link").symlink_to(FIRST.absolute(), target_is_directory=True)
    assert run_folders(RUNS) == sorted(FOLDERS)
    assert (
        cli("runs", "clean", str(FIRST))
        .stdout.splitlines()[-1]
        .endswith("freed in 1 run, 0 runs kept")
    )
    assert state_of(FOLDERS[1]) is not None
    assert (FOLDERS[1] / "last" / "weights.safetensors").is_file()
    result = cli("runs", "clean", "nowhere")
    assert (result.exit_code, result.stdout) == (1, "")
    assert "nowhere: no such folder; expected a run or a folder of runs" in result.stderr
    with pytest.raises(SpmrlError, match="no such folder"):
        list(clean_runs(Path("nowhere")))


def test_where_it_cannot_be_written_all_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(clean, "write_folder", full)
    before = files()
    with pytest.raises(CheckpointError, match=r"last: cannot be written: No space.*Make room"):
        list(clean_runs(RUNS))
    assert files() == before
    assert all(isinstance(answer, Cleaned) for answer in clean_runs(RUNS, dry_run=True))


def test_a_parser_of_somebody_else_stays_as_it_is(tmp_path: Path) -> None:
    folder = tmp_path / "others" / "treebank" / "theirs"
    folder.mkdir(parents=True)
    for name in ("run.json", "trained.json", "model"):
        (folder / name).write_text("{}")
    (answer,) = clean_runs(tmp_path / "others")
    assert (answer.freed, len(list(folder.iterdir()))) == (0, 3)
    assert "somebody else" in answer.kept
