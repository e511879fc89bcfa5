"""Settings of a training run, and its learning rate and end as functions of a small saved state.

The rate rises linearly over the first batches and then decays whenever some epochs pass without a
better dev score (Kitaev & Klein 2018, appendix A), or some batches (Zhang et al. 2017, section 4).
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AliasChoices, BaseModel, Field, ValidationError, model_validator

from spmrl_bench.errors import CheckpointError, remedy
from spmrl_bench.storage.digests import digest
from spmrl_bench.storage.files import read_folder, read_regular
from spmrl_bench.storage.json import parse_json
from spmrl_bench.storage.toml import describe_mistake

Count = Annotated[int, Field(ge=0)]
Size = Annotated[int, Field(ge=1)]
Amount = Annotated[float, Field(ge=0)]
Positive = Annotated[float, Field(gt=0)]
Decay = Annotated[float, Field(ge=0, lt=1)]

#: The file of a checkpoint that has the schedule.
PROGRESS = "progress.json"
# Its key with the digest of all else there, which versions before did not write.
_DIGEST = "content"
#: The stopping rule after which training goes on where it is given more time.
OUT_OF_TIME = "max_minutes"
#: Not a rule, but the judgement of a search that compares a run with others.
PRUNED = "pruner"


class TrainConfig(BaseModel, extra="forbid", frozen=True, allow_inf_nan=False):
    """How one parser is trained (recipes state every setting without a default)."""

    learning_rate: Positive
    """Learning rate after the warm-up."""
    pretrained_learning_rate: Positive | None = None
    """Learning rate of weights that were trained elsewhere; without it, the same."""
    optimiser: Literal["adam", "sgd"] = "adam"
    """Adam, or plain gradient descent: each weight less the rate times its gradient."""
    gradient_norm: Positive | None = None
    """Norm to which a longer gradient of all weights is scaled down; without it none is."""
    adam_betas: tuple[Decay, Decay]
    """Decay rates of Adam's moving averages of the gradient and of its square."""
    adam_epsilon: Positive
    """Adam's epsilon, added to the denominator for numerical stability."""
    batch_size: Size
    """Sentences of one optimiser step."""
    sub_batch_tokens: Size
    """Padded tokens worked on at once; bounds memory, does not change the step."""
    warmup_batches: Count
    """Steps over which the rate rises linearly from 0."""
    warmup_counts: Literal["batches", "sentences"] = "batches"
    """A step of the warm-up: a batch, or as many sentences as a whole one has (released code)."""
    evaluations_per_epoch: Size
    """Dev evaluations, evenly spaced over an epoch; at most one per batch takes place."""
    decay_patience: Size
    """Epochs without a new best dev score after which the rate is times ``decay_factor``."""
    decay_batches: Size | None = None
    """The same in batches, at the next dev evaluation, in place of ``decay_patience``."""
    decay_factor: Annotated[float, Field(gt=0, lt=1)]
    """What the learning rate is multiplied by when patience is over."""
    stop_patience: Size
    """Stopping rule: epochs without a new best dev score after which training ends."""
    max_epochs: Size
    """Stopping rule: training ends after this many epochs in any case."""
    target_score: Positive | None = None
    """Stopping rule: training ends with the first dev score, in percent, that is at least this."""
    averaging: Annotated[float, Field(gt=0, lt=1)] | None = None
    """Decay of a moving average of the weights, which is kept instead; without it the last are."""
    substitution: Annotated[float, Field(ge=0, le=1)] | None = None
    """Share of sentences, in each epoch, with a constituent that has given way to another."""
    sentences: Size | None = None
    """Training sentences, drawn by the seed, a larger number has the smaller's; without it all."""
    max_minutes: Positive | None = None
    """Stopping rule: minutes of the processor in training, for each thread (on a GPU of the clock);
    scoring dev is not counted. Runs so cut are not reproducible bit by bit, and go on when they are
    given more."""
    checkpoint_minutes: Annotated[float, Field(gt=0, exclude=True)] = 10.0
    """Minutes between checkpoints; changes no weights, and is not noted of a run."""


