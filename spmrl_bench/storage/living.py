"""Whether a process is still there; numbers come again, so that its start counts too."""

from __future__ import annotations

import os
import socket
from contextlib import suppress
from functools import cache
from pathlib import Path


@cache
def this_machine() -> str:
    """Host, boot and space of process numbers: where it is the same, numbers mean the same."""
    parts = [socket.gethostname()]
    with suppress(OSError):
        parts.append(Path("/proc/sys/kernel/random/boot_id").read_text().strip())
    with suppress(OSError):
        parts.append(os.readlink("/proc/self/ns/pid"))
    return " ".join(parts)


def process_start_time(pid: int) -> str | None:
    """When a process of this machine started; empty where that is not told, None if it is gone."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return None
    except PermissionError:
        pass  # another user's
    try:
        # The second field is the name in brackets, in which anything may stand.
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return ""
    return None if fields[0] == "Z" else fields[19]


def is_dead(pid: int, start_time: str) -> bool:
    """Whether the process of this machine with that number and that start has ended."""
    now = process_start_time(pid)
    return now is None or (now != start_time and "" not in (now, start_time))
