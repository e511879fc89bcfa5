"""Reading the schedule of a checkpoint: how far a run is, without its weights or torch."""

from __future__ import annotations

from pathlib import Path

from pydantic import ValidationError

from spmrl_bench.bounded_files import read_regular
from spmrl_bench.errors import CheckpointError
from spmrl_bench.files import read_folder
from spmrl_bench.json_files import parsed_json
from spmrl_bench.training.schedule import Progress

#: The file of a checkpoint that has the schedule.
PROGRESS = "progress.json"


def read_progress(folder: Path) -> Progress | None:
    """The schedule of a checkpoint; None where there is no checkpoint.

    Raises:
        CheckpointError: the checkpoint is incomplete.
    """
    return read_folder(folder, progress_of_version)


def progress_of_version(folder: Path) -> Progress | None:
    """The schedule of one version of a checkpoint, as of :func:`read_progress`."""
    if not folder.exists():
        return None
    path = folder / PROGRESS
    try:
        return Progress.model_validate(parsed_json(read_regular(path)))
    except ValidationError as error:
        mistake = error.errors()[0]
        raise incomplete(path, f"{'.'.join(map(str, mistake['loc']))}: {mistake['msg']}") from None
    except ValueError as error:
        raise incomplete(path, error) from None
    except OSError as error:
        raise incomplete(path, error.strerror) from None


def incomplete(path: Path, reason: object) -> CheckpointError:
    """The error of a checkpoint of which a file is missing or broken."""
    return CheckpointError(f"{path}: incomplete checkpoint ({reason}). Start anew with --fresh")
