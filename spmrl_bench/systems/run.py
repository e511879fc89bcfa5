"""A parser of somebody else on a treebank, trained and scored as runs of ours are.

The folder is ``RUNS/treebank/system-size-seedN``, with the minutes where there is a limit.
``run.json`` says with what it was trained, ``train.log`` has what its command printed, ``model/``
what it left, and ``trained.json``, written last, what it took. A system sees the training split and
the dev split, by which it may choose; the test split is closed until it is scored. What it answers
stays in the folder, so that anybody can score it again.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Hashable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import torch
from pydantic import BaseModel, ConfigDict
from rich.console import Console

from spmrl_bench.errors import CheckpointError, TrainingError
from spmrl_bench.experiments.plan import choose_treebank
from spmrl_bench.experiments.recipe import Size, load_recipe
from spmrl_bench.experiments.run_folder import (
    MINUTES,
    SETTINGS,
    TRAINED,
    UntrainedError,
    recording_failure,
    run_lock,
    settings_mismatch,
    write_settings,
)
from spmrl_bench.experiments.score import Scoring
from spmrl_bench.leaderboard.environment import find_hardware, find_versions
from spmrl_bench.leaderboard.provenance import Provenance
from spmrl_bench.leaderboard.record import (
    Output,
    Record,
    SplitResult,
    System,
    SystemTraining,
    load_records,
    write_record,
)
from spmrl_bench.nn.device import choose_device
from spmrl_bench.scoring.settings_text import settings_folder
from spmrl_bench.storage.files import remove_folder, remove_orphans, write_text
from spmrl_bench.storage.json import parse_json
from spmrl_bench.storage.locks import LockedError, locked
from spmrl_bench.systems.command import Cost, run
from spmrl_bench.systems.description import Known, Value, filled
from spmrl_bench.systems.entry import score_file, signed_title, system_record, with_tested
from spmrl_bench.systems.install import python_of, version_of, versions_of
from spmrl_bench.systems.material import trees_text, words_text
from spmrl_bench.systems.outputs import is_kept, keep_output
from spmrl_bench.training.report import messages
from spmrl_bench.treebanks.treebank import Treebank
from spmrl_bench.trees.parse import Parse

Model = TypeVar("Model", bound=BaseModel)

MODEL, SPLITS = "model", ("dev", "test")
#: What the commands that train and parse print.
LOG, PARSE_LOG = "train.log", "parse.log"

_GLANCE = 0.2  # seconds between two looks whether others have written their records


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
    """One system on one treebank with one seed; what it has to do with others is as of a run."""

    system: Known
    treebank: Treebank
    config: SystemSettings
    folder: Path
    note: str
    """Which treebank was taken and why."""

    #: How long it takes is not known, so it begins before those of which it is.
    cost = float("inf")
    is_small = False

    @property
    def title(self) -> str:
        """What it is called while it works."""
        return f"{self.config.treebank} {self.system.name} seed {self.config.seed}"

    @property
    def variant(self) -> str:
        """Its name."""
        return self.system.name

    @property
    def group(self) -> Hashable:
        """It competes with nobody for the test split."""
        return self.folder

    @property
    def given(self) -> dict[str, Value]:
        """What the command line changed, by the keys that name a run: settings, and the time."""
        found = {f"system.{key}": value for key, value in self.config.settings.items()}
        if self.config.minutes is not None:
            found[MINUTES] = self.config.minutes
        return found

    # Training ---------------------------------------------------------------------------------

    def state(self) -> Trained | None:
        """What its training took; None where it has not ended.

        Raises:
            SettingsMismatchError: the folder was trained with other settings.
            CheckpointError: a file of it is broken.
        """
        if (path := self.folder / SETTINGS).exists():
            noted = _read(SystemSettings, path)
            if noted != self.config:
                pair = (one.model_dump(mode="json") for one in (noted, self.config))
                raise settings_mismatch(self.folder, *pair)
        path = self.folder / TRAINED
        return _read(Trained, path) if path.exists() else None

    def trained(self) -> str | None:
        """What its training came to; None where it has not ended."""
        description, state = self.system.description, self.state()
        if description.train is None:
            return f"on {description.training_data}: 'spmrl-bench eval' scores it"
        return None if state is None else _cost_text(state)

    def train(self, note: str | None, *, device: str, console: Console | None = None) -> None:
        """Train it.

        What an interrupted training left is continued where the description says that the command
        does so, and else begun anew. The trees that it learns from lie in the folder as long.

        Raises:
            SettingsMismatchError: the folder was trained with other settings.
            TrainingError: the command failed, or left nothing to parse with.
            SpmrlError: the folder cannot be written, another process trains in it, or the training
                data cannot be read.
            Interrupted: Ctrl-C or SIGTERM; the command has ended.
        """
        folder, train = self.folder, self.system.description.train
        assert train is not None, "it is trained"
        data, threads = folder.absolute() / "data", torch.get_num_threads()
        with run_lock(folder), recording_failure(folder, LOG):
            if self.state() is not None:
                return
            about = f"{note}; " if note else ""
            _say(console, f"{self.title}: {about}{threads} thread{'s' * (threads > 1)}")
            write_settings(folder, self.config)
            if not train.continues:
                remove_folder(folder / MODEL)
            (folder / MODEL).mkdir(exist_ok=True)
            remove_folder(data)  # of a process that was killed
            try:
                cost = self._learn(data, threads, device)
            finally:
                remove_folder(data)
            if not (folder / MODEL / train.product).exists():
                raise TrainingError(self._nothing_learnt(cost, train.product))
            state = Trained(
                seconds=cost.seconds,
                peak_memory_bytes=cost.peak_memory_bytes,
                out_of_time=cost.out_of_time,
                threads=threads,
                device=choose_device(device).type,
                packages=versions_of(self.system),
            )
            write_text(folder / TRAINED, state.model_dump_json(indent=1) + "\n")
            remove_orphans(folder)
        _say(console, f"{self.title}: trained {_cost_text(state)}")

    def _learn(self, data: Path, threads: int, device: str) -> Cost:
        """Write the trees and run the command."""
        description, minutes = self.system.description, self.config.minutes
        assert description.train is not None
        ending = "mrg" if description.train.format == "brackets" else "conllu"
        files = {split: data / f"{split}.{ending}" for split in ("train", "dev")}
        for split, path in files.items():
            examples = self.treebank.examples(split, [description.layer])
            tags = description.train.tags == "treebank"
            write_text(path, trees_text(examples, description.layer, tags=tags))
        seconds = None if minutes is None else 60 * minutes
        values = self._values(threads, device, seconds=int(seconds or 0), **files)
        command = filled(description.train.command, values)
        return run(command, self.folder / LOG, threads=threads, seconds=seconds)

    def _values(self, threads: int, device: str, **more: object) -> dict[str, Any]:
        """What the placeholders of its commands stand for."""
        return {
            **self.config.values,
            "python": python_of(self.system),
            "here": self.system.path.parent,
            "model": self.folder.absolute() / MODEL,
            "seed": self.config.seed,
            "threads": threads,
            "device": choose_device(device).type,
            **more,
        }

    def _nothing_learnt(self, cost: Cost, product: str) -> str:
        problem = f"{self.title}: {self.folder / MODEL} has no {product}, so nothing was learnt"
        if cost.out_of_time:
            return (
                f"{problem} within {self.config.minutes:g} minutes: give it more (--minutes) or "
                f"less to do (--set; its settings: {', '.join(self.config.values) or 'none'})"
            )
        return f"{problem}; see {self.folder / LOG}"

    # Scoring ----------------------------------------------------------------------------------

    def dev_score(self) -> float:
        """See that it is trained; it competes with nobody, so any score will do.

        Raises:
            CheckpointError: it is not trained, or with other settings.
        """
        if self.state() is None and self.system.description.train is not None:
            raise UntrainedError(
                f"{self.folder}: training has not ended; run 'spmrl-bench train' with the same "
                "options"
            )
        return 0.0

    def recorded(self, records: Sequence[Record], scoring: Scoring) -> Record | None:
        """The newest record of the answers that the folder has; they are kept, if they are to be.

        Raises:
            SpmrlError: they cannot be.
        """
        try:
            there = {
                split: hashlib.sha256(self._answers(split).read_bytes()).hexdigest()
                for split in SPLITS
            }
        except OSError:
            return None
        layer, recipe = self.system.description.layer, self._recipe()
        for record in reversed(records):
            same = record.treebank.name == self.config.treebank and record.recipe == recipe
            if record.system is None or not same:
                continue
            outputs = record.system.outputs
            if {split: one.sha256.get(layer) for split, one in outputs.items()} == there:
                if scoring.save_parses:
                    self._keep(outputs, scoring.results_dir)
                return record
        return None

    def score(self, scoring: Scoring, *, device: str, console: Console | None = None) -> None:
        """Parse dev and test and write the record.

        Raises:
            TrainingError: its command failed or wrote nothing.
            SpmrlError: its answers cannot be read.
        """
        threads, parse = torch.get_num_threads(), self.system.description.parse
        bank, state = self.treebank.with_test(), self.state()
        source = Provenance(
            tags=bank.manifest.tags if parse.tags == "treebank" else "none",
            variant=signed_title(self._described().title),
            settings=self.given,
            size=self.config.size,
            seed=self.config.seed,
        )
        results: dict[str, SplitResult] = {}
        outputs: dict[str, Output] = {}
        with run_lock(self.folder):
            if not (self.folder / SETTINGS).exists():  # it was trained elsewhere
                (self.folder / MODEL).mkdir(parents=True, exist_ok=True)
                write_settings(self.folder, self.config)
            idle = self._start_seconds(bank, threads, device)
            for split in SPLITS:
                sentences = bank.examples(split, [self.system.description.layer])
                seconds = self._parse(sentences, split, threads, device)
                path = self._answers(split)
                found = score_file(path, bank, split, source, policy=parse.faults)
                speed = None
                if idle is not None and seconds > idle:
                    speed = sum(map(len, sentences)) / (seconds - idle)
                results[split] = found.result.model_copy(update={"tokens_per_second": speed})
                outputs[split] = found.output
            record = system_record(
                bank,
                self._described(),
                results,
                outputs,
                recipe=self._recipe(),
                lang=self.config.recipe,
                size=self.config.size,
                seed=self.config.seed,
                hardware=find_hardware(choose_device(device)).model_copy(
                    update={"threads": threads, "kernels": None}
                ),
                versions=find_versions() | (state.packages if state else versions_of(self.system)),
            )
            if scoring.save_parses:
                self._keep(outputs, scoring.results_dir)
        _say(console, f"wrote {_write_counted(record, scoring.results_dir / 'runs')}")

    def _parse(self, sentences: Sequence[Parse], name: str, threads: int, device: str) -> float:
        """Let the system parse; returns in how many seconds."""
        parse = self.system.description.parse
        given, path = self.folder.absolute() / f"{name}.given", self._answers(name)
        text = words_text(sentences, parse.input, tags=parse.tags == "treebank")
        write_text(given, text)
        path.unlink(missing_ok=True)
        values = self._values(threads, device, input=given, output=path.absolute())
        begun = time.monotonic()
        run(filled(parse.command, values), self.folder / PARSE_LOG, threads=threads)
        seconds = time.monotonic() - begun
        if not path.is_file():
            raise TrainingError(
                f"{self.title}: wrote no {path.name}; see {self.folder / PARSE_LOG}"
            )
        return seconds

    def _start_seconds(self, bank: Treebank, threads: int, device: str) -> float | None:
        """The time in which the command starts and loads: that of the shortest sentence of dev.

        None if it cannot parse that alone.
        """
        shortest = min(bank.examples("dev", [self.system.description.layer]), key=len)
        try:
            return self._parse([shortest], "shortest", threads, device)
        except TrainingError:
            return None

    def _answers(self, split: str) -> Path:
        return self.folder / f"{split}.parses"

    def _keep(self, outputs: Mapping[str, Output], results_dir: Path) -> None:
        """Keep the answers, and the gold trees, among the results."""
        bank = self.treebank.with_test()
        for split, output in outputs.items():
            if not is_kept(output, bank.name, split, results_dir):
                keep_output(self._answers(split), output, bank, split, results_dir)

    def _described(self) -> System:
        description, state = self.system.description, self.state()
        return System(
            name=description.title,
            version=self.config.version,
            url=description.url,
            paper=description.paper,
            training_data=description.training_data or f"train of {self.config.treebank}",
            notes=description.adapted,
            training=state
            and SystemTraining(
                wall_seconds=state.seconds,
                peak_memory_bytes=state.peak_memory_bytes,
                minutes=self.config.minutes,
                out_of_time=state.out_of_time,
            ),
            outputs={},
        )

    def _recipe(self) -> dict[str, object]:
        """What tells its runs from those of other systems and settings."""
        own = self.config
        return {
            "kind": "system",
            "variant": self._described().title,
            "size": own.size,
            "seed": own.seed,
            "system": {
                "name": self.system.description.title,
                "version": own.version,
                "description": own.description,
                "minutes": own.minutes,
                **own.values,
            },
            "settings": self.given,
        }


def system_runs(
    lang: str,
    system: Known,
    *,
    runs_dir: Path = Path("runs"),
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
    time_given = "" if minutes is None else f"{minutes:g}min"
    found = []
    for seed in dict.fromkeys(seeds):
        parts = (system.name, chosen, settings_folder(changed), time_given, f"seed{seed}")
        config = SystemSettings(
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
        folder = runs_dir / bank.name / "-".join(filter(None, parts))
        found.append(SystemRun(system, bank.without_test(), config, folder, note))
    return found


def _write_counted(record: Record, folder: Path) -> Path:
    """Write a record that says how many outputs were scored on test before it, one at a time."""
    folder.mkdir(parents=True, exist_ok=True)
    while True:
        with suppress(LockedError), locked(folder / ".tested.lock"):
            earlier, _ = load_records(folder)
            return write_record(with_tested(record, earlier), folder)
        time.sleep(_GLANCE)


def _cost_text(state: Trained) -> str:
    ended = ", ended by the clock" if state.out_of_time else ""
    return f"in {state.seconds:.0f} s{ended}, {state.peak_memory_bytes / 2**20:,.0f} MiB"


def _say(console: Console | None, text: str) -> None:
    (console or messages()).print(text, markup=False, highlight=False, soft_wrap=True)


def _read(model: type[Model], path: Path) -> Model:
    try:
        return model.model_validate(parse_json(path.read_bytes()))
    except (OSError, ValueError) as error:
        reason = str(error).partition("\n")[0]
        raise CheckpointError(
            f"{path}: cannot be read: {reason}. Start anew with --fresh"
        ) from None
