"""The one training loop: batches, dev evaluations, decay, stopping, checkpoints.

It knows neither files of a treebank nor a scorer. Random numbers need no state: each stream is a
function of the seed and of where training is, so a resumed run draws what an uninterrupted one
would, and more numbers in one place shift no other.
"""

from __future__ import annotations

import enum
import math
import signal
import time
from collections.abc import Callable, Iterable, Iterator, Sequence, Sized
from contextlib import contextmanager
from dataclasses import KW_ONLY, dataclass, field
from pathlib import Path
from types import FrameType

import numpy as np
import torch
from torch import nn

from spmrl_bench.errors import CheckpointError, NotFiniteError, TrainingError
from spmrl_bench.nn.device import trim_memory
from spmrl_bench.parsers.neural import TrainedParser
from spmrl_bench.process.pools import peak_memory_bytes
from spmrl_bench.process.signals import STOPPING, Interrupted, on_signals
from spmrl_bench.storage.tensors import check_finite
from spmrl_bench.training import schedule
from spmrl_bench.training.checkpoint import load_checkpoint, save_best, save_checkpoint
from spmrl_bench.training.report import Report
from spmrl_bench.training.schedule import OUT_OF_TIME, Progress, TrainConfig

_LARGEST_LOSS = 1e9  # of a batch, per sentence; that of the longest sentence has a millionth of it

#: Told of each dev evaluation how far training is (:func:`schedule.evaluation_point`) and the score
#: in percent, and again where the checkpoint behind it was not written any more; says whether
#: training is to end there.
Prune = Callable[[int, float], bool]


class Stream(enum.IntEnum):
    """What random numbers are for; these are part of what a seed means, so never renumber."""

    WEIGHTS = 0
    ORDER = 1
    UNK = 2
    DROPOUT = 3
    SUBSTITUTION = 4
    SUBSET = 5


def generator(seed: int, stream: Stream, *place: int) -> np.random.Generator:
    """Return the generator of a stream at a place such as ``(epoch, batch)``."""
    return np.random.default_rng([seed, int(stream), *place])


def seed_torch(seed: int, stream: Stream, *place: int) -> None:
    """Start torch's default generators at a stream's place."""
    torch.manual_seed(int(generator(seed, stream, *place).integers(2**62)))


def make_optimiser(parser: TrainedParser, config: TrainConfig) -> torch.optim.Optimizer:
    """Return Adam (Kingma & Ba 2015) or plain gradient descent; each group of weights has its
    ``share`` of the learning rate."""
    pretrained, rate = parser.pretrained_parameters(), config.learning_rate
    known = set(map(id, pretrained))
    others = [weight for weight in parser.parameters() if id(weight) not in known]
    groups = [{"params": others, "share": 1.0}]
    if pretrained:
        share = (config.pretrained_learning_rate or rate) / rate
        groups.append({"params": pretrained, "share": share})
    if config.optimiser == "sgd":
        return torch.optim.SGD(groups, lr=rate)
    betas, epsilon = config.adam_betas, config.adam_epsilon
    return torch.optim.Adam(groups, lr=rate, betas=betas, eps=epsilon, fused=True)


def limit_gradient(weights: Iterable[nn.Parameter], limit: float) -> float:
    """Scale the gradient ``g`` of all weights together to ``g limit / |g|`` if it is longer, and
    return ``|g|``; where that is not finite, leave the gradient as it is (Pascanu, Mikolov & Bengio
    2013, section 3.2; torch's own adds 1e-6 to the norm)."""
    gradients = [weight.grad for weight in weights if weight.grad is not None]
    norms = [torch.linalg.vector_norm(gradient) for gradient in gradients]
    norm = torch.linalg.vector_norm(torch.stack(norms)).item()
    if limit < norm < math.inf:
        for gradient in gradients:
            gradient.mul_(limit / norm)
    return norm


class WeightAverage:
    """A moving average of weights, kept in place of the last ones (Polyak & Juditsky 1992).

    After step ``t`` it is ``d * mean + (1 - d) * weights`` with ``d = min(decay, (t + 1) / (t +
    10))``, so that the random weights of the start are forgotten soon; without a decay, nothing.
    """

    def __init__(self, module: nn.Module, decay: float | None) -> None:
        self._decay = decay
        self._weights = {} if decay is None else dict(module.named_parameters())
        self.means = {name: weight.detach().clone() for name, weight in self._weights.items()}

    @torch.no_grad()
    def update(self, step: int) -> None:
        """Take in the weights after an optimiser step, the first of which is 1."""
        if self._decay is None:
            return
        share = 1 - min(self._decay, (step + 1) / (step + 10))
        torch._foreach_lerp_(list(self.means.values()), list(self._weights.values()), share)

    @contextmanager
    def in_place(self) -> Iterator[None]:
        """Give the module the average while this is open, and its own weights again after it."""
        self._exchange()
        try:
            yield
        finally:
            self._exchange()

    @torch.no_grad()
    def _exchange(self) -> None:
        for name, weight in self._weights.items():
            own = weight.clone()
            weight.copy_(self.means[name])
            self.means[name].copy_(own)


