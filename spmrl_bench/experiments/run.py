"""A recipe's run: train every variant, select on dev, score the selected one on test.

A run is one variant on one treebank with one size and seed. Training continues what is in
the run's folder; scoring reads it and leaves a record.
"""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from spmrl_bench.errors import (
    CheckpointError,
    SentenceTooLongError,
    TreeError,
)
from spmrl_bench.experiments.evaluation import (
    baseline_counts,
    dev_f1,
    evaluate_parser,
    split_result,
)
from spmrl_bench.experiments.plan import Plan
from spmrl_bench.experiments.recipe import RunConfig
from spmrl_bench.experiments.run_folder import best_weights, check_settings, claim, read_config
from spmrl_bench.files import recover_folder
from spmrl_bench.leaderboard.environment import find_commit, find_hardware, find_versions
from spmrl_bench.leaderboard.record import (
    Record,
    Training,
    TreebankInfo,
    read_records,
    write_record,
)
from spmrl_bench.parsers.batches import Indexer, Sentence
from spmrl_bench.parsers.chart_parser import ChartParser
from spmrl_bench.parsers.device import choose_device
from spmrl_bench.parsers.registry import load_parser
from spmrl_bench.parsers.vocabulary import Vocabulary
from spmrl_bench.scoring import load_prm
from spmrl_bench.scoring.signature import prm_signature
from spmrl_bench.training import BEST, LAST
from spmrl_bench.training.checkpoint import read_progress
from spmrl_bench.training.random import Stream, seed_torch
from spmrl_bench.training.report import Report, speed
from spmrl_bench.training.schedule import Progress
from spmrl_bench.training.trainer import Trainer
from spmrl_bench.treebanks.manifest import SPLITS
from spmrl_bench.treebanks.treebank import Treebank


def train(work: Plan, *, runs_dir: Path, device: str = "auto", fresh: bool = False) -> list[Path]:
    """Train every variant of a plan; returns the run folders.

    A finished run is left alone and an interrupted one continues. ``fresh`` deletes what the
    folders hold first.

    Raises:
        SpmrlError: a run folder was trained with other settings, a sentence cannot be
            learnt, training diverges, or the device is not there.
    """
    choose_device(device)
    folders = []
    for number, config in enumerate(work.configs):
        folder = work.folder(runs_dir, config)
        _train_one(work, config, folder, device, fresh=fresh, say_note=number == 0)
        folders.append(folder)
    return folders


def _train_one(
    work: Plan, config: RunConfig, folder: Path, device: str, *, fresh: bool, say_note: bool
) -> None:
    """Train or continue one run; the folder is not touched before all input has been read."""
    if not fresh:
        check_settings(folder, config)
    train_trees, dev_trees = work.treebank.split("train"), work.treebank.split("dev")
    with Report(folder, f"{config.treebank} {config.variant}") as report:
        if say_note:
            report.say(
                f"{work.note}: {len(train_trees):,} training, {len(dev_trees):,} dev sentences"
            )
        recover_folder(folder / LAST)
        saved = None if fresh else read_progress(folder / LAST)
        if saved is not None and saved.stopped_by is not None:
            report.say(f"{report.title}: already trained, best dev F1 {saved.best_dev_f1:.2f}")
            return
        seed_torch(config.seed, Stream.WEIGHTS)
        parser = ChartParser(config.model, Vocabulary.of(train_trees)).to(choose_device(device))
        indexer = parser.indexer()
        sentences = _indexed(work.treebank, indexer)
        claim(folder, config, fresh)
        trainer = Trainer(
            parser,
            config.train,
            seed=config.seed,
            sentences=sentences,
            indexer=indexer,
            dev_f1=lambda model: dev_f1(model, dev_trees, work.treebank.prm),
            run_dir=folder,
            report=report,
        )
        report.event("start", settings=config.model_dump(mode="json"), versions=find_versions())
        if saved is not None:
            report.say(f"{report.title}: continuing after {saved.steps} steps")
        done = trainer.fit()
        done_in = (done.train_seconds + done.dev_seconds) / 60
        report.say(
            f"{report.title}: best dev F1 {done.best_dev_f1:.2f} after {done.epoch} epochs, "
            f"{done_in:.1f} minutes, {speed(done):,.0f} tokens/s (stopped by {done.stopped_by})"
        )


