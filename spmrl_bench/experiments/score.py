"""Scoring: select variants on dev, score them on test, and keep what comes of it as records.

What competes is what is trained on the same treebank and selected by the same figure. Where a
variant was trained from several seeds, selection looks at the mean of their dev scores, because the
best of several seeds says more about luck than about the variant. A parser of somebody else
competes with nobody. The dev score of training and the final score take the same path.
"""

from __future__ import annotations

import datetime
import hashlib
import time
from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar

from rich.console import Console

from spmrl_bench.errors import RecipeError, RecordError, SentenceTooLongError, SpmrlError
from spmrl_bench.experiments.recipe import RunConfig
from spmrl_bench.experiments.run_folder import best_weights, ended
from spmrl_bench.experiments.search_document import searches_behind
from spmrl_bench.leaderboard.board import best_variant
from spmrl_bench.leaderboard.environment import find_commit, find_hardware, find_versions
from spmrl_bench.leaderboard.identity import is_of
from spmrl_bench.leaderboard.provenance import Provenance
from spmrl_bench.leaderboard.record import (
    MetricResult,
    Record,
    SplitResult,
    Training,
    TreebankInfo,
    read_record,
    signature_parts,
    write_record,
)
from spmrl_bench.leaderboard.saved_parses import SavedParses
from spmrl_bench.leaderboard.store import files_of
from spmrl_bench.nn.device import choose_device, prepare_process
from spmrl_bench.parsers.base import Parser
from spmrl_bench.parsers.ensemble import Ensemble as ParserEnsemble
from spmrl_bench.parsers.registry import baselines_for, kind_named
from spmrl_bench.parsing.models import load_parser
from spmrl_bench.process.executors.backend import LOCAL, Backend, executor_for
from spmrl_bench.process.executors.base import Unit, run_units
from spmrl_bench.scoring.counts import Counts
from spmrl_bench.scoring.metric import SelectionMetric, metric_named
from spmrl_bench.scoring.signature import sign
from spmrl_bench.training.report import messages
from spmrl_bench.training.schedule import Progress, largest
from spmrl_bench.treebanks.treebank import Treebank
from spmrl_bench.trees.parse import LAYERS, Layer, Parse

if TYPE_CHECKING:
    from spmrl_bench.experiments.plan import Run


class Scoring(NamedTuple):
    """What becomes of a run that is scored.

    Attributes:
        results_dir: records are written to its folder ``runs``.
        selected: whether its variant is, so that test is scored too.
        save_parses: keep what is scored and the gold trees in ``results_dir/parses``.
    """

    results_dir: Path
    selected: bool = True
    save_parses: bool = False

    @property
    def records_dir(self) -> Path:
        """The folder of the records."""
        return self.results_dir / "runs"


class AnyRun(Protocol):
    """A run of ours or of a parser of somebody else, frozen so that any process may have it.

    Attributes:
        title: what it is called while it works.
        folder: of it.
        note: which treebank was taken and why.
        cost: how long its training takes, compared with others.
        is_small: whether a second thread gains its training little.
        group: the same of all that it competes with for the test split.
        variant: the same of runs that differ in their seeds only.
    """

    @property
    def title(self) -> str: ...
    @property
    def folder(self) -> Path: ...
    @property
    def note(self) -> str: ...
    @property
    def cost(self) -> float: ...
    @property
    def is_small(self) -> bool: ...
    @property
    def group(self) -> Hashable: ...
    @property
    def variant(self) -> str: ...

    def trained(self) -> str | None:
        """What its training came to; None where it has not ended.

        Raises:
            SettingsMismatchError: the folder holds a run with other settings.
            CheckpointError: what the folder holds cannot be read.
        """

    def train(self, note: str | None, *, device: str, console: Console | None = None) -> None:
        """Train it, or continue what its folder has, and say a note on its treebank."""

    def dev_score(self) -> float:
        """What it has reached on dev in training.

        Raises:
            CheckpointError: it was not trained to its end, or with other settings.
        """

    def recorded(self, records: Sequence[Record], scoring: Scoring) -> Record | None:
        """The newest record of it, if it says what would be scored, and its parses are kept where
        they are to be."""

    def score(self, scoring: Scoring, *, device: str, console: Console | None = None) -> None:
        """Score it and write its record."""


