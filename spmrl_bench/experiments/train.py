"""Training many runs, of one treebank or of several, in turn, side by side or elsewhere.

A run that fails stops no other; what failed is said when the rest is done. Runs that are finished
are left alone and interrupted ones continue, so the same call again does what is left.
"""

from __future__ import annotations

from collections.abc import Sequence, Sized
from contextlib import ExitStack, suppress
from dataclasses import replace
from itertools import count
from typing import TYPE_CHECKING

import numpy as np
import torch

from spmrl_bench.errors import (
    CheckpointError,
    RunOwnedError,
    SentenceTooLongError,
    SpmrlError,
    TrainingError,
    TreeError,
)
from spmrl_bench.experiments import run_folder
from spmrl_bench.experiments.evaluation import check_lengths, evaluate_parser, gold_parses, rules_of
from spmrl_bench.experiments.score import AnyRun, shared
from spmrl_bench.leaderboard.environment import find_versions
from spmrl_bench.nn.device import choose_device, prepare_process
from spmrl_bench.parsers.calibration import keep_temperature
from spmrl_bench.parsers.kinds import kind_named
from spmrl_bench.process.console import messages, say
from spmrl_bench.process.executors.backend import LOCAL, Backend
from spmrl_bench.process.executors.units import Outcome, Unit, run_units
from spmrl_bench.process.pools import available_threads, cards
from spmrl_bench.storage.files import remove_folder
from spmrl_bench.training import BEST, LAST, best_weights
from spmrl_bench.training.report import LOG, Report, last_line
from spmrl_bench.training.schedule import read_progress
from spmrl_bench.training.substitution import Substitution, places_of
from spmrl_bench.training.trainer import Prune, Stream, Trainer, generator, seed_torch

if TYPE_CHECKING:
    from spmrl_bench.experiments.plan import Run


def train_all(
    runs: Sequence[AnyRun],
    *,
    device: str = "auto",
    jobs: int | None = None,
    on: Backend = LOCAL,
    fresh: bool = False,
) -> None:
    """Train all runs that are not finished; one that is named twice is one run.

    So many ``jobs`` train at once on this machine, by default :func:`usual_jobs`, 1 in this
    process; ``fresh`` deletes what the folders hold first. A SpmrlError says before anything is
    trained that a folder has another run or owner, and after all else what failed. On Ctrl-C and
    SIGTERM, which raise Interrupted, every run has saved where it is.
    """
    runs = list({run.folder: run for run in reversed(shared(runs, on))}.values())[::-1]
    at_once = 1
    if on.is_local:
        # Finished runs count: one that continues has as many threads as before.
        at_once = min(jobs or usual_jobs(runs, choose_device(device)), len(runs))
    if fresh:
        with ExitStack() as locks:  # none of them is another process's
            for run in runs:
                locks.enter_context(run_folder.run_lock(run.folder))
            for run in runs:
                try:
                    remove_folder(run.folder)
                except OSError as error:
                    raise run_folder.unwritable(run.folder, error) from None
    left: list[AnyRun] = []
    errors: list[Exception] = []
    for run in runs:
        try:
            done = run.trained()
        except run_folder.SettingsMismatchError:
            raise
        except CheckpointError as error:
            errors.append(error)
            if len(runs) > 1:
                say(f"{run.title}: FAILED, {str(error).splitlines()[0]}")
            continue
        if done is None:
            left.append(run)
        else:
            say(f"{run.title}: already trained, {done}")
            with suppress(RunOwnedError, CheckpointError), run_folder.run_lock(run.folder):
                pass  # what dead processes have left there is removed
    tried = len(left) + len(errors)
    if jobs is None and at_once > 1 and left:
        say(f"up to {at_once} runs at a time (--jobs 1: one after the other)")
    notes = {run.note: run for run in reversed(left)}  # each is said by the first run
    told = [run if notes[run.note] is run else replace(run, note="") for run in left]
    # One after the other, they are trained in the order that the user knows.
    in_turn = on.is_local and at_once == 1
    units = [
        Unit(
            title=run.title,
            function=run.train,
            arguments=(),
            folder=run.folder,
            cost=1.0 if in_turn else run.cost,
        )
        for run in told
    ]

    def on_end(outcome: Outcome) -> None:
        if outcome.status == "done" and not on.is_local and (folder := outcome.unit.folder):
            say(last_line(folder / LOG) or f"{outcome.unit.title}: done")

    if units:
        executor = on.executor(at_once, device=device, shared=runs[0].folder.parents[1])
        outcomes = run_units(units, executor, on_end=on_end)
        errors += [outcome.error for outcome in outcomes if outcome.error is not None]
    _raise(errors, tried)


