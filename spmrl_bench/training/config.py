"""Settings of a training run: optimiser, schedule, evaluations and the stopping rule."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

Count = Annotated[int, Field(ge=1)]
#: What makes a step of a gradient.
Optimiser = Literal["adam", "sgd"]
#: What the warm-up counts.
WarmupUnit = Literal["batches", "sentences"]


class TrainConfig(BaseModel):
    """How one parser is trained (recipes state every setting without a default)."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    learning_rate: Annotated[float, Field(gt=0)]
    """Learning rate after the warm-up."""
    pretrained_learning_rate: Annotated[float, Field(gt=0)] | None = None
    """Learning rate of weights that were trained elsewhere, with the same schedule; without it, the
    same."""
    optimiser: Optimiser = "adam"
    """Adam, or plain gradient descent: each weight less the rate times its gradient."""
    gradient_norm: Annotated[float, Field(gt=0)] | None = None
    """Largest norm of the gradient of a step, of all weights together; a longer one is scaled
    down to it. Without it any."""
    adam_betas: tuple[Annotated[float, Field(ge=0, lt=1)], Annotated[float, Field(ge=0, lt=1)]]
    """Decay rates of Adam's moving averages of the gradient and of its square."""
    adam_epsilon: Annotated[float, Field(gt=0)]
    """What Adam adds to the root that it divides by."""
    batch_size: Count
    """Sentences of one optimiser step."""
    sub_batch_tokens: Count
    """Padded tokens worked on at once; bounds memory, does not change the step."""
    warmup_batches: Annotated[int, Field(ge=0)]
    """Steps over which the rate rises linearly from 0."""
    warmup_counts: WarmupUnit = "batches"
    """What makes a step of the warm-up: a batch, or, as in the released code, as many sentences as
    a whole batch has: where an epoch ends with a smaller one, the warm-up is longer then."""
    evaluations_per_epoch: Count
    """Dev evaluations, evenly spaced over an epoch; at most one per batch takes place."""
    decay_patience: Count
    """Epochs without a new best dev score after which the rate is multiplied by
    ``decay_factor``."""
    decay_batches: Count | None = None
    """Batches without a new best dev score after which, at the next dev evaluation, the rate is
    multiplied by ``decay_factor``; then ``decay_patience`` has no effect."""
    decay_factor: Annotated[float, Field(gt=0, lt=1)]
    """What the learning rate is multiplied by when patience is over."""
    stop_patience: Count
    """Stopping rule: epochs without a new best dev score after which training ends."""
    max_epochs: Count
    """Stopping rule: training ends after this many epochs in any case."""
    averaging: Annotated[float, Field(gt=0, lt=1)] | None = None
    """Decay of a moving average of the weights, which is scored and kept in their place; without
    it the last weights are."""
    substitution: Annotated[float, Field(gt=0, le=1)] | None = None
    """Share of the training sentences of an epoch in which a constituent is replaced by one with
    the same label, of any sentence; without it none."""
    sentences: Annotated[int, Field(gt=0)] | None = None
    """Training sentences, drawn by the seed, and with a larger number the same and others;
    without it all there are."""
    max_minutes: Annotated[float, Field(gt=0)] | None = None
    """Stopping rule: training ends with an evaluation before so many minutes of training and
    evaluating are over, those of all sessions of the run together. Given more, it goes on. Runs so
    cut are not reproducible bit by bit."""
    checkpoint_minutes: Annotated[float, Field(gt=0, exclude=True)] = 10.0
    """Minutes after which, behind the next batch, a checkpoint is written. No part of what is
    dumped, compared and noted of a run, since it does not change the weights."""
