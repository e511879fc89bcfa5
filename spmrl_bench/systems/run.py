"""Training a system of somebody else on a treebank, as data of a run folder.

The folder is ``RUNS/treebank/system-size-seedN``, with the minutes where there is a limit.
``run.json`` says with what it was trained, ``train.log`` has what its command printed, ``model/``
what it left, and ``trained.json``, written last, what it took. A system sees the training split and
the dev split, by which it may choose; the test split is closed until it is scored.
"""

from __future__ import annotations

import shutil
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict

from spmrl_bench.errors import CheckpointError, TrainingError
from spmrl_bench.experiments.ownership import owned
from spmrl_bench.experiments.plan import choose_treebank
from spmrl_bench.experiments.recipe import load_recipe
from spmrl_bench.experiments.recipe_layers import Size
from spmrl_bench.experiments.run_folder import MINUTES, TRAINED, OtherSettingsError, differences
from spmrl_bench.experiments.run_notes import attempt_noted
from spmrl_bench.nn.device import choose_device
from spmrl_bench.scoring.settings_text import settings_folder
from spmrl_bench.storage.files import remove_folder, remove_orphans, write_text
from spmrl_bench.storage.json import parse_json
from spmrl_bench.systems.command import Cost, StoppedError, run
from spmrl_bench.systems.description import Known, Value, filled
from spmrl_bench.systems.environment import python_of, version_of, versions_of
from spmrl_bench.systems.material import trees_text
from spmrl_bench.treebanks.treebank import Treebank

Model = TypeVar("Model", bound=BaseModel)

MODEL, SETTINGS, LOG = "model", "run.json", "train.log"


class SystemSettings(BaseModel):
    """All that decides what a system learns: what is stored with its run."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    recipe: str
    treebank: str
    fingerprint: str
    system: str
    version: str
    description: str
    """A digest of its description and of the drivers that this names."""
    size: Size
    seed: int
    values: dict[str, Value]
    """All its settings."""
    settings: dict[str, Value]
    """Those that the command line changed."""
    minutes: float | None
    """That training may take; what has been reached then counts."""


class Trained(BaseModel):
    """What a training took."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    seconds: float
    peak_memory_bytes: int
    out_of_time: bool
    threads: int
    device: str
    packages: dict[str, str]
    """Versions of what the system's environment has."""


@dataclass(frozen=True)
class SystemRun:
    """One system on one treebank with one seed."""

    system: Known
    treebank: Treebank
    settings: SystemSettings
    folder: Path
    note: str
    """Which treebank was taken and why."""

    @property
    def title(self) -> str:
        """What it is called while it works."""
        return f"{self.settings.treebank} {self.system.name} seed {self.settings.seed}"

    @property
    def given(self) -> dict[str, Value]:
        """What the command line changed, by the keys that name a run: settings, and the time."""
        found = {f"system.{key}": value for key, value in self.settings.settings.items()}
        if self.settings.minutes is not None:
            found[MINUTES] = self.settings.minutes
        return found

    @property
    def is_trained(self) -> bool:
        """Whether its training has ended."""
        return trained(self.folder) is not None

    def values(self, *, threads: int, device: str, **more: object) -> dict[str, Any]:
        """What the placeholders of its commands stand for."""
        return {
            **self.settings.values,
            "python": python_of(self.system),
            "here": self.system.path.parent,
            "model": self.folder.absolute() / MODEL,
            "seed": self.settings.seed,
            "threads": threads,
            "device": choose_device(device).type,
            **more,
        }


def system_runs(
    lang: str,
    system: Known,
    runs_dir: Path,
    *,
    treebank: str | None = None,
    track: str | None = None,
    size: str | None = None,
    seeds: Sequence[int] = (1,),
    settings: Mapping[str, str] | None = None,
    minutes: float | None = None,
) -> list[SystemRun]:
    """The runs of a system that a command asks for, one for each seed.

    The treebank is chosen as for our own parsers: the one named, or the first of the recipe's that
    is there and has the layer that the system learns.

    Raises:
        SpmrlError: an unknown language, treebank, size or setting, no treebank with the layer, or
            the system is not installed.
    """
    recipe = load_recipe(lang)
    bank, note = choose_treebank(recipe, treebank, track, [system.description.layer])
    if system.description.layer not in bank.layers:
        raise CheckpointError(
            f"treebank {bank.name} has {' and '.join(bank.layers)}; {system.description.title} "
            f"learns {system.description.layer}: name a treebank that has them with --treebank"
        )
    chosen = recipe.size_of(bank.track, size)
    version = version_of(system)
    values = system.description.chosen(chosen, settings or {})
    changed = {key: values[key] for key in sorted(settings or {})}
    if system.description.train is None:
        seeds, minutes = [0], None
    found = []
    time = "" if minutes is None else f"{minutes:g}min"
    for seed in dict.fromkeys(seeds):
        parts = (system.name, chosen, settings_folder(changed), time, f"seed{seed}")
        name = "-".join(filter(None, parts))
        own = SystemSettings(
            recipe=recipe.name,
            treebank=bank.name,
            fingerprint=bank.fingerprint_of(system.description.layer),
            system=system.name,
            version=version,
            description=system.digest,
            size=chosen,
            seed=seed,
            values=values,
            settings=changed,
            minutes=minutes,
        )
        folder = runs_dir / bank.name / name
        found.append(SystemRun(system, bank.without_test(), own, folder, note))
    return found


