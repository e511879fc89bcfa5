"""A parser of somebody else on a treebank, trained and scored as runs of ours are.

The folder is ``RUNS/treebank/system-size-seedN``, with the minutes where there is a limit.
``run.json`` says with what it was trained, ``train.log`` has what its command printed, ``model/``
what it left, and ``trained.json``, written last, what it took. A system sees the training and the
dev split; test is closed until it is scored. What it answers stays in the folder.

A command and all that it starts in its session end with it: when its seconds are over, and when
this process is asked to end. They are asked first and ended by force :data:`GRACE` seconds later.
Where this process dies of a sudden, the operating system (Linux) ends the command itself.
"""

from __future__ import annotations

import math
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

import torch

from spmrl_bench.errors import CheckpointError, TrainingError
from spmrl_bench.experiments import run_folder
from spmrl_bench.experiments.plan import choose_treebank
from spmrl_bench.experiments.recipe import Size, load_recipe
from spmrl_bench.experiments.score import AnyRun, Scoring
from spmrl_bench.experiments.search import SearchPlan, Tried
from spmrl_bench.experiments.train import chosen_sentences
from spmrl_bench.leaderboard.environment import find_hardware, find_versions
from spmrl_bench.leaderboard.frame import searches_behind
from spmrl_bench.leaderboard.record import Record, System, SystemTraining
from spmrl_bench.nn.device import choose_device
from spmrl_bench.nn.inputs.pretrained import encoder_folder
from spmrl_bench.process.console import say
from spmrl_bench.scoring.metric import METRICS, SelectionMetric, metric_named
from spmrl_bench.scoring.signature import settings_folder
from spmrl_bench.storage.digests import file_digest
from spmrl_bench.storage.files import remove_folder, remove_orphans, write_text
from spmrl_bench.systems import watcher
from spmrl_bench.systems.description import (
    SENTENCES,
    Frozen,
    SystemDescription,
    Value,
    environment_of,
    system_paths,
    version_of,
)
from spmrl_bench.systems.enter import KIND, file_text, score_answers, write_counted
from spmrl_bench.trees.parse import Parse

_MODEL, _SPLITS = "model", ("dev", "test")
_ENDINGS = {"brackets": "mrg", "conllu": "conllu"}
_LOG, _PARSE_LOG = "train.log", "parse.log"  # what the commands that train and parse print
GRACE = 20.0  # seconds between asking a command to end and ending it
#: Variables by which libraries of linear algebra learn how many threads they may use.
_THREADS = tuple(
    f"{library}_NUM_THREADS" for library in ("OMP", "MKL", "OPENBLAS", "BLIS", "NUMEXPR", "RAYON")
)
_OURS = ("PYTHONPATH", "PYTHONHOME")  # would have a system import our libraries, not its own


class ResourceUsage(NamedTuple):
    seconds: float
    processor_seconds: float  # for each thread
    peak_memory_bytes: int  # of its largest process
    out_of_time: bool


class SystemSettings(Frozen):
    """All that decides what a system learns: what is stored with its run."""

    recipe: str
    treebank: str
    fingerprint: str
    system: str
    version: str
    description: str  # a digest of it and of the drivers that it names
    size: Size
    seed: int
    values: dict[str, Value]  # all settings
    settings: dict[str, Value]  # those that the command line changed
    minutes: float | None  # of the processor that training may take; what is reached then counts


class Trained(Frozen):
    seconds: float
    processor_seconds: float | None = None
    peak_memory_bytes: int
    out_of_time: bool
    threads: int
    device: str
    packages: dict[str, str]  # versions of what the system's environment has
    epochs: float | None = None
    dev: float | None = None  # the score, of a trial of a search

    def __str__(self) -> str:
        ended = ", ended by the clock" if self.out_of_time else ""
        return f"in {self.seconds:.0f} s{ended}, {self.peak_memory_bytes / 2**20:,.0f} MiB"

    @classmethod
    def of(cls, folder: Path) -> Trained | None:
        """Return what the training of a folder took, None before it has ended."""
        return run_folder.read_noted(cls, folder / run_folder.TRAINED)


