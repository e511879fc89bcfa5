"""Runs as their folders show them: the state of each, its log, and room that finished ones take.

What is broken of their files is said of the run, and stops no listing. Nothing here imports torch.
"""

from __future__ import annotations

import dataclasses
import os
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeVar, get_args

from spmrl_bench.errors import CheckpointError, RunOwnedError, SpmrlError, remedy, unknown_name
from spmrl_bench.experiments.run_folder import (
    FAILED,
    SETTINGS,
    TRAINED,
    final_progress,
    lock_of,
    read_failed,
    run_lock,
)
from spmrl_bench.storage.files import (
    last_complete_version,
    read_bounded,
    read_folder,
    write_folder,
    write_new,
)
from spmrl_bench.storage.json import read_json
from spmrl_bench.storage.locks import holder
from spmrl_bench.training import BEST, LAST
from spmrl_bench.training.report import LOG
from spmrl_bench.training.schedule import OUT_OF_TIME, PROGRESS, read_progress

State = Literal["running", "failed", "interrupted", "done"]
STATES: tuple[State, ...] = get_args(State)
#: What the columns of :func:`row` are called.
HEADINGS = ("run", "state", "host", "epoch", "dev", "")

_LONGEST = 60  # characters of a message in a row; `runs log` has it all

Value = TypeVar("Value")


@dataclasses.dataclass
class RunState:
    """How a run stands: where it runs or failed, the epochs done and the best dev score in percent
    of its last checkpoint, what is to be known of its state, and what of its files is broken."""

    folder: Path
    state: State = "interrupted"
    host: str = ""
    epoch: int | None = None
    max_epochs: int | None = None
    dev: float | None = None
    message: str = ""
    broken: str = ""


def find_runs(place: Path) -> list[Path]:
    """The folders of runs below a folder, through no links, or itself; in their order."""
    if not place.is_dir():
        raise SpmrlError(f"{place}: no such folder; expected a run or a folder of runs")
    found = []
    for folder, folders, files in os.walk(place):
        folders[:] = [name for name in folders if name[0] != "."]
        if not {SETTINGS, FAILED}.isdisjoint(files):
            found.append(Path(folder))
            folders.clear()
    return sorted(found)


def run_named(name: str, runs_dir: Path) -> Path:
    """The folder of a run: a path from here, or below the folder of runs."""
    for folder in (Path(name), runs_dir / name):
        if folder.name and any((folder / file).exists() for file in (SETTINGS, FAILED)):
            return folder
    known = [shown(folder, runs_dir) for folder in find_runs(runs_dir)]
    raise SpmrlError(unknown_name("run", name, get_close_matches(name, known) or known[:20]))


def shown(folder: Path, runs_dir: Path) -> str:
    """What a run is called: its path below the folder of runs, where it is there."""
    below = folder.is_relative_to(runs_dir) and folder != runs_dir
    return str(folder.relative_to(runs_dir) if below else folder)


def state_of(folder: Path) -> RunState:
    """How a run stands; what is broken of its files is said there."""
    broken: list[str] = []

    def tried(read: Callable[[], Value]) -> Value | None:
        try:
            return read()
        except CheckpointError as error:
            broken.append(str(error))
        except OSError as error:
            broken.append(f"{error.filename}: cannot be read: {error.strerror}")
        return None

    run = RunState(folder)
    if (folder / SETTINGS).exists():
        settings: Any = tried(lambda: read_json(folder / SETTINGS, CheckpointError))
        if isinstance(settings, dict):
            train = settings.get("train")  # of a parser of somebody else there is none
            run.max_epochs = train.get("max_epochs") if isinstance(train, dict) else None
        elif not broken:
            broken.append(f"{folder / SETTINGS}: not the settings of a run")
    owner = tried(lambda: holder(lock_of(folder)))
    failed = tried(lambda: read_failed(folder))
    if (progress := tried(lambda: read_progress(folder / LAST))) is not None:
        run.epoch, run.dev = progress.epoch, progress.best_score
    if owner is not None:
        run.state, run.host = "running", owner.host
    elif (progress is not None and progress.stopped_by) or (folder / TRAINED).exists():
        run.state = "done"
        # Begun anew or given more time, it may have come to nothing: what there was is as it was.
        run.message = "" if failed is None else f"begun again, it failed: {failed.message}"
    elif (folder / FAILED).exists():
        run.state = "failed"
        if failed is not None:
            run.host, run.message = failed.host, failed.message
    elif lock_of(folder).exists():
        run.message = "its process died"
    run.broken = "; ".join(broken)
    return run


