"""Writing files and folders so that a crash leaves the old version or the new one, whole; and
reading files of others within bounds.

A new version is written under a hidden name beside the old one, forced to disk, and renamed. One
file is put in the place of another in one step. A folder is not: the old one is moved aside first,
so whoever reads looks there too (:func:`last_complete_version`), and no moment is without one.

The hidden names say which process made them, ``.NAME.MACHINE-PID-BIRTH-TOKEN.new`` (``.old`` for
what was moved aside; versions of the program before had ``.NAME.new``). So writers of one place
never share a name, and what a process that is gone has left behind is told from the work of a
living one: :func:`remove_orphans` removes it, and does so by itself when a process first writes
into a folder.

Whoever gives a path to be read may give that of a pipe, which would be waited for, of a device,
which never ends, or of a file of any size. Nothing here waits, and no more is read than is allowed.

All is written through the functions of :mod:`os` that are called by their names there, so that a
test can let any of them fail, or the process die in it.
"""

from __future__ import annotations

import errno
import hashlib
import os
import re
import secrets
import shutil
import stat
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import cache
from io import BufferedReader
from pathlib import Path
from typing import TypeVar

from spmrl_bench.errors import SpmrlError
from spmrl_bench.storage.living import is_dead, process_start_time, this_machine

#: Seconds after which what a process of another machine was writing counts as left behind.
FORGOTTEN = 86_400.0
#: Bytes of a description, of settings or of a record; vocabularies of a million words have less.
LIMIT = 32 << 20

_HIDDEN = re.compile(
    r"\.(?P<name>.+?)"
    r"(\.(?P<machine>[0-9a-f]{8})-(?P<pid>\d{1,9})-(?P<birth>\d*)-[0-9a-f]{8})?"
    r"\.(?P<state>new|old)"
)

Result = TypeVar("Result")
Data = bytes | memoryview


# Writing --------------------------------------------------------------------------------------


def write_text(path: Path, text: str) -> None:
    """Replace a text file atomically, as UTF-8."""
    write_bytes(path, text.encode("utf-8"))


def write_bytes(path: Path, data: bytes) -> None:
    """Replace a file atomically."""
    write_file(path, lambda new: write_new(new, [data]))


def write_file(path: Path, fill: Callable[[Path], None]) -> None:
    """Replace a file by a new one that ``fill`` writes at the path that it is given.

    Raises:
        OSError: the version before is there, unharmed.
    """
    _make_folder(path.parent)
    new = _hidden(path, "new")
    try:
        fill(new)
        _force(new)
        os.replace(new, path)
    except BaseException:
        _remove(new)
        raise
    _force(path.parent)


def write_new(path: Path, pieces: Iterable[Data]) -> None:
    """Write a file that is not there yet to disk, one piece after the other.

    Raises:
        FileExistsError: it is there.
        OSError: it cannot be written; then nothing of it stays.
    """
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
    try:
        try:
            for piece in pieces:
                _write_all(descriptor, piece)
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
    except BaseException:
        _remove(path)
        raise


def create(path: Path, data: Data) -> None:
    """Write a file that is not there yet to disk, of which nobody ever sees a part.

    Raises:
        FileExistsError: it is there; of several processes that do this at once, one succeeds.
    """
    new = _hidden(path, "new")
    try:
        write_new(new, [data])
        try:
            os.link(new, path)
        except OSError as error:
            if error.errno not in (errno.EPERM, errno.ENOTSUP, errno.ENOSYS, errno.EMLINK):
                raise
            write_new(path, [data])  # a file system without second names
        _force(path.parent)
    finally:
        _remove(new)


def append(path: Path, data: bytes) -> None:
    """Write to the end of a file; where that fails, nothing of it stays there."""
    _make_folder(path.parent)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
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
        _force(path.parent)
    finally:
        for place in (old, *(path.with_name(f".{path.name}.{state}") for state in ("old", "new"))):
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


def remove_folder(path: Path) -> None:
    """Remove a folder, if it is there, in one step as far as others can see."""
    gone = _hidden(path, "new")
    with suppress(FileNotFoundError):
        os.rename(path, gone)
        _remove(gone)


def remove_orphans(folder: Path) -> None:
    """Put in order what processes that are gone have left in a folder.

    What they were writing is removed; what they had moved aside too, but if nothing has come into
    its place, it returns there. What belongs to a living process, or may, is left alone, and so is
    all if the folder cannot be written.
    """
    with suppress(OSError):
        left = []
        for entry in os.scandir(folder):
            found = _HIDDEN.fullmatch(entry.name)
            if found and found["machine"] and _is_left_behind(entry, found):
                left.append((entry.stat().st_mtime, entry.name, found))
        # The newest of several that were moved aside is the one to return.
        for _, name, found in sorted(left, key=lambda one: one[0], reverse=True):
            place = folder / found["name"]
            if found["state"] == "old" and not place.exists():
                os.rename(folder / name, place)
            else:
                _remove(folder / name)


def _is_left_behind(entry: os.DirEntry[str], found: re.Match[str]) -> bool:
    if found["machine"] == _machine():
        return is_dead(int(found["pid"]), found["birth"])
    return time.time() - entry.stat(follow_symlinks=False).st_mtime > FORGOTTEN


