"""The settings noted in a run's folder: they say what the checkpoints in it belong to.

A run lives in a folder of its own, ``RUNS/treebank/size-variant-seedN/``, in whose name the
settings that were changed of the recipe stand before the seed: the settings (``run.json``), the
event log, the last checkpoint and the best parser. Training with other settings would mix two
runs, so it is refused, with the keys that differ.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from spmrl_bench.errors import CheckpointError, SpmrlError, remedy
from spmrl_bench.experiments.run_config import RunConfig
from spmrl_bench.packages.description import read_package
from spmrl_bench.storage.bounded_files import read_regular
from spmrl_bench.storage.digests import file_digest
from spmrl_bench.storage.files import discard, read_folder, write_text
from spmrl_bench.storage.json_files import parsed_json
from spmrl_bench.storage.toml import validated
from spmrl_bench.training import BEST, LAST
from spmrl_bench.training.schedule import OUT_OF_TIME, Progress, out_of_time, read_progress
from spmrl_bench.treebanks.catalogue import load_manifest

#: The setting of the time that a run is given; with more of it a run goes on, in the same folder.
MINUTES = "train.max_minutes"


#: The file that is written last where a parser of somebody else has been trained.
TRAINED = "trained.json"


class OtherSettingsError(CheckpointError):
    """The folder holds a run with other settings."""


#: The file that says under which name a run was begun afresh.
FRESH = "fresh"


def claim(folder: Path, config: RunConfig, fresh: str) -> None:
    """Note the settings in the run folder, emptied first for a fresh start, which has a name."""
    try:
        if fresh:
            discard(folder)
            write_text(folder / FRESH, fresh)
        write_text(folder / "run.json", config.model_dump_json(indent=1) + "\n")
    except OSError as error:
        raise CheckpointError(
            f"{folder}: the run folder cannot be written: {error.strerror}. {remedy(error)}, or "
            "choose another --runs folder"
        ) from None


def begun_afresh(folder: Path, name: str) -> bool:
    """Whether the folder was emptied for the fresh start of this name."""
    try:
        return bool(name) and (folder / FRESH).read_text(encoding="utf-8") == name
    except (OSError, UnicodeDecodeError):
        return False


def check_settings(folder: Path, config: RunConfig, *, other_minutes: bool = False) -> None:
    """Check that the run folder, where there is one, was trained with these settings.

    Args:
        folder, config: of the run.
        other_minutes: whether it may have been given another time to train.

    Raises:
        OtherSettingsError: it was not.
        CheckpointError: what it was trained with cannot be read.
    """
    path = folder / "run.json"
    if not path.exists():
        return
    # Dumped, they lack what does not change the weights.
    earlier, now = read_config(path).model_dump(mode="json"), config.model_dump(mode="json")
    if other_minutes:
        for each in (earlier, now):
            each["train"].pop("max_minutes", None)
            each["settings"].pop(MINUTES, None)
    if earlier != now:
        from spmrl_bench.parsers.legacy import leaves, short

        for each in (earlier, now):
            each["model"] = short(leaves(each["model"]))
        differing = differences(earlier, now)
        raise OtherSettingsError(
            f"{folder}: holds a run with other settings: {'; '.join(differing)}. "
            "Start anew with --fresh, choose another --runs folder, or give the earlier settings"
        )


def finished(folder: Path, config: RunConfig | None = None) -> Progress | None:
    """The state in which training has ended; None where it has not.

    It changes nothing, so the folder may be another process's.

    Args:
        folder: of the run.
        config: with which it would go on: a run that ran out of time has not ended where that
            gives it more.

    Raises:
        CheckpointError: the checkpoint is incomplete.
    """
    saved = read_progress(folder / LAST)
    if saved is None or saved.stopped_by is None:
        return None
    more = saved.stopped_by == OUT_OF_TIME and config is not None
    return None if more and config is not None and not out_of_time(config.train, saved) else saved


def ended(folder: Path) -> Progress:
    """The state in which training has ended.

    Raises:
        CheckpointError: it has not.
    """
    if (state := finished(folder)) is None:
        raise CheckpointError(
            f"{folder}: training has not ended; run 'spmrl-bench train' with the same options "
            "to continue it"
        )
    return state


def read_config(path: Path) -> RunConfig:
    """The settings noted in a ``run.json``.

    Raises:
        CheckpointError: it is absent (nothing was trained there) or broken.
    """
    try:
        data = read_regular(path)
    except FileNotFoundError:
        raise CheckpointError(
            f"{path.parent}: not trained yet; run 'spmrl-bench train' with the same options"
        ) from None
    except OSError as error:
        raise CheckpointError(f"{path}: cannot be read: {error.strerror}") from None
    noted = _json(data, path)
    if isinstance(model := noted.get("model"), dict):
        from spmrl_bench.parsers.legacy import nested

        noted["model"] = nested(model)
    return validated(RunConfig, noted, path, CheckpointError)


def trained_transforms(folder: Path) -> list[str] | None:
    """Names of the transforms of the treebank that a parser was trained on.

    Args:
        folder: of a run, of a parser in it, or of a package.

    Returns:
        None if nothing says so, or the treebank is known here no more.

    Raises:
        PackageError: the description of the package is broken.
    """
    if (package := read_package(folder)) is not None:
        return list(package.treebank.transforms)
    for place in (folder, folder.parent):
        if (path := place / "run.json").is_file():
            try:
                return list(load_manifest(read_config(path).treebank).transforms)
            except SpmrlError:
                return None
    return None


def best_weights(folder: Path) -> str:
    """SHA-256 of the weights of the run's best parser, in hex: what its records know it by.

    Raises:
        CheckpointError: there is no such parser.
    """

    def digest(place: Path) -> str:
        try:
            return file_digest(place / "weights.safetensors")
        except OSError as error:
            raise CheckpointError(f"{folder / BEST}: no weights ({error.strerror})") from None

    return read_folder(folder / BEST, digest)


def _json(data: bytes, path: Path) -> dict[str, object]:
    try:
        value = parsed_json(data)
    except ValueError as error:
        raise CheckpointError(f"{path}: not JSON ({error}). Start anew with --fresh") from None
    if not isinstance(value, dict):
        raise CheckpointError(f"{path}: not the settings of a run. Start anew with --fresh")
    return value


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
