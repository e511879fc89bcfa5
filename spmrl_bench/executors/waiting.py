"""The note beside the folder of a unit that says which job is going to begin it."""

from __future__ import annotations

import datetime
import json
import os
from contextlib import suppress
from pathlib import Path

from spmrl_bench.errors import CheckpointError, remedy
from spmrl_bench.files import write_text
from spmrl_bench.living import birth_of, this_machine


def write_waiting(folder: Path, where: str, job: str | None = None) -> None:
    """Note that a folder's unit is going to be begun.

    Raises:
        CheckpointError: it cannot be written.
    """
    note = {
        "since": datetime.datetime.now(datetime.UTC).isoformat(),
        "where": where,
        "job": job,
        "machine": this_machine(),
        "pid": os.getpid(),
        "birth": birth_of(os.getpid()) or "",
    }
    path = _note(folder)
    try:
        write_text(path, json.dumps(note) + "\n")
    except OSError as error:
        raise CheckpointError(
            f"{path}: cannot be written: {error.strerror}. {remedy(error)}"
        ) from None


def remove_waiting(folder: Path) -> None:
    """Note that it is not any more."""
    with suppress(OSError):
        _note(folder).unlink()


def _note(folder: Path) -> Path:
    return folder.with_name(f".{folder.name}.waiting")
