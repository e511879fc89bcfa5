"""Runs a command from a process that is small, so that its memory can be told from ours.

``python -I watcher.py LOG SECONDS GRACE COMMAND...`` prints how the command ended: its status, the
seconds that it took, the most memory that a process of it had, in bytes, and whether it was ended.
That is when its seconds are over (0 for no limit), or when the watcher is asked to end.
"""

import ctypes
import os
import resource
import signal
import subprocess
import sys
import time
from contextlib import suppress

_PR_SET_PDEATHSIG = 1


def end_with_parent() -> None:
    """Have this process killed when the one that started it is gone; done in a child by Popen."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def _signal(group: int, number: int) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(group, number)


if __name__ == "__main__":
    log, seconds, grace, *command = sys.argv[1:]
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
    ended = False
    try:
        process.wait(float(seconds) or None)
    except (subprocess.TimeoutExpired, KeyboardInterrupt):
        ended = True
        _signal(process.pid, signal.SIGTERM)
        with suppress(subprocess.TimeoutExpired):
            process.wait(float(grace))
    took = time.monotonic() - begun
    _signal(process.pid, signal.SIGKILL)  # what it has left behind, too
    status = process.wait()
    memory = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024
    print(status, took, memory, int(ended))
