"""What processes that share a machine need: threads, cards, memory, and an orderly end."""

from __future__ import annotations

import os
import re
import resource
import signal
import sys
import threading
import time
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from multiprocessing import active_children, resource_tracker
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from joblib.externals.loky import ProcessPoolExecutor

#: What a process of a pool has in work when it is asked to end is saved.
saved = threading.Event()

_LAST = 30.0  # seconds for that in a process whose parent is gone

# Python looks for modules in the working directory first, and so would run what lies there.
_SAFE_PATH = "PYTHONSAFEPATH"


def _begin(parent: int, safe_path: str) -> None:
    """End this process, by SIGTERM, when the one with this number is gone, however. Programs that
    it starts have the environment of that one."""
    os.environ[_SAFE_PATH] = safe_path

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(0.5)
        os.kill(os.getpid(), signal.SIGTERM)
        saved.wait(_LAST)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def worker_pool(workers: int, threads: int) -> ProcessPoolExecutor:
    """Processes of joblib with so many threads each, which get SIGTERM when this one is gone."""
    from joblib.externals.loky import ProcessPoolExecutor
    from joblib.externals.loky.backend.resource_tracker import ensure_running

    # Joblib's tracker would warn of what an interrupt left this process no time to remove.
    sys.warnoptions.append("ignore:resource_tracker:UserWarning")
    try:
        with _safe_path():
            ensure_running()
    finally:
        sys.warnoptions.pop()
    return ProcessPoolExecutor(
        max_workers=workers,
        initializer=_begin,
        initargs=(os.getpid(), os.environ.get(_SAFE_PATH, "")),  # empty is as if it were not set
        env={"OMP_NUM_THREADS": str(threads), "PYTHONIOENCODING": "utf-8", _SAFE_PATH: "1"},
    )


@contextmanager
def _safe_path() -> Iterator[None]:
    before = os.environ.get(_SAFE_PATH, "")
    os.environ[_SAFE_PATH] = "1"
    try:
        yield
    finally:
        os.environ[_SAFE_PATH] = before


def end_pool(pool: ProcessPoolExecutor, before: Collection[BaseProcess]) -> None:
    """End the processes of a pool at once, except the children ``before`` it."""
    started = [process for process in active_children() if process not in before]
    # joblib's thread may stumble over work that is dropped while it looks at it.
    report, threading.excepthook = threading.excepthook, lambda _: None
    try:
        for process in started:
            kill(process)
        pool.shutdown()
    finally:
        threading.excepthook = report
    for process in started:
        process.join()


def how_ended(error: Exception) -> str:
    """How a process of a pool has ended, by what joblib says of it."""
    codes = re.search(r"exit codes of the workers are \{(.+)\}", str(error))
    why = codes[1] if codes else "nobody knows why"
    return f"has ended ({why}; is there enough memory? Fewer --jobs or --workers need less)"


def kill(process: BaseProcess) -> None:
    """End a process of joblib's at once; its own way needs a program that small systems lack."""
    if process.pid is not None:
        with suppress(ProcessLookupError):
            os.kill(process.pid, signal.SIGKILL)


def available_threads() -> int:
    """Threads that all processes together should use."""
    asked = os.environ.get("OMP_NUM_THREADS", "").partition(",")[0].strip()
    return (int(asked) if asked.isdecimal() else 0) or usable_cores()


def usable_cores() -> int:
    """Cores of the processor that this process may use."""
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity else os.cpu_count() or 1


def cards() -> int:
    """Number of graphics cards that torch sees."""
    import torch

    return torch.cuda.device_count() if torch.cuda.is_available() else 0


def peak_memory_bytes() -> int:
    """Largest memory this process has held so far."""
    # On Linux, ``getrusage`` counts what the process that started this one held at the time too.
    with suppress(OSError):
        status = Path("/proc/self/status").read_text(encoding="ascii", errors="replace")
        if found := re.search(r"^VmHWM:\s+(\d+) kB$", status, re.MULTILINE):
            return int(found[1]) * 1024
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


@contextmanager
def interrupts_blocked() -> Iterator[None]:
    """Within it Ctrl-C and the end of a terminal wait, and new processes never hear of them."""
    # It comes with the first process otherwise, and leaves the signal unblocked.
    with _safe_path():
        resource_tracker.ensure_running()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT, signal.SIGHUP])
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
