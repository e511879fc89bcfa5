"""Locks on a shared folder, whose owner may be any process of any machine and may die at any time.

A lock is a small file that names its owner, who has created it and touches it every half minute. It
was left behind if that process of this machine is gone, or that of another was silent, by the clock
of the file system, for :data:`SILENCE`. A machine that sleeps longer may lose its lock; its owner
notices when it wakes up, and ends its process as SIGTERM does.

The file system has to create a file exclusively and rename in one step, as NFS 3 does.
"""

from __future__ import annotations

import datetime
import os
import secrets
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

from pydantic import BaseModel, Field, ValidationError

from spmrl_bench.errors import SpmrlError
from spmrl_bench.storage.files import create, open_regular_file
from spmrl_bench.storage.living import is_dead, process_start_time, this_machine

#: Seconds without a sign of life after which the lock of another machine's process counts as left
#: behind, and seconds between two such signs.
SILENCE, BEAT = 300.0, 30.0

_LARGEST = 1 << 16  # bytes of a lock
_GLANCE = 0.2  # seconds between two looks whether one is free


class Owner(BaseModel):
    """What a lock says: which process of which machine (see living.py) has it since when."""

    machine: str
    pid: int = Field(strict=True, gt=0, lt=2**31)
    birth: str
    since: datetime.datetime
    token: str  # another for each lock ever written

    @property
    def host(self) -> str:
        return self.machine.partition(" ")[0]

    @property
    def is_here(self) -> bool:
        return self.machine == this_machine()


class LockedError(SpmrlError):
    """Another process, or another thread of this one, is the ``owner``."""

    def __init__(self, lock: Path, owner: Owner) -> None:
        super().__init__(f"{lock}: process {owner.pid} on {owner.host} has it")
        self.owner = owner


def lock_of(folder: Path) -> Path:
    """The lock of a folder, which lies beside it, since the folder need not be there yet."""
    return folder.with_name(f".{folder.name}.lock")


@contextmanager
def locked(lock: Path) -> Iterator[None]:
    """Hold a lock, a file in a folder that is there; a LockedError if another has it."""
    pid, now = os.getpid(), datetime.datetime.now(datetime.UTC)
    start, token = process_start_time(pid) or "", secrets.token_hex(4)
    me = Owner(machine=this_machine(), pid=pid, birth=start, since=now, token=token)
    ended = threading.Event()
    beating = threading.Thread(target=_beat, args=(lock, me, ended), daemon=True)
    try:
        _take(lock, me)
        beating.start()
        yield
    finally:
        ended.set()
        if beating.ident is not None:  # what it has still to tell is of this work, not the next
            beating.join()
        with suppress(OSError):  # it is seen to be left behind
            if (found := _read(lock)) is not None and found[0].token == me.token:
                os.unlink(lock)


@contextmanager
def in_turn(lock: Path) -> Iterator[None]:
    """Hold a lock as soon as no other has it."""
    with ExitStack() as held:
        while True:
            with suppress(LockedError):
                held.enter_context(locked(lock))
                break
            time.sleep(_GLANCE)
        yield


def holder(lock: Path) -> Owner | None:
    """Who has a lock; None if nobody has, as far as this process can tell."""
    if (found := _read(lock)) is None:
        return None
    with suppress(OSError):  # where the folder cannot be written, its clock is not known
        if _left_behind(*found, lock.parent):
            return None
    return found[0]


def _take(lock: Path, me: Owner) -> None:
    """Write a lock, in place of one that was left behind. Of several that find it left behind, one
    has the right to replace it: a lock that is named after it. Whoever has that looks again, as
    another may have been through with all of this meanwhile."""
    while True:
        with suppress(FileExistsError):
            create(lock, me.model_dump_json().encode())
            return
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


def _read(lock: Path) -> tuple[Owner, float] | None:
    """Who owns a lock, and when it was last touched; None where there is none."""
    try:
        with open_regular_file(lock) as file:
            text, touched = file.read(_LARGEST), os.fstat(file.fileno()).st_mtime_ns
    except FileNotFoundError:
        return None
    try:
        return Owner.model_validate_json(text), touched / 1e9
    except ValidationError:  # it is not written whole yet, or never; nothing but its age is known
        since = datetime.datetime.fromtimestamp(touched / 1e9, datetime.UTC)
        unknown: dict[str, Any] = {"machine": "unknown", "pid": 0, "birth": "", "since": since}
        return Owner.model_construct(**unknown, token=str(touched)), touched / 1e9


def _left_behind(owner: Owner, touched: float, folder: Path) -> bool:
    if owner.is_here:
        return is_dead(owner.pid, owner.birth)
    with tempfile.TemporaryFile(dir=folder) as file:
        return os.fstat(file.fileno()).st_mtime - touched > SILENCE


def _beat(lock: Path, me: Owner, ended: threading.Event) -> None:
    """Touch a lock until it is not needed any more; end this process where it is not its own."""
    while not ended.wait(BEAT):
        with suppress(OSError):
            found = _read(lock)
            if found is not None and found[0].token == me.token:
                os.utime(lock)
            elif lock.parent.is_dir() and not ended.is_set():  # else the whole folder is away
                problem = "another process has taken it over, since this one was silent for long"
                print(f"{lock}: {problem}; this one ends", file=sys.stderr)
                os.kill(os.getpid(), signal.SIGTERM)
                return
