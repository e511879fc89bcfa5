"""Small files beside a folder, of what becomes of the work in it; one says that it waits.

They lie there as the folder's lock does, since the folder need not be there yet. Each is written
whole or not at all, and works on a shared folder as far as a rename takes one step.
"""

from __future__ import annotations

import datetime
import os
from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel, ValidationError

from spmrl_bench.errors import CheckpointError, remedy
from spmrl_bench.storage.files import read_regular, write_text
from spmrl_bench.storage.living import is_dead, process_start_time, this_machine

Note = TypeVar("Note", bound=BaseModel)

#: How the names of a folder's lock, and of the note that its work waits, end; they begin with a dot
#: and the name of the folder.
LOCK, WAITING = ".lock", ".waiting"


class Waiting(BaseModel):
    """That a run is going to be begun."""

    since: datetime.datetime
    where: str
    """What will begin it, such as ``dask`` or ``slurm``."""
    job: str | None
    """What a batch system calls the job that will, though the process below be gone."""
    machine: str
    """Host, boot and space of process numbers of the process that wrote this."""
    pid: int
    birth: str

    @property
    def is_forgotten(self) -> bool:
        """Whether nobody will begin it, as far as this machine can tell."""
        here = self.machine == this_machine()
        return self.job is None and here and is_dead(self.pid, self.birth)


def beside(folder: Path, ending: str) -> Path:
    """Where a note beside a run folder is."""
    return folder.with_name(f".{folder.name}{ending}")


def write_waiting(folder: Path, where: str, job: str | None = None) -> None:
    """Note that a run is going to be begun; its folder need not be there.

    Args:
        folder: of the run.
        where: what will begin it, such as ``dask`` or ``slurm``.
        job: what a batch system calls the job that will begin it, also when this process has ended;
            None where this process does, so that the note counts for nothing when it is gone.

    Raises:
        CheckpointError: it cannot be written.
    """
    note = Waiting(
        since=datetime.datetime.now(datetime.UTC),
        where=where,
        job=job,
        machine=this_machine(),
        pid=os.getpid(),
        birth=process_start_time(os.getpid()) or "",
    )
    write_note(beside(folder, WAITING), note.model_dump_json() + "\n")


def read_waiting(folder: Path) -> Waiting | None:
    """Who is going to begin a run; None where nobody is.

    Raises:
        CheckpointError: the note is broken.
    """
    return read_note(beside(folder, WAITING), Waiting)


def remove_waiting(folder: Path) -> None:
    """Note that a run waits no more; whoever begins it need not do so."""
    remove_note(beside(folder, WAITING))


def write_note(path: Path, text: str) -> None:
    """Write a note.

    Raises:
        CheckpointError: it cannot be written.
    """
    try:
        write_text(path, text)
    except OSError as error:
        raise CheckpointError(
            f"{path}: cannot be written: {error.strerror}. {remedy(error)}"
        ) from None


def read_note(path: Path, model: type[Note]) -> Note | None:
    """What a note says; None where there is none.

    Raises:
        CheckpointError: it is broken.
    """
    try:
        return model.model_validate_json(read_regular(path))
    except FileNotFoundError:
        return None
    except (OSError, ValidationError) as error:
        reason = getattr(error, "strerror", None) or "no such note"
        raise CheckpointError(f"{path}: cannot be read: {reason}") from None


def remove_note(path: Path) -> bool:
    """Take a note away; false where there was none."""
    try:
        path.unlink()
    except OSError:
        return False
    return True
