"""What processes that share a machine need: their part of the threads, and an orderly end."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing import resource_tracker
from multiprocessing.process import BaseProcess
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from joblib.externals.loky import ProcessPoolExecutor


def end_with_parent(parent: int) -> None:
    """End this process when the one with this number, which started it, is gone, however."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(1)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def worker_pool(workers: int, threads: int) -> ProcessPoolExecutor:
    """Processes of joblib with so many threads each, none of which outlives this one."""
    from joblib.externals.loky import ProcessPoolExecutor
    from joblib.externals.loky.backend.resource_tracker import ensure_running

    # Joblib's tracker removes what an interrupt left this process no time for, and would warn of
    # it beside the one message that an interrupted program gives.
    sys.warnoptions.append("ignore:resource_tracker:UserWarning")
    try:
        ensure_running()
    finally:
        sys.warnoptions.pop()
    return ProcessPoolExecutor(
        max_workers=workers,
        initializer=end_with_parent,
        initargs=(os.getpid(),),
        env={"OMP_NUM_THREADS": str(threads), "PYTHONIOENCODING": "utf-8"},
    )


def available_threads() -> int:
    """Threads that all processes together should use."""
    asked = os.environ.get("OMP_NUM_THREADS", "").partition(",")[0].strip()
    return int(asked) if asked.isdecimal() and int(asked) > 0 else usable_cores()


def usable_cores() -> int:
    """Cores of the processor that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def ending(process: BaseProcess, seconds: float, option: str) -> str:
    """How a process ended that should not have, in words.

    Args:
        process: which has ended or will in a moment.
        seconds: to wait for that.
        option: of the command line with which fewer processes need less memory.
    """
    process.join(seconds)
    code = process.exitcode
    if code is None or code >= 0:
        return f"ended with status {code}"
    how = f"was killed by {signal.Signals(-code).name}"
    if -code == signal.SIGKILL:
        how += f" (is there enough memory? Fewer {option} need less)"
    return how


@contextmanager
def interrupts_blocked() -> Iterator[None]:
    """Within it, Ctrl-C waits; processes that are started there never see it.

    It goes to all processes of a terminal, but only this one should speak about it.
    """
    # It comes with the first process otherwise, and leaves the signal unblocked.
    resource_tracker.ensure_running()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
