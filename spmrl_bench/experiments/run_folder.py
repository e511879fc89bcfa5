"""What lies in a run's folder, how the run stands, and that one process at a time works there.

``RUNS/treebank/size-variant-seedN/`` has all settings of a run (``run.json``), the event log, the
last checkpoint and the best parser, and what ended it if that was an error (``failed.json``).
Training with other settings, or by two processes, would mix two runs. So the settings are compared,
and whoever works there has a lock beside the folder, ``.NAME.lock``.

Runs are listed as their folders show them: what is broken of their files is said of the run, and
stops no listing. Nothing here imports torch.
"""

from __future__ import annotations

import dataclasses
import datetime
import os
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeVar, get_args

from pydantic import BaseModel

from spmrl_bench.errors import CheckpointError, RunOwnedError, SpmrlError, remedy, unknown_name
from spmrl_bench.experiments.recipe import RunConfig
from spmrl_bench.storage import files
from spmrl_bench.storage.json import parse_json, read_json
from spmrl_bench.storage.living import this_machine
from spmrl_bench.storage.locks import SILENCE, LockedError, Owner, holder, lock_of, locked
from spmrl_bench.storage.toml import validated
from spmrl_bench.training import BEST, LAST
from spmrl_bench.training.report import LOG, write_log
from spmrl_bench.training.schedule import (
    OUT_OF_TIME,
    PROGRESS,
    Progress,
    out_of_time,
    read_progress,
)

#: The setting of the time that a run is given; with more of it a run goes on, in the same folder.
MINUTES = "train.max_minutes"
SETTINGS, FAILED = "run.json", "failed.json"
#: The file that is written last where a parser of somebody else has been trained.
TRAINED = "trained.json"

State = Literal["running", "failed", "interrupted", "done"]
STATES: tuple[State, ...] = get_args(State)
#: What the columns of :func:`row` are called.
HEADINGS = ("run", "state", "host", "epoch", "dev", "")

_LONGEST = 60  # characters of a message in a row; `runs log` has it all

Value = TypeVar("Value")
Noted = TypeVar("Noted", bound=BaseModel)


class SettingsMismatchError(CheckpointError):
    """The folder holds a run with other settings."""


class UntrainedError(CheckpointError):
    """Nothing was trained in the folder, or not to its end."""


@contextmanager
def run_lock(folder: Path) -> Iterator[None]:
    """Hold the lock of a run folder, which need not exist; a RunOwnedError says who else does. What
    processes that are gone have left half written there is removed."""
    lock = lock_of(folder)
    with ExitStack() as held:
        try:
            lock.parent.mkdir(parents=True, exist_ok=True)
            files.remove_orphans(lock.parent)
            held.enter_context(locked(lock))
        except LockedError as error:
            raise RunOwnedError(_owner_text(error.owner, folder)) from None
        except OSError as error:
            raise unwritable(folder, error) from None
        files.remove_orphans(folder)
        yield


def _owner_text(owner: Owner, folder: Path) -> str:
    advice = f"Wait until it has ended, or end it ('kill {owner.pid}' lets it save)"
    if not owner.is_here:
        advice = (
            "Wait until it has ended; if it is gone, this is noticed "
            f"{SILENCE / 60:.0f} minutes after its last sign of life. If you are sure that it is, "
            f"delete {lock_of(folder)}"
        )
    return (
        f"{folder}: process {owner.pid} on {owner.host} has been training here since "
        f"{owner.since:%Y-%m-%d %H:%M:%S} UTC. {advice}"
    )


def unwritable(folder: Path, error: OSError) -> CheckpointError:
    return CheckpointError(
        f"{folder}: the run folder cannot be written: {error.strerror}. {remedy(error)}, or "
        "choose another --runs folder"
    )


class Failed(BaseModel):
    """What ended a run: when, where, what the user is told, and of a defect the traceback."""

    time: datetime.datetime
    host: str
    message: str
    traceback: str | None = None


def read_noted(model: type[Noted], path: Path) -> Noted | None:
    """What a file of the folder notes; None without one, a CheckpointError where it is wrong."""
    if not path.exists():
        return None
    return validated(model, read_json(path, CheckpointError), path, CheckpointError)


@contextmanager
def recording_failure(folder: Path, log: str = LOG) -> Iterator[None]:
    """Note an error that ends the training of a run in its folder and in its log, if it can be; a
    note of an earlier attempt goes. Of a run with other settings nothing is noted."""
    with suppress(OSError):
        (folder / FAILED).unlink()
    try:
        yield
    except SettingsMismatchError:
        raise
    except Exception as error:
        message, trace = str(error), None
        if not isinstance(error, SpmrlError):
            message = f"a defect of the program: {type(error).__name__}: {error}"
            trace = "".join(traceback.format_exception(error))
        write_log(folder / log, "\n".join(filter(None, (f"FAILED: {message}", trace))))
        text, trace = (
            (part or "").encode(errors="backslashreplace").decode() for part in (message, trace)
        )
        now, host = datetime.datetime.now(datetime.UTC), this_machine().partition(" ")[0]
        note = Failed(time=now, host=host, message=text, traceback=trace or None)
        with suppress(OSError):  # the user is told by the error itself
            files.write_text(folder / FAILED, note.model_dump_json(indent=1) + "\n")
        raise