class Progress(BaseModel, allow_inf_nan=False):
    """All that training must remember besides weights and optimiser moments."""

    epoch: Count = 0  # in work, from 0
    next_batch: Count = 0  # the first of the epoch that is not done
    evaluation_due: bool = False  # dev is to be scored before the next batch; stopped there
    steps: Count = 0  # of the optimiser, done
    sentences: Count = 0  # trained on, each as often as it was; not counted by earlier versions
    rate_factor: Amount = 1.0  # product of all decays
    best_score: float | None = Field(  # on dev in percent, None before the first evaluation
        default=None, validation_alias=AliasChoices("best_score", "best_dev_f1")
    )
    best_step: Count = 0  # of the best evaluation
    epochs_since_best: Count = 0  # that ended without a new best
    epochs_since_decay: Count = 0  # without a new best since the last decay
    decay_step: Count = 0  # of the last decay by batches, 0 before the first
    improved_this_epoch: bool = False
    loss_sum: float = 0.0  # of the mean batch losses of the epoch
    tokens: Count = 0  # words trained on
    train_seconds: Amount = 0.0  # in optimiser steps
    processor_seconds: Amount = 0.0
    """Of the processor in optimiser steps, of each thread; on a GPU those of the clock."""
    dev_seconds: Amount = 0.0  # in dev evaluations
    threads: Annotated[int, Field(ge=1)] | None = None
    """Of the CPU, on which the last bits of sums depend; None on a GPU, and in earlier versions."""
    peak_memory_bytes: Count | None = None  # of the process; None where the system does not tell
    peak_gpu_memory_bytes: Count | None = None  # of the run's tensors; None without a GPU
    curve: list[tuple[float, float]] = []
    """Of each dev evaluation: the seconds of training and scoring until it was done, its score."""
    stopped_by: str | None = None  # the stopping rule that ended the run; None while it goes on

    @model_validator(mode="before")
    @classmethod
    def _of_before(cls, content: Any) -> Any:  # earlier versions had the clock alone
        if isinstance(content, dict) and "train_seconds" in content:
            return {"processor_seconds": content["train_seconds"], **content}
        return content

    def to_bytes(self) -> bytes:
        """Return what :func:`read_progress` reads of a file."""
        content = self.model_dump(mode="json")
        return f"{json.dumps(content | {_DIGEST: digest(content)}, indent=1)}\n".encode()

    @property
    def speed(self) -> float:
        """Words per second of training so far, dev evaluations left out."""
        return self.tokens / self.train_seconds if self.train_seconds else 0.0


def read_progress(folder: Path) -> Progress | None:
    """Return the schedule of a checkpoint, None where there is none; raise a CheckpointError if
    it is incomplete."""

    def read(place: Path) -> Progress | None:
        if not place.exists():
            return None
        path = place / PROGRESS
        try:
            content = parse_json(read_regular(path))
            said = content.pop(_DIGEST, None) if isinstance(content, dict) else None
            if said not in (None, digest(content)):
                raise ValueError("it has been changed since it was saved")
            return Progress.model_validate(content)
        except ValidationError as error:
            raise incomplete(path, describe_mistake(Progress, error.errors()[0])) from None
        except (OSError, ValueError) as error:
            raise incomplete(path, getattr(error, "strerror", None) or error) from None

    return read_folder(folder, read)


def unwritten(path: Path, error: OSError) -> CheckpointError:
    """Return the error of a run that cannot write."""
    return CheckpointError(
        f"{path}: cannot be written ({error.strerror or error}); the last checkpoint is kept. "
        f"{remedy(error)}, then give the same command again (without --fresh) to continue"
    )


def incomplete(path: Path, reason: object) -> CheckpointError:
    """Return the error of a checkpoint of which a file is missing or broken."""
    return CheckpointError(f"{path}: incomplete checkpoint ({reason}). Start anew with --fresh")