@dataclass(frozen=True)
class SystemRun(AnyRun):
    """One system on one treebank with one seed."""

    config: SystemSettings
    system: SystemDescription = field(kw_only=True)

    @property
    def variant(self) -> str:
        return self.system.name

    def _run(self, command: Sequence[str], log: str, device: str, **more: Any) -> ResourceUsage:
        threads, seconds = torch.get_num_threads(), more.get("seconds")
        values = {
            **self.config.values,
            "python": environment_of(self.system).python,
            "here": self.system.path.parent,
            "model": self.folder.absolute() / _MODEL,
            "seed": self.config.seed,
            "threads": threads,
            "device": choose_device(device).type,
            "encoder": encoder_folder(self.system.encoder) or "",
            **more,
            "seconds": int(seconds or 0),
        }
        filled = [argument.format_map(values) for argument in command]
        return run_command(filled, self.folder / log, threads=threads, seconds=seconds)

    def state(self) -> Trained | None:
        noted = run_folder.read_noted(SystemSettings, self.folder / run_folder.SETTINGS)
        if noted not in (None, self.config):
            pair = (one.model_dump(mode="json") for one in (noted, self.config) if one)
            raise run_folder.settings_mismatch(self.folder, *pair)
        return Trained.of(self.folder)

    def trained(self) -> str | None:
        state = self.state()
        if self.system.train is None:
            return f"on {self.system.training_data}: 'spmrl-bench eval' scores it"
        return None if state is None else str(state)

    def train(self, *, device: str) -> None:
        folder, train, threads = self.folder, self.system.train, torch.get_num_threads()
        assert train is not None, "it is trained"
        with run_folder.run_lock(folder), run_folder.recording_failure(folder, _LOG):
            if self.state() is not None:
                return
            about = f"{self.note}; " if self.note else ""
            say(f"{self.title}: {about}{threads} thread{'s' * (threads > 1)}")
            run_folder.write_settings(folder, self.config)
            if not train.continues:
                remove_folder(folder / _MODEL)
            (folder / _MODEL).mkdir(exist_ok=True)
            data = folder.absolute() / "data"
            remove_folder(data)  # of a process that was killed
            try:
                files = {}
                for split in ("train", "dev"):
                    files[split] = data / f"{split}.{_ENDINGS[train.format]}"
                    sentences = self._sentences(split)
                    tags = train.tags == "treebank"
                    text = file_text(sentences, train.format, tags=tags, structure=True)
                    write_text(files[split], text)
                seconds = self.config.minutes and 60 * self.config.minutes
                usage = self._run(train.command, _LOG, device, seconds=seconds, **files)
            finally:
                remove_folder(data)
            if not (folder / _MODEL / train.product).exists():
                over = " when its time was over (--minutes)" if usage.out_of_time else ""
                raise TrainingError(
                    f"{self.title}: {folder / _MODEL} has no {train.product}{over}, so nothing was "
                    f"learnt; see {folder / _LOG}"
                )
            log = (folder / _LOG).read_text(encoding="utf-8", errors="replace")
            epochs = re.findall(train.epoch, log, re.MULTILINE) if train.epoch else []
            state = Trained(
                **usage._asdict(),
                epochs=float(epochs[-1]) if epochs else None,
                threads=threads,
                device=choose_device(device).type,
                packages=environment_of(self.system).versions,
            )
            self._note(state)
            remove_orphans(folder)
        say(f"{self.title}: trained {state}")

    def _sentences(self, split: str) -> Sequence[Parse]:
        every, config = self.treebank.examples(split, [self.system.layer]), self.config
        if split == "dev" or (wanted := config.values.get(SENTENCES)) is None:
            return every
        numbers = chosen_sentences(int(wanted), config.seed, config.treebank, len(every))
        return [every[number] for number in numbers]

    def _note(self, state: Trained) -> None:
        write_text(self.folder / run_folder.TRAINED, state.model_dump_json(indent=1) + "\n")

    def dev_score(self) -> float:
        if self.state() is None and self.system.train is not None:
            how = "run 'spmrl-bench train' with the same options"
            raise run_folder.UntrainedError(f"{self.folder}: training has not ended; {how}")
        return 0.0  # it competes with nobody, so any score will do

    def train_and_score_dev(self, *, device: str) -> None:
        """Train it as a trial of a search, which has the score of what it answers on dev."""
        self.train(device=device)
        with run_folder.run_lock(self.folder):
            self._parse(self.treebank.examples("dev", [self.system.layer]), "dev", device)
            record, state = self._scored(Scoring(self.folder), device, ("dev",)), self.state()
            assert record.dev is not None
            assert state is not None
            score = record.dev.score(SelectionMetric.parse(record.select))
            self._note(state.model_copy(update={"dev": score}))

    def recorded(self, records: Sequence[Record], scoring: Scoring) -> Record | None:
        try:
            hashes = [file_digest(path) for (path,) in self._answers(_SPLITS).values()]
        except OSError:
            return None
        weights = sha256("".join(hashes).encode()).hexdigest()
        wanted = weights, self.config.treebank, self.recipe()
        same = (one for one in records if (one.weights, one.treebank.name, one.recipe) == wanted)
        found = max(same, key=lambda record: record.finished, default=None)
        if found is not None and scoring.save_parses:
            self._scored(scoring)
        return found

    def score(self, scoring: Scoring, *, device: str) -> None:
        bank = self.treebank.with_test()
        with run_folder.run_lock(self.folder):
            (self.folder / _MODEL).mkdir(parents=True, exist_ok=True)
            run_folder.write_settings(self.folder, self.config)  # also if trained elsewhere
            # In the time of the shortest sentence the command starts and loads its model.
            shortest = min(bank.examples("dev", [self.system.layer]), key=len)
            try:
                idle = self._parse([shortest], "shortest", device)
            except TrainingError:  # it cannot parse that alone
                idle = math.inf
            speeds: dict[str, float | None] = {}
            for split in _SPLITS:
                sentences = bank.examples(split, [self.system.layer])
                busy = self._parse(sentences, split, device) - idle
                speeds[split] = sum(map(len, sentences)) / busy if busy > 0 else None
            record = self._scored(scoring, device, speeds=speeds)
        say(f"wrote {write_counted(record, scoring.results_dir / 'runs')[1]}")

    def _parse(self, sentences: Sequence[Parse], name: str, device: str) -> float:
        """Let the system parse; the seconds that it took."""
        parse, path = self.system.parse, self.folder.absolute() / f"{name}.parses"
        given = path.with_suffix(".given")
        write_text(given, file_text(sentences, parse.input, tags=parse.tags == "treebank"))
        path.unlink(missing_ok=True)
        usage = self._run(parse.command, _PARSE_LOG, device, input=given, output=path)
        if not path.is_file():
            raise TrainingError(f"{self.title}: no parses written; see {self.folder / _PARSE_LOG}")
        return usage.seconds

    def _answers(self, splits: Sequence[str]) -> dict[str, list[Path]]:
        return {split: [self.folder / f"{split}.parses"] for split in splits}

    def _scored(
        self,
        scoring: Scoring,
        device: str = "cpu",
        splits: Sequence[str] = _SPLITS,
        speeds: Mapping[str, float | None] | None = None,
    ) -> Record:
        system, config, state = self.system, self.config, self.state()
        some = f"{few} sentences of " if (few := config.values.get(SENTENCES)) else ""
        packages = state.packages if state else environment_of(system).versions
        described = System(
            name=system.title,
            version=config.version,
            url=system.url,
            paper=system.paper,
            training_data=system.training_data or f"{some}train of {config.treebank}",
            notes=system.adapted,
            training=state
            and SystemTraining(
                wall_seconds=state.seconds,
                minutes=config.minutes,
                **state.model_dump(
                    include={"processor_seconds", "peak_memory_bytes", "out_of_time", "epochs"}
                ),
            ),
            outputs={},
        )
        return score_answers(
            self._answers(splits),
            self.treebank.with_test() if "test" in splits else self.treebank,
            described,
            policy=system.parse.faults,
            tags=system.parse.tags == "treebank",
            parses_in=scoring.results_dir if scoring.save_parses else None,
            speeds=speeds,
            about={"learns": system.learns, "encoder": system.encoder},
            recipe=self.recipe(),
            searches=searches_behind(self.folder.parents[1], self.recipe()),
            lang=config.recipe,
            size=config.size,
            seed=config.seed,
            hardware=find_hardware(choose_device(device)).model_copy(update={"kernels": None}),
            versions=find_versions() | packages,
        )

    def recipe(self) -> dict[str, object]:
        """What tells its runs from those of other systems and settings, in a record."""
        own, title = self.config, self.system.title
        about = own.model_dump(include={"version", "description", "minutes"})
        given = {f"system.{key}": own.settings[key] for key in own.settings}
        given |= {} if own.minutes is None else {run_folder.MINUTES: own.minutes}
        return {
            "kind": KIND,
            "variant": f"{title} {own.version}".strip(),
            **own.model_dump(include={"size", "seed"}),
            "system": {"name": title, **about, **own.values},
            "settings": given,
        }


