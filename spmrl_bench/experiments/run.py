"""A recipe's trained runs: select a variant on dev, score its runs on test.

A run is one variant on one treebank with one size, seed and settings. Scoring reads what training
has left in its folder and leaves a record. Where a variant was trained from
several seeds, selection looks at the mean of their dev scores, because the best of several seeds
says more about luck than about the variant.
"""

from __future__ import annotations

import datetime
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from rich.console import Console

from spmrl_bench.errors import RecipeError, SpmrlError
from spmrl_bench.experiments.evaluation import baseline_results, rules_of, score_split
from spmrl_bench.experiments.plan import Plan
from spmrl_bench.experiments.run_config import RunConfig
from spmrl_bench.experiments.run_folder import best_weights, check_settings, ended, read_config
from spmrl_bench.experiments.saved_parses import SavedParses
from spmrl_bench.leaderboard.comparison import signature_parts
from spmrl_bench.leaderboard.environment import find_commit, find_hardware, find_versions
from spmrl_bench.leaderboard.estimates import best_variant
from spmrl_bench.leaderboard.identity import is_of
from spmrl_bench.leaderboard.record import (
    Record,
    Training,
    TreebankInfo,
    readable_records,
    write_record,
)
from spmrl_bench.nn.device import choose_device, prepare_process
from spmrl_bench.parsers.ensemble import Ensemble
from spmrl_bench.parsers.registry import kind_named
from spmrl_bench.parsing.models import load_parser
from spmrl_bench.process.executors.driver import carry_out
from spmrl_bench.process.executors.unit import Unit
from spmrl_bench.process.executors.where import LOCAL, Where, executor_for
from spmrl_bench.scoring.metric import metric_named
from spmrl_bench.search.document import searches_behind
from spmrl_bench.training.report import messages
from spmrl_bench.training.schedule import OUT_OF_TIME, Progress, largest, out_of_time
from spmrl_bench.treebanks.treebank import Treebank


def evaluate(
    work: Plan,
    *,
    runs_dir: Path,
    results_dir: Path,
    device: str = "auto",
    ensemble: bool = False,
    jobs: int = 1,
    on: Where = LOCAL,
    save_parses: bool = False,
) -> list[Record]:
    """Score the trained runs on dev and those of the best variant on test; returns their records.

    The best variant is the one with the highest mean dev score over its seeds; ties go to the one
    that the recipe names first. Records are written to ``results_dir/runs``. A run that was
    scored before with the same weights, trees and parameters is not scored again, unless it has
    been selected since, or another variant instead of it, or its record cannot be read.

    Args:
        ensemble: also score the runs of the best variant as one parser; its record is the last.
        jobs: runs scored at once, each in a process with its share of the threads.
        on: where they are scored; ``jobs`` is of what is set up here.
        save_parses: keep what is scored and the gold trees in ``results_dir/parses`` (see
            :class:`SavedParses`); a run that has a record but not its parses is scored again.

    Raises:
        CheckpointError: a run is not trained to its end, or with other settings.
        RecipeError: an ensemble of a single run.
        RecordError: the folder of records cannot be read, or a record cannot be written.
        Interrupted: Ctrl-C or SIGTERM came while other processes score; they are ended.
    """
    records, errors = evaluate_all(
        [work],
        runs_dir=runs_dir,
        results_dir=results_dir,
        device=device,
        ensemble=ensemble,
        jobs=jobs,
        on=on,
        save_parses=save_parses,
    )
    for error in errors:
        raise error
    return records