def _indexed(bank: Treebank, indexer: Indexer) -> list[Sentence]:
    """The training sentences, indexed; one too long in any split is found now, not after hours.

    Raises:
        SentenceTooLongError, TreeError: with the treebank, the split and the sentence.
    """
    sentences = []
    for split in SPLITS:
        for number, tree in enumerate(bank.split(split), start=1):
            try:
                if split == "train":
                    sentences.append(indexer.gold(tree))
                else:
                    indexer.check_length(tree.words)
            except (SentenceTooLongError, TreeError) as error:
                place = f"{bank.name}, split {split}, sentence {number}"
                raise type(error)(f"{place}: {error}") from None
    return sentences


def evaluate(
    work: Plan, *, runs_dir: Path, results_dir: Path, device: str = "auto"
) -> list[Record]:
    """Score the trained variants on dev and the best of them on test; returns their records.

    Records are written to ``results_dir/runs``. A run that was scored before with the same
    weights, trees and parameters is not scored again. Ties on dev go to the variant that the
    recipe names first.

    Raises:
        CheckpointError: a variant is not trained to its end, or with other settings.
        RecordError: an earlier record is broken, or the new one cannot be written.
    """
    choose_device(device)
    runs = [_finished_run(work, config, runs_dir) for config in work.configs]
    best = max(runs, key=lambda run: run.progress.best_dev_f1 or 0.0)
    earlier = read_records(results_dir / "runs")
    records = []
    for run in runs:
        record = _find(earlier, work.treebank, run, selected=run is best)
        if record is None:
            record = _score(work, run, device, selected=run is best)
            write_record(record, results_dir / "runs")
        records.append(record)
    return records


@dataclass(frozen=True)
class _Run:
    config: RunConfig
    folder: Path
    progress: Progress
    weights: str
    """SHA-256 of the best parser's weights."""


def _finished_run(work: Plan, config: RunConfig, runs_dir: Path) -> _Run:
    """A run that training has ended."""
    folder = work.folder(runs_dir, config)
    read_config(folder / "run.json")  # raises where nothing was trained
    check_settings(folder, config)
    for name in (LAST, BEST):
        recover_folder(folder / name)
    progress = read_progress(folder / LAST)
    if progress is None or progress.stopped_by is None:
        raise CheckpointError(
            f"{folder}: training has not ended; run 'spmrl-bench train' with the same options "
            "to continue it"
        )
    return _Run(config, folder, progress, best_weights(folder))


def _find(records: Sequence[Record], bank: Treebank, run: _Run, *, selected: bool) -> Record | None:
    """The record of a run that was scored before in the same role and the same way."""
    prm = prm_signature(load_prm(bank.prm))
    for record in records:
        same = (record.weights, record.selected) == (run.weights, selected)
        if same and f"|prm:{prm}|" in record.dev.signature_long:
            return record
    return None


def _score(work: Plan, run: _Run, device: str, *, selected: bool) -> Record:
    """Score one run: dev always, test and the baseline only if dev selected it."""
    bank, config = work.treebank, run.config
    parser = load_parser(run.folder, device)
    results = {}
    for split in ("dev", "test") if selected else ("dev",):
        scored = evaluate_parser(parser, bank.split(split), bank.prm)
        results[split] = split_result(scored.counts, bank, split, config, scored.tokens_per_second)
    state = run.progress
    return Record(
        finished=datetime.datetime.now(datetime.UTC),
        lang=config.recipe,
        treebank=TreebankInfo(
            name=bank.name, track=bank.track, language=bank.language, fingerprint=bank.fingerprint
        ),
        variant=config.variant,
        size=config.size,
        seed=config.seed,
        selected=selected,
        weights=run.weights,
        recipe=config.model_dump(mode="json"),
        dev=results["dev"],
        test=results.get("test"),
        baseline=split_result(baseline_counts(bank, "test"), bank, "test", None)
        if selected
        else None,
        training=Training(
            epochs=state.epoch,
            updates=state.steps,
            parameters=sum(parameter.numel() for parameter in parser.parameters()),
            wall_seconds=state.train_seconds + state.dev_seconds,
            tokens_per_second=speed(state),
            peak_memory_bytes=state.peak_memory_bytes,
            peak_gpu_memory_bytes=state.peak_gpu_memory_bytes,
        ),
        hardware=find_hardware(parser.device),
        versions=find_versions(),
        commit=find_commit(),
    )
