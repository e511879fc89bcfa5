"""Failing and dying at the k-th call of the system that writes, for every k.

All that the program writes goes through functions of :mod:`os` (see storage/files.py),
which are replaced here by ones that count. A process dies in a fork of the test, by SIGKILL, so
that nothing of it is tidied up; a failure is raised in the test itself.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from spmrl_bench.storage import files

CALLS = (
    *("open", "write", "fsync", "close", "ftruncate"),
    *("rename", "replace", "unlink", "rmdir", "mkdir", "link"),
)

Act = Callable[[int, str, Callable[[], Any]], Any]
"""What is done instead of a call: its number from 0, its name, and the call itself."""


@contextmanager
def calls_under(root: Path, act: Act) -> Iterator[list[str]]:
    """Within it, ``act`` is done instead of each call that concerns a place under a folder.

    Gives the names and places of the calls so far.
    """
    root = root.resolve()
    mine: dict[int, str] = {}  # open files under the folder
    made: list[str] = []

    def place_of(name: str, first: Any, options: dict[str, Any]) -> str | None:
        if isinstance(first, int):
            return mine.get(first)
        if (folder := options.get("dir_fd")) is not None:
            return f"{mine[folder]}/{os.fsdecode(first)}" if folder in mine else None
        path = os.path.abspath(os.fsdecode(first))
        inside = Path(path).is_relative_to(root)
        return path if inside else None

    def replaced(name: str, real: Callable[..., Any]) -> Callable[..., Any]:
        def called(first: Any, *rest: Any, **options: Any) -> Any:
            place = place_of(name, first, options)
            if place is None:
                return real(first, *rest, **options)
            reading = name == "open" and rest and not rest[0] & (os.O_WRONLY | os.O_RDWR)
            if reading and os.path.isfile(place):  # folders are opened to be forced to disk
                return real(first, *rest, **options)
            made.append(f"{name} {place}")
            call = partial(real, first, *rest, **options)
            if name == "write":
                call = partial(_written, real, first, *rest)
            try:
                result = act(len(made) - 1, name, call)
            finally:
                if name == "close":
                    mine.pop(first, None)
            if name == "open":
                mine[result] = place
            return result

        return called

    with pytest.MonkeyPatch.context() as patch:
        for name in CALLS:
            patch.setattr(os, name, replaced(name, getattr(os, name)))
        yield made


def _written(real: Callable[..., int], descriptor: int, data: Any, share: float = 1.0) -> int:
    """Write the beginning of some bytes, at least one."""
    view = memoryview(data)
    return real(descriptor, view[: max(1, int(len(view) * share))])


def counted(root: Path, work: Callable[[], object]) -> list[str]:
    """The calls under a folder that something makes."""
    with calls_under(root, lambda number, name, call: call()) as made:
        work()
    return made


def die_at(k: int) -> Act:
    """The process is killed in place of call ``k``; before it, if that writes, half is written."""

    def act(number: int, name: str, call: Callable[..., Any]) -> Any:
        if number == k:
            if name == "write":
                call(share=0.5)
            os.kill(os.getpid(), signal.SIGKILL)
        return call()

    return act


def fail_at(k: int, error: int) -> Act:
    """Call ``k`` fails with an error of the system; half may have been written, and is closed."""

    def act(number: int, name: str, call: Callable[..., Any]) -> Any:
        if number == k:
            if name == "write":
                call(share=0.5)
            if name == "close":
                call()
            raise OSError(error, os.strerror(error), "the disk")
        return call()

    return act


def killed(root: Path, k: int, work: Callable[[], object]) -> bool:
    """Do something in a process that dies at call ``k``; false if it came to its end."""
    pid = os.fork()
    if pid == 0:
        try:
            # A process of its own, which has visited no folder yet.
            files._first_visit.cache_clear()
            with calls_under(root, die_at(k)):
                work()
        finally:
            os._exit(0)
    return os.WIFSIGNALED(os.waitpid(pid, 0)[1])


def hidden(*folders: Path) -> list[str]:
    """What lies hidden in folders: what nobody has cleared up."""
    return sorted(str(path) for folder in folders for path in folder.rglob(".*"))
