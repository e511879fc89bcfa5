"""Atomic writing of files and folders, and bounded reading of files of others.

A new version is written under a hidden name beside the old one, forced to disk, and renamed. An old
folder is moved aside first, so whoever reads looks there too (:func:`last_complete_version`).

Hidden names say which process made them, ``.NAME.MACHINE-PID-BIRTH-TOKEN.new`` (``.old`` for what
was moved aside; earlier versions had ``.NAME.new``), so that what a dead process has left is told
from the work of a living one.
"""

from __future__ import annotations

import errno
import gzip
import hashlib
import os
import re
import secrets
import shutil
import stat
import time
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from io import BufferedReader, BytesIO
from pathlib import Path
from typing import TypeVar

from spmrl_bench.errors import SpmrlError
from spmrl_bench.storage.living import is_dead, process_start_time, this_machine

#: Bytes of a description, of settings or of a record; vocabularies of a million words have less.
LIMIT = 32 << 20
#: Bytes that a packed file may hold; the largest treebank has a tenth of it.
MOST_UNPACKED = 1 << 30
# Bytes that a file system counts as one, and how many of them a file may have for each that is
# stored: what is packed as it is written takes a tenth, and holes take nothing.
_BLOCK, _THINNEST = 512, 100

# Seconds after which what a process of another machine was writing counts as left behind.
_FORGOTTEN = 86_400.0
_HIDDEN = re.compile(
    r"\.(?P<name>.+?)"
    r"(\.(?P<machine>[0-9a-f]{8})-(?P<pid>\d{1,9})-(?P<birth>\d*)-[0-9a-f]{8})?"
    r"\.(?P<state>new|old)"
)

Result = TypeVar("Result")


# Writing --------------------------------------------------------------------------------------


def write_text(path: Path, text: str) -> None:
    """Replace a text file atomically, as UTF-8."""
    write_bytes(path, text.encode("utf-8"))


def write_bytes(path: Path, data: bytes) -> None:
    """Replace a file atomically."""
    write_file(path, lambda new: write_new(new, data))


def write_file(path: Path, fill: Callable[[Path], None]) -> None:
    """Replace a file atomically by one that ``fill`` writes; an OSError leaves the old one."""
    with _new_version(path) as new:
        fill(new)
        _fsync(new)
        os.replace(new, path)
    _fsync(path.parent)


def write_folder(path: Path, fill: Callable[[Path], None]) -> None:
    """Replace a folder, of which this is the only writer; an OSError leaves the old one."""
    old = _hidden(path, "old")
    with _new_version(path) as new:
        os.mkdir(new)
        fill(new)
        for place in [*new.rglob("*"), new]:
            _fsync(place)
        try:
            with suppress(FileNotFoundError):
                os.rename(path, old)
            os.rename(new, path)
        except BaseException:
            if not path.exists():
                with suppress(OSError):
                    os.rename(old, path)
            raise
    try:
        _fsync(path.parent)
    finally:
        for place in (old, *(path.with_name(f".{path.name}.{end}") for end in ("old", "new"))):
            _remove(place)


@contextmanager
def _new_version(path: Path) -> Iterator[Path]:
    """The place of a new version, which is removed where it cannot be written."""
    _make_folder(path.parent)
    new = _hidden(path, "new")
    try:
        yield new
    except BaseException:
        _remove(new)
        raise


