"""One process at a time trains in a run folder.

Two that did would mix their checkpoints. So whoever trains first writes a lock beside the folder,
``.NAME.lock``, which says which process of which machine it is, and removes it at the end. A lock
that was left behind is recognised: on the same machine by the process, which is gone (when it
started is noted too, since numbers of processes come again), anywhere else by its age, because
the owner touches it every half minute. So a machine that sleeps for longer than :data:`SILENCE`
while its folder is used from another one loses the folder without being told.

The thread that touches it also looks every few seconds whether the run was cancelled, and then
tells its process as SIGTERM would.

All works on a shared folder as far as it creates a file exclusively and renames in one step, as
NFS does from version 3 on. Ages are by the clock of the file system.
"""

from __future__ import annotations

import datetime
import os
import secrets
import signal
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from pydantic import BaseModel, ValidationError

from spmrl_bench.errors import CheckpointError, RunOwnedError, remedy
from spmrl_bench.experiments.run_notes import beside, cancel_asked
from spmrl_bench.files import clear_up, create
from spmrl_bench.living import birth_of, is_gone, this_machine

#: Seconds without a sign of life after which the lock of another machine's process counts as left
#: behind, and seconds between two such signs.
SILENCE, BEAT = 300.0, 30.0
#: Seconds between two looks of the owner whether the run was cancelled.
GLANCE = 2.0
#: How the name of a lock ends; it begins with a dot and that of the run folder.
LOCK = ".lock"

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
    """Whether it ends when the run is cancelled; SIGTERM is another way to tell it."""

    @property
    def host(self) -> str:
        """The name of its machine."""
        return self.machine.partition(" ")[0]

    @property
    def is_here(self) -> bool:
        """Whether it is a process of this machine."""
        return self.machine == this_machine()


@contextmanager
def owned(folder: Path, *, cancellable: bool = False) -> Iterator[None]:
    """Within it, this process and no other owns the run folder, which need not exist.

    What processes that are gone have left there is removed, see
    :func:`~spmrl_bench.files.clear_up`.

    Args:
        folder: of the run.
        cancellable: whether SIGTERM comes when somebody cancels the run. Only the main thread is
            told of signals, so in another one nothing comes.

    Raises:
        RunOwnedError: another process, or another thread of this one, owns it.
        CheckpointError: no lock can be written.
    """
    lock = beside(folder, LOCK)
    me = Owner(
        machine=this_machine(),
        pid=os.getpid(),
        birth=birth_of(os.getpid()) or "",
        since=datetime.datetime.now(datetime.UTC),
        token=secrets.token_hex(4),
        cancellable=cancellable and threading.current_thread() is threading.main_thread(),
    )
    ended = threading.Event()
    watched = folder if me.cancellable else None
    attending = threading.Thread(target=_attend, args=(lock, watched, ended), daemon=True)
    try:
        try:
            lock.parent.mkdir(parents=True, exist_ok=True)
            clear_up(lock.parent)
            _take(lock, me, folder)
        except OSError as error:
            raise CheckpointError(
                f"{folder}: the run folder cannot be written: {error.strerror}. {remedy(error)}, "
                "or choose another --runs folder"
            ) from None
        clear_up(folder)
        attending.start()
        yield
    finally:
        ended.set()
        try:
            if attending.is_alive():  # what it has still to tell is for this run, not the next
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


def present_owner(
    folder: Path, clock: Callable[[Path], float] = file_clock, patience: float = _PATIENCE
) -> Owner | None:
    """Who owns a run folder; None if nobody does. Nothing is changed.

    Args:
        folder: of the run.
        clock: tells the time on the file system of a folder; whoever asks for many need not look
            each time.
        patience: seconds to wait for a lock to be written whole.
    """
    lock = beside(folder, LOCK)
    if (found := _read(lock, patience)) is None:
        return None
    with suppress(OSError):  # where the folder cannot be written, its clock is not known
        if _left_behind(*found, lock.parent, clock):
            return None
    return found[0]


def owner_of(folder: Path) -> str:
    """Who owns a run folder, in words; empty if nobody does. Nothing is changed."""
    owner = present_owner(folder)
    return "" if owner is None else _refusal(owner, folder, beside(folder, LOCK))


def put_in_order(folder: Path) -> None:
    """Remove what processes that are gone have left in and beside a run folder, if anybody may.

    Where another process owns the folder, or it cannot be written, all stays as it is.
    """
    with suppress(RunOwnedError, CheckpointError), owned(folder):
        pass


def _take(lock: Path, me: Owner, folder: Path) -> None:
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
            raise RunOwnedError(_refusal(owner, folder, lock))
        claim = lock.with_name(f"{lock.name}.{owner.token}")
        _take(claim, me, folder)
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


def _refusal(owner: Owner, folder: Path, lock: Path) -> str:
    host, since = owner.host, f"{owner.since:%Y-%m-%d %H:%M:%S} UTC"
    if owner.is_here:
        advice = f"Wait until it has ended, or end it ('kill {owner.pid}' lets it save)"
    else:
        advice = (
            "Wait until it has ended; if it is gone, this is noticed "
            f"{SILENCE / 60:.0f} minutes after its last sign of life. If you are sure that it is, "
            f"delete {lock}"
        )
    return f"{folder}: process {owner.pid} on {host} has been training here since {since}. {advice}"


def _attend(lock: Path, watched: Path | None, ended: threading.Event) -> None:
    """Touch a lock until it is not needed any more, and tell when the watched run is cancelled."""
    touched = time.monotonic()
    while not ended.wait(min(GLANCE, BEAT)):
        if time.monotonic() - touched >= BEAT:
            touched = time.monotonic()
            with suppress(OSError):
                os.utime(lock)
        if watched is not None and cancel_asked(watched):
            watched = None
            signal.raise_signal(signal.SIGTERM)
