"""Scoring: select variants on dev, score them on test, and keep what comes of it as records.

What competes is what is trained on the same treebank and selected by the same figure. Selection
looks at the mean of the dev scores over the seeds of a variant, because the best of several says
more about luck than about the variant. A parser of somebody else competes with nobody.
"""

from __future__ import annotations

import hashlib
import math
import statistics
from abc import ABC, abstractmethod
from collections.abc import Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from spmrl_bench.errors import RecipeError, RecordError, SpmrlError
from spmrl_bench.experiments.evaluation import baseline_results, record_of, rules_of, score_split
from spmrl_bench.experiments.run_folder import ended
from spmrl_bench.leaderboard.documents import file_bytes, files_of, read_document, write_document
from spmrl_bench.leaderboard.environment import find_hardware
from spmrl_bench.leaderboard.frame import is_of, searches_behind
from spmrl_bench.leaderboard.record import WRITING, Record, SplitResult, Training, signature_parts
from spmrl_bench.leaderboard.saved_parses import SavedParses
from spmrl_bench.nn.device import choose_device, prepare_process
from spmrl_bench.parsers.ensemble import Ensemble as ParserEnsemble
from spmrl_bench.parsers.kinds import kind_named
from spmrl_bench.parsing.models import load_parser
from spmrl_bench.process.executors.backend import LOCAL, Backend
from spmrl_bench.process.executors.units import Unit, run_units
from spmrl_bench.scoring.metric import metric_named
from spmrl_bench.storage.locks import in_turn
from spmrl_bench.training import best_weights
from spmrl_bench.training.schedule import Progress, largest
from spmrl_bench.treebanks.treebank import Treebank

if TYPE_CHECKING:
    from spmrl_bench.experiments.plan import Run


class Scoring(NamedTuple):
    """What becomes of a run that is scored."""

    results_dir: Path  # records are written to its folder ``runs``
    selected: bool = True  # whether its variant is, so that test is scored too
    save_parses: bool = False  # keep what is scored and the gold trees in its folder ``parses``


@dataclass(frozen=True)
class AnyRun(ABC):
    """A run of ours or of a parser of somebody else: one variant on one treebank with one seed and
    its settings, frozen so that any process may have it; the evaluation alone opens the test split.
    """

    treebank: Treebank
    config: Any
    folder: Path
    note: str = ""  # on the treebank, for the user; of several runs one says it

    def __post_init__(self) -> None:
        object.__setattr__(self, "treebank", self.treebank.without_test())

    @property
    @abstractmethod
    def variant(self) -> str:
        """The same of runs that differ in their seeds only."""

    @property
    def title(self) -> str:
        return f"{self.config.treebank} {self.variant} seed {self.config.seed}"

    @property
    def group(self) -> Hashable:
        """The same of all that it competes with for the test split; by default it is alone."""
        return self.folder

    @property
    def cost(self) -> float:
        """Compares how long trainings take; of which it is not known, those begin first."""
        return math.inf

    @property
    def is_small(self) -> bool:
        """Whether it gains little from a second thread."""
        return False

    @abstractmethod
    def trained(self) -> str | None:
        """What its training came to; None where it has not ended, a CheckpointError where the
        folder is broken or holds a run with other settings."""

    @abstractmethod
    def train(self, *, device: str) -> None:
        """Train it, or continue what its folder has, and say its note."""

    @abstractmethod
    def dev_score(self) -> float:
        """What it has reached on dev in training; a CheckpointError where that has not ended."""

    @abstractmethod
    def recorded(self, records: Sequence[Record], scoring: Scoring) -> Record | None:
        """The newest record that says what would be scored, if its parses are kept as asked."""

    @abstractmethod
    def score(self, scoring: Scoring, *, device: str) -> None:
        """Score it and write its record."""


