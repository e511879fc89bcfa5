"""Runs a command from a process that is small, so that its memory can be told from ours.

``python -I watcher.py LOG SECONDS THREADS GRACE COMMAND...`` prints how the command ended: its
status, the seconds that it took, those of the processor for each of its threads, the most memory
that a process of it had, in bytes, and whether it was ended because its seconds (0 for no limit)
of the processor, or :data:`PATIENCE` times as many, were over. It ends with the watcher, too.
"""

import ctypes
import math
import os
import resource
import signal
import subprocess
import sys
import time
from contextlib import suppress

#: How many times as long as its processor's time a command may take that waits or is kept waiting.
PATIENCE = 3
_PR_SET_PDEATHSIG = 1


def end_with_parent() -> None:
    """Have this process killed when the one that started it is gone; done in a child by Popen."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def _signal(group: int, number: int) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(group, number)


def _processor_seconds(session: int) -> float:
    """What the processes of a session have had, and those that they have waited for."""
    ticks = 0
    for process in filter(str.isdigit, os.listdir("/proc")):
        with suppress(OSError), open(f"/proc/{process}/stat", encoding="latin-1") as file:
            fields = file.read().rpartition(")")[2].split()
            ticks += sum(map(int, fields[11:15])) if int(fields[3]) == session else 0
    return ticks / os.sysconf("SC_CLK_TCK")


if __name__ == "__main__":
    log, seconds, threads, grace, *command = sys.argv[1:]
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    begun = time.monotonic()
    with open(log, "ab") as file:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            preexec_fn=end_with_parent,
        )
    most, took, busy, asked = float(seconds) or math.inf, 0.0, 0.0, 0
    told = os.path.exists("/proc/self/stat")  # else the clock counts alone
    try:
        while process.poll() is None and busy < most and took < PATIENCE * most:
            with suppress(subprocess.TimeoutExpired):
                process.wait(min(max(most - busy, 0.05), 1.0))
            took = time.monotonic() - begun
            busy = _processor_seconds(process.pid) / int(threads) if told else took
    except KeyboardInterrupt:
        asked = -signal.SIGTERM
    if ended := process.poll() is None:
        _signal(process.pid, signal.SIGTERM)
        with suppress(subprocess.TimeoutExpired):
            process.wait(float(grace))
    took = time.monotonic() - begun
    _signal(process.pid, signal.SIGKILL)  # what it has left behind, too
    status = process.wait() or asked
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    # Those that others have waited for, or nobody, are in only one of the two.
    busy = max(busy, (usage.ru_utime + usage.ru_stime) / int(threads))
    print(status, took, busy, usage.ru_maxrss * 1024, int(ended and not asked))
