"""Atomic writing: whatever step fails, the old version or the new one is there, whole."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from spmrl_bench.files import recover_folder, write_folder, write_text


class CrashError(BaseException):
    """Stands for a kill: nothing may catch it as an error."""


def crash_at(monkeypatch: pytest.MonkeyPatch, step: int) -> list[str]:
    """Let the system calls of the module fail from the ``step``-th on; returns those made."""
    done: list[str] = []

    def wrapped(name: str, call: Callable[..., object]) -> Callable[..., object]:
        def counted(*args: object, **kwargs: object) -> object:
            if len(done) >= step:
                raise CrashError
            done.append(name)
            return call(*args, **kwargs)

        return counted

    for name in ("replace", "fsync", "fdopen", "chmod"):
        monkeypatch.setattr(f"spmrl_bench.files.os.{name}", wrapped(name, getattr(os, name)))
    monkeypatch.setattr("spmrl_bench.files.shutil.rmtree", wrapped("rmtree", shutil.rmtree))
    return done


def fill_with(version: str) -> Callable[[Path], None]:
    def fill(folder: Path) -> None:
        for name in ("a", "b"):
            (folder / name).write_text(f"{version} {name}", encoding="utf-8")

    return fill


def content(folder: Path) -> dict[str, str]:
    return {path.name: path.read_text(encoding="utf-8") for path in sorted(folder.iterdir())}


OLD, NEW = {"a": "old a", "b": "old b"}, {"a": "new a", "b": "new b"}


def crash(monkeypatch: pytest.MonkeyPatch, step: int, write: Callable[[], None]) -> None:
    with monkeypatch.context() as patch:
        crash_at(patch, step)
        with pytest.raises(CrashError):
            write()


def steps_of(monkeypatch: pytest.MonkeyPatch, write: Callable[[], None]) -> list[str]:
    with monkeypatch.context() as patch:
        done = crash_at(patch, 1000)
        write()
    return done


def test_folder_is_written_and_replaced(tmp_path: Path) -> None:
    target = tmp_path / "runs" / "last"
    write_folder(target, fill_with("old"))
    assert content(target) == OLD
    write_folder(target, fill_with("new"))
    assert content(target) == NEW
    assert [path.name for path in target.parent.iterdir()] == ["last"]


@pytest.mark.parametrize("recovers", [True, False], ids=["recovered", "written over"])
def test_a_crash_at_any_step_leaves_the_old_folder_or_the_new(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, recovers: bool
) -> None:
    write_folder(tmp_path / "count", fill_with("old"))
    steps = steps_of(monkeypatch, lambda: write_folder(tmp_path / "count", fill_with("new")))
    assert steps.count("replace") == 2
    found = []
    for step in range(len(steps)):
        target = tmp_path / str(step) / "last"
        write_folder(target, fill_with("old"))
        crash(monkeypatch, step, partial(write_folder, target, fill_with("new")))
        if recovers:
            recover_folder(target)
            found.append(content(target))
        # What is left over does no harm to the next version, and is cleaned up by it.
        write_folder(target, fill_with("newer"))
        assert content(target) == {"a": "newer a", "b": "newer b"}
        assert [path.name for path in target.parent.iterdir()] == ["last"]
    if recovers:
        assert found == sorted(found, key=lambda each: each == NEW)  # never old after new
        assert found[0] == OLD
        assert found[-1] == NEW


def test_a_second_crash_after_an_unrecovered_one_still_leaves_a_version(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_folder(tmp_path / "count", fill_with("old"))
    steps = steps_of(monkeypatch, lambda: write_folder(tmp_path / "count", fill_with("new")))
    between = steps.index("replace") + 1  # the old folder is aside, the new one not in place
    for step in range(len(steps)):
        target = tmp_path / str(step) / "last"
        write_folder(target, fill_with("old"))
        for moment in (between, step):
            crash(monkeypatch, moment, partial(write_folder, target, fill_with("new")))
        recover_folder(target)
        assert content(target) in (OLD, NEW)


def test_an_error_while_filling_leaves_the_old_folder(tmp_path: Path) -> None:
    target = tmp_path / "last"
    write_folder(target, fill_with("old"))

    def fail(folder: Path) -> None:
        (folder / "a").write_text("half", encoding="utf-8")
        raise CrashError

    with pytest.raises(CrashError):
        write_folder(target, fail)
    assert content(target) == OLD


def test_recovering_where_nothing_happened_changes_nothing(tmp_path: Path) -> None:
    recover_folder(tmp_path / "last")
    assert list(tmp_path.iterdir()) == []
    write_folder(tmp_path / "last", fill_with("old"))
    recover_folder(tmp_path / "last")
    assert content(tmp_path / "last") == OLD


def test_text_is_written_with_its_folders_for_all_to_read(tmp_path: Path) -> None:
    path = tmp_path / "results" / "runs" / "a.json"
    write_text(path, "Straße\n")
    assert path.read_bytes() == "Straße\n".encode()
    assert path.stat().st_mode & 0o777 == 0o644


def test_a_crash_at_any_step_leaves_the_old_text_or_the_new(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.json"
    steps = steps_of(monkeypatch, lambda: write_text(path, "old"))
    assert steps == ["fdopen", "fsync", "chmod", "replace"]
    for step in range(len(steps)):
        crash(monkeypatch, step, lambda: write_text(path, "new"))
        assert path.read_text(encoding="utf-8") == "old"
        assert list(tmp_path.iterdir()) == [path]
