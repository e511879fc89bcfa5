"""The files of a job: what it is to do, how it ended, what it said.

submitit pickles the first two. A pickle can do anything when it is read, so that only those are
which belong to this user.
"""

from __future__ import annotations

import os
import pickle
import shutil
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from spmrl_bench.errors import TrainingError
from spmrl_bench.process.executors.slurm_job import Answer
from spmrl_bench.storage.files import names_in

if TYPE_CHECKING:
    from spmrl_bench.process.executors.slurm_queue import Job

_TAIL, _TAIL_BYTES = (
    3,
    4096,
)  # of a log that is shown: lines, and the bytes where they are looked for


def results_of(jobs: Iterable[Job]) -> set[Path]:
    """The results that are there. Folders are listed, because a network's file system tells late
    of a single file that has appeared."""
    found: set[Path] = set()
    for folder in {job.paths.folder for job in jobs}:
        with suppress(OSError):
            found |= {folder / name for name in names_in(folder)}
    return found


def answer_of(job: Job) -> Answer:
    """How the unit of a job has ended, as its result says."""
    path = job.paths.result_pickle
    try:
        outcome, answer = _unpickled(path)
    except Exception as error:
        return Answer("failed", TrainingError(f"{path}: the result cannot be read: {error}"))
    if outcome == "success":
        return Answer(*answer)
    problem = str(answer).strip().rpartition("\n")[2]
    return Answer("failed", TrainingError(f"its job did not begin: {problem}; {end_of_log(job)}"))


def end_of_log(job: Job) -> str:
    """Where the log of a job is and how it ends, in words."""
    path = job.paths.stderr
    try:
        with path.open("rb") as file:
            file.seek(max(0, path.stat().st_size - _TAIL_BYTES))
            lines = file.read().decode(errors="replace").splitlines()
    except OSError:
        return f"it has no log ({path})"
    last = " | ".join([line.strip() for line in lines if line.strip()][-_TAIL:])
    return f"its log {path} ends with: {last}" if last else f"its log {path} is empty"


def remove_files(job: Job) -> None:
    """Remove what a job has left, and its folder with the last of them."""
    paths = job.paths
    with suppress(OSError):
        for path in (paths.submitted_pickle, paths.result_pickle, paths.stdout, paths.stderr):
            path.unlink(missing_ok=True)
        if not any(name.endswith((".pkl", ".err")) for name in names_in(paths.folder)):
            shutil.rmtree(paths.folder, ignore_errors=True)


def _unpickled(path: Path) -> Any:
    with path.open("rb") as file:
        if os.fstat(file.fileno()).st_uid != os.getuid():
            raise PermissionError("it belongs to somebody else")
        return pickle.load(file)
