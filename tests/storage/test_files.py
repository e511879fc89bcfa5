"""Atomic writing: whatever step fails, the old version or the new one is there, whole."""

from __future__ import annotations

import errno
import os
import shutil
from functools import partial
from pathlib import Path

import pytest

from spmrl_bench.storage import files
from spmrl_bench.storage.digests import file_digest
from spmrl_bench.storage.files import (
    append,
    create,
    last_complete_version,
    open_unpacked,
    read_folder,
    remove_folder,
    remove_orphans,
    write_folder,
    write_new,
    write_text,
)
from spmrl_bench.storage.tensors import read_tensors
from tests.reliability.faults import calls_under, counted, fail_at, hidden, killed
from tests.reliability.tally import Tally


def content(place: Path | None) -> dict[str, str] | str:
    """What a folder or a file holds; nothing where there is none."""
    if place is not None and place.is_file():
        return place.read_text(encoding="utf-8")
    paths = [] if place is None else [path for path in place.rglob("*") if path.is_file()]
    return {path.name: path.read_text(encoding="utf-8") for path in paths}


def write_a_folder(target: Path, version: str = "new") -> None:
    def fill(folder: Path) -> None:
        write_new(folder / "a", f"{version} a".encode())
        (folder / "deeper").mkdir()
        (folder / "deeper" / "b").write_text(f"{version} b", encoding="utf-8")

    write_folder(target, fill)


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


OLD, NEW = ({"a": f"{version} a", "b": f"{version} b"} for version in ("old", "new"))
ERRORS = (errno.ENOSPC, errno.EIO, errno.EACCES)
#: What it is called, what is there before, what is done to it, and what is there after.
WAYS = {
    "first": ("writing a folder", None, write_a_folder, NEW),
    "replaced": ("writing a folder", write_a_folder, write_a_folder, NEW),
    "discarded": ("discarding a folder", write_a_folder, remove_folder, {}),
    "text": ("writing a file", write_text, lambda path: write_text(path, "new"), "new"),
    "created": ("creating a file", None, lambda path: create(path, b"mine"), "mine"),
}


@pytest.mark.parametrize("way", WAYS)
def test_a_kill_at_any_call_leaves_the_old_version_or_the_new(
    tmp_path: Path, tally: Tally, way: str
) -> None:
    title, first, work, after = WAYS[way]
    held = tally("R14", f"kill points of {title}")
    target = tmp_path / "runs" / "last"

    def again() -> dict[str, str] | str:
        shutil.rmtree(target.parent, ignore_errors=True)
        target.parent.mkdir()
        if first is not None:
            first(target, "old")
        return content(target)

    before = again()
    calls = counted(tmp_path, partial(work, target))
    assert (content(target), names(target.parent)) == (after, ["last"] if after else [])
    found = []
    for step in range(len(calls)):
        held.add()
        again()
        assert killed(tmp_path, step, partial(work, target)), calls[step]
        found.append(content(last_complete_version(target)))  # before anything is cleared up
        remove_orphans(target.parent)
        assert content(target) == found[-1], calls[step]
        assert hidden(tmp_path) == []
    assert found == sorted(found, key=lambda each: each == after)  # never old after new
    assert (found[0], found[-1]) == (before, after)
    assert all(each in (before, after) for each in found)


def test_kills_one_after_the_other_still_leave_a_version(tmp_path: Path, tally: Tally) -> None:
    """The second process finds what the first has left behind, and is killed too."""
    held = tally("R14", "kill points of writing a folder after a kill")
    target = tmp_path / "count" / "last"
    write_a_folder(target, "old")
    calls = counted(tmp_path, partial(write_a_folder, target))
    moves = [step for step, call in enumerate(calls) if call.startswith("rename")]
    assert len(moves) == 2  # at the second the old one is aside, the new one not in place
    for step in range(0, len(calls) + 20, 2):  # clearing up takes calls too
        held.add()
        target = tmp_path / str(step) / "last"
        write_a_folder(target, "old")
        assert killed(tmp_path, moves[1], partial(write_a_folder, target))
        assert not target.exists()
        assert content(last_complete_version(target)) == OLD
        killed(tmp_path, step, partial(write_a_folder, target))
        assert content(last_complete_version(target)) in (OLD, NEW)
        remove_orphans(target.parent)
        assert names(target.parent) == ["last"]


