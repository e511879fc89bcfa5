"""Room on the disk: what finished runs need no more.

A run's last checkpoint is there to go on from. It has the weights and two numbers for each of them
that the optimiser remembers, about three times the size of the best parser, and once training has
ended nobody opens it: only its state (``progress.json``), which says that the run has ended, is
read by ``train`` and ``eval``, and stays. A run that ran out of the minutes it was given would go
on with more, so it counts as unfinished here.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from spmrl_bench.errors import CheckpointError, RunOwnedError, remedy
from spmrl_bench.experiments.run_folder import (
    TRAINED,
    final_progress,
    owner_text,
    run_lock,
)
from spmrl_bench.experiments.run_search import find_runs
from spmrl_bench.storage.files import last_complete_version, read_folder, write_folder, write_new
from spmrl_bench.storage.locks import holder, lock_of
from spmrl_bench.training import BEST, LAST
from spmrl_bench.training.schedule import OUT_OF_TIME, PROGRESS


class Cleaned(NamedTuple):
    """What became of a run.

    Attributes:
        folder: of it.
        freed: bytes that its last checkpoint took, or takes where it was only asked for.
        kept: why all was left as it is; empty if nothing was.
    """

    folder: Path
    freed: int
    kept: str = ""


def run_folders(runs_dir: Path) -> list[Path]:
    """The folders of runs that were begun, below a folder or the folder itself.

    Raises:
        SpmrlError: there is no such folder.
    """
    return [found.folder for found in find_runs(runs_dir) if "run.json" in found.names]


def clean_runs(runs_dir: Path, *, dry_run: bool = False) -> Iterator[Cleaned]:
    """Drop the last checkpoints of finished runs; one answer for each run that has one.

    Args:
        runs_dir: a folder of runs, or a run.
        dry_run: change nothing, and say what would be done.

    Raises:
        SpmrlError: there is no such folder.
        CheckpointError: a folder cannot be written.
    """
    for folder in run_folders(runs_dir):
        if dry_run:
            owner = holder(lock_of(folder))
            told = owner and Cleaned(folder, 0, owner_text(owner, folder))
            answer = told or _looked_at(folder)
        else:
            answer = _clean(folder)
        if answer.freed or answer.kept:
            yield answer


def _looked_at(folder: Path) -> Cleaned:
    """What there is to be dropped, or why nothing may be."""
    if (folder / TRAINED).exists():
        return Cleaned(folder, 0, "a parser of somebody else, of which nothing is known to be idle")
    try:
        state = final_progress(folder)
    except CheckpointError as error:
        return Cleaned(folder, 0, str(error))
    if state is None:
        return Cleaned(folder, 0, "training has not ended")
    if state.stopped_by == OUT_OF_TIME:
        return Cleaned(folder, 0, "its time was over; with more --minutes it goes on")
    best = last_complete_version(folder / BEST)
    if best is None or not (best / "parser.json").is_file():
        return Cleaned(folder, 0, f"it has no whole parser in {BEST}/")
    return Cleaned(folder, read_folder(folder / LAST, _to_drop))


def _to_drop(last: Path) -> int:
    """Bytes of all files of a checkpoint but its state."""
    files = (path for path in last.rglob("*") if path.is_file() and path != last / PROGRESS)
    return sum(path.stat().st_size for path in files)


def _clean(folder: Path) -> Cleaned:
    try:
        with run_lock(folder):
            answer = _looked_at(folder)
            if answer.freed:
                last = folder / LAST
                state = read_folder(last, lambda place: (place / PROGRESS).read_bytes())
                write_folder(last, lambda new: write_new(new / PROGRESS, [state]))
            return answer
    except RunOwnedError as error:
        return Cleaned(folder, 0, str(error))
    except OSError as error:
        raise CheckpointError(
            f"{folder / LAST}: cannot be written: {error.strerror}; it is as it was. "
            f"{remedy(error)}"
        ) from None
