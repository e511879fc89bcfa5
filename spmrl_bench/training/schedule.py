"""Learning rate and end of training as functions of a small saved state.

The rate rises linearly over the first batches and is then halved whenever a number of
epochs pass without a better dev score (Kitaev & Klein 2018, appendix A), or a number of batches
(Zhang et al. 2017, section 4). The published systems were stopped by hand; the stopping rules
here are the recipe's.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import AliasChoices, BaseModel, ConfigDict, Field

from spmrl_bench.training.config import TrainConfig

Count = Annotated[int, Field(ge=0)]
Amount = Annotated[float, Field(ge=0)]


#: The stopping rule after which training goes on where it is given more time.
OUT_OF_TIME = "max_minutes"
#: Not a rule, but the judgement of a search that compares a run with others.
PRUNED = "pruner"


class Progress(BaseModel):
    """All that training must remember besides weights and optimiser moments."""

    model_config = ConfigDict(allow_inf_nan=False)

    epoch: Count = 0
    """Epoch in work, from 0."""
    next_batch: Count = 0
    """First batch of the epoch that is not done."""
    evaluation_due: bool = False
    """Whether dev is still to be scored before the next batch; training was stopped there."""
    steps: Count = 0
    """Optimiser steps done."""
    sentences: Count = 0
    """Sentences trained on so far, each as often as it was; runs of earlier versions did not count
    them, and have no setting that asks for their number."""
    rate_factor: Amount = 1.0
    """Product of all decays so far."""
    best_score: float | None = Field(
        default=None, validation_alias=AliasChoices("best_score", "best_dev_f1")
    )
    """Best dev score in percent, None before the first evaluation."""
    best_step: Count = 0
    """Optimiser step of the best evaluation."""
    epochs_since_best: Count = 0
    """Whole epochs that ended without a new best."""
    epochs_since_decay: Count = 0
    """Whole epochs without a new best since the last decay."""
    decay_step: Count = 0
    """Optimiser step of the last decay by batches, 0 before the first."""
    improved_this_epoch: bool = False
    loss_sum: float = 0.0
    """Sum of the mean batch losses of the epoch so far."""
    tokens: Count = 0
    """Words trained on so far."""
    train_seconds: Amount = 0.0
    """Time in optimiser steps so far."""
    dev_seconds: Amount = 0.0
    """Time in dev evaluations so far."""
    peak_memory_bytes: Count | None = None
    """Largest memory of the process so far; None where the system does not tell."""
    peak_gpu_memory_bytes: Count | None = None
    """Largest memory of the run's tensors on a GPU; None without one."""
    curve: list[tuple[float, float]] = []
    """Of each dev evaluation: the seconds of training and scoring until it was done, its score."""
    stopped_by: str | None = None
    """The stopping rule that ended the run; None while it goes on."""

    def best_within(self, minutes: float) -> float | None:
        """The best dev score that was known after so much time; None if there was none yet."""
        scores = [score for seconds, score in self.curve if seconds <= 60 * minutes]
        return max(scores, default=None)


def learning_rate(config: TrainConfig, progress: Progress) -> float:
    """Rate of the next optimiser step."""
    warmup = config.warmup_batches
    rise = min(1.0, (warmup_steps(config, progress) + 1) / warmup) if warmup else 1.0
    return config.learning_rate * progress.rate_factor * rise


def warmup_steps(config: TrainConfig, progress: Progress) -> int:
    """Steps of the warm-up that are done: batches, or whole batches in the sentences so far.

    The paper speaks of batches. Its code divides sentences by the size of a batch, so where that
    does not divide the corpus, every epoch leaves a rest behind and the warm-up takes longer: 161
    steps instead of 160 for 3,914 sentences in batches of 32, 184 for 1,300 in batches of 250.
    """
    if config.warmup_counts == "sentences":
        return progress.sentences // config.batch_size
    return progress.steps


def record_dev_score(progress: Progress, score: float) -> bool:
    """Note a dev evaluation; true if it is the best so far (later equals are not)."""
    if progress.best_score is not None and score <= progress.best_score:
        return False
    progress.best_score = score
    progress.best_step = progress.steps
    progress.improved_this_epoch = True
    return True


def end_evaluation(config: TrainConfig, progress: Progress) -> bool:
    """Go on after a dev evaluation that was noted; true if the rate was decayed by batches.

    The batches count from the best evaluation or the last decay, whichever was later. They are
    looked at in evaluations only, so a decay may come later than their number says, and the next
    one counts from there.
    """
    if config.decay_batches is None or warmup_steps(config, progress) < config.warmup_batches:
        return False
    if progress.steps - max(progress.best_step, progress.decay_step) < config.decay_batches:
        return False
    progress.rate_factor *= config.decay_factor
    progress.decay_step = progress.steps
    return True


def end_epoch(config: TrainConfig, progress: Progress) -> bool:
    """Move to the next epoch; true if the rate was decayed by epochs.

    Decays wait for the warm-up, here and by batches.
    """
    if progress.improved_this_epoch:
        progress.epochs_since_best = progress.epochs_since_decay = 0
    else:
        progress.epochs_since_best += 1
        progress.epochs_since_decay += 1
    progress.improved_this_epoch = False
    progress.epoch += 1
    progress.next_batch = 0
    progress.loss_sum = 0.0
    warm = warmup_steps(config, progress) >= config.warmup_batches
    by_epochs = config.decay_batches is None
    if by_epochs and warm and progress.epochs_since_decay >= config.decay_patience:
        progress.rate_factor *= config.decay_factor
        progress.epochs_since_decay = 0
        return True
    return False


def stopping_rule(config: TrainConfig, progress: Progress) -> str | None:
    """Name of the rule that ends training now, or None."""
    if progress.epoch >= config.max_epochs:
        return "max_epochs"
    if progress.epochs_since_best >= config.stop_patience:
        return "stop_patience"
    return OUT_OF_TIME if out_of_time(config, progress) else None


def out_of_time(config: TrainConfig, progress: Progress) -> bool:
    """Whether the time left is at most what a dev evaluation has taken so far on average."""
    if config.max_minutes is None:
        return False
    evaluation = progress.dev_seconds / max(1, len(progress.curve))
    used = progress.train_seconds + progress.dev_seconds
    return used + evaluation >= 60 * config.max_minutes


def evaluation_point(config: TrainConfig, progress: Progress, batches: int) -> int:
    """How far a run is at a dev evaluation, in evaluations of whole epochs, from 1.

    It is the same number for runs whose epochs have other numbers of batches, however few.
    """
    evaluations = config.evaluations_per_epoch
    return progress.epoch * evaluations + round(evaluations * progress.next_batch / batches)


def evaluation_batches(batches: int, evaluations: int) -> frozenset[int]:
    """Numbers of done batches (1..batches) after which dev is scored; always the last."""
    points = (round(batches * k / evaluations) for k in range(1, evaluations + 1))
    return frozenset(max(1, point) for point in points)