class KnownRecords:
    """The records of a results folder, each read once however often it is looked at."""

    def __init__(self, results_dir: Path) -> None:
        """Read what is there.

        Raises:
            RecordError: the folder cannot be read.
        """
        self.results_dir = results_dir
        self.problems: dict[Path, str] = {}
        """Why files cannot be read."""
        self._found: dict[Path, Record] = {}
        self.look()

    def look(self) -> list[Record]:
        """The records that are there now, oldest first."""
        for path in files_of(self.results_dir / "runs", ".json"):
            if path not in self._found.keys() | self.problems.keys():
                try:
                    self._found[path] = read_record(path)
                except RecordError as error:
                    self.problems[path] = str(error)
        return sorted(self._found.values(), key=lambda record: record.finished)


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
    """Score trained runs on dev and those of the best variants on test.

    Of the variants that compete, the one with the highest mean dev score over its seeds is best;
    ties go to the first. A run that was scored before with the same weights, trees and parameters
    is not scored again, unless it has been selected since, or another variant instead of it, or its
    record cannot be read.

    Args:
        known: records of the results folder, to which others are added.
        ensemble: also score the runs of each best variant as one parser, after them.
        jobs: runs scored at once on this machine, each with its share of the threads.
        on: where they are scored.
        save_parses: keep what is scored and the gold trees (:class:`Scoring`); a run that has a
            record but not its parses is scored again.

    Returns:
        The records in the order of the runs, and what kept other runs from having one. Where a run
        is not trained to its end, none that it competes with is scored.

    Raises:
        RecordError: the folder of records cannot be read.
        Interrupted: Ctrl-C or SIGTERM.
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
    left: list[Unit] = []
    records = known.look()
    for group in groups.values():
        try:
            entries = [
                (run, Scoring(results_dir, selected, save_parses))
                for run, selected in _entries(group, ensemble)
            ]
            units = [
                Unit(f"scoring {run.title}", run.score, (scoring,))
                for run, scoring in entries
                if run.recorded(records, scoring) is None
            ]
        except SpmrlError as error:
            errors.append(error)
        else:
            asked += entries
            left += units
    if left:
        console = messages()

        def log(text: str) -> None:
            console.print(text, markup=False, highlight=False, soft_wrap=True)

        at_once = min(jobs, len(asked))
        executor = executor_for(on, at_once, device=device, shared=results_dir, log=log)
        for outcome in run_units(left, executor, log=log):
            if isinstance(outcome.error, SpmrlError):
                errors.append(outcome.error)
            elif outcome.error is not None:  # a defect of the program
                raise outcome.error
        records = known.look()
    found = [run.recorded(records, scoring) for run, scoring in asked]
    return [record for record in found if record is not None], errors


Each = TypeVar("Each", bound=AnyRun)


def shared(runs: Sequence[Each], on: Backend) -> list[Each]:
    """The runs in folders that other machines find too, if work is done there."""
    if on.is_local:
        return list(runs)
    return [replace(run, folder=run.folder.absolute()) for run in runs]  # type: ignore[type-var]


def _entries(group: Sequence[AnyRun], ensemble: bool) -> list[tuple[AnyRun | Ensemble, bool]]:
    """Runs that compete, whether the variant of each is the best, and the ensemble of the best.

    Raises:
        CheckpointError: a run is not trained to its end, or with other settings.
        RecipeError: an ensemble of a single run.
    """
    if ensemble and max(Counter(run.variant for run in group).values()) < 2:
        raise RecipeError(
            "an ensemble needs two runs of a variant at least: train and score several seeds, "
            "for instance with --seeds 5"
        )
    scores: dict[str, list[float]] = {}
    for run in group:
        scores.setdefault(run.variant, []).append(run.dev_score())
    best = best_variant(scores)
    entries: list[tuple[AnyRun | Ensemble, bool]] = [(run, run.variant == best) for run in group]
    if ensemble:
        members = [run for run in group if run.variant == best]
        entries.append((Ensemble(members), True))  # type: ignore[arg-type]
    return entries


# Ours ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Ensemble:
    """Runs of ours that parse as one parser."""

    runs: Sequence[Run]

    @property
    def title(self) -> str:
        """What it is called while it is scored."""
        return f"{self.runs[0].config.treebank} {self.runs[0].variant} ensemble"

    def recorded(self, records: Sequence[Record], scoring: Scoring) -> Record | None:
        """See :class:`AnyRun`."""
        return recorded(self.runs, records, scoring)

    def score(self, scoring: Scoring, *, device: str, console: Console | None = None) -> None:
        """See :class:`AnyRun`."""
        write_record(score_runs(self.runs, scoring, device), scoring.records_dir)


def recorded(runs: Sequence[Run], records: Sequence[Record], scoring: Scoring) -> Record | None:
    """The newest record of a run, or of several as an ensemble, if it says what would be scored.

    One that was scored in the other role since, when other seeds or variants competed, is not
    enough: tables show the newest, and would say that another variant was selected.
    """
    weights = [best_weights(run.folder) for run in runs]
    recipe = runs[0].config.model_dump(mode="json")
    rules = rules_of(runs[0].treebank, kind_named(runs[0].config.kind).metrics)
    for record in reversed(records):
        if is_of(record, recipe, weights) and _scored_alike(record, rules):
            saved = _saved(runs, scoring)
            kept = saved is None or all(
                saved.are_of(split, result, rules)
                for split in ("dev", "test")
                if (result := record.result(split)) is not None
            )
            return record if record.selected == scoring.selected and kept else None
    return None


def _scored_alike(record: Record, rules: Mapping[str, Any]) -> bool:
    """Whether a record has the scores that would be counted now."""
    for name, own in rules.items():
        result = record.dev.metrics.get(name) if record.dev else None
        if result is None:
            return False
        parts = signature_parts(result.signature_long)
        counting = metric_named(name).counting(own)
        if any(parts.get(key) != value for key, value in counting.items() if value is not None):
            return False
    return True


def _saved(runs: Sequence[Run], scoring: Scoring) -> SavedParses | None:
    if not scoring.save_parses:
        return None
    return SavedParses.of(scoring.results_dir, runs[0].folder, len(runs))


def score_runs(runs: Sequence[Run], scoring: Scoring, device: str) -> Record:
    """Score a run, or several as an ensemble: dev always, test only if dev selected its variant.

    The baselines are scored with the test of a single run. The settings of the first run are
    those of all. Searches beside the runs that have tried these settings are noted with them.
    """
    selected, alone, config = scoring.selected, len(runs) == 1, runs[0].config
    bank = runs[0].treebank.with_test() if selected else runs[0].treebank
    weights, kind = [best_weights(run.folder) for run in runs], kind_named(config.kind)
    prepare_process(device)
    parsers = [load_parser(run.folder, device) for run in runs]
    seeds = [] if alone else [run.config.seed for run in runs]
    saved = _saved(runs, scoring)
    results = {
        split: score_split(
            parsers[0] if alone else ParserEnsemble(parsers),
            bank,
            split,
            config,
            seeds=seeds,
            saved=saved,
        )
        for split in (("dev", "test") if selected else ("dev",))
    }
    recipe = config.model_dump(mode="json")
    return Record(
        finished=datetime.datetime.now(datetime.UTC),
        lang=config.recipe,
        treebank=TreebankInfo(
            name=bank.name,
            track=bank.track,
            language=bank.language,
            fingerprints={layer: bank.fingerprint_of(layer) for layer in kind.layers},
        ),
        kind=config.kind,
        variant=config.variant,
        size=config.size,
        seed=config.seed,
        selected=selected,
        select=config.select,
        weights=weights[0] if alone else hashlib.sha256("".join(weights).encode()).hexdigest(),
        ensemble=[] if alone else weights,
        recipe=recipe,
        searches=searches_behind(runs[0].folder.parent, recipe),
        dev=results["dev"],
        test=results.get("test"),
        baselines=baseline_results(bank, "test", kind.metrics) if selected and alone else {},
        training=_training([ended(run.folder) for run in runs], parsers),
        hardware=find_hardware(getattr(parsers[0], "device", None)),
        versions=find_versions(),
        commit=find_commit(),
    )


def _training(states: Sequence[Progress], parsers: Sequence[Any]) -> Training:
    """What the training of all took together; memory is that of the largest."""
    whole = Progress(
        tokens=sum(state.tokens for state in states),
        train_seconds=sum(state.train_seconds for state in states),
        dev_seconds=sum(state.dev_seconds for state in states),
    )
    return Training(
        epochs=sum(state.epoch for state in states),
        updates=sum(state.steps for state in states),
        parameters=sum(p.numel() for parser in parsers for p in parser.parameters()),
        wall_seconds=whole.train_seconds + whole.dev_seconds,
        tokens_per_second=whole.speed,
        peak_memory_bytes=largest(state.peak_memory_bytes for state in states),
        peak_gpu_memory_bytes=largest(state.peak_gpu_memory_bytes for state in states),
    )


# Any parser on any split ---------------------------------------------------------------------


@dataclass(frozen=True)
class Evaluated:
    """Counts of a parser's parses against gold, and how fast it parsed.

    Attributes:
        counts: by the name of the metric.
        parses: as they were counted, with the treebank's tags.
        tag_accuracy: words with the treebank's tag, in percent; None if the parser does not tag.
    """

    counts: Mapping[str, Counts]
    parses: Sequence[Parse]
    tokens_per_second: float
    tag_accuracy: float | None = None

    def score(self, criterion: SelectionMetric) -> float:
        """What a criterion makes of it; 0 for figures of nothing."""
        return criterion.score(
            {name: metric_named(name).values(counts) for name, counts in self.counts.items()}
        )


def rules_of(bank: Treebank, metrics: Sequence[str]) -> dict[str, Any]:
    """What decides the counts of each metric on a treebank.

    Raises:
        SpmrlError: an unknown metric, or rules that the treebank gives wrongly.
    """
    return {name: metric_named(name).rules(bank.rules.get(name, {})) for name in metrics}


def gold_parses(bank: Treebank, split: str, metrics: Sequence[str]) -> list[Parse]:
    """The sentences of a split with the layers that the metrics compare."""
    wanted = set(chain.from_iterable(metric_named(name).layers for name in metrics))
    layers: list[Layer] = [layer for layer in LAYERS if layer in wanted]
    return bank.examples(split, layers or bank.layers[:1])


def check_lengths(parser: Parser, bank: Treebank, split: str, examples: Sequence[Parse]) -> None:
    """Refuse a split with a sentence for which the parser has no room.

    Raises:
        SentenceTooLongError: with the treebank, the split and the sentence.
    """
    for number, example in enumerate(examples, start=1):
        if problem := parser.problem(example.words):
            raise SentenceTooLongError(f"{bank.name}, split {split}, sentence {number}: {problem}")


def evaluate_parser(parser: Parser, gold: Sequence[Parse], rules: Mapping[str, Any]) -> Evaluated:
    """Parse the words of gold parses and count, and count right tags if the parser tags.

    The treebank's tags are copied into the parses, whether or not the parser reads them:
    parameter sets delete punctuation by tag, and tags that differ would hide sentences.

    Args:
        parser: what parses.
        gold: sentences with the layers that the metrics compare.
        rules: by the name of each metric to score with, see :func:`rules_of`.
    """
    tags = [parse.tags for parse in gold]
    begun = time.perf_counter()
    given = None if parser.predicts_tags else tags
    parses = list(parser.parse([parse.words for parse in gold], given))
    seconds = time.perf_counter() - begun
    tokens, accuracy = sum(map(len, gold)), None
    if parser.predicts_tags:
        pairs = zip(chain.from_iterable(parse.tags for parse in parses), chain(*tags), strict=True)
        accuracy = 100 * sum(found == right for found, right in pairs) / tokens
        parses = [parse.with_tags(row) for parse, row in zip(parses, tags, strict=True)]
    counts = {name: metric_named(name).count(gold, parses, own) for name, own in rules.items()}
    return Evaluated(counts, parses, tokens / seconds, accuracy)


def score_split(
    parser: Parser,
    bank: Treebank,
    split: str,
    config: RunConfig | None = None,
    *,
    seeds: Sequence[int] = (),
    saved: SavedParses | None = None,
) -> SplitResult:
    """The scores of a parser on a split, with their signatures, as a record keeps them.

    Args:
        parser: what parses; its kind says by what it is scored.
        config: of the run that parses; None for a baseline, whose signature then names its kind
            as the variant.
        seeds: of the runs of which the parser is an ensemble; none for a parser of its own.
        saved: where to write the parses, if they are to be kept.

    Raises:
        SentenceTooLongError: before anything is parsed: the parser has no room for a sentence.
        SpmrlError: the parses cannot be written.
    """
    kind = kind_named(parser.kind)
    rules = rules_of(bank, kind.metrics)
    gold = gold_parses(bank, split, kind.metrics)
    check_lengths(parser, bank, split, gold)
    found = evaluate_parser(parser, gold, rules)
    if saved is not None:
        saved.write(split, gold, found.parses)
    source = Provenance(
        tags=bank.manifest.tags if parser.reads_tags else "none",
        variant=config.variant if config else parser.kind,
        settings=config.settings if config else {},
        ensemble=len(seeds) or None,
        size=config.size if config else None,
        precision=config.model.precision if config else None,
        seed="+".join(map(str, seeds)) or (config.seed if config else None),
    )
    return SplitResult(
        sentences=len(next(iter(found.counts.values()))),
        metrics={
            name: metric_result(bank, split, name, counts, rules[name], source)
            for name, counts in found.counts.items()
        },
        tokens_per_second=found.tokens_per_second if config else None,
        tag_accuracy=found.tag_accuracy,
    )


def metric_result(
    bank: Treebank, split: str, name: str, counts: Counts, rules: Any, source: Provenance
) -> MetricResult:
    """The result that the counts of a metric give, signed.

    Args:
        source: of the parses; what it must say of the treebank is added.
    """
    metric = metric_named(name)
    whole = replace(
        source,
        treebank=bank.name,
        fingerprint="+".join(bank.fingerprint_of(layer) for layer in metric.layers) or None,
        split=split,
        transforms=tuple(bank.manifest.transforms),
    )
    return MetricResult.of(metric, counts, sign(metric, counts, rules, **whole.values()))


def baseline_results(bank: Treebank, split: str, metrics: Sequence[str]) -> dict[str, SplitResult]:
    """The scores of all baselines for these metrics, by the name of their kind."""
    found = {}
    for name, kind in baselines_for(metrics).items():
        examples = bank.examples("train", kind.layers)
        baseline = kind.parser_class.build(kind.parser_class.Config(), examples)
        found[name] = score_split(baseline, bank, split)
    return found
