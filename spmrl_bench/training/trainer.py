"""The one training loop: batches, dev evaluations, decay, stopping, checkpoints.

It knows neither files of a treebank nor a scorer: it gets indexed sentences and a function
that gives a parser's dev score, which is the same function that the final score uses.
"""

from __future__ import annotations

import math
import signal
import time
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from pathlib import Path
from types import FrameType

import numpy as np
import torch

from spmrl_bench.chart import NotFiniteError
from spmrl_bench.errors import CheckpointError, TrainingError
from spmrl_bench.interrupts import Interrupted, on_signals
from spmrl_bench.parsers.processor import give_memory_back
from spmrl_bench.parsers.trained import Indexed, TrainedParser
from spmrl_bench.processes import peak_memory_bytes
from spmrl_bench.training.averaging import WeightAverage
from spmrl_bench.training.checkpoint import load_checkpoint, save_best, save_checkpoint
from spmrl_bench.training.config import TrainConfig
from spmrl_bench.training.memory import largest, peak_gpu_memory_bytes
from spmrl_bench.training.optimiser import limit_gradient, make_optimiser
from spmrl_bench.training.random import Stream, generator, seed_torch
from spmrl_bench.training.report import Report
from spmrl_bench.training.schedule import (
    OUT_OF_TIME,
    PRUNED,
    Progress,
    end_epoch,
    end_evaluation,
    evaluation_batches,
    evaluation_point,
    learning_rate,
    out_of_time,
    record_dev_score,
    stopping_rule,
)

Prune = Callable[[int, float], bool]
"""Told of each dev evaluation: how far training is (:func:`evaluation_point`) and the score in
percent; says whether training is to end there. Of an evaluation that is done again, as its
checkpoint was not written any more, it is told again."""