def largest(sizes: Iterable[int | None]) -> int | None:
    """Return the largest of some sizes, of which any may be unknown."""
    return max((size for size in sizes if size is not None), default=None)


def learning_rate(config: TrainConfig, progress: Progress) -> float:
    """Return the rate of the next optimiser step."""
    warmup = config.warmup_batches
    rise = min(1.0, (warmup_steps(config, progress) + 1) / warmup) if warmup else 1.0
    return config.learning_rate * progress.rate_factor * rise


def warmup_steps(config: TrainConfig, progress: Progress) -> int:
    """Return the steps of the warm-up that are done: batches, or whole batches of sentences."""
    if config.warmup_counts == "sentences":
        return progress.sentences // config.batch_size
    return progress.steps


def _rising(config: TrainConfig, progress: Progress) -> bool:
    return warmup_steps(config, progress) < config.warmup_batches


def record_dev_score(progress: Progress, score: float) -> bool:
    """Note a dev evaluation; return whether it is the best so far (later equals are not)."""
    if progress.best_score is not None and score <= progress.best_score:
        return False
    progress.best_score = score
    progress.best_step = progress.steps
    progress.improved_this_epoch = True
    return True


def end_evaluation(config: TrainConfig, progress: Progress) -> bool:
    """Go on after a dev evaluation that was noted; return whether the rate decayed by batches,
    which count from the best evaluation or the last decay, whichever was later."""
    since = progress.steps - max(progress.best_step, progress.decay_step)
    if config.decay_batches is None or since < config.decay_batches or _rising(config, progress):
        return False
    progress.rate_factor *= config.decay_factor
    progress.decay_step = progress.steps
    return True


def end_epoch(config: TrainConfig, progress: Progress) -> bool:
    """Move to the next epoch; return whether the rate decayed by epochs, after the warm-up."""
    if progress.improved_this_epoch:
        progress.epochs_since_best = progress.epochs_since_decay = 0
    else:
        progress.epochs_since_best += 1
        progress.epochs_since_decay += 1
    progress.improved_this_epoch = False
    progress.epoch += 1
    progress.next_batch = 0
    progress.loss_sum = 0.0
    waiting = progress.epochs_since_decay < config.decay_patience
    if config.decay_batches is not None or waiting or _rising(config, progress):
        return False
    progress.rate_factor *= config.decay_factor
    progress.epochs_since_decay = 0
    return True


def stopping_rule(config: TrainConfig, progress: Progress) -> str | None:
    """Return the name of the rule that ends training now, or None."""
    if config.target_score is not None and (progress.best_score or 0.0) >= config.target_score:
        return "target_score"
    if progress.epoch >= config.max_epochs:
        return "max_epochs"
    if progress.epochs_since_best >= config.stop_patience:
        return "stop_patience"
    return OUT_OF_TIME if out_of_time(config, progress) else None


def out_of_time(config: TrainConfig, progress: Progress) -> bool:
    """Return whether another batch would end too late, if it takes what batches took so far."""
    used, batches = progress.processor_seconds, max(1, progress.steps)
    return config.max_minutes is not None and used + used / batches > 60 * config.max_minutes


def evaluation_point(config: TrainConfig, progress: Progress, batches: int) -> int:
    """Return how far a run is at a dev evaluation, in evaluations of whole epochs, from 1: the same
    number for runs whose epochs have other numbers of batches."""
    evaluations = config.evaluations_per_epoch
    return progress.epoch * evaluations + round(evaluations * progress.next_batch / batches)


def evaluation_batches(batches: int, evaluations: int) -> frozenset[int]:
    """Return after which numbers of done batches (1..batches) dev is scored; always the last."""
    evaluations = min(evaluations, batches)  # one after each, at most
    points = (round(batches * k / evaluations) for k in range(1, evaluations + 1))
    return frozenset(max(1, point) for point in points)