def write_new(path: Path, data: bytes) -> None:
    """Write a file to disk; a FileExistsError if it is there already."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
    try:
        _write_all(descriptor, data)
        os.fsync(descriptor)
    except BaseException:
        _remove(path)
        raise
    finally:
        os.close(descriptor)


def create(path: Path, data: bytes) -> None:
    """Write a file atomically; a FileExistsError if it is there, as for all of several but one."""
    new = _hidden(path, "new")
    try:
        write_new(new, data)
        try:
            os.link(new, path)
        except OSError as error:
            if error.errno not in (errno.EPERM, errno.ENOTSUP, errno.ENOSYS, errno.EMLINK):
                raise
            write_new(path, data)  # a file system without second names
        _fsync(path.parent)
    finally:
        _remove(new)


def append(path: Path, data: bytes) -> None:
    """Write to the end of a file, nothing where that fails, unless another wrote behind it."""
    _make_folder(path.parent)
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)
    try:
        size = os.fstat(descriptor).st_size
        try:
            _write_all(descriptor, data)
        except BaseException:
            if data.startswith(os.pread(descriptor, len(data), size)):
                os.ftruncate(descriptor, size)
            raise
    finally:
        os.close(descriptor)


def remove_folder(path: Path) -> None:
    """Remove a folder, if it is there, in one step as far as others can see."""
    gone = _hidden(path, "new")
    with suppress(FileNotFoundError):
        os.rename(path, gone)
        _remove(gone)


def remove_orphans(folder: Path) -> None:
    """Remove what dead processes were writing in a folder, and put back what they had moved aside,
    as is done by itself when a process first writes there; what cannot be removed stays."""
    with suppress(OSError):
        for changed, place, found in _hidden_in(folder):
            if found["machine"] == _machine():
                orphan = is_dead(int(found["pid"]), found["birth"])
            else:
                orphan = bool(found["machine"]) and time.time() - changed > _FORGOTTEN
            target = folder / found["name"]
            if orphan and found["state"] == "old" and not target.exists():
                os.rename(place, target)
            elif orphan:
                _remove(place)


_first_visit = cache(remove_orphans)


def _hidden_in(folder: Path) -> list[tuple[float, Path, re.Match[str]]]:
    """When each hidden version in a folder was written, where it is, and its name; newest first."""
    versions = []
    with suppress(OSError):
        for entry in os.scandir(folder):
            if found := _HIDDEN.fullmatch(entry.name):
                with suppress(OSError):  # it is removed right now
                    changed = entry.stat(follow_symlinks=False).st_mtime
                    versions.append((changed, Path(entry.path), found))
    return sorted(versions, key=lambda version: version[0], reverse=True)


def _hidden(path: Path, state: str) -> Path:
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


def _write_all(descriptor: int, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(descriptor, rest) :]


def _fsync(place: Path) -> None:
    """Force a file, or the names in a folder, to disk, on file systems that have that."""
    descriptor = os.open(place, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.EBADF, errno.ENOTSUP):
            raise
    finally:
        os.close(descriptor)


def _remove(place: Path) -> None:
    with suppress(OSError):
        if place.is_dir() and not place.is_symlink():
            shutil.rmtree(place, ignore_errors=True)
        elif os.path.lexists(place):
            os.unlink(place)


# Reading --------------------------------------------------------------------------------------


def last_complete_version(path: Path) -> Path | None:
    """Where the last whole version of a folder is: its path, or a hidden place beside it."""
    for _ in range(3):  # between the two looks, the process may have taken its second step
        if path.exists():
            return path
        for _, place, found in _hidden_in(path.parent):
            if (found["name"], found["state"]) == (path.name, "old"):
                return place
    return None


def read_folder(path: Path, read: Callable[[Path], Result]) -> Result:
    """What ``read`` makes of the last whole version; again, where it was replaced meanwhile."""
    while True:
        place, before = _version(path)
        try:
            result = read(place)
        except Exception:
            if _version(path)[1] == before:
                raise
            continue
        if _version(path)[1] == before:
            return result


def _version(path: Path) -> tuple[Path, tuple[int, ...]]:
    """Where the last version of a folder is, and what tells it from others."""
    place = last_complete_version(path) or path
    with suppress(OSError):
        found = os.stat(place)
        return place, (found.st_dev, found.st_ino, found.st_mtime_ns)
    return place, ()


def open_regular_file(path: Path) -> BufferedReader:
    """Open a file for reading; an OSError if it is a pipe, a device or a folder."""
    flags = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY
    # The descriptor belongs to the file at once: an interrupt may come at any moment.
    file = open(path, "rb", opener=lambda name, _: os.open(name, flags))  # noqa: SIM115
    try:
        check_regular(os.fstat(file.fileno()), path)
    except BaseException:
        file.close()
        raise
    return file  # closed by whoever asked for it


def open_unpacked(path: Path) -> BufferedReader | BytesIO:
    """Open a file for reading, unpacked if it is a ``.gz``; it may be a pipe (``<(...)``), but no
    device. An OSError if it is broken, or holds more than :data:`MOST_UNPACKED` bytes."""
    if path.suffix != ".gz":
        check_stored(path.stat(), path)
        return path.open("rb") if path.is_fifo() else open_regular_file(path)
    try:
        with open_regular_file(path) as file, gzip.GzipFile(fileobj=file) as packed:
            data = packed.read(MOST_UNPACKED + 1)
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise OSError(0, f"no sound gzip file: {error}", str(path)) from None
    if len(data) > MOST_UNPACKED:
        raise OSError(0, f"more than {MOST_UNPACKED:,} bytes when unpacked", str(path))
    return BytesIO(data)


def check_regular(status: os.stat_result, path: Path) -> None:
    """Make sure that a path is that of a regular file; an OSError says what it is instead."""
    if stat.S_ISDIR(status.st_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    if not stat.S_ISREG(status.st_mode):
        what = "a named pipe" if stat.S_ISFIFO(status.st_mode) else "a device"
        raise OSError(0, f"{what}, expected a file", str(path))


def check_stored(status: os.stat_result, path: Path) -> None:
    """Make sure that a file, which may be read whole, is not all holes; else an OSError."""
    stored = status.st_blocks * _BLOCK
    if status.st_size > max(MOST_UNPACKED, _THINNEST * stored):
        holes = f"{status.st_size:,} bytes, of which {stored:,} are stored"
        raise OSError(0, f"a sparse file ({holes})", str(path))


def read_regular(path: Path, limit: int = LIMIT) -> bytes:
    """The bytes of a regular file; an OSError if it is none, or has more of them than ``limit``."""
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