def evaluate_all(
    plans: Sequence[Plan],
    *,
    runs_dir: Path,
    results_dir: Path,
    device: str = "auto",
    ensemble: bool = False,
    jobs: int = 1,
    on: Where = LOCAL,
    save_parses: bool = False,
) -> tuple[list[Record], list[Exception]]:
    """As :func:`evaluate`, of several plans at once.

    Returns:
        The records of all, in the order of the plans and their runs, and what kept others from
        having one.
    """
    if on.is_here:
        choose_device(device)
    if not on.is_local:
        runs_dir, results_dir = runs_dir.absolute(), results_dir.absolute()
    asked: list[_Asked] = []
    errors: list[Exception] = []
    for work in plans:
        try:
            asked += _asked(work, runs_dir, results_dir, ensemble, save_parses)
        except SpmrlError as error:
            errors.append(error)
    earlier, _ = readable_records(results_dir / "runs")
    found = [_find(earlier, each) for each in asked]
    left = [each for each, record in zip(asked, found, strict=True) if record is None]
    if left:
        errors += _score_all(left, results_dir, device, min(jobs, len(left)), on)
        earlier, _ = readable_records(results_dir / "runs")
        found = [_find(earlier, each) for each in asked]
    return [record for record in found if record is not None], errors


class _Asked(NamedTuple):
    """A run that is to be scored, or several as an ensemble."""

    work: Plan
    runs: Sequence[_Run]
    selected: bool
    saved: SavedParses | None

    @property
    def title(self) -> str:
        config = self.runs[0].config
        seeds = f"seed {config.seed}" if len(self.runs) == 1 else "ensemble"
        return f"scoring {config.treebank} {config.name} {seeds}"


def _asked(
    work: Plan, runs_dir: Path, results_dir: Path, ensemble: bool, save_parses: bool
) -> list[_Asked]:
    """What is to have a record of a plan's runs.

    Raises:
        CheckpointError: a run is not trained to its end, or with other settings.
        RecipeError: an ensemble of a single run.
    """
    if ensemble and len({config.seed for config in work.configs}) < 2:
        raise RecipeError(
            "an ensemble needs two runs of a variant at least: train and score several seeds, "
            "for instance with --seeds 5"
        )
    runs = [_finished_run(work, config, runs_dir) for config in work.configs]
    members = _best(runs)
    asked = []
    for scored in [*([run] for run in runs), *([members] if ensemble else [])]:
        saved = None
        if save_parses:
            saved = SavedParses.of(results_dir, scored[0].folder, len(scored))
        asked.append(_Asked(work, scored, scored[0] in members, saved))
    return asked


def _score_all(
    asked: Sequence[_Asked], results_dir: Path, device: str, jobs: int, on: Where
) -> list[Exception]:
    """Score all and write their records; returns what failed."""
    if on.is_local and jobs <= 1:
        errors: list[Exception] = []
        for each in asked:
            try:
                _score_and_write(each, results_dir, device=device)
            except SpmrlError as error:
                errors.append(error)
        return errors
    say = partial(messages().print, markup=False, highlight=False, soft_wrap=True)
    units = [Unit(each.title, _score_and_write, (each, results_dir)) for each in asked]
    executor = executor_for(on, jobs=jobs, device=device, shared=results_dir, say=say)
    ended = carry_out(units, executor, say=say)
    return [each.error for each in ended if each.error is not None]


def _score_and_write(
    asked: _Asked, results_dir: Path, *, device: str, console: Console | None = None
) -> None:
    """Score a run, or several, and write the record; this is what an executor does."""
    write_record(_score(asked, device), results_dir / "runs")


@dataclass(frozen=True)
class _Run:
    config: RunConfig
    folder: Path
    progress: Progress
    weights: str
    """SHA-256 of the best parser's weights."""


def _best(runs: Sequence[_Run]) -> list[_Run]:
    """The runs of the variant with the highest mean score on dev; of equal ones, of the first.

    Raises:
        RecipeError: the variants are not selected by the same figure.
    """
    variants: dict[str, list[_Run]] = {}
    for run in runs:
        variants.setdefault(run.config.name, []).append(run)
    criteria = sorted({run.config.select for run in runs})
    if len(criteria) > 1:
        raise RecipeError(
            f"the variants are selected by different figures ({'; '.join(criteria)}): say in the "
            "recipe by which (select = ...), or score them one by one (--variant)"
        )
    scores = {
        name: [run.progress.best_score or 0.0 for run in found] for name, found in variants.items()
    }
    return variants[best_variant(scores)]


