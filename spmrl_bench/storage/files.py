"""Writing files and folders so that a crash leaves the old version or the new one, whole.

A new version is written under a hidden name beside the old one, forced to disk, and renamed. One
file is put in the place of another in one step. A folder is not: the old one is moved aside first,
so whoever reads looks there too (:func:`whole_folder`), and no moment is without a whole version.

The hidden names say which process made them, ``.NAME.MACHINE-PID-BIRTH-TOKEN.new`` (``.old`` for
what was moved aside). So writers of one place never share a name, and what a process that is gone
has left behind is told from the work of a living one: :func:`clear_up` removes it, and does so by
itself when a process first writes into a folder.

All of it goes through the functions of :mod:`os` that are called by their names there, so that a
test can let any of them fail, or the process die in it.
"""

from __future__ import annotations

import errno
import hashlib
import os
import re
import secrets
import shutil
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import TypeVar

from spmrl_bench.storage.living import is_dead, process_start_time, this_machine

#: Seconds after which what a process of another machine was writing counts as left behind.
FORGOTTEN = 86_400.0

_HIDDEN = re.compile(
    r"\.(?P<name>.+)\.(?P<machine>[0-9a-f]{8})-(?P<pid>\d+)-(?P<birth>\d*)-[0-9a-f]{8}"
    r"\.(?P<state>new|old)"
)
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
_END = os.O_WRONLY | os.O_CREAT | os.O_APPEND | getattr(os, "O_BINARY", 0)

Result = TypeVar("Result")
Data = bytes | memoryview


def write_text(path: Path, text: str) -> None:
    """Replace a text file atomically, as UTF-8."""
    write_bytes(path, text.encode("utf-8"))


def write_bytes(path: Path, data: bytes) -> None:
    """Replace a file atomically."""
    _replace(path, lambda new: put(new, [data], forced=True))


def write_file(path: Path, fill: Callable[[Path], None]) -> None:
    """Replace a file by a new one that ``fill`` writes at the path that it is given.

    Raises:
        OSError: the version before is there, unharmed.
    """

    def whole(new: Path) -> None:
        fill(new)
        _force(new)

    _replace(path, whole)


def _replace(path: Path, write: Callable[[Path], None]) -> None:
    """Have a file written to disk under a hidden name, and put it in its place."""
    _make_folder(path.parent)
    new = _hidden(path, "new")
    try:
        write(new)
        os.replace(new, path)
    except BaseException:
        _remove(new)
        raise
    _force_folder(path.parent)


def put(path: Path, pieces: Iterable[Data], *, forced: bool = False) -> None:
    """Write a file that is not there yet, one piece after the other.

    Args:
        path: in a folder that :func:`write_folder` fills, which forces all of it to disk in the
            end, or of a name that nobody knows yet.
        pieces: its bytes.
        forced: whether the file is on disk when this returns.

    Raises:
        FileExistsError: it is there.
        OSError: it cannot be written; then nothing of it stays.
    """
    descriptor = os.open(path, _NEW, 0o644)
    try:
        try:
            for piece in pieces:
                _write_all(descriptor, piece)
            if forced:
                os.fsync(descriptor)
        finally:
            os.close(descriptor)
    except BaseException:
        _remove(path)
        raise


def create(path: Path, data: Data, *, forced: bool = False) -> None:
    """Write a file that is not there yet, of which nobody ever sees a part.

    Args:
        path, data: of the file.
        forced: whether it is on disk when this returns.

    Raises:
        FileExistsError: it is there; of several processes that do this at once, one succeeds.
    """
    new = _hidden(path, "new")
    try:
        put(new, [data], forced=forced)
        try:
            os.link(new, path)
        except FileExistsError:
            raise
        except OSError as error:
            if error.errno not in (errno.EPERM, errno.ENOTSUP, errno.ENOSYS, errno.EMLINK):
                raise
            put(path, [data], forced=forced)  # a file system without second names
        if forced:
            _force_folder(path.parent)
    finally:
        _remove(new)


def append(path: Path, data: bytes) -> None:
    """Write to the end of a file; where that fails, nothing of it stays there."""
    _make_folder(path.parent)
    descriptor = os.open(path, _END, 0o644)
    try:
        size = os.fstat(descriptor).st_size
        try:
            _write_all(descriptor, data)
        except BaseException:
            os.ftruncate(descriptor, size)
            raise
    finally:
        os.close(descriptor)


def write_folder(path: Path, fill: Callable[[Path], None]) -> None:
    """Replace a folder by a new one that ``fill`` writes.

    Where several processes do so at once, the last one's version stays, whole.

    Raises:
        OSError: the version before is there, unharmed.
    """
    _make_folder(path.parent)
    new, old = _hidden(path, "new"), _hidden(path, "old")
    try:
        os.mkdir(new)
        fill(new)
        for place in [*new.rglob("*"), new]:
            _force(place)
        _exchange(new, path, old)
    except BaseException:
        if not path.exists():
            with suppress(OSError):
                os.rename(old, path)
        _remove(new)
        raise
    try:
        _force_folder(path.parent)
    finally:
        for place in (old, _earlier(path, "old"), _earlier(path, "new")):
            _remove(place)


def _exchange(new: Path, path: Path, old: Path) -> None:
    """Move a folder aside, if it is there, and another into its place."""
    while True:
        with suppress(FileNotFoundError):
            os.rename(path, old)
        try:
            os.rename(new, path)
            return
        except OSError as error:
            if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                raise
            _remove(old)  # another process has put its own there meanwhile