def usual_jobs(runs: Sequence[AnyRun], device: torch.device) -> int:
    """How many runs train fastest at once: on a CPU as many small models, which gain little from a
    second thread, as there are threads; else one, but on each graphics card if none was named."""
    most = 1
    if device.type == "cuda" and device.index is None:
        most = max(1, cards())
    elif device.type == "cpu" and all(run.is_small for run in runs):
        most = available_threads()
    return min(len(runs), most)


def _raise(failures: Sequence[Exception], of: int) -> None:
    """Raise what failed, if anything did: each message once, a defect of the program first."""
    errors = {str(error): error for error in failures}
    for error in failures:
        if not isinstance(error, SpmrlError) or len(errors) == 1:
            raise error
    if errors:
        raise SpmrlError(f"{len(failures)} of {of} runs failed:\n" + "\n".join(errors))


def train_run(run: Run, *, device: str, prune: Prune | None = None) -> None:
    """Train a run, or continue what its folder has; an error is noted there. ``prune`` may end it
    at a dev evaluation. Before all input has been read, nothing of the folder is changed. Ctrl-C
    and SIGTERM raise Interrupted after the batch was finished and saved."""
    config, bank = run.config, run.treebank
    kind, criterion = kind_named(config.kind), config.criterion
    with (
        run_folder.run_lock(run.folder),
        run_folder.recording_failure(run.folder),
        Report(run.folder, run.title, criterion.title, messages()) as report,
    ):
        where = prepare_process(device, training=True)
        run_folder.check_settings(run.folder, config, other_minutes=True)
        every = bank.examples("train", kind.layers)
        wanted = run.config.train.sentences
        numbers = chosen_sentences(wanted, run.config.seed, run.treebank.name, len(every))
        examples = [every[number] for number in numbers]
        rules = rules_of(bank, criterion.metrics)
        dev = gold_parses(bank, "dev", criterion.metrics)
        if run.note:
            report.say(f"{run.note}: {len(examples):,} training, {len(dev):,} dev sentences")
        saved = read_progress(run.folder / LAST)
        seed_torch(config.seed, Stream.WEIGHTS)
        parser = kind.parser_class.build(config.model, examples).to(where)
        sentences: list[Sized] = []
        # A sentence that is too long is found now, not after hours. (Test is not opened.)
        try:
            places = map(places_of, count(), examples)
            sentences.extend(map(parser.placed, parser.index(examples), places))
        except (SentenceTooLongError, TreeError) as error:
            place = f"{bank.name}, split train, sentence {numbers[len(sentences)] + 1}"
            raise type(error)(f"{place}: {error}") from None
        check_lengths(parser, bank, "dev", bank.examples("dev", kind.layers))
        substitution = Substitution(examples if config.train.substitution else [])

        def substitute(number: int, random: np.random.Generator) -> Sized:
            made, places = substitution(number, random)
            return parser.placed(next(iter(parser.index([made]))), places)

        run_folder.write_settings(run.folder, config)
        trainer = Trainer(
            parser,
            config.train,
            seed=config.seed,
            sentences=sentences,
            dev_score=lambda model: evaluate_parser(model, dev, rules).score(criterion),
            run_dir=run.folder,
            report=report,
            substitute=substitute if config.train.substitution else None,
            prune=prune,
            prepare=lambda: parser.keep([each.words for each in (*examples, *dev)]),
        )
        report.event("start", versions=find_versions(), threads=torch.get_num_threads())
        if saved is not None:
            report.say(f"{report.title}: continuing after {saved.steps} steps")
        done = trainer.fit()
        run_folder.write_settings(run.folder, config)  # the folder may have been removed meanwhile
        best_weights(run.folder)
        if prune is None and kind.parser_class.exact:
            best_parser = kind.parser_class.load(run.folder / BEST).to(where)
            keep_temperature(best_parser, dev, run.folder / BEST)
        best, last = (step / trainer.batches for step in (done.best_step, done.steps))
        report.say(
            f"{report.title}: best dev {report.score} {done.best_score:.2f} in epoch {best:.1f} of "
            f"{last:.1f}, {(done.train_seconds + done.dev_seconds) / 60:.1f} minutes, "
            f"{done.speed:,.0f} tokens/s (stopped by {done.stopped_by})"
        )


def chosen_sentences(wanted: int | None, seed: int, treebank: str, sentences: int) -> list[int]:
    """The numbers, from 0, of the sentences to be trained on, of so many, in their order."""
    if wanted is not None and wanted > sentences:
        raise TrainingError(
            f"{wanted:,} sentences are wanted, but {treebank} has {sentences:,} to train on"
        )
    order = generator(seed, Stream.SUBSET).permutation(sentences)
    return sorted(order[:wanted].tolist())
