"""A recipe's run: train every variant, select on dev, score the selected one on test.

A run is one variant on one treebank with one size and seed. It lives in a folder of its own,
``RUNS/treebank/size-variant-seedN/``: the settings (``run.json``), the event log, the last
checkpoint and the best parser. Training continues what is there; scoring reads it.
"""

from __future__ import annotations

import datetime
import hashlib
import json
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from spmrl_bench.errors import (
    CheckpointError,
    RecipeError,
    SentenceTooLongError,
    TreebankError,
    TreeError,
    unknown_name,
)
from spmrl_bench.experiments.evaluation import (
    baseline_counts,
    dev_f1,
    evaluate_parser,
    split_result,
)
from spmrl_bench.experiments.recipe import Recipe, RunConfig, load_recipe
from spmrl_bench.files import recover_folder, write_text
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
from spmrl_bench.toml_files import validated
from spmrl_bench.training.checkpoint import BEST, LAST, read_progress
from spmrl_bench.training.random import Stream, seed_torch
from spmrl_bench.training.report import Report, speed
from spmrl_bench.training.schedule import Progress
from spmrl_bench.training.trainer import Trainer
from spmrl_bench.treebanks.manifest import SPLITS
from spmrl_bench.treebanks.treebank import Treebank, open_treebank, treebank_status


@dataclass(frozen=True)
class Plan:
    """What one command works on: a treebank and the settings of each variant's run."""

    treebank: Treebank
    configs: tuple[RunConfig, ...]
    note: str
    """Which treebank was taken and why, for the user."""

    def folder(self, runs_dir: Path, config: RunConfig) -> Path:
        """Folder of one run."""
        return runs_dir / config.treebank / f"{config.size}-{config.variant}-seed{config.seed}"


def plan(
    lang: str,
    *,
    treebank: str | None = None,
    track: str | None = None,
    variants: Sequence[str] | None = None,
    size: str | None = None,
    seed: int = 1,
    settings: Mapping[str, str] | None = None,
) -> Plan:
    """Choose the treebank and resolve the settings of each variant.

    Raises:
        RecipeError: unknown language, variant, size, track or setting.
        TreebankError: the treebank asked for, or every one of the recipe, is absent.
    """
    recipe = load_recipe(lang)
    chosen, note = _choose_treebank(recipe, treebank, track)
    configs = tuple(
        recipe.resolve(
            treebank=chosen.name,
            track=chosen.track,
            fingerprint=chosen.fingerprint,
            variant=variant,
            size=size,
            seed=seed,
            settings=settings,
        )
        for variant in dict.fromkeys(variants or recipe.base.variants)
    )
    return Plan(chosen, configs, note)


def _choose_treebank(recipe: Recipe, name: str | None, track: str | None) -> tuple[Treebank, str]:
    """The treebank asked for, or the first of the recipe's that is present."""
    if name is not None:
        bank = open_treebank(name)
        if track not in (None, bank.track):
            raise RecipeError(
                f"treebank {name} is of track {bank.track}, not '{track}': name one of the two only"
            )
        return bank, f"using {name}, as asked"
    listed = recipe.language.treebanks
    statuses = {status.name: status for status in treebank_status()}
    unknown = [bank for bank in listed if bank not in statuses]
    if unknown:
        raise RecipeError(f"{recipe.path}: {unknown_name('treebank', unknown[0], statuses)}")
    if track is not None:
        tracks = {statuses[bank].track for bank in listed}
        if track not in tracks:
            raise RecipeError(f"recipe {recipe.name}: {unknown_name('track', track, tracks)}")
        listed = [bank for bank in listed if statuses[bank].track == track]
    for number, candidate in enumerate(listed):
        if statuses[candidate].present:
            passed = listed[:number]
            why = f" ({', '.join(passed)} not present)" if passed else ""
            note = f"using {candidate}, track {statuses[candidate].track}{why}"
            return open_treebank(candidate), note
    if len(listed) == 1:
        open_treebank(listed[0])  # raises, and says where it looked and how to get it
    places = "\n  ".join(f"{bank}: looked in {statuses[bank].where}" for bank in listed)
    raise TreebankError(f"no treebank of recipe {recipe.name} is present\n  {places}")


