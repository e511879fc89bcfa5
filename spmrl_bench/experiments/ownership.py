"""One process at a time trains in a run folder.

Two that did would mix their checkpoints. So whoever trains first has a lock beside the folder,
``.NAME.lock``, until the end; one that a dead process has left behind stops nobody.
The owner also looks every few seconds whether the run was cancelled,
and then tells itself as SIGTERM would.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from spmrl_bench.errors import CheckpointError, RunOwnedError, remedy
from spmrl_bench.experiments.run_notes import cancel_asked
from spmrl_bench.notes import LOCK, beside, remove_waiting
from spmrl_bench.storage.files import remove_orphans
from spmrl_bench.storage.locks import SILENCE, LockedError, Owner, file_clock, holder, locked


@contextmanager
def owned(folder: Path, *, cancellable: bool = False) -> Iterator[None]:
    """Within it, this process and no other owns the run folder, which need not exist.

    What processes that are gone have left there is removed, see
    :func:`~spmrl_bench.storage.files.remove_orphans`.

    Args:
        folder: of the run.
        cancellable: whether SIGTERM comes when somebody cancels the run. Only the main thread is
            told of signals, so in another one nothing comes.

    Raises:
        RunOwnedError: another process, or another thread of this one, owns it.
        CheckpointError: no lock can be written.
    """

    def wanted() -> bool:
        if asked := cancel_asked(folder):
            signal.raise_signal(signal.SIGTERM)
        return asked

    lock = beside(folder, LOCK)
    told = cancellable and threading.current_thread() is threading.main_thread()
    with ExitStack() as held:
        try:
            lock.parent.mkdir(parents=True, exist_ok=True)
            remove_orphans(lock.parent)
            held.enter_context(locked(lock))
            if told:
                held.enter_context(_asked(wanted))
        except LockedError as error:
            raise RunOwnedError(_refusal(error.owner, folder)) from None
        except OSError as error:
            raise CheckpointError(
                f"{folder}: the run folder cannot be written: {error.strerror}. {remedy(error)}, "
                "or choose another --runs folder"
            ) from None
        remove_orphans(folder)
        yield


@contextmanager
def _asked(wanted: Callable[[], bool]) -> Iterator[None]:
    """Within it, a thread asks every two seconds until it is told yes."""
    ended = threading.Event()

    def ask() -> None:
        while not ended.wait(2.0) and not wanted():
            pass

    thread = threading.Thread(target=ask, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def present_owner(
    folder: Path, clock: Callable[[Path], float] = file_clock, patience: float = 1.0
) -> Owner | None:
    """Who owns a run folder; None if nobody does. Nothing is changed.

    Args:
        folder: of the run.
        clock, patience: as of :func:`~spmrl_bench.storage.locks.holder`.
    """
    return holder(beside(folder, LOCK))


def owner_of(folder: Path) -> str:
    """Who owns a run folder, in words; empty if nobody does. Nothing is changed."""
    owner = present_owner(folder)
    return "" if owner is None else _refusal(owner, folder)


def put_in_order(folder: Path) -> None:
    """Remove what processes that are gone have left in and beside the folder of a run that is done.

    Where another process owns the folder, or it cannot be written, all stays as it is.
    """
    with suppress(RunOwnedError, CheckpointError), owned(folder):
        remove_waiting(folder)


def _refusal(owner: Owner, folder: Path) -> str:
    since = f"{owner.since:%Y-%m-%d %H:%M:%S} UTC"
    if owner.is_here:
        advice = f"Wait until it has ended, or end it ('kill {owner.pid}' lets it save)"
    else:
        advice = (
            "Wait until it has ended; if it is gone, this is noticed "
            f"{SILENCE / 60:.0f} minutes after its last sign of life. If you are sure that it is, "
            f"delete {beside(folder, LOCK)}"
        )
    return (
        f"{folder}: process {owner.pid} on {owner.host} has been training here since {since}. "
        f"{advice}"
    )
