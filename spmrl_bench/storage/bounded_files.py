"""Files of others, read within bounds: what is opened is a file, and not larger than it can be.

Whoever gives a path may give that of a pipe, which would be waited for, of a device, which never
ends, or of a file of any size. Nothing here waits, and no more is read than is allowed.
"""

from __future__ import annotations

import errno
import os
import stat
from io import BufferedReader
from pathlib import Path

from spmrl_bench.errors import SpmrlError

#: Bytes of a description, of settings or of a record; vocabularies of a million words have less.
LIMIT = 32 << 20


def open_regular(path: Path) -> BufferedReader:
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
        OSError: as of :func:`open_regular`, or the file has more bytes than ``limit``.
    """
    with open_regular(path) as file:
        data = file.read(limit + 1)
    if len(data) > limit:
        raise OSError(0, f"more than {limit} bytes, which no such file needs", str(path))
    return data


def read_within(path: Path, error: type[SpmrlError], limit: int = LIMIT) -> bytes:
    """As :func:`read_regular`, with ``error`` for whatever is wrong."""
    try:
        return read_regular(path, limit)
    except OSError as problem:
        raise error(f"{path}: cannot be read: {problem.strerror or problem}") from None