class SystemSearch(SearchPlan):
    """A search over a system on one treebank, whose trials are whole trainings. It is trained
    without a look at its own scores of dev, which are counted otherwise; what it answers on dev is
    scored as all is, and nothing ends a trial that falls behind."""

    @property
    def select(self) -> str:
        metrics = {metric_named(name).layers: name for name in METRICS.names()}
        name = metrics[self.first.system.layer,]
        return f"{name}.{metric_named(name).headline}"

    @property
    def name(self) -> str:
        return str(self.first.system.name)

    @property
    def options(self) -> Sequence[str]:
        limit = self.first.config.minutes
        name = self.name if self.name in system_paths() else str(self.first.system.path)
        return "--system", name, *(() if limit is None else ("--minutes", f"{limit:g}"))

    def recipe(self, run: SystemRun) -> dict[str, Any]:
        return run.recipe() | run.config.model_dump(include={"treebank", "fingerprint"})

    def divided(self, run: SystemRun) -> tuple[dict[str, Any], dict[str, Any]]:
        found = self.recipe(run)
        for key in self.space:
            del found["settings"][f"system.{key}"]
        return found, {key: found["system"].pop(key) for key in self.space}

    def train(self, number: int, folder: Path) -> Callable[..., None]:
        return SystemRun.train_and_score_dev

    def tried(self, folder: Path) -> Tried | None:
        if (state := Trained.of(folder)) is None:
            return None
        spent = (state.processor_seconds or state.seconds) / 60
        return Tried(spent) if state.dev is None else Tried(spent, "complete", state.dev)