@pytest.mark.parametrize("error", ERRORS, ids=[errno.errorcode[error] for error in ERRORS])
@pytest.mark.parametrize("way", ["replaced", "text"])
def test_a_failure_of_any_call_is_raised_and_keeps_a_version(
    tmp_path: Path, tally: Tally, way: str, error: int
) -> None:
    title, first, work, after = WAYS[way]
    held = tally("R19", f"failed calls of {title}")
    target = tmp_path / "last"
    first(target, "old")
    before = content(target)
    for step in range(len(counted(tmp_path, partial(work, target)))):
        held.add()
        first(target, "old")
        with calls_under(tmp_path, fail_at(step, error)) as calls:
            raised = None
            try:
                work(target)
            except OSError as failure:
                raised = failure
        if raised is None:  # what was moved aside could not be removed, which harms nothing
            assert ".old" in calls[step]
            assert content(target) == after
        else:
            assert raised.errno == error
            assert content(target) in (before, after), calls[step]
        assert all(".old" in name for name in hidden(tmp_path))
        for left in hidden(tmp_path):
            shutil.rmtree(left, ignore_errors=True)


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


def test_a_failed_line_cuts_none_of_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, write = tmp_path / "log", os.write
    append(path, b"one\n")

    def beside(descriptor: int, data: bytes) -> int:
        if len(data) < 4:  # the second call for it
            with path.open("ab") as other:
                other.write(b"theirs\n")
            raise OSError(errno.ENOSPC, "the disk")
        return write(descriptor, data[:2])

    monkeypatch.setattr(os, "write", beside)
    with pytest.raises(OSError, match="the disk"):
        append(path, b"two\n")
    assert path.read_bytes() == b"one\ntwtheirs\n"


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
    write_a_folder(target, "old")
    target.rename(tmp_path / ".last.old")
    (tmp_path / ".last.new").mkdir()
    assert content(last_complete_version(target)) == OLD
    write_a_folder(target)
    assert (content(target), names(tmp_path)) == (NEW, ["last"])


def test_a_file_of_holes_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.touch()
    os.truncate(path, 1 << 42)
    for read in (file_digest, open_unpacked):
        with pytest.raises(OSError, match=r"a sparse file \(4,398,046,511,104 bytes, of which 0"):
            read(path)


def test_a_path_that_is_not_utf8_is_named_as_the_reason(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="its path is not UTF-8"):
        read_tensors(tmp_path / "\udcff")


def test_reading_begins_anew_when_the_folder_was_replaced(tmp_path: Path) -> None:
    target = tmp_path / "last"
    with pytest.raises(FileNotFoundError):
        read_folder(target, lambda folder: (folder / "a").read_text())
    write_a_folder(target, "old")
    times = []

    def read(folder: Path) -> tuple[str, str]:
        first = (folder / "a").read_text(encoding="utf-8")
        if not times:
            write_a_folder(target)
        times.append(first)
        return first, (folder / "deeper" / "b").read_text(encoding="utf-8")

    assert read_folder(target, read) == ("new a", "new b")
    assert times == ["old a", "new a"]


@pytest.mark.parametrize("links", [True, False], ids=["links", "no second names"])
def test_a_file_is_created_by_one_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, links: bool
) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError(errno.EPERM, "Operation not permitted")

    if not links:
        monkeypatch.setattr("spmrl_bench.storage.files.os.link", refuse)
    create(tmp_path / "a", b"mine")
    with pytest.raises(FileExistsError):
        create(tmp_path / "a", b"another's")
    assert (tmp_path / "a").read_bytes() == b"mine"
    assert names(tmp_path) == ["a"]
