"""A command of somebody else, watched: how long it takes, how much memory, and that it ends.

``python -m spmrl_bench.systems.supervisor PARENT SECONDS LOG COMMAND...`` runs the command in a
session of its own, its output in a log, and prints one line of JSON when it has ended. The command
and all that it started in its session end with it: when the seconds are over (0: no limit), at
SIGTERM, and when the process PARENT is gone, however that happened. They are asked first and ended
by force :data:`GRACE` seconds later.

It is a process of its own because nothing else survives the end of the one that wants the answer.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys
import time
from contextlib import suppress
from types import FrameType

#: Seconds between asking a command to end and ending it.
GRACE = 20.0

_GLANCE = 0.05


def main(arguments: list[str]) -> int:
    """Run a command and print what became of it."""
    parent, seconds, log, *command = arguments
    asked = False

    def ask(number: int, frame: FrameType | None) -> None:
        nonlocal asked
        asked = True

    signal.signal(signal.SIGTERM, ask)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    limit = float(seconds) or float("inf")
    begun = time.monotonic()
    with open(log, "ab") as out:
        try:
            process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        except OSError as error:
            print(json.dumps({"problem": f"cannot be run: {error.strerror}"}))
            return 0
    out_of_time = False
    told = 0.0
    while process.poll() is None:
        now = time.monotonic()
        out_of_time |= now - begun > limit
        if told:
            if now - told > GRACE:
                _signal(process.pid, signal.SIGKILL)
        elif asked or out_of_time or os.getppid() != int(parent):
            told = now
            _signal(process.pid, signal.SIGTERM)
        time.sleep(_GLANCE)
    ended = time.monotonic()
    _signal(process.pid, signal.SIGKILL)  # what it has left behind
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    print(
        json.dumps(
            {
                "status": process.returncode,
                "seconds": ended - begun,
                "peak_memory_bytes": usage.ru_maxrss * 1024,
                "processor_seconds": usage.ru_utime + usage.ru_stime,
                "out_of_time": out_of_time,
                "asked_to_end": asked,
            }
        )
    )
    return 0


def _signal(group: int, number: int) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(group, number)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