def train_one(
    this: SystemRun, *, threads: int, device: str, fresh: bool, stop: threading.Event
) -> Trained:
    """Train a system, or return what its training took if it is done.

    What an interrupted training left is continued where the description says that the command
    does so, and else begun anew.

    Raises:
        OtherSettingsError: the folder was trained with other settings.
        TrainingError: the command failed, or left nothing to parse with.
        StoppedError: all is to end.
        SpmrlError: the folder cannot be written, another process trains in it, or the training
            data cannot be read.
    """
    train = this.system.description.train
    if train is None:
        raise TrainingError(
            f"{this.system.description.title} is not trained here (it was on "
            f"{this.system.description.training_data}): 'spmrl-bench eval' scores it"
        )
    folder = this.folder
    with owned(folder), attempt_noted(folder, log=LOG, besides=(StoppedError,)):
        if fresh:
            remove_folder(folder)
        check(this)
        if (done := trained(folder)) is not None:
            return done
        write_text(folder / SETTINGS, this.settings.model_dump_json(indent=1) + "\n")
        data = folder.absolute() / "data"
        if not train.continues:
            remove_folder(folder / MODEL)
        (folder / MODEL).mkdir(exist_ok=True)
        layer, tagged = this.system.description.layer, train.tags == "treebank"
        files = {}
        for split in ("train", "dev"):
            files[split] = data / f"{split}.{'mrg' if train.format == 'brackets' else 'conllu'}"
            examples = this.treebank.examples(split, [layer])
            write_text(files[split], trees_text(examples, layer, tags=tagged))
        seconds = None if this.settings.minutes is None else 60 * this.settings.minutes
        values = this.values(threads=threads, device=device, seconds=int(seconds or 0), **files)
        cost = run(
            filled(train.command, values),
            folder / LOG,
            threads=threads,
            seconds=seconds,
            stop=stop,
        )
        if not (folder / MODEL / train.product).exists():
            raise TrainingError(_nothing_left(this, cost, train.product))
        done = Trained(
            seconds=cost.seconds,
            peak_memory_bytes=cost.peak_memory_bytes,
            out_of_time=cost.out_of_time,
            threads=threads,
            device=choose_device(device).type,
            packages=versions_of(this.system),
        )
        write_text(folder / TRAINED, done.model_dump_json(indent=1) + "\n")
        shutil.rmtree(data)
        remove_orphans(folder)
        return done


def _nothing_left(this: SystemRun, cost: Cost, product: str) -> str:
    problem = f"{this.title}: {this.folder / MODEL} has no {product}, so nothing was learnt"
    if cost.out_of_time:
        return (
            f"{problem} within {this.settings.minutes:g} minutes: give it more (--minutes) or less "
            f"to do (--set; its settings: {', '.join(this.settings.values) or 'none'})"
        )
    return f"{problem}; see {this.folder / LOG}"


def check(this: SystemRun) -> None:
    """Check that the run folder, where there is one, was trained with these settings.

    Raises:
        OtherSettingsError: it was not.
        CheckpointError: what it was trained with cannot be read.
    """
    path = this.folder / SETTINGS
    if not path.exists():
        return
    earlier, now = _read(SystemSettings, path), this.settings
    if earlier != now:
        differing = differences(earlier.model_dump(mode="json"), now.model_dump(mode="json"))
        raise OtherSettingsError(
            f"{this.folder}: holds a run with other settings: {'; '.join(differing)}. Start anew "
            "with --fresh, choose another --runs folder, or give the earlier settings"
        )


def trained(folder: Path) -> Trained | None:
    """What the training in a folder took; None where it has not ended.

    Raises:
        CheckpointError: its file is broken.
    """
    path = folder / TRAINED
    return _read(Trained, path) if path.exists() else None


def _read(model: type[Model], path: Path) -> Model:
    try:
        return model.model_validate(parse_json(path.read_bytes()))
    except (OSError, ValueError) as error:
        reason = str(error).partition("\n")[0]
        raise CheckpointError(
            f"{path}: cannot be read: {reason}. Start anew with --fresh"
        ) from None