def _hidden(path: Path, state: str) -> Path:
    """A name beside a path that nobody else has."""
    birth = process_start_time(os.getpid()) or ""
    maker = f"{_machine()}-{os.getpid()}-{birth}-{secrets.token_hex(4)}"
    # Only what was moved aside is looked for by its name, and the whole must not get too long.
    name = path.name if state == "old" else path.name[:60]
    return path.with_name(f".{name}.{maker}.{state}")


@cache
def _machine() -> str:
    return hashlib.sha256(this_machine().encode()).hexdigest()[:8]


def _make_folder(folder: Path) -> None:
    if not folder.is_dir():
        folder.mkdir(parents=True, exist_ok=True)
    _first_visit(folder.absolute())


@cache
def _first_visit(folder: Path) -> None:
    """Clear up a folder once in the life of a process."""
    remove_orphans(folder)


def _write_all(descriptor: int, data: Data) -> None:
    rest = memoryview(data).cast("B")
    while rest:
        rest = rest[os.write(descriptor, rest) :]


def _force(place: Path) -> None:
    """Have a file, or the names in a folder, on disk, on file systems that have that."""
    descriptor = os.open(place, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.EBADF, errno.ENOTSUP):
            raise
    finally:
        os.close(descriptor)


def _remove(place: Path) -> None:
    """Remove a file or folder; what cannot be removed stays for :func:`remove_orphans`."""
    with suppress(OSError):
        if place.is_dir() and not place.is_symlink():
            shutil.rmtree(place, ignore_errors=True)
        elif os.path.lexists(place):
            os.unlink(place)


# Reading --------------------------------------------------------------------------------------


def last_complete_version(path: Path) -> Path | None:
    """Where the last whole version of a folder is, which nothing here changes.

    That is its path, or a place beside it if a process was stopped between the two steps of
    :func:`write_folder`, or is there now.

    Returns:
        None if there has never been one.
    """
    for _ in range(3):  # between the two looks, the process may have taken its second step
        if path.exists():
            return path
        aside: list[tuple[float, Path]] = []
        with suppress(OSError):
            for entry in os.scandir(path.parent):
                found = _HIDDEN.fullmatch(entry.name)
                if found and (found["name"], found["state"]) == (path.name, "old"):
                    with suppress(OSError):  # it is removed right now
                        aside.append((entry.stat().st_mtime, Path(entry.path)))
        if aside:
            return max(aside)[1]
    return None


def read_folder(path: Path, read: Callable[[Path], Result]) -> Result:
    """What a function reads from the last whole version of a folder.

    It is called again where another process has replaced the folder meanwhile, since it may have
    seen files of both versions.

    Args:
        path: of the folder; where there is no version, ``read`` is given this path.
    """
    while True:
        place, before = _version(path)
        try:
            result = read(place)
        except Exception:
            if _version(path)[1] == before:
                raise
        else:
            if _version(path)[1] == before:
                return result


def _version(path: Path) -> tuple[Path, tuple[int, int, int] | None]:
    """Where the last version of a folder is, and what tells it from others; None if it is gone."""
    place = last_complete_version(path) or path
    try:
        found = os.stat(place)
    except OSError:
        return place, None
    return place, (found.st_dev, found.st_ino, found.st_mtime_ns)


def open_regular_file(path: Path) -> BufferedReader:
    """A file for reading; whatever else stands at the path is refused, and not waited for.

    Raises:
        OSError: it cannot be opened, or is no regular file (``strerror`` says what it is).
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY)
    try:
        check_regular(os.fstat(descriptor), path)
        return open(descriptor, "rb")  # closed by whoever asked for it
    except BaseException:
        os.close(descriptor)
        raise


def check_regular(status: os.stat_result, path: Path) -> None:
    """Make sure that a path is that of a regular file; an OSError says what it is instead."""
    if stat.S_ISREG(status.st_mode):
        return
    if stat.S_ISDIR(status.st_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    kinds = {stat.S_IFIFO: "a named pipe", stat.S_IFSOCK: "a socket"}
    what = kinds.get(stat.S_IFMT(status.st_mode), "a device")
    raise OSError(0, f"{what}, expected a file", str(path))


def read_regular(path: Path, limit: int = LIMIT) -> bytes:
    """The bytes of a file.

    Raises:
        OSError: as of :func:`open_regular_file`, or the file has more bytes than ``limit``.
    """
    with open_regular_file(path) as file:
        size = min(os.fstat(file.fileno()).st_size, limit)
        data = file.read(size + 1)  # a reader makes room for all that it is asked for
        if len(data) > size:
            data += file.read(limit - size)  # it has grown, or tells no size
    if len(data) > limit:
        raise OSError(0, f"more than {limit} bytes, which no such file needs", str(path))
    return data


def read_bounded(path: Path, error: type[SpmrlError], limit: int = LIMIT) -> bytes:
    """As :func:`read_regular`, with ``error`` for whatever is wrong."""
    try:
        return read_regular(path, limit)
    except OSError as problem:
        raise error(f"{path}: cannot be read: {problem.strerror or problem}") from None