def system_runs(
    lang: str,
    system: SystemDescription,
    *,
    runs_dir: Path = Path("runs"),
    treebank: str | None = None,
    track: str | None = None,
    size: str | None = None,
    seeds: Sequence[int] = (1,),
    settings: Mapping[str, str] | None = None,
    minutes: float | None = None,
) -> list[SystemRun]:
    """The runs of a system on the treebank that our own parsers would take, one for each seed."""
    recipe = load_recipe(lang)
    bank, note = choose_treebank(recipe, treebank, track, [system.layer])
    if system.layer not in bank.layers:
        raise CheckpointError(
            f"treebank {bank.name} has {' and '.join(bank.layers)}; {system.title} "
            f"learns {system.layer}: name a treebank that has them with --treebank"
        )
    chosen = recipe.size_of(bank.track, size)
    values = system.chosen(chosen, settings or {})
    changed = {key: values[key] for key in sorted(settings or {})}
    if system.train is None:
        seeds, minutes = [0], None
    limit = "" if minutes is None else f"{minutes:g}min"
    runs = []
    for seed in dict.fromkeys(seeds):
        config = SystemSettings(
            recipe=recipe.name,
            treebank=bank.name,
            fingerprint=bank.fingerprint_of(system.layer),
            system=system.name,
            version=version_of(system),
            description=system.digest,
            size=chosen,
            seed=seed,
            values=values,
            settings=changed,
            minutes=minutes,
        )
        parts = (system.name, chosen, settings_folder(changed), limit, f"seed{seed}")
        folder = runs_dir / bank.name / "-".join(filter(None, parts))
        runs.append(SystemRun(bank, config, folder, note, system=system))
    return runs


def run_command(
    command: Sequence[str], log: Path, *, threads: int, seconds: float | None = None
) -> ResourceUsage:
    """Run a command to its end, or until its seconds of the processor, of each thread, are over,
    with its output behind a log. A TrainingError says the last line of that first, if it fails."""
    if shutil.which(command[0]) is None:
        raise TrainingError(f"{command[0]}: cannot be run: no such program")
    inherited = {key: value for key, value in os.environ.items() if key not in _OURS}
    output = {"PYTHONIOENCODING": "utf-8", "PYTHONUNBUFFERED": "1"}
    limits, begun = (seconds or 0, threads, GRACE), log.stat().st_size if log.exists() else 0
    with subprocess.Popen(
        [sys.executable, "-I", watcher.__file__, str(log), *map(str, limits), *command],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        start_new_session=True,  # Ctrl-C of a terminal is not for it
        preexec_fn=watcher.end_with_parent,
        env=inherited | dict.fromkeys(_THREADS, str(threads)) | output,
        text=True,
    ) as watching:
        try:
            said = watching.communicate()[0]
        except BaseException:  # this process is asked to end
            watching.terminate()
            raise
    # A watcher that was killed says nothing, and what it watched over is killed with it.
    status, took, busy, memory, ended = map(float, said.split() or (-signal.SIGKILL, 0, 0, 0, 0))
    if status and not ended:
        how = "was ended by signal" if status < 0 else "ended with status"
        text = log.read_bytes()[begun:].decode("utf-8", "replace")
        lines = [f"  {line[:300]}" for line in text.splitlines()[-3:]] or ["  (nothing)"]
        reason = f"{command[0]} {how} {abs(status):.0f}: {lines[-1].strip()}"
        raise TrainingError("\n".join([reason, " ".join(command), f"its log, {log}, ends", *lines]))
    return ResourceUsage(took, busy, int(memory), bool(ended))
