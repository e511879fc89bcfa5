"""Settings of a training run: optimiser, schedule, evaluations and the stopping rule."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, Field

Count = Annotated[int, Field(ge=1)]
Amount = Annotated[float, Field(gt=0)]
Decay = Annotated[float, Field(ge=0, lt=1)]


class TrainConfig(BaseModel, extra="forbid", frozen=True, allow_inf_nan=False):
    """How one parser is trained (recipes state every setting without a default)."""

    learning_rate: Amount
    """Learning rate after the warm-up."""
    pretrained_learning_rate: Amount | None = None
    """Learning rate of weights that were trained elsewhere; without it, the same."""
    optimiser: Literal["adam", "sgd"] = "adam"
    """Adam, or plain gradient descent: each weight less the rate times its gradient."""
    gradient_norm: Amount | None = None
    """Norm to which a longer gradient of all weights is scaled down; without it none is."""
    adam_betas: tuple[Decay, Decay]
    """Decay rates of Adam's moving averages of the gradient and of its square."""
    adam_epsilon: Amount
    """Adam's epsilon, added to the denominator for numerical stability."""
    batch_size: Count
    """Sentences of one optimiser step."""
    sub_batch_tokens: Count
    """Padded tokens worked on at once; bounds memory, does not change the step."""
    warmup_batches: Annotated[int, Field(ge=0)]
    """Steps over which the rate rises linearly from 0."""
    warmup_counts: Literal["batches", "sentences"] = "batches"
    """A step of the warm-up: a batch, or as many sentences as a whole one has (released code)."""
    evaluations_per_epoch: Count
    """Dev evaluations, evenly spaced over an epoch; at most one per batch takes place."""
    decay_patience: Count
    """Epochs without a new best dev score after which the rate is times ``decay_factor``."""
    decay_batches: Count | None = None
    """The same in batches, at the next dev evaluation, in place of ``decay_patience``."""
    decay_factor: Annotated[float, Field(gt=0, lt=1)]
    """What the learning rate is multiplied by when patience is over."""
    stop_patience: Count
    """Stopping rule: epochs without a new best dev score after which training ends."""
    max_epochs: Count
    """Stopping rule: training ends after this many epochs in any case."""
    target_score: Amount | None = None
    """Stopping rule: training ends with the first dev score, in percent, that is at least this."""
    averaging: Annotated[float, Field(gt=0, lt=1)] | None = None
    """Decay of a moving average of the weights, which is kept instead; without it the last are."""
    substitution: Annotated[float, Field(ge=0, le=1)] | None = None
    """Share of sentences, in each epoch, with a constituent that has given way to another."""
    sentences: Count | None = None
    """Training sentences, drawn by the seed, a larger number has the smaller's; without it all."""
    max_minutes: Amount | None = None
    """Stopping rule: minutes of the processor in training, for each thread (on a GPU of the clock);
    scoring dev is not counted. Runs so cut are not reproducible bit by bit, and go on when they are
    given more."""
    checkpoint_minutes: Annotated[float, Field(gt=0, exclude=True)] = 10.0
    """Minutes between checkpoints; changes no weights, and is not noted of a run."""