def whole_folder(path: Path) -> Path | None:
    """Where the last whole version of a folder is, which nothing here changes.

    That is its path, or a place beside it if a process was stopped between the two steps of
    :func:`write_folder`, or is there now.

    Returns:
        None if there has never been one.
    """
    for _ in range(3):  # between the two looks, the process may have taken its second step
        if path.exists():
            return path
        if aside := _moved_aside(path):
            return aside[0]
    return None


def read_folder(path: Path, read: Callable[[Path], Result]) -> Result:
    """What a function reads from the last whole version of a folder.

    It is called again where another process has replaced the folder meanwhile, since it may have
    seen files of both versions.

    Args:
        path: of the folder; where there is no version, ``read`` is given this path.
    """
    while True:
        place = whole_folder(path) or path
        before = _version(place)
        try:
            result = read(place)
        except Exception:
            if _version(whole_folder(path) or path) == before:
                raise
        else:
            if _version(whole_folder(path) or path) == before:
                return result


def clear_up(folder: Path) -> None:
    """Put in order what processes that are gone have left in a folder.

    What they were writing is removed; what they had moved aside too, but if nothing has come into
    its place, it returns there. What belongs to a living process, or may, is left alone, and so is
    all if the folder cannot be written.
    """
    with suppress(OSError):
        left = [entry for entry in os.scandir(folder) if _is_left_behind(entry)]
        # The newest of several that were moved aside is the one to return.
        for entry in sorted(left, key=lambda entry: entry.stat().st_mtime, reverse=True):
            found = _parts(entry.name)
            if found is not None and found["state"] == "old":
                place = folder / found["name"]
                if not place.exists():
                    os.rename(entry.path, place)
                    continue
            _remove(Path(entry.path))


def names_in(folder: Path) -> list[str]:
    """What is in a folder; nothing if there is none, or it is removed in this moment.

    (``Path.glob`` raises an error if a folder goes away while it is looked at.)
    """
    with suppress(FileNotFoundError, NotADirectoryError):
        return os.listdir(folder)
    return []


def discard(path: Path) -> None:
    """Remove a folder, if it is there, in one step as far as others can see."""
    gone = _hidden(path, "new")
    with suppress(FileNotFoundError):
        os.rename(path, gone)
        _remove(gone)


def _hidden(path: Path, state: str) -> Path:
    """A name beside a path that nobody else has."""
    birth = process_start_time(os.getpid()) or ""
    maker = f"{_machine()}-{os.getpid()}-{birth}-{secrets.token_hex(4)}"
    # Only what was moved aside is looked for by its name, and the whole must not get too long.
    name = path.name if state == "old" else path.name[:60]
    return path.with_name(f".{name}.{maker}.{state}")


def _earlier(path: Path, state: str) -> Path:
    """The hidden name that versions of the program before this one had for all processes."""
    return path.with_name(f".{path.name}.{state}")


@cache
def _machine() -> str:
    return hashlib.sha256(this_machine().encode()).hexdigest()[:8]


def _parts(name: str) -> dict[str, str] | None:
    found = _HIDDEN.fullmatch(name)
    return None if found is None else found.groupdict(default="")


def _is_left_behind(entry: os.DirEntry[str]) -> bool:
    found = _parts(entry.name)
    if found is None:
        return False
    if found["machine"] == _machine():
        return is_dead(int(found["pid"]), found["birth"])
    return time.time() - entry.stat(follow_symlinks=False).st_mtime > FORGOTTEN


def _make_folder(folder: Path) -> None:
    if not folder.is_dir():
        folder.mkdir(parents=True, exist_ok=True)
    _first_visit(folder.absolute())


@cache
def _first_visit(folder: Path) -> None:
    """Clear up a folder once in the life of a process."""
    clear_up(folder)


def _moved_aside(path: Path) -> list[Path]:
    """The versions of a folder that were moved aside, the newest first."""
    try:
        entries = list(os.scandir(path.parent))
    except OSError:
        return []
    found: list[tuple[float, Path]] = []
    for entry in entries:
        parts = _parts(entry.name) or {"name": "", "state": ""}
        ours = (parts["name"], parts["state"]) == (path.name, "old")
        if ours or entry.name == _earlier(path, "old").name:
            with suppress(OSError):  # it is removed right now
                found.append((entry.stat().st_mtime, Path(entry.path)))
    return [place for _, place in sorted(found, reverse=True)]


def _version(place: Path) -> tuple[int, int, int] | None:
    """What tells a version of a folder from another; None where there is none."""
    try:
        found = os.stat(place)
    except OSError:
        return None
    return found.st_dev, found.st_ino, found.st_mtime_ns


def _write_all(descriptor: int, data: Data) -> None:
    rest = memoryview(data).cast("B")
    while rest:
        rest = rest[os.write(descriptor, rest) :]


def _force(place: Path) -> None:
    """Have a file, or the names in a folder, on disk when this returns."""
    if os.name == "nt":
        return  # only what is open for writing can be forced there
    descriptor = os.open(place, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _force_folder(folder: Path) -> None:
    """Have the names in a folder on disk, on file systems that have that."""
    try:
        _force(folder)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.EBADF, errno.ENOTSUP):
            raise


def _remove(place: Path) -> None:
    """Remove a file or folder; what cannot be removed stays for :func:`clear_up`."""
    with suppress(OSError):
        if place.is_dir() and not place.is_symlink():
            shutil.rmtree(place, ignore_errors=True)
        elif os.path.lexists(place):
            os.unlink(place)
