"""Training one run: one variant on one treebank with one size, seed and settings.

What is in the run's folder is continued. Before all input has been read, nothing of the folder is
changed; an error is noted there.
"""

from __future__ import annotations

from collections.abc import Sequence, Sized
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from spmrl_bench.errors import SentenceTooLongError, TrainingError, TreeError
from spmrl_bench.experiments.cancelling import unless_cancelled
from spmrl_bench.experiments.evaluation import (
    check_lengths,
    evaluate_parser,
    gold_parses,
    rules_of,
)
from spmrl_bench.experiments.ownership import owned
from spmrl_bench.experiments.run_config import RunConfig
from spmrl_bench.experiments.run_folder import begun_afresh, check_settings, claim
from spmrl_bench.experiments.run_notes import attempt_noted
from spmrl_bench.leaderboard.environment import find_versions
from spmrl_bench.nn.device import prepare_process
from spmrl_bench.parsers.neural import TrainedParser
from spmrl_bench.parsers.registry import Kind, kind_named
from spmrl_bench.training import LAST
from spmrl_bench.training.report import Report, messages
from spmrl_bench.training.schedule import read_progress
from spmrl_bench.training.substitution import Substitution
from spmrl_bench.training.trainer import Prune, Stream, Trainer, generator, seed_torch
from spmrl_bench.treebanks.treebank import Treebank
from spmrl_bench.trees.parse import Parse


@dataclass(frozen=True)
class Run:
    """One run to train."""

    treebank: Treebank
    config: RunConfig
    folder: Path

    @property
    def title(self) -> str:
        """What it is called while it is trained."""
        return f"{self.config.treebank} {self.config.name} seed {self.config.seed}"


def train_run(
    run: Run,
    fresh: str,
    note: str | None,
    *,
    device: str,
    console: Console | None = None,
    prune: Prune | None = None,
) -> None:
    """Train a run, or continue what its folder has.

    What ends it by an error is noted in the folder.

    Args:
        fresh: delete what the folder holds first, unless that was done under the same name, which
            is given here, so that a run which is broken off and started again goes on; empty to
            continue what is there.
        note: which treebank was taken and why, to be said with the numbers of its sentences.
        console: where to report; by default standard error.
        prune: whether to end at a dev evaluation, for what it has come to.

    Raises:
        SpmrlError: another process trains in the folder, a sentence cannot be learnt, training
            diverges, or the folder cannot be written.
        RunCancelledError: the run is cancelled; it was not begun, or it is saved.
        Interrupted: Ctrl-C or SIGTERM, after the batch was finished and saved.
    """
    config, bank = run.config, run.treebank
    kind, criterion = kind_named(config.kind), config.criterion
    with (
        unless_cancelled(run.folder, run.title),
        owned(run.folder, cancellable=True),
        attempt_noted(run.folder),
        Report(run.folder, run.title, criterion.title, console or messages()) as report,
    ):
        where = prepare_process(device, training=True)
        if begun_afresh(run.folder, fresh):
            fresh = ""
        if not fresh:
            check_settings(run.folder, config, other_minutes=True)
        every = bank.examples("train", kind.layers)
        chosen = _chosen(len(every), config)
        examples = [every[number] for number in chosen]
        rules = rules_of(bank, criterion.metrics)
        dev = gold_parses(bank, "dev", criterion.metrics)
        if note is not None:
            report.say(f"{note}: {len(examples):,} training, {len(dev):,} dev sentences")
        saved = None if fresh else read_progress(run.folder / LAST)
        seed_torch(config.seed, Stream.WEIGHTS)
        parser = kind.parser_class.build(config.model, examples).to(where)
        sentences = _indexed(bank, kind, parser, every, chosen)
        substitution = Substitution(examples) if config.train.substitution else None
        claim(run.folder, config, fresh)
        trainer = Trainer(
            parser,
            config.train,
            seed=config.seed,
            sentences=sentences,
            dev_score=lambda model: evaluate_parser(model, dev, rules).score(criterion),
            run_dir=run.folder,
            report=report,
            substitute=None
            if substitution is None
            else lambda number, random: next(iter(parser.index([substitution(number, random)]))),
            prune=prune,
        )
        report.event("start", settings=config.model_dump(mode="json"), versions=find_versions())
        if saved is not None:
            report.say(f"{report.title}: continuing after {saved.steps} steps")
        done = trainer.fit()
        done_in = (done.train_seconds + done.dev_seconds) / 60
        best = f"best dev {report.score} {done.best_score:.2f}"
        report.say(
            f"{report.title}: {best} after {done.epoch} epochs, {done_in:.1f} minutes, "
            f"{done.speed:,.0f} tokens/s (stopped by {done.stopped_by})"
        )


def _chosen(sentences: int, config: RunConfig) -> list[int]:
    """The numbers, from 0, of the sentences to be trained on, in their order.

    Raises:
        TrainingError: there are not so many.
    """
    wanted = config.train.sentences
    if wanted is None:
        return list(range(sentences))
    if wanted > sentences:
        raise TrainingError(
            f"train.sentences = {wanted}, but {config.treebank} has {sentences:,} to train on"
        )
    order = generator(config.seed, Stream.SUBSET).permutation(sentences)
    return sorted(order[:wanted].tolist())


def _indexed(
    bank: Treebank,
    kind: Kind,
    parser: TrainedParser,
    every: Sequence[Parse],
    chosen: Sequence[int],
) -> list[Sized]:
    """The training sentences that are chosen among all, indexed.

    One that is too long, of dev too, is found now, not after hours.

    (Test is not opened: whether its sentences are too long is the evaluation's affair.)

    Raises:
        SentenceTooLongError, TreeError: with the treebank, the split and the sentence.
    """
    sentences: list[Sized] = []
    try:
        for sentence in parser.index([every[number] for number in chosen]):
            sentences.append(sentence)
    except (SentenceTooLongError, TreeError) as error:
        place = f"{bank.name}, split train, sentence {chosen[len(sentences)] + 1}"
        raise type(error)(f"{place}: {error}") from None
    check_lengths(parser, bank, "dev", bank.examples("dev", kind.layers))
    return sentences
