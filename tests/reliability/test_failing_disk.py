"""A full disk, a disk out of order, a folder that may not be written: nothing earlier is lost."""

from __future__ import annotations

import errno
import os
import shutil
from pathlib import Path

import pytest

from spmrl_bench.experiments.run_folder import run_lock
from spmrl_bench.storage import files
from tests.builders import cli
from tests.laboratory import Laboratory
from tests.reliability.faults import calls_under, counted, fail_at, hidden
from tests.reliability.tally import Tally

ERRORS = (errno.ENOSPC, errno.EIO, errno.EACCES)
RUN = Path("runs/tiny-open/small-charlstm-seed2")


def invoke(*arguments: str) -> tuple[int, str]:
    """A command in this process, which has visited no folder yet; its status and its words."""
    files._first_visit.cache_clear()
    result = cli(*arguments)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.exit_code, result.stderr


def whole(folder: Path) -> dict[str, bytes]:
    """All that nobody else changes in a folder."""
    return {
        str(path): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not any(part.startswith(".") for part in path.parts)
    }


@pytest.mark.parametrize(
    "every", [40, pytest.param(1, marks=pytest.mark.campaign)], ids=["some", "all"]
)
@pytest.mark.parametrize("command", ["train", "eval", "table"])
def test_a_failure_of_any_call_is_one_message_and_loses_nothing(
    laboratory: Laboratory, monkeypatch: pytest.MonkeyPatch, tally: Tally, command: str, every: int
) -> None:
    held = tally("R19", f"failed calls of {command}")
    place = Path().resolve()
    monkeypatch.setenv("SPMRL_BENCH_HOME", str(place / "home"))
    recipe = (str(laboratory.recipe), "--variant", "charlstm")
    arguments = ("results", "table") if command == "table" else (command, *recipe, "--seed", "2")
    kept = ("runs", "results")
    # What was there before: a run, its record, a table.
    assert invoke("train", *recipe)[0] == 0
    assert invoke("eval", *recipe)[0] == 0
    assert invoke("results", "table")[0] == 0
    if command == "eval":
        assert invoke("train", *recipe, "--seed", "2")[0] == 0
    shutil.copytree(place, laboratory.folder / "before")

    def again() -> None:
        for path in place.iterdir():
            shutil.rmtree(path)
        shutil.copytree(laboratory.folder / "before", place, dirs_exist_ok=True)
        if command == "train":
            shutil.rmtree(place / "home")  # the treebank is read anew, and kept

    again()
    calls = counted(place, lambda: invoke(*arguments))
    expected = whole(place)
    assert len(calls) > (30 if command == "train" else 5)
    for number in range(len(calls)):
        for error in ERRORS:
            if (3 * number + ERRORS.index(error)) % every:
                continue
            held.add()
            again()
            before = {folder: whole(Path(folder)) for folder in kept}
            with calls_under(place, fail_at(number, error)) as made:
                status, said = invoke(*arguments)
            if status:
                assert os.strerror(error) in said, (calls[number], said)
                assert str(place) in said or any(f"{folder}/" in said for folder in kept), said
            else:  # nothing that the user wants was harmed
                lost = whole(place).keys() ^ expected.keys()
                assert all("cache" in path or "results" in path for path in lost), made[number]
            for folder, contents in before.items():
                now = whole(Path(folder))
                changed = {path for path in contents if now.get(path) != contents[path]}
                own = ("events.jsonl", "run.json", "/last/", "/best/", "/table.")
                assert all(any(part in path for part in own) for path in changed), made[number]
            # The disk is in order again: the same command does the rest.
            status, said = invoke(*arguments)
            assert status == 0, (made[number], said)
            with run_lock(RUN):
                pass
            # This process lives, so what it could not remove is its own still.
            left = [name for name in hidden(place) if f"-{os.getpid()}-" not in name]
            assert left == [] or "unlink" in made[number], (made[number], left)