def row(run: RunState, runs_dir: Path) -> tuple[str, ...]:
    """A run as a row of the columns :data:`HEADINGS`."""
    epoch = "" if run.epoch is None else f"{run.epoch}"
    of = "" if run.max_epochs is None or not epoch else f"/{run.max_epochs}"
    text = " ".join((f"BROKEN: {run.broken}" if run.broken else run.message).split())
    dev = "" if run.dev is None else f"{run.dev:.2f}"
    remark = text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}..."
    return (shown(run.folder, runs_dir), run.state, run.host, epoch + of, dev, remark)


def counts(runs: Sequence[RunState]) -> str:
    """How many runs there are in each state, in words."""
    found = Counter(run.state for run in runs)
    parts = ", ".join(f"{found[state]:,} {state}" for state in STATES if found[state])
    return f"{len(runs):,} run{'s' * (len(runs) != 1)}" + (f": {parts}" if parts else "")


def log_of(folder: Path) -> str:
    """The log of a run: ours, or what the commands of another parser have said."""
    path = next((folder / name for name in (LOG, "train.log") if (folder / name).exists()), None)
    if path is None:
        raise CheckpointError(f"{folder}: has no log: nothing was said there")
    return read_bounded(path, CheckpointError).decode(errors="replace")


class Cleaned(NamedTuple):
    """What became of a run: bytes that its last checkpoint took, or why all was kept."""

    folder: Path
    freed: int
    kept: str = ""


def clean_runs(place: Path, *, dry_run: bool = False) -> Iterator[Cleaned]:
    """Drop the last checkpoints of finished runs below a folder; an answer for each that has one.
    Their state (``progress.json``), which says that the run has ended, stays."""
    for folder in find_runs(place):
        if not (folder / SETTINGS).exists():
            continue
        last, freed = folder / LAST, 0
        try:
            with run_lock(folder):
                if not (kept := _why_kept(folder)):
                    freed = read_folder(last, _size)
                if freed and not dry_run:
                    state = read_folder(last, lambda at: (at / PROGRESS).read_bytes())
                    write_folder(last, lambda new: write_new(new / PROGRESS, state))  # noqa: B023
        except (RunOwnedError, CheckpointError) as error:
            kept = str(error)
        except OSError as error:
            raise CheckpointError(
                f"{last}: cannot be written: {error.strerror}; it is as it was. {remedy(error)}"
            ) from None
        if freed or kept:
            yield Cleaned(folder, freed, kept)


def _why_kept(folder: Path) -> str:
    if (folder / TRAINED).exists():
        return "a parser of somebody else, of which nothing is known to be idle"
    if (state := final_progress(folder)) is None:
        return "training has not ended"
    if state.stopped_by == OUT_OF_TIME:
        return "its time was over; with more --minutes it goes on"
    best = last_complete_version(folder / BEST)
    whole = best is not None and (best / "parser.json").is_file()
    return "" if whole else f"it has no whole parser in {BEST}/"


def _size(last: Path) -> int:
    """The bytes of all files but that of the state."""
    files = (path for path in last.rglob("*") if path.is_file() and path != last / PROGRESS)
    return sum(path.stat().st_size for path in files)