class KnownRecords:
    """The records of a results folder, or those with one of some ``names`` (of treebanks, weights)
    in them, each read once however often it is looked at, and why files cannot be read
    (``problems``). A RecordError where the folder cannot be read."""

    def __init__(self, results_dir: Path, names: Collection[str] = ("",)) -> None:
        self.results_dir = results_dir
        self.problems: dict[Path, str] = {}
        self._named = [name.encode() for name in names]
        self._found: dict[Path, Record | None] = {}
        self.look()

    def look(self) -> list[Record]:
        """The records that are there now, oldest first."""
        for path in files_of(self.results_dir / "runs", ".json"):
            if path not in self._found.keys() | self.problems.keys():
                try:
                    # To check one takes a hundred times as long as to look into it.
                    data = file_bytes(path, "the record")
                    named = any(name in data for name in self._named)
                    self._found[path] = read_document(Record, path) if named else None
                except RecordError as error:
                    self.problems[path] = str(error)
        return sorted(filter(None, self._found.values()), key=lambda record: record.finished)


def evaluate_all(
    runs: Sequence[AnyRun],
    known: KnownRecords,
    *,
    device: str = "auto",
    ensemble: bool = False,
    jobs: int = 1,
    on: Backend = LOCAL,
    save_parses: bool = False,
) -> tuple[list[Record], list[SpmrlError]]:
    """Score trained runs on dev and those of the best variants on test; ties go to the first.
    Return their records, in their order, and what kept others from having one.

    What was scored before with the same weights, trees and parameters is not scored again, unless
    another variant than then is selected, or its record or the parses to be kept are gone. Where a
    run is not trained to its end, none that it competes with is scored. An ``ensemble`` is of the
    runs of each best variant, scored as one parser after them.
    """
    results_dir = known.results_dir
    if on.is_local:
        choose_device(device)
    else:
        results_dir = results_dir.absolute()
    groups: dict[Hashable, list[AnyRun]] = {}
    for run in shared(runs, on):
        groups.setdefault(run.group, []).append(run)
    asked: list[tuple[AnyRun | Ensemble, Scoring]] = []
    errors: list[SpmrlError] = []
    units: list[Unit] = []
    records = known.look()
    for group in groups.values():
        try:
            entries = [
                (run, Scoring(results_dir, selected, save_parses))
                for run, selected in _entries(group, ensemble)
            ]
            units += [
                Unit(f"scoring {run.title}", run.score, (scoring,))
                for run, scoring in entries
                if run.recorded(records, scoring) is None
            ]
            asked += entries
        except SpmrlError as error:
            errors.append(error)
    if units:
        executor = on.executor(min(jobs, len(asked)), device=device, shared=results_dir)
        for outcome in run_units(units, executor):
            if isinstance(outcome.error, SpmrlError):
                errors.append(outcome.error)
            elif outcome.error is not None:  # a defect of the program
                raise outcome.error
        records = known.look()
    found = [run.recorded(records, scoring) for run, scoring in asked]
    return [record for record in found if record is not None], errors


def shared(runs: Sequence[AnyRun], on: Backend) -> list[AnyRun]:
    """The runs in folders that other machines find too, if work is done there."""
    if on.is_local:
        return list(runs)
    return [replace(run, folder=run.folder.absolute()) for run in runs]


def _entries(group: Sequence[AnyRun], ensemble: bool) -> list[tuple[AnyRun | Ensemble, bool]]:
    """Runs that compete, whether the variant of each is the best, and the ensemble of the best."""
    scores: dict[str, list[float]] = {}
    for run in group:
        scores.setdefault(run.variant, []).append(run.dev_score())
    best = max(scores, key=lambda name: statistics.fmean(scores[name]))
    entries: list[tuple[AnyRun | Ensemble, bool]] = [(run, run.variant == best) for run in group]
    members: Any = [run for run in group if run.variant == best]
    if ensemble and max(map(len, scores.values())) < 2:
        raise RecipeError(
            "an ensemble needs two runs of a variant at least: train and score several seeds, "
            "for instance with --seeds 5"
        )
    return [*entries, (Ensemble(members), True)] if ensemble else entries


