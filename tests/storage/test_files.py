"""Atomic writing: whatever step fails, the old version or the new one is there, whole."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from spmrl_bench.storage import files
from spmrl_bench.storage.files import (
    append,
    create,
    last_complete_version,
    read_folder,
    remove_folder,
    remove_orphans,
    write_folder,
    write_new,
    write_text,
)
from tests.reliability.faults import calls_under, counted, fail_at, hidden, killed
from tests.reliability.tally import Tally


def fill_with(version: str) -> Callable[[Path], None]:
    def fill(folder: Path) -> None:
        write_new(folder / "a", [f"{version} a".encode()])
        (folder / "deeper").mkdir()
        (folder / "deeper" / "b").write_text(f"{version} b", encoding="utf-8")

    return fill


def content(folder: Path | None) -> dict[str, str]:
    return {
        path.name: path.read_text(encoding="utf-8")
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


OLD, NEW = {"a": "old a", "b": "old b"}, {"a": "new a", "b": "new b"}
ERRORS = (errno.ENOSPC, errno.EIO, errno.EACCES)


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_folder_is_written_and_replaced(tmp_path: Path) -> None:
    target = tmp_path / "runs" / "last"
    write_folder(target, fill_with("old"))
    assert content(target) == OLD
    write_folder(target, fill_with("new"))
    assert content(target) == NEW
    assert names(target.parent) == ["last"]


@pytest.mark.parametrize("first", [True, False], ids=["first", "replaced"])
def test_a_kill_at_any_call_leaves_the_old_folder_or_the_new(
    tmp_path: Path, tally: Tally, first: bool
) -> None:
    held = tally("R14", "kill points of writing a folder")

    def write(target: Path) -> Callable[[], None]:
        if not first:
            write_folder(target, fill_with("old"))
        return partial(write_folder, target, fill_with("new"))

    calls = counted(tmp_path, write(tmp_path / "count" / "last"))
    found = []
    for step in range(len(calls)):
        held.add()
        target = tmp_path / str(step) / "last"
        assert killed(tmp_path, step, write(target)), calls[step]
        place = last_complete_version(target)  # read before anything is cleared up
        found.append({} if place is None else content(place))
        remove_orphans(target.parent)
        assert ({} if last_complete_version(target) is None else content(target)) == found[-1], (
            calls[step]
        )
        assert hidden(tmp_path) == []
        write_folder(target, fill_with("newer"))
        assert content(target) == {"a": "newer a", "b": "newer b"}
        assert names(target.parent) == ["last"]
    before = {} if first else OLD
    assert found == sorted(found, key=lambda each: each == NEW)  # never old after new
    assert (found[0], found[-1]) == (before, NEW)
    assert all(each in (before, NEW) for each in found)


def test_kills_one_after_the_other_still_leave_a_version(tmp_path: Path, tally: Tally) -> None:
    """The second process finds what the first has left behind, and is killed too."""
    held = tally("R14", "kill points of writing a folder after a kill")
    write_folder(tmp_path / "count" / "last", fill_with("old"))
    work = partial(write_folder, tmp_path / "count" / "last", fill_with("new"))
    calls = counted(tmp_path, work)
    moves = [step for step, call in enumerate(calls) if call.startswith("rename")]
    assert len(moves) == 2  # at the second the old one is aside, the new one not in place
    for step in range(len(calls) + 20):  # clearing up takes calls too
        held.add()
        target = tmp_path / str(step) / "last"
        write_folder(target, fill_with("old"))
        work = partial(write_folder, target, fill_with("new"))
        assert killed(tmp_path, moves[1], work)
        assert not target.exists()
        assert content(last_complete_version(target)) == OLD
        killed(tmp_path, step, work)
        assert content(last_complete_version(target)) in (OLD, NEW)
        remove_orphans(target.parent)
        assert names(target.parent) == ["last"]


@pytest.mark.parametrize("error", ERRORS, ids=[errno.errorcode[error] for error in ERRORS])
def test_a_failure_of_any_call_is_raised_and_keeps_a_version(
    tmp_path: Path, tally: Tally, error: int
) -> None:
    held = tally("R19", "failed calls of writing a folder")
    target = tmp_path / "count" / "last"
    write_folder(target, fill_with("old"))
    for step in range(len(counted(tmp_path, partial(write_folder, target, fill_with("new"))))):
        held.add()
        target = tmp_path / str(step) / "last"
        write_folder(target, fill_with("old"))
        with calls_under(tmp_path, fail_at(step, error)) as calls:
            raised = None
            try:
                write_folder(target, fill_with("new"))
            except OSError as failure:
                raised = failure
        if raised is None:  # what was moved aside could not be removed, which harms nothing
            assert calls[step].partition(".old")[1], calls[step]
        else:
            assert raised.errno == error
        assert content(target) in ((NEW,) if raised is None else (OLD, NEW)), calls[step]
        assert all(".old" in name for name in hidden(target.parent))


@pytest.mark.parametrize("error", ERRORS, ids=[errno.errorcode[error] for error in ERRORS])
def test_a_failure_of_any_call_leaves_the_old_text_or_the_new(
    tmp_path: Path, tally: Tally, error: int
) -> None:
    held = tally("R19", "failed calls of writing a file")
    path = tmp_path / "a.json"
    calls = counted(tmp_path, lambda: write_text(path, "old"))
    assert [call.split()[0] for call in calls] == [
        *("open", "write", "fsync", "close", "replace"),
        *("open", "fsync", "close"),  # of the folder
    ]
    for step in range(len(calls)):
        held.add()
        write_text(path, "old")
        with calls_under(tmp_path, fail_at(step, error)), pytest.raises(OSError, match="the disk"):
            write_text(path, "new")
        assert path.read_text(encoding="utf-8") == ("old" if step < 5 else "new")
        assert names(tmp_path) == ["a.json"]


def test_a_kill_at_any_call_leaves_the_old_text_or_the_new(tmp_path: Path, tally: Tally) -> None:
    held = tally("R14", "kill points of writing a file")
    path = tmp_path / "a.json"
    calls = counted(tmp_path, lambda: write_text(path, "old"))
    for step in range(len(calls)):
        held.add()
        write_text(path, "old")
        assert killed(tmp_path, step, lambda: write_text(path, "new"))
        assert path.read_text(encoding="utf-8") == ("old" if step < 5 else "new")
        remove_orphans(tmp_path)
        assert names(tmp_path) == ["a.json"]


def test_what_cannot_be_appended_leaves_no_half_line(tmp_path: Path, tally: Tally) -> None:
    held = tally("R19", "failed calls of appending a line")
    path = tmp_path / "log" / "events.jsonl"
    append(path, b"one\n")
    for step in range(len(counted(tmp_path, lambda: append(path, b"two\n")))):
        held.add()
        path.write_bytes(b"one\n")
        with (
            calls_under(tmp_path, fail_at(step, errno.ENOSPC)) as calls,
            pytest.raises(OSError, match="the disk"),
        ):
            append(path, b"two\n")
        whole = b"one\ntwo\n" if calls[step].startswith("close") else b"one\n"
        assert path.read_bytes() == whole, calls[step]


def test_an_error_while_filling_leaves_the_old_folder(tmp_path: Path) -> None:
    target = tmp_path / "last"
    write_folder(target, fill_with("old"))

    def fail(folder: Path) -> None:
        (folder / "a").write_text("half", encoding="utf-8")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_folder(target, fail)
    assert content(target) == OLD
    assert names(tmp_path) == ["last"]


def test_two_that_write_one_folder_do_not_meet(tmp_path: Path) -> None:
    """The other writes while this one fills its version, and once more between its two moves."""
    target = tmp_path / "last"
    write_folder(target, fill_with("old"))
    rename, renamed = os.rename, []

    def fill(folder: Path) -> None:
        write_folder(target, fill_with("other"))
        fill_with("new")(folder)

    def move(source: Path, place: Path) -> None:
        rename(source, place)
        if source == target and not renamed:
            renamed.append(place)
            write_folder(target, fill_with("another"))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("spmrl_bench.storage.files.os.rename", move)
        write_folder(target, fill)
    assert content(target) == NEW
    assert names(tmp_path) == ["last"]


def test_the_work_of_a_living_process_and_files_of_others_are_left_alone(tmp_path: Path) -> None:
    mine = files._hidden(tmp_path / "last", "new")
    far = tmp_path / ".last.0badf00d-1-1-00000000.new"
    for place in (mine, far, tmp_path / ".config.old", tmp_path / ".git.new"):
        place.mkdir()
    kept = names(tmp_path)
    remove_orphans(tmp_path)
    assert names(tmp_path) == kept
    os.utime(far, (0, 0))  # another machine's, and long ago
    remove_orphans(tmp_path)
    assert names(tmp_path) == [name for name in kept if name != far.name]


def test_what_an_earlier_version_moved_aside_is_found_and_replaced(tmp_path: Path) -> None:
    target = tmp_path / "last"
    write_folder(target, fill_with("old"))
    target.rename(tmp_path / ".last.old")
    (tmp_path / ".last.new").mkdir()
    assert content(last_complete_version(target)) == OLD
    write_folder(target, fill_with("new"))
    assert content(target) == NEW
    assert names(tmp_path) == ["last"]


def test_reading_begins_anew_when_the_folder_was_replaced(tmp_path: Path) -> None:
    target = tmp_path / "last"
    write_folder(target, fill_with("old"))
    times = []

    def read(folder: Path) -> tuple[str, str]:
        first = (folder / "a").read_text(encoding="utf-8")
        if not times:
            write_folder(target, fill_with("new"))
        times.append(first)
        return first, (folder / "deeper" / "b").read_text(encoding="utf-8")

    assert read_folder(target, read) == ("new a", "new b")
    assert times == ["old a", "new a"]


def test_where_there_has_never_been_a_folder_there_is_none(tmp_path: Path) -> None:
    assert last_complete_version(tmp_path / "gone" / "last") is None
    remove_orphans(tmp_path / "gone")
    remove_folder(tmp_path / "gone")
    with pytest.raises(FileNotFoundError):
        read_folder(tmp_path / "last", lambda folder: (folder / "a").read_text())
    assert names(tmp_path) == []


def test_a_folder_is_discarded_at_once_or_not_at_all(tmp_path: Path, tally: Tally) -> None:
    held = tally("R14", "kill points of discarding a folder")
    write_folder(tmp_path / "count" / "run", fill_with("old"))
    calls = counted(tmp_path, lambda: remove_folder(tmp_path / "count" / "run"))
    for step in range(len(calls)):
        held.add()
        target = tmp_path / str(step) / "run"
        write_folder(target, fill_with("old"))
        assert killed(tmp_path, step, partial(remove_folder, target))
        assert not target.exists() or content(target) == OLD
        remove_orphans(target.parent)
        assert hidden(tmp_path) == []


def test_a_file_is_created_whole_by_one_process(tmp_path: Path, tally: Tally) -> None:
    held = tally("R14", "kill points of creating a file")
    create(tmp_path / "count", b"mine")
    with pytest.raises(FileExistsError):
        create(tmp_path / "count", b"another's")
    assert (tmp_path / "count").read_bytes() == b"mine"
    (tmp_path / "count").unlink()
    for step in range(len(counted(tmp_path, lambda: create(tmp_path / "count", b"mine")))):
        held.add()
        path = tmp_path / str(step)
        assert killed(tmp_path, step, partial(create, path, b"mine"))
        assert not path.exists() or path.read_bytes() == b"mine"
        remove_orphans(tmp_path)
        assert hidden(tmp_path) == []


def test_a_file_system_without_second_names_has_exclusive_creation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr("spmrl_bench.storage.files.os.link", refuse)
    create(tmp_path / "a", b"mine")
    with pytest.raises(FileExistsError):
        create(tmp_path / "a", b"another's")
    assert names(tmp_path) == ["a"]


def test_text_is_written_with_its_folders_for_all_to_read(tmp_path: Path) -> None:
    path = tmp_path / "results" / "runs" / "a.json"
    write_text(path, "Straße\n")
    assert path.read_bytes() == "Straße\n".encode()
    assert path.stat().st_mode & 0o777 == 0o644