def train(
    lang: str,
    *,
    treebank: str | None = None,
    track: str | None = None,
    variants: Sequence[str] | None = None,
    size: str | None = None,
    seed: int = 1,
    device: str = "auto",
    settings: Mapping[str, str] | None = None,
    runs_dir: Path = Path("runs"),
    fresh: bool = False,
) -> list[Path]:
    """Train every variant of a recipe; returns the run folders.

    A finished run is left alone and an interrupted one continues. ``fresh`` deletes what the
    folders hold first.

    Raises:
        SpmrlError: see :func:`plan`; also a run folder that was trained with other settings.
    """
    choose_device(device)
    work = plan(
        lang,
        treebank=treebank,
        track=track,
        variants=variants,
        size=size,
        seed=seed,
        settings=settings,
    )
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
        _check_settings(folder, config)
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
        _claim(folder, config, fresh)
        trainer = Trainer(
            parser,
            config.train,
            seed=config.seed,
            sentences=sentences,
            indexer=indexer,
            dev_f1=lambda model: dev_f1(model, dev_trees, work.treebank.manifest.prm),
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


def _claim(folder: Path, config: RunConfig, fresh: bool) -> None:
    """Note the settings in the run folder, emptied first for a fresh start."""
    try:
        if fresh and folder.exists():
            shutil.rmtree(folder)
        write_text(folder / "run.json", config.model_dump_json(indent=1) + "\n")
    except OSError as error:
        raise CheckpointError(
            f"{folder}: the run folder cannot be written: {error.strerror}. "
            "Choose another --runs folder"
        ) from None


def _check_settings(folder: Path, config: RunConfig) -> None:
    """Check that the run folder, where there is one, was trained with these settings."""
    path = folder / "run.json"
    if path.exists() and (earlier := _read_config(path)) != config:
        differing = _differences(earlier.model_dump(mode="json"), config.model_dump(mode="json"))
        raise CheckpointError(
            f"{folder}: holds a run with other settings: {'; '.join(differing)}. "
            "Start anew with --fresh, choose another --runs folder, or give the earlier settings"
        )


def _read_config(path: Path) -> RunConfig:
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise CheckpointError(
            f"{path.parent}: not trained yet; run 'spmrl-bench train' with the same options"
        ) from None
    return validated(RunConfig, _json(text, path), path, CheckpointError)


def _json(text: str, path: Path) -> dict[str, object]:
    try:
        value = json.loads(text)
    except ValueError as error:
        raise CheckpointError(f"{path}: not JSON ({error}). Start anew with --fresh") from None
    if not isinstance(value, dict):
        raise CheckpointError(f"{path}: not the settings of a run. Start anew with --fresh")
    return value


def _differences(old: Mapping[str, object], new: Mapping[str, object], at: str = "") -> list[str]:
    """``key: old there, new now`` for every key whose values differ."""
    found = []
    for key in new:
        before, now = old.get(key), new[key]
        if isinstance(before, Mapping) and isinstance(now, Mapping):
            found += _differences(before, now, f"{at}{key}.")
        elif before != now:
            found.append(f"{at}{key} is {before} there, {now} now")
    return found


def evaluate(
    lang: str,
    *,
    treebank: str | None = None,
    track: str | None = None,
    variants: Sequence[str] | None = None,
    size: str | None = None,
    seed: int = 1,
    device: str = "auto",
    settings: Mapping[str, str] | None = None,
    runs_dir: Path = Path("runs"),
    results_dir: Path = Path("results"),
) -> list[Record]:
    """Score the trained variants on dev and the best of them on test; returns their records.

    Records are written to ``results_dir/runs``. A run that was scored before with the same
    weights is not scored again. Ties on dev go to the variant that the recipe names first.

    Raises:
        CheckpointError: a variant is not trained to its end, or with other settings.
        SpmrlError: see :func:`plan`.
    """
    work = plan(
        lang,
        treebank=treebank,
        track=track,
        variants=variants,
        size=size,
        seed=seed,
        settings=settings,
    )
    runs = [_finished_run(work, config, runs_dir) for config in work.configs]
    best = max(runs, key=lambda run: run.progress.best_dev_f1 or 0.0)
    earlier = read_records(results_dir / "runs")
    records = []
    for run in runs:
        record = _find(earlier, run, selected=run is best)
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
    _read_config(folder / "run.json")  # raises where nothing was trained
    _check_settings(folder, config)
    for name in (LAST, BEST):
        recover_folder(folder / name)
    progress = read_progress(folder / LAST)
    if progress is None or progress.stopped_by is None:
        raise CheckpointError(
            f"{folder}: training has not ended; run 'spmrl-bench train' with the same options "
            "to continue it"
        )
    try:
        weights = (folder / BEST / "weights.safetensors").read_bytes()
    except OSError as error:
        raise CheckpointError(f"{folder / BEST}: no weights ({error.strerror})") from None
    return _Run(config, folder, progress, hashlib.sha256(weights).hexdigest())


def _find(records: Sequence[Record], run: _Run, *, selected: bool) -> Record | None:
    """The record of a run that was scored before in the same role."""
    for record in records:
        if record.weights == run.weights and record.selected == selected:
            return record
    return None


def _score(work: Plan, run: _Run, device: str, *, selected: bool) -> Record:
    """Score one run: dev always, test and the baseline only if dev selected it."""
    bank, config = work.treebank, run.config
    parser = load_parser(run.folder, device)
    results = {}
    for split in ("dev", "test") if selected else ("dev",):
        scored = evaluate_parser(parser, bank.split(split), bank.manifest.prm)
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