@dataclass(frozen=True)
class Ensemble:
    """Runs of ours that parse as one parser; of one alone, the run."""

    runs: Sequence[Run]

    @property
    def title(self) -> str:
        return f"{self.runs[0].config.treebank} {self.runs[0].variant} ensemble"

    def recorded(self, records: Sequence[Record], scoring: Scoring) -> Record | None:
        config, weights = self.runs[0].config, [best_weights(run.folder) for run in self.runs]
        recipe = config.model_dump(mode="json")
        rules = rules_of(self.runs[0].treebank, kind_named(config.kind).metrics)
        same = (one for one in reversed(records) if is_of(one, recipe, weights))
        record = next((one for one in same if _counted_by(rules, one.dev)), None)
        # One of the other role, from when other seeds or variants competed, is not enough: tables
        # show the newest, and would say that another variant was selected.
        if record is None or record.selected != scoring.selected:
            return None
        if (saved := self._saved(scoring)) is not None:
            results = ((split, record.result(split)) for split in ("dev", "test"))
            if not all(result is None or saved.are_of(at, result, rules) for at, result in results):
                return None
        return record

    def score(self, scoring: Scoring, *, device: str) -> None:
        """Score dev, and test with the baselines if dev selected the variant; write the record."""
        runs, selected, alone = self.runs, scoring.selected, len(self.runs) == 1
        config, bank = runs[0].config, runs[0].treebank
        bank = bank.with_test() if selected else bank
        kind, weights = kind_named(config.kind), [""]
        prepare_process(device)
        # A training that goes on may replace its best parser at any moment.
        while weights != (weights := [best_weights(run.folder) for run in runs]):
            parsers = [load_parser(run.folder, device) for run in runs]
        results: dict[str, SplitResult] = {
            split: score_split(
                parsers[0] if alone else ParserEnsemble(parsers),
                bank,
                split,
                config,
                seeds=[] if alone else [run.config.seed for run in runs],
                saved=self._saved(scoring),
            )
            for split in (("dev", "test") if selected else ("dev",))
        }
        recipe = config.model_dump(mode="json")
        record = record_of(
            bank,
            kind.layers,
            lang=config.recipe,
            **config.model_dump(include={"kind", "variant", "size", "seed", "select"}),
            selected=selected,
            weights=weights[0] if alone else hashlib.sha256("".join(weights).encode()).hexdigest(),
            ensemble=[] if alone else weights,
            recipe=recipe,
            searches=searches_behind(runs[0].folder.parents[1], recipe),
            **results,
            baselines=baseline_results(bank, kind.metrics) if selected and alone else {},
            training=_training([ended(run.folder) for run in runs], parsers),
            hardware=find_hardware(getattr(parsers[0], "device", None)),
        )
        folder = scoring.results_dir / "runs"
        try:
            folder.mkdir(parents=True, exist_ok=True)
            with in_turn(folder / WRITING):  # another process may have scored the same
                known = KnownRecords(scoring.results_dir, weights)
                if self.recorded(known.look(), scoring) is None:
                    write_document(record, folder)
        except OSError as error:
            raise RecordError(f"{folder}: cannot be written: {error.strerror}") from None

    def _saved(self, scoring: Scoring) -> SavedParses | None:
        if not scoring.save_parses:
            return None
        folder, members = self.runs[0].folder, len(self.runs)
        name = folder.name if members == 1 else f"{folder.name}-ensemble-of-{members}"
        return SavedParses(scoring.results_dir / "parses" / folder.parent.name, name)


def _counted_by(rules: Mapping[str, Any], result: SplitResult | None) -> bool:
    if result is None or not rules.keys() <= result.metrics.keys():
        return False
    return all(
        value in (None, signature_parts(result.metrics[name].signature_long).get(key))
        for name, own in rules.items()
        for key, value in metric_named(name).counting(own).items()
    )


def _training(states: Sequence[Progress], parsers: Sequence[Any]) -> Training:
    """What the training of all took together; memory is that of the largest."""

    def total(name: str) -> Any:
        return sum(getattr(state, name) for state in states)

    seconds = total("train_seconds")
    return Training(
        epochs=total("epoch"),
        updates=total("steps"),
        parameters=sum(p.numel() for parser in parsers for p in parser.parameters()),
        wall_seconds=seconds + total("dev_seconds"),
        processor_seconds=total("processor_seconds"),
        tokens_per_second=total("tokens") / seconds if seconds else 0.0,
        peak_memory_bytes=largest(state.peak_memory_bytes for state in states),
        peak_gpu_memory_bytes=largest(state.peak_gpu_memory_bytes for state in states),
    )
