"""Cancelling a run that any process on any machine trains, or is going to.

Whoever cancels it leaves a note beside its folder. Its owner looks for the note now and then, and
is told by SIGTERM at once where it is on the same machine; either way it finishes the batch and
saves. A run that is cancelled is not begun, until ``train`` is given again and takes the note away.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from spmrl_bench.errors import CheckpointError, RunCancelledError
from spmrl_bench.experiments.ownership import present_owner
from spmrl_bench.experiments.run_notes import ask_cancel, cancel_asked
from spmrl_bench.experiments.run_state import RunState
from spmrl_bench.notes import remove_waiting
from spmrl_bench.process.signals import Interrupted
from spmrl_bench.training.report import LOG, write_log

_AGAIN = "'spmrl-bench train' with the same options goes on with it"


@contextmanager
def unless_cancelled(folder: Path, title: str) -> Iterator[None]:
    """Within it, a run is trained that may be cancelled.

    Args:
        folder: of the run.
        title: what it is called.

    Raises:
        RunCancelledError: it is cancelled already, or SIGTERM has ended it and it is by now.
    """
    if cancel_asked(folder):
        remove_waiting(folder)
        raise RunCancelledError(f"{title}: cancelled before it was begun; {_AGAIN}")
    try:
        yield
    except Interrupted as stopped:
        if stopped.number != signal.SIGTERM or not cancel_asked(folder):
            raise
        write_log(folder / LOG, "cancelled")
        raise RunCancelledError(f"{title}: cancelled; it is saved, and {_AGAIN}") from None


def cancel_run(run: RunState) -> str:
    """Cancel a run; returns in words what becomes of it.

    Raises:
        CheckpointError: there is nothing to cancel, its process takes no word of it, or the note
            cannot be written.
    """
    if run.state == "done":
        raise CheckpointError(f"{run.folder}: nothing to cancel, since training has ended")
    if run.state == "failed":
        raise CheckpointError(f"{run.folder}: nothing to cancel, since it has failed")
    if run.state == "cancelled":
        raise CheckpointError(f"{run.folder}: is cancelled already")
    owner = present_owner(run.folder)
    ask_cancel(run.folder)
    if owner is not None:
        # Where there are no signals, this would end a process at once.
        if owner.is_here and os.name != "nt":
            with suppress(OSError):  # it has ended, or is another user's, and finds the note
                os.kill(owner.pid, signal.SIGTERM)
        how = f"process {owner.pid} on {owner.host} finishes the batch, saves and ends"
    elif run.state == "waiting":
        how = "it will not be begun"
    else:
        how = "nobody goes on with it"
    return f"{run.folder}: cancelled; {how}. When it is wanted again, {_AGAIN}"
