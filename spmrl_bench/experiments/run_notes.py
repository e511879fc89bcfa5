"""What is noted of a run beside its settings: that it waits, that it failed, that it shall end.

Any process on any machine that sees the folder may train a run, and any may ask how it stands. So
this is said in small files. Two lie beside the run folder, as its lock does, since the folder need
not be there yet: ``.NAME.waiting`` says who is going to begin the run (:mod:`spmrl_bench.notes`),
``.NAME.cancel`` that nobody shall go on with it. ``failed.json`` in the folder says what ended it.
Each is written whole or not at all, and works on a shared folder as far as a rename takes one step.
"""

from __future__ import annotations

import datetime
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel

from spmrl_bench.errors import RunCancelledError, SpmrlError
from spmrl_bench.experiments.run_folder import OtherSettingsError
from spmrl_bench.notes import beside, read_note, remove_note, remove_waiting, write_note
from spmrl_bench.storage.files import write_text
from spmrl_bench.storage.living import this_machine
from spmrl_bench.training.report import LOG, write_log

Note = TypeVar("Note", bound=BaseModel)

#: The file in a run folder that says what ended it.
FAILED = "failed.json"
#: How the name of the note beside a run folder ends that says that it is cancelled.
CANCEL = ".cancel"


class Failed(BaseModel):
    """What ended a run."""

    time: datetime.datetime
    host: str
    message: str
    """What the user is told."""
    traceback: str | None = None
    """Of a defect of the program."""


def read_failed(folder: Path) -> Failed | None:
    """What ended a run; None where nothing did.

    Raises:
        CheckpointError: the note is broken.
    """
    return read_note(folder / FAILED, Failed)


def write_failed(folder: Path, error: Exception, log: str = LOG) -> None:
    """Note in a run folder what ended the run, there and in its log; if it cannot be, nothing."""
    message, trace = str(error), None
    if not isinstance(error, SpmrlError):
        message = f"a defect of the program: {type(error).__name__}: {error}"
        trace = _clean("".join(traceback.format_exception(error)))
    note = Failed(
        time=datetime.datetime.now(datetime.UTC),
        host=this_machine().partition(" ")[0],
        message=_clean(message),
        traceback=trace,
    )
    write_log(folder / log, "\n".join(filter(None, (f"FAILED: {message}", trace))))
    with suppress(OSError):  # the user is told by the error itself
        write_text(folder / FAILED, note.model_dump_json(indent=1) + "\n")


@contextmanager
def attempt_noted(
    folder: Path, *, log: str = LOG, besides: tuple[type[Exception], ...] = ()
) -> Iterator[None]:
    """Within it, a run is trained, and an error that leaves it is noted in its folder.

    What was noted of it before, that it waits or that it failed, is so no more. Nor is it, when it
    has ended, what somebody noted meanwhile who took its job over and may be gone. A folder that
    holds a run with other settings is another run's, of which nothing is noted.

    Args:
        folder: of the run, which this process owns.
        log: name of its log.
        besides: errors that are no failures of the run.
    """
    remove_waiting(folder)
    remove_note(folder / FAILED)
    try:
        yield
    except Exception as error:
        remove_waiting(folder)
        if not isinstance(error, (OtherSettingsError, RunCancelledError, *besides)):
            write_failed(folder, error, log)
        raise
    remove_waiting(folder)


def ask_cancel(folder: Path) -> None:
    """Note that nobody shall go on with a run, nor begin it.

    Raises:
        CheckpointError: it cannot be written.
    """
    now = datetime.datetime.now(datetime.UTC)
    write_note(beside(folder, CANCEL), f"{now.isoformat(timespec='seconds')}\n")


def cancel_asked(folder: Path) -> bool:
    """Whether a run is cancelled: whoever is going to begin it leaves it alone."""
    return beside(folder, CANCEL).exists()


def withdraw_cancel(folder: Path) -> bool:
    """Note that a run may be gone on with; true if it was cancelled."""
    return remove_note(beside(folder, CANCEL))


def _clean(text: str) -> str:
    """A text that can be written, whatever stood in the file of which it speaks."""
    return text.encode(errors="backslashreplace").decode()