def write_settings(folder: Path, settings: BaseModel) -> None:
    """Note the settings of a run, ours or that of a parser of somebody else, in its folder."""
    try:
        files.write_text(folder / SETTINGS, settings.model_dump_json(indent=1) + "\n")
    except OSError as error:
        raise unwritable(folder, error) from None


def read_config(path: Path) -> RunConfig:
    """The settings noted in a ``run.json``; an UntrainedError where it is absent."""
    from spmrl_bench.parsers.legacy import nested

    try:
        noted: Any = parse_json(files.read_regular(path))
        noted["model"] = nested(noted["model"])  # earlier versions wrote them side by side
    except FileNotFoundError:
        raise _untrained(path.parent) from None
    except OSError as error:
        raise CheckpointError(f"{path}: cannot be read: {error.strerror}") from None
    except (ValueError, TypeError, KeyError):
        raise CheckpointError(
            f"{path}: not the settings of a run. Start anew with --fresh"
        ) from None
    return validated(RunConfig, noted, path, CheckpointError)


def check_settings(folder: Path, config: RunConfig, *, other_minutes: bool = False) -> None:
    """Raise a SettingsMismatchError if a folder has other settings, besides ``other_minutes``."""
    path = folder / SETTINGS
    if not path.exists():
        return
    # Dumped, they lack what does not change the weights.
    pair = [each.model_dump(mode="json") for each in (read_config(path), config)]
    if other_minutes:
        for each in pair:
            each["train"].pop("max_minutes", None)
            each["settings"].pop(MINUTES, None)
    if pair[0] != pair[1]:
        from spmrl_bench.parsers.legacy import leaves, short

        for each in pair:
            each["model"] = short(leaves(each["model"]))
        raise settings_mismatch(folder, *pair)


def settings_mismatch(
    folder: Path, old: Mapping[str, object], new: Mapping[str, object]
) -> SettingsMismatchError:
    """The error of a folder that holds a run with other settings, with the keys that differ."""
    return SettingsMismatchError(
        f"{folder}: holds a run with other settings: {'; '.join(differences(old, new))}. "
        "Start anew with --fresh, choose another --runs folder, or give the earlier settings"
    )


def differences(old: Mapping[str, object], new: Mapping[str, object], at: str = "") -> list[str]:
    """``key: old there, new now`` for every key whose values differ."""
    found = []
    for key in new:
        before, now = old.get(key), new[key]
        if isinstance(before, Mapping) and isinstance(now, Mapping):
            found += differences(before, now, f"{at}{key}.")
        elif before != now:
            found.append(f"{at}{key} is {before} there, {now} now")
    return found


def final_progress(folder: Path, config: RunConfig | None = None) -> Progress | None:
    """The state in which training has ended; None where it has not, or a run out of time goes on
    with these settings."""
    saved = read_progress(folder / LAST)
    if saved is None or saved.stopped_by is None:
        return None
    goes_on = config and saved.stopped_by == OUT_OF_TIME and not out_of_time(config.train, saved)
    return None if goes_on else saved


def ended(folder: Path) -> Progress:
    """The state in which training has ended; an UntrainedError where it has not."""
    if (state := final_progress(folder)) is None:
        raise _untrained(folder)
    return state


def _untrained(folder: Path) -> UntrainedError:
    what = "training has not ended" if (folder / LAST).exists() else "not trained yet"
    return UntrainedError(f"{folder}: {what}; run 'spmrl-bench train' with the same options")


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
    for folder, folders, names in os.walk(place):
        folders[:] = [name for name in folders if name[0] != "."]
        if not {SETTINGS, FAILED}.isdisjoint(names):
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
    failed = tried(lambda: read_noted(Failed, folder / FAILED))
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
    return files.read_bounded(path, CheckpointError).decode(errors="replace")


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
                    freed = files.read_folder(last, _size)
                if freed and not dry_run:
                    state = files.read_folder(last, lambda at: (at / PROGRESS).read_bytes())
                    files.write_folder(last, lambda new: files.write_new(new / PROGRESS, state))  # noqa: B023
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
    best = files.last_complete_version(folder / BEST)
    whole = best is not None and (best / "parser.json").is_file()
    return "" if whole else f"it has no whole parser in {BEST}/"


def _size(last: Path) -> int:
    """The bytes of all files but that of the state."""
    found = (path for path in last.rglob("*") if path.is_file() and path != last / PROGRESS)
    return sum(path.stat().st_size for path in found)
