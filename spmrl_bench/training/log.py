"""The log of a run: what it says, with the time, in a file of its folder.

Who started a run may have no terminal, or close it, and a run on another machine has one that
nobody sees. So all lines go into ``log.txt`` too. The file is for people; programs read
``events.jsonl``.
"""

from __future__ import annotations

import datetime
import os
from contextlib import suppress
from pathlib import Path

from spmrl_bench.files import append

#: Name of the file.
LOG = "log.txt"

_LAST = 4096  # bytes in which the last line is looked for


def write_log(path: Path, text: str, time: datetime.datetime | None = None) -> None:
    """Write a line to the end of a log; where it cannot be written, nothing happens.

    What was said has been said, and no training ends for want of a copy of it.

    Args:
        path: of the file.
        text: what was said; its further lines are indented.
        time: when it was; now if it is not given.
    """
    when = time or datetime.datetime.now(datetime.UTC)
    lines = "\n  ".join(text.splitlines())
    with suppress(OSError):
        append(path, f"{when:%Y-%m-%dT%H:%M:%SZ} {lines}\n".encode(errors="backslashreplace"))


def last_line(path: Path) -> str:
    """What a log said last, without its time; empty where nothing was said."""
    try:
        with path.open("rb") as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - _LAST))
            lines = file.read().decode(errors="replace").splitlines()
    except OSError:
        return ""
    return lines[-1].partition(" ")[2] if lines else ""