class Trainer:
    """Trains one parser into one run folder; :meth:`fit` resumes what is there."""

    def __init__(
        self,
        parser: TrainedParser,
        config: TrainConfig,
        *,
        seed: int,
        sentences: Sequence[Indexed],
        dev_score: Callable[[TrainedParser], float],
        run_dir: Path,
        report: Report,
        substitute: Callable[[int, np.random.Generator], Indexed] | None = None,
        prune: Prune | None = None,
    ) -> None:
        """A trainer.

        Args:
            parser: with the weights to start from.
            config: how to train.
            seed: of all random numbers.
            sentences: as the parser has indexed them.
            dev_score: of a parser, in percent.
            run_dir: where checkpoints are.
            report: to be told what happens.
            substitute: a sentence made of the one with this number, for ``config.substitution``.
            prune: whether training is to end for what it has come to.
        """
        self.parser = parser
        self.config = config
        self.seed = seed
        self.sentences = sentences
        self.dev_score = dev_score
        self.run_dir = run_dir
        self.report = report
        self.substitute = substitute
        self.prune = prune
        self.batches = -(-len(sentences) // config.batch_size)
        self.optimiser = make_optimiser(parser, config)
        # Gradients stay where they are: taken anew in each step they would lie scattered among
        # the activations, whose memory could then not be used again as a whole.
        for weight in parser.parameters():
            weight.grad = torch.zeros_like(weight)
        decay = config.averaging
        self.average = None if decay is None else WeightAverage(parser, decay)
        self.progress = Progress()
        self._asked: int | None = None  # the signal that asked training to stop
        self._scoring = False  # whether that may break off what goes on
        self._saved, self._unsaved_steps = time.monotonic(), 0

    def fit(self) -> Progress:
        """Train until a stopping rule holds; returns the final state of the schedule.

        Raises:
            TrainingError: the loss or a score is no longer a number.
            CheckpointError: the folder holds a checkpoint that does not fit.
            Interrupted: Ctrl-C or SIGTERM; the checkpoint just written continues with the next
                batch, or with the dev evaluation that was broken off or not begun.
        """
        saved = load_checkpoint(self.run_dir, self.parser, self.optimiser, self.average)
        if saved is not None:
            if saved.next_batch > self.batches:
                raise CheckpointError(
                    f"{self.run_dir}: the checkpoint is of batch {saved.next_batch} of an epoch, "
                    f"but there are {self.batches}. Start anew with --fresh"
                )
            self.progress = saved
            if saved.stopped_by == OUT_OF_TIME and not out_of_time(self.config, saved):
                saved.stopped_by = None
            self.report.event("resume", epoch=saved.epoch, batch=saved.next_batch)
        with on_signals(self._ask, signal.SIGINT, signal.SIGTERM):
            while self.progress.stopped_by is None:
                try:
                    self._epoch()
                except NotFiniteError as error:
                    raise self._diverged(str(error).rstrip(".")) from None
        if self._asked is not None:
            raise Interrupted(self._asked)  # nothing is left to do here, but maybe elsewhere
        return self.progress

    def _epoch(self) -> None:
        """Work from the current batch to the end of the epoch or of training."""
        state = self.progress
        if state.evaluation_due:  # training was stopped before its end
            self._evaluate()
        order = generator(self.seed, Stream.ORDER, state.epoch).permutation(len(self.sentences))
        sentences = self._sentences_of(state.epoch)
        points = evaluation_batches(self.batches, self.config.evaluations_per_epoch)
        for number in range(state.next_batch, self.batches):
            if state.stopped_by is not None:
                return
            low = number * self.config.batch_size
            chosen = order[low : low + self.config.batch_size]
            self._step(number, [sentences[k] for k in chosen])
            self.report.batch(state, self.batches, self.config.max_epochs)
            # The last evaluation is to end within the time that is given.
            state.evaluation_due = number + 1 in points or out_of_time(self.config, state)
            self._stop_if_asked()
            if state.evaluation_due:
                self._evaluate()
            elif time.monotonic() - self._saved >= 60 * self.config.checkpoint_minutes:
                self._save()

    def _stop_if_asked(self) -> None:
        """Save and end training here, if a signal has asked for that."""
        if self._asked is None:
            return
        if self._unsaved_steps:
            self._save()
        state = self.progress
        self.report.event("interrupt", epoch=state.epoch, batch=state.next_batch)
        raise Interrupted(self._asked)

    def _sentences_of(self, epoch: int) -> Sequence[Indexed]:
        """The training sentences, a share of them with a constituent of another."""
        share = self.config.substitution
        if share is None:
            return self.sentences
        if self.substitute is None:
            raise ValueError("train.substitution is set, but nothing makes new sentences")
        random = generator(self.seed, Stream.SUBSTITUTION, epoch)
        chosen = (random.random(len(self.sentences)) < share).tolist()
        return [
            self.substitute(number, random) if replaced else sentence
            for number, (sentence, replaced) in enumerate(zip(self.sentences, chosen, strict=True))
        ]

    def _step(self, number: int, batch: list[Indexed]) -> None:
        """One optimiser step."""
        state, begun = self.progress, time.perf_counter()
        place = (state.epoch, number)
        seed_torch(self.seed, Stream.DROPOUT, *place)
        for group in self.optimiser.param_groups:
            group["lr"] = learning_rate(self.config, state) * group["share"]
        self.parser.train()
        self.optimiser.zero_grad(set_to_none=False)
        loss = self.parser.gradients(
            batch, generator(self.seed, Stream.UNK, *place), self.config.sub_batch_tokens
        )
        if not np.isfinite(loss):
            raise self._diverged(f"the loss is {loss}")
        if self.config.gradient_norm is not None:
            norm = limit_gradient(self.parser.parameters(), self.config.gradient_norm)
            if not math.isfinite(norm):
                raise self._diverged(f"the norm of the gradient is {norm}")
        self.optimiser.step()
        state.steps += 1
        state.sentences += len(batch)
        self._unsaved_steps += 1
        if self.average is not None:
            self.average.update(state.steps)
        state.next_batch = number + 1
        state.loss_sum += loss
        state.tokens += sum(map(len, batch))
        state.train_seconds += time.perf_counter() - begun

    def _diverged(self, symptom: str) -> TrainingError:
        """The error of a run whose numbers ran away; what was saved before is left alone."""
        state = self.progress
        return TrainingError(
            f"{self.report.title}: training diverged after {state.next_batch} of {self.batches} "
            f"batches of epoch {state.epoch + 1}: {symptom}. The last checkpoint is kept; lower "
            f"train.learning_rate (now {self.config.learning_rate}) and start anew with --fresh"
        )

    def _evaluate(self) -> None:
        """Score dev, keep the parser if it is the best so far, go on in the schedule and save."""
        state = self.progress
        try:
            score = self._score()
        except Interrupted:
            self._stop_if_asked()
            raise
        state.evaluation_due = False
        point = evaluation_point(self.config, state, self.batches)
        decayed = end_evaluation(self.config, state)
        if state.next_batch == self.batches:
            decayed |= end_epoch(self.config, state)
        if decayed:
            self.report.event("decay", epoch=state.epoch, rate_factor=state.rate_factor)
        pruned = self.prune is not None and self.prune(point, score)
        state.stopped_by = stopping_rule(self.config, state) or (PRUNED if pruned else None)
        self._save()
        if state.stopped_by is not None:
            self.report.event("stop", rule=state.stopped_by, steps=state.steps)
        else:
            self._stop_if_asked()

    def _score(self) -> float:
        """Score dev, in percent, and keep the parser if it is the best so far."""
        state, begun = self.progress, time.perf_counter()
        with nullcontext() if self.average is None else self.average.in_place():
            try:
                self._scoring = True
                if self._asked is not None:  # between the batch and now
                    raise Interrupted(self._asked)
                score = self.dev_score(self.parser)
            finally:
                self._scoring = False
            best = record_dev_score(state, score)
            if best:
                save_best(self.run_dir, self.parser)
        give_memory_back()  # parses of other sizes than batches leave holes between these
        state.dev_seconds += time.perf_counter() - begun
        state.curve.append((round(state.train_seconds + state.dev_seconds, 2), round(score, 4)))
        self.report.evaluation(state, self.batches, score, state.loss_sum / state.next_batch, best)
        return score

    def _save(self) -> None:
        state = self.progress
        # A resumed run is another process: keep the largest of them all.
        state.peak_memory_bytes = largest((state.peak_memory_bytes, peak_memory_bytes()))
        on_gpu = peak_gpu_memory_bytes(self.parser.device)
        state.peak_gpu_memory_bytes = largest((state.peak_gpu_memory_bytes, on_gpu))
        save_checkpoint(self.run_dir, self.parser, self.optimiser, self.average, self.progress)
        self._saved, self._unsaved_steps = time.monotonic(), 0

    def _ask(self, number: int, frame: FrameType | None) -> None:
        """Let the batch be finished and saved; Ctrl-C after that ends at once.

        A dev evaluation may take long and changes nothing before its end, so it is broken off, to
        be done when training goes on.
        """
        if self._asked is None:
            self._asked = number
            hint = "; press Ctrl-C again to stop at once" if number == signal.SIGINT else ""
            doing = "breaking off the dev evaluation" if self._scoring else "finishing this batch"
            self.report.say(f"{self.report.title}: {doing} and saving{hint}")
            if self._scoring:
                raise Interrupted(number)
        elif number == signal.SIGINT:
            raise KeyboardInterrupt
