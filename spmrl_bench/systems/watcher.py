"""Run a command of a system from a process that is small, so that its memory can be told from ours.

``python -I watcher.py LOG COMMAND...`` prints the number of the process, which leads a session of
its own, and when it has ended its status and the most memory that a process of it had, in bytes.
Where the watcher is gone, the system (Linux) ends the command.
"""

import ctypes
import resource
import signal
import subprocess
import sys

_PR_SET_PDEATHSIG = 1


def end_with_parent() -> None:
    """Have this process killed when the one that started it is gone; done in a child by Popen."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


if __name__ == "__main__":
    with open(sys.argv[1], "ab") as log:
        process = subprocess.Popen(
            sys.argv[2:],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            preexec_fn=end_with_parent,
        )
    print(process.pid, flush=True)
    status = process.wait()
    print(status, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024)