@dataclass
class Trainer:
    """Trains one parser into one run folder; :meth:`fit` resumes what is there."""

    parser: TrainedParser  # with the weights to start from
    config: TrainConfig
    _: KW_ONLY
    seed: int  # of all random numbers
    sentences: Sequence[Sized]  # as the parser has indexed them
    dev_score: Callable[[TrainedParser], float]  # in percent
    run_dir: Path  # where checkpoints are
    report: Report
    substitute: Callable[[int, np.random.Generator], Sized] | None = None
    """Makes a sentence of the one with this number; ``config.substitution`` needs it."""
    prune: Prune | None = None
    prepare: Callable[[], None] = lambda: None
    """What is done first; its time counts."""
    progress: Progress = field(default_factory=Progress, init=False)
    _signal: int | None = field(default=None, init=False)  # that asked training to stop
    _scoring: bool = field(default=False, init=False)  # whether that may break off what goes on
    _unsaved_steps: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        self.batches = -(-len(self.sentences) // self.config.batch_size)
        self.optimiser = make_optimiser(self.parser, self.config)
        # Gradients stay where they are: taken anew in each step they would lie scattered among
        # the activations, whose memory could then not be used again as a whole.
        for weight in self.parser.parameters():
            weight.grad = torch.zeros_like(weight)
        self.average = WeightAverage(self.parser, self.config.averaging)
        self._saved = time.monotonic()

    def fit(self) -> Progress:
        """Train until a stopping rule holds; return the final state of the schedule. Raise a
        TrainingError if the loss or a score is no longer a number, a CheckpointError if the folder
        has a checkpoint that does not fit, and Interrupted at Ctrl-C or SIGTERM, after a save."""
        self._resume()
        begun = self._clocks()
        self.prepare()
        if self.progress.steps == 0:
            self._spend(begun)
        with on_signals(self._ask, *STOPPING):
            while self.progress.stopped_by is None:
                try:
                    self._epoch()
                except NotFiniteError as error:
                    raise self._diverged(str(error).rstrip(".")) from None
        if self._signal is not None:
            raise Interrupted(self._signal)  # nothing is left to do here, but maybe elsewhere
        return self.progress

    def _resume(self) -> None:
        """Go on from the checkpoint of the folder, if it has one."""
        threads = torch.get_num_threads() if self.parser.device.type == "cpu" else None
        saved = load_checkpoint(self.run_dir, self.parser, self.optimiser, self.average.means)
        if saved is None:
            self.progress.threads = threads
            return
        if saved.next_batch > self.batches:
            raise CheckpointError(
                f"{self.run_dir}: the checkpoint is of batch {saved.next_batch} of an epoch, "
                f"but there are {self.batches}. Start anew with --fresh"
            )
        self.progress = saved
        if saved.stopped_by == OUT_OF_TIME and not schedule.out_of_time(self.config, saved):
            saved.stopped_by = None
        self.report.event("resume", epoch=saved.epoch, batch=saved.next_batch)
        if saved.stopped_by is None:
            if saved.threads not in (None, threads):
                self.report.say(
                    f"{self.report.title}: {saved.threads} threads until now, {threads or 'a GPU'} "
                    "from here on: the last bits of sums are not those of an uninterrupted run"
                )
            saved.threads = threads

    def _epoch(self) -> None:
        state = self.progress
        if state.evaluation_due:  # training was stopped before its end
            self._evaluate()
        order = generator(self.seed, Stream.ORDER, state.epoch).permutation(len(self.sentences))
        sentences = self._sentences_of(state.epoch)
        points = schedule.evaluation_batches(self.batches, self.config.evaluations_per_epoch)
        for number in range(state.next_batch, self.batches):
            if state.stopped_by is not None:
                return
            low = number * self.config.batch_size
            chosen = order[low : low + self.config.batch_size]
            self._step(number, [sentences[k] for k in chosen])
            self.report.batch(state, self.batches, self.config.max_epochs)
            # The last evaluation is to end within the time that is given.
            state.evaluation_due = number + 1 in points or schedule.out_of_time(self.config, state)
            self._stop_if_asked()
            if state.evaluation_due:
                self._evaluate()
            elif time.monotonic() - self._saved >= 60 * self.config.checkpoint_minutes:
                self._save()

    def _stop_if_asked(self) -> None:
        if self._signal is None:
            return
        if self._unsaved_steps:
            self._save()
        state = self.progress
        self.report.event("interrupt", epoch=state.epoch, batch=state.next_batch)
        raise Interrupted(self._signal)

    def _sentences_of(self, epoch: int) -> Sequence[Sized]:
        """The training sentences, a share of them with a constituent exchanged."""
        share, substitute = self.config.substitution, self.substitute
        if share is None or substitute is None:
            return self.sentences
        random = generator(self.seed, Stream.SUBSTITUTION, epoch)
        sentences = list(self.sentences)
        for number in (random.random(len(sentences)) < share).nonzero()[0].tolist():
            sentences[number] = substitute(number, random)
        return sentences

    def _step(self, number: int, batch: list[Sized]) -> None:
        state, begun = self.progress, self._clocks()
        place = (state.epoch, number)
        seed_torch(self.seed, Stream.DROPOUT, *place)
        for group in self.optimiser.param_groups:
            group["lr"] = schedule.learning_rate(self.config, state) * group["share"]
        self.parser.train()
        self.optimiser.zero_grad(set_to_none=False)
        random = generator(self.seed, Stream.UNK, *place)
        loss = self.parser.gradients(batch, random, self.config.sub_batch_tokens)
        if not abs(loss) < _LARGEST_LOSS:
            raise self._diverged(f"the loss is {loss}")
        if self.config.gradient_norm is not None:
            norm = limit_gradient(self.parser.parameters(), self.config.gradient_norm)
            if not math.isfinite(norm):
                raise self._diverged(f"the norm of the gradient is {norm}")
        self.optimiser.step()
        state.steps += 1
        state.sentences += len(batch)
        self._unsaved_steps += 1
        self.average.update(state.steps)
        state.next_batch = number + 1
        state.loss_sum += loss
        state.tokens += sum(map(len, batch))
        self._spend(begun)

    def _clocks(self) -> tuple[float, float]:
        """The clock, and the processor's for each thread, which work beside does not move."""
        now = time.perf_counter()
        on_gpu = self.parser.device.type == "cuda"
        return now, now if on_gpu else time.process_time() / torch.get_num_threads()

    def _spend(self, begun: tuple[float, float]) -> None:
        clock, processor = self._clocks()
        self.progress.train_seconds += clock - begun[0]
        self.progress.processor_seconds += processor - begun[1]

    def _diverged(self, symptom: str) -> TrainingError:
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
        point = schedule.evaluation_point(self.config, state, self.batches)
        decayed = schedule.end_evaluation(self.config, state)
        if state.next_batch == self.batches:
            decayed |= schedule.end_epoch(self.config, state)
        if decayed:
            self.report.event("decay", epoch=state.epoch, rate_factor=state.rate_factor)
        pruned = self.prune is not None and self.prune(point, score)
        rule = schedule.stopping_rule(self.config, state)
        state.stopped_by = rule or (schedule.PRUNED if pruned else None)
        self._save()
        if state.stopped_by is not None:
            self.report.event("stop", rule=state.stopped_by, steps=state.steps)
        else:
            self._stop_if_asked()

    def _score(self) -> float:
        state, begun = self.progress, time.perf_counter()
        with self.average.in_place():
            try:
                self._scoring = True
                if self._signal is not None:  # between the batch and now
                    raise Interrupted(self._signal)
                score = self.dev_score(self.parser)
            finally:
                self._scoring = False
            if best := schedule.record_dev_score(state, score):
                save_best(self.run_dir, self.parser)
        trim_memory()  # parses of other sizes than batches leave holes between these
        state.dev_seconds += time.perf_counter() - begun
        state.curve.append((round(state.train_seconds + state.dev_seconds, 2), round(score, 4)))
        self.report.evaluation(state, self.batches, score, best)
        return score

    def _save(self) -> None:
        # A resumed run is another process: keep the largest of them all.
        try:  # a step may spoil the weights, which the next loss would show
            for name, weights in self.parser.named_parameters():
                check_finite(name, weights.detach())
        except ValueError as error:
            raise self._diverged(str(error)) from None
        state, device = self.progress, self.parser.device
        on_gpu = torch.cuda.max_memory_allocated(device) if device.type == "cuda" else None
        state.peak_memory_bytes = schedule.largest((state.peak_memory_bytes, peak_memory_bytes()))
        state.peak_gpu_memory_bytes = schedule.largest((state.peak_gpu_memory_bytes, on_gpu))
        save_checkpoint(self.run_dir, self.parser, self.optimiser, self.average.means, state)
        self._saved, self._unsaved_steps = time.monotonic(), 0

    def _ask(self, number: int, frame: FrameType | None) -> None:
        """Let the batch be finished and saved, but break off a dev evaluation, which may take long
        and changes nothing before its end; Ctrl-C after that ends at once."""
        if self._signal is None:
            self._signal = number
            hint = "; press Ctrl-C again to stop at once" if number == signal.SIGINT else ""
            doing = "breaking off the dev evaluation" if self._scoring else "finishing this batch"
            self.report.say(f"{self.report.title}: {doing} and saving{hint}")
            if self._scoring:
                raise Interrupted(number)
        elif number == signal.SIGINT:
            raise KeyboardInterrupt