def _finished_run(work: Plan, config: RunConfig, runs_dir: Path) -> _Run:
    """A run that training has ended."""
    folder = work.folder(runs_dir, config)
    read_config(folder / "run.json")  # raises where nothing was trained
    state = ended(folder)
    # A limit that was not reached has decided nothing.
    idle = state.stopped_by != OUT_OF_TIME and not out_of_time(config.train, state)
    check_settings(folder, config, other_minutes=idle)
    return _Run(config, folder, state, best_weights(folder))


def _find(records: Sequence[Record], asked: _Asked) -> Record | None:
    """The newest record of a run, or of an ensemble of runs, if it was scored in the same way.

    Where parses are to be kept, it is one whose parses are.

    One that was scored in the other role since, when other seeds or variants competed, is not
    enough: tables show the newest, and would say that another variant was selected.
    """
    bank, saved, config = asked.work.treebank, asked.saved, asked.runs[0].config
    weights = [run.weights for run in asked.runs]
    recipe = config.model_dump(mode="json")
    for record in reversed(records):
        if is_of(record, recipe, weights) and _scored_alike(record, bank, config):
            kept = saved is None or _parses_are_kept(saved, record, bank, config)
            return record if record.selected == asked.selected and kept else None
    return None


def _parses_are_kept(saved: SavedParses, record: Record, bank: Treebank, config: RunConfig) -> bool:
    rules = rules_of(bank, kind_named(config.kind).metrics)
    splits = {"dev": record.dev, "test": record.test}
    return all(
        saved.are_of(split, result, rules) for split, result in splits.items() if result is not None
    )


def _scored_alike(record: Record, bank: Treebank, config: RunConfig) -> bool:
    """Whether a record has the scores that would be counted now."""
    rules = rules_of(bank, kind_named(config.kind).metrics)
    for name, own in rules.items():
        result = record.dev.metrics.get(name) if record.dev else None
        if result is None:
            return False
        parts = signature_parts(result.signature_long)
        counting = metric_named(name).counting(own)
        if any(parts.get(key) != value for key, value in counting.items() if value is not None):
            return False
    return True


def _score(asked: _Asked, device: str) -> Record:
    """Score a run, or several as an ensemble: dev always, test only if dev selected its variant.

    The baselines are scored with the test of a single run. The settings of the first run are
    those of all. Searches beside the runs that have tried these settings are noted with them.
    """

    work, runs, selected, saved = asked
    bank = work.treebank.with_test() if selected else work.treebank
    config, weights = runs[0].config, [run.weights for run in runs]
    kind, alone = kind_named(config.kind), len(runs) == 1
    prepare_process(device)
    parsers = [load_parser(run.folder, device) for run in runs]
    scored = parsers[0] if alone else Ensemble(parsers)
    seeds = [] if alone else [run.config.seed for run in runs]
    results = {
        split: score_split(scored, bank, split, config, seeds=seeds, saved=saved)
        for split in (("dev", "test") if selected else ("dev",))
    }
    baselines = baseline_results(bank, "test", kind.metrics) if selected and alone else {}
    layers = kind.layers
    return Record(
        finished=datetime.datetime.now(datetime.UTC),
        lang=config.recipe,
        treebank=TreebankInfo(
            name=bank.name,
            track=bank.track,
            language=bank.language,
            fingerprints={layer: bank.fingerprint_of(layer) for layer in layers},
        ),
        kind=config.kind,
        variant=config.variant,
        size=config.size,
        seed=config.seed,
        selected=selected,
        select=config.select,
        weights=weights[0] if alone else hashlib.sha256("".join(weights).encode()).hexdigest(),
        ensemble=[] if alone else weights,
        recipe=config.model_dump(mode="json"),
        searches=searches_behind(runs[0].folder.parent, config.model_dump(mode="json")),
        dev=results["dev"],
        test=results.get("test"),
        baselines=baselines,
        training=_training([run.progress for run in runs], parsers),
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
