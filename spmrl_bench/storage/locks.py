"""Locks on a shared folder, whose owner may be any process of any machine and may die at any time.

A lock is a small file that says which process of which machine has it; who creates it has the lock
until it removes it. A lock that was left behind is recognised: on the same machine by the process,
which is gone (when it started is noted too, since numbers of processes come again), anywhere else
by its age, because the owner touches it every half minute. So a machine that sleeps for longer
than :data:`SILENCE` while others work on the same folder loses its locks without being told.

All works on a shared folder as far as it creates a file exclusively and renames in one step, as
NFS does from version 3 on. Ages are by the clock of the file system.
"""

from __future__ import annotations

import datetime
import os
import secrets
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from pydantic import BaseModel, ValidationError

from spmrl_bench.errors import SpmrlError
from spmrl_bench.storage.files import create
from spmrl_bench.storage.living import birth_of, is_gone, this_machine

#: Seconds without a sign of life after which the lock of another machine's process counts as left
#: behind, and seconds between two such signs.
SILENCE, BEAT = 300.0, 30.0
#: Seconds between two looks of an owner whether it is wanted.
GLANCE = 2.0

# Seconds in which a process that has created its lock has written it too.
_PATIENCE = 1.0


class Owner(BaseModel):
    """What a lock says."""

    machine: str
    """Host, boot and space of process numbers: where it is the same, numbers mean the same."""
    pid: int
    birth: str
    """When the process started, as its system counts; empty where it does not tell."""
    since: datetime.datetime
    token: str
    """Another for each lock ever written."""
    cancellable: bool = False
    """Whether it looks now and then if it is wanted, to end its work."""

    @property
    def host(self) -> str:
        """The name of its machine."""
        return self.machine.partition(" ")[0]

    @property
    def is_here(self) -> bool:
        """Whether it is a process of this machine."""
        return self.machine == this_machine()


def lock_of(folder: Path) -> Path:
    """The lock of a folder, which lies beside it, since the folder need not be there yet."""
    return folder.with_name(f".{folder.name}.lock")


class LockedError(SpmrlError):
    """Another process, or another thread of this one, has the lock.

    Attributes:
        owner: who has it.
    """

    def __init__(self, lock: Path, owner: Owner) -> None:
        super().__init__(f"{lock}: process {owner.pid} on {owner.host} has it")
        self.owner = owner


@contextmanager
def locked(lock: Path, wanted: Callable[[], bool] | None = None) -> Iterator[None]:
    """Within it, this process and no other has the lock, which is a file of this path.

    Args:
        lock: its path.
        wanted: asked every few seconds, by another thread, until it says yes: it has told this
            process then.

    Raises:
        LockedError: another has it.
        OSError: it cannot be written; its folder has to be there.
    """
    me = Owner(
        machine=this_machine(),
        pid=os.getpid(),
        birth=birth_of(os.getpid()) or "",
        since=datetime.datetime.now(datetime.UTC),
        token=secrets.token_hex(4),
        cancellable=wanted is not None,
    )
    ended = threading.Event()
    attending = threading.Thread(target=_attend, args=(lock, wanted, ended), daemon=True)
    try:
        _take(lock, me)
        attending.start()
        yield
    finally:
        ended.set()
        try:
            if attending.is_alive():  # what it has still to tell is of this work, not the next
                attending.join()
        finally:
            with suppress(OSError):  # it is seen to be left behind
                if (found := _read(lock)) is not None and found[0].token == me.token:
                    os.unlink(lock)


def file_clock(folder: Path) -> float:
    """The time by the clock of the file system that a folder is on, as of :func:`time.time`.

    Raises:
        OSError: nothing can be written there.
    """
    with tempfile.TemporaryFile(dir=folder) as file:
        return os.fstat(file.fileno()).st_mtime


def holder(
    lock: Path, clock: Callable[[Path], float] = file_clock, patience: float = _PATIENCE
) -> Owner | None:
    """Who has a lock; None if nobody has, as far as this process can tell. Nothing is changed.

    Args:
        lock: its path.
        clock: tells the time on the file system of a folder; whoever asks for many need not look
            each time.
        patience: seconds to wait for a lock to be written whole.
    """
    if (found := _read(lock, patience)) is None:
        return None
    with suppress(OSError):  # where the folder cannot be written, its clock is not known
        if _left_behind(*found, lock.parent, clock):
            return None
    return found[0]


def _take(lock: Path, me: Owner) -> None:
    """Write a lock, in place of one that was left behind.

    Two processes may find the same lock left behind. The right to replace it is a lock itself,
    named after the one to be replaced; whoever has it looks again, because the other may have
    been through with all of this in between, and then moves it over the old one.
    """
    while True:
        try:
            create(lock, me.model_dump_json().encode())
            return
        except FileExistsError:
            pass
        if (found := _read(lock)) is None:
            continue  # its owner has just removed it
        owner, touched = found
        if not _left_behind(owner, touched, lock.parent):
            raise LockedError(lock, owner)
        claim = lock.with_name(f"{lock.name}.{owner.token}")
        _take(claim, me)
        if (again := _read(lock)) is not None and again[0].token == owner.token:
            os.replace(claim, lock)
            return
        claim.unlink()


def _read(lock: Path, patience: float = _PATIENCE) -> tuple[Owner, float] | None:
    """Who owns a lock and when it was last touched; None where there is none."""
    deadline = time.monotonic() + patience
    while True:
        try:
            with lock.open("rb") as file:
                text, status = file.read(), os.fstat(file.fileno())
        except FileNotFoundError:
            return None
        try:
            return Owner.model_validate_json(text), status.st_mtime
        except ValidationError:
            if time.monotonic() < deadline:
                time.sleep(0.01)
                continue
        # Its machine was lost while it was written; nothing but its age is known.
        since = datetime.datetime.fromtimestamp(status.st_mtime, datetime.UTC)
        token = str(status.st_mtime_ns)
        owner = Owner(machine="unknown", pid=0, birth="", since=since, token=token)
        return owner, status.st_mtime


def _left_behind(
    owner: Owner, touched: float, folder: Path, clock: Callable[[Path], float] = file_clock
) -> bool:
    """Whether the process that wrote a lock is gone, as far as this one can tell."""
    if owner.is_here:
        return is_gone(owner.pid, owner.birth)
    return clock(folder) - touched > SILENCE


def _attend(lock: Path, wanted: Callable[[], bool] | None, ended: threading.Event) -> None:
    """Touch a lock until it is not needed any more, and look whether its owner is wanted."""
    touched = time.monotonic()
    while not ended.wait(min(GLANCE, BEAT)):
        if time.monotonic() - touched >= BEAT:
            touched = time.monotonic()
            with suppress(OSError):
                os.utime(lock)
        if wanted is not None and wanted():
            wanted = None
