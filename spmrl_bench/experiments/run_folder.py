"""What lies in a run's folder, and that one process at a time works there.

``RUNS/treebank/size-variant-seedN/`` has all settings of a run (``run.json``), the event log, the
last checkpoint and the best parser, and what ended it if that was an error (``failed.json``).
Training with other settings, or by two processes, would mix two runs. So the settings are compared,
and whoever works there has a lock beside the folder, ``.NAME.lock``.
"""

from __future__ import annotations

import datetime
import traceback
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError

from spmrl_bench.errors import CheckpointError, RunOwnedError, SpmrlError, remedy
from spmrl_bench.experiments.recipe import RunConfig
from spmrl_bench.storage.files import read_regular, remove_orphans, write_text
from spmrl_bench.storage.json import parse_json
from spmrl_bench.storage.living import this_machine
from spmrl_bench.storage.locks import SILENCE, LockedError, Owner, lock_of, locked
from spmrl_bench.storage.toml import validated
from spmrl_bench.training import LAST
from spmrl_bench.training.report import LOG, write_log
from spmrl_bench.training.schedule import OUT_OF_TIME, Progress, out_of_time, read_progress

#: The setting of the time that a run is given; with more of it a run goes on, in the same folder.
MINUTES = "train.max_minutes"
SETTINGS, FAILED = "run.json", "failed.json"
#: The file that is written last where a parser of somebody else has been trained.
TRAINED = "trained.json"


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
            remove_orphans(lock.parent)
            held.enter_context(locked(lock))
        except LockedError as error:
            raise RunOwnedError(_owner_text(error.owner, folder)) from None
        except OSError as error:
            raise unwritable(folder, error) from None
        remove_orphans(folder)
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
    """The error of a run folder that cannot be written."""
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


def read_failed(folder: Path) -> Failed | None:
    """What ended a run, None where nothing did; a CheckpointError where the note is broken."""
    path = folder / FAILED
    try:
        return Failed.model_validate_json(read_regular(path))
    except FileNotFoundError:
        return None
    except (OSError, ValidationError) as error:
        reason = getattr(error, "strerror", None) or "no such note"
        raise CheckpointError(f"{path}: cannot be read: {reason}") from None


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
            write_text(folder / FAILED, note.model_dump_json(indent=1) + "\n")
        raise


def write_settings(folder: Path, settings: BaseModel) -> None:
    """Note the settings of a run, ours or that of a parser of somebody else, in its folder."""
    try:
        write_text(folder / SETTINGS, settings.model_dump_json(indent=1) + "\n")
    except OSError as error:
        raise unwritable(folder, error) from None


def read_config(path: Path) -> RunConfig:
    """The settings noted in a ``run.json``; an UntrainedError where it is absent."""
    from spmrl_bench.parsers.legacy import nested

    try:
        noted: Any = parse_json(read_regular(path))
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
    """Raise a SettingsMismatchError if a run folder has settings that are not those of the run; it
    may have ``other_minutes`` to train."""
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
    """The state in which training has ended; None where it has not, or where it ran out of time and
    the settings with which it would go on give it more."""
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
