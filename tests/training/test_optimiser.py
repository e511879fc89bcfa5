"""Steps by hand: plain gradient descent, and the limit of the gradient."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
import torch
from pydantic import ValidationError
from torch import Tensor, nn

from spmrl_bench.errors import TrainingError
from spmrl_bench.parsers.chart_parser import ChartParser
from spmrl_bench.training.checkpoint import load_checkpoint
from spmrl_bench.training.optimiser import limit_gradient
from spmrl_bench.training.trainer import Trainer
from tests.laboratory import train_config
from tests.training.test_trainer import events
from tests.training.trainers import break_off, make_trainer

SGD: dict[str, Any] = {"optimiser": "sgd", "learning_rate": 0.05, "warmup_batches": 0}


def stepped(trainer: Trainer) -> tuple[list[Tensor], list[Tensor], list[Tensor]]:
    """Weights before a step, their gradients in it as they were left, weights after it."""
    before = [weight.detach().clone() for weight in trainer.parser.parameters()]
    trainer._step(0, trainer.sentences[:8])
    gradients = [
        weight.grad.clone() for weight in trainer.parser.parameters() if weight.grad is not None
    ]
    return before, gradients, [weight.detach() for weight in trainer.parser.parameters()]


def norm_of(gradients: list[Tensor]) -> float:
    return math.sqrt(
        sum(value**2 for each in gradients for value in each.double().flatten().tolist())
    )


def test_a_step_of_plain_gradient_descent(tmp_path: Path) -> None:
    trainer = make_trainer(tmp_path, **SGD)
    for _ in range(2):  # the second as the first: there is no momentum
        before, gradients, after = stepped(trainer)
        assert any(gradient.any() for gradient in gradients)
        for old, gradient, new in zip(before, gradients, after, strict=True):
            torch.testing.assert_close(new, old - 0.05 * gradient, rtol=0, atol=1e-7)
    assert all(not trainer.optimiser.state[weight] for weight in trainer.parser.parameters())


def test_adam_is_what_there_was(tmp_path: Path) -> None:
    """Its first step is as long as the rate wherever there is a gradient."""
    trainer = make_trainer(tmp_path, learning_rate=0.05, warmup_batches=0)
    assert isinstance(trainer.optimiser, torch.optim.Adam)
    before, gradients, after = stepped(trainer)
    for old, gradient, new in zip(before, gradients, after, strict=True):
        clear = gradient.abs() > 1e-5
        torch.testing.assert_close(
            (old - new)[clear], 0.05 * gradient.sign()[clear], rtol=1e-3, atol=0
        )


def test_a_long_gradient_is_scaled_to_the_limit_and_a_short_one_is_left(tmp_path: Path) -> None:
    free = stepped(make_trainer(tmp_path / "free", **SGD))[1]
    norm = norm_of(free)
    for limit, factor in ((norm / 3, 1 / 3), (norm * 1.01, 1.0)):
        trainer = make_trainer(tmp_path / str(limit), **SGD, gradient_norm=limit)
        before, limited, after = stepped(trainer)
        assert norm_of(limited) == pytest.approx(min(norm, limit), rel=1e-5)
        for whole, part in zip(free, limited, strict=True):
            torch.testing.assert_close(part, whole * factor, rtol=1e-5, atol=0)
        for old, gradient, new in zip(before, limited, after, strict=True):
            torch.testing.assert_close(new, old - 0.05 * gradient, rtol=0, atol=1e-7)


def test_the_norm_is_of_all_weights_together() -> None:
    weights = [
        nn.Parameter(torch.zeros(2, 2)),
        nn.Parameter(torch.zeros(1)),
        nn.Parameter(torch.zeros(3)),
    ]
    weights[0].grad = torch.tensor([[2.0, 0.0], [0.0, 1.0]])
    weights[1].grad = torch.tensor([-2.0])
    assert limit_gradient(weights, 3.0) == 3.0  # as long as allowed
    assert weights[0].grad.tolist() == [[2.0, 0.0], [0.0, 1.0]]
    assert limit_gradient(weights, 1.5) == 3.0
    assert weights[0].grad.tolist() == [[1.0, 0.0], [0.0, 0.5]]
    assert weights[1].grad.tolist() == [-1.0]
    weights[1].grad.fill_(math.inf)
    assert limit_gradient(weights, 1.0) == math.inf
    assert weights[0].grad.tolist() == [[1.0, 0.0], [0.0, 0.5]]


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_a_gradient_that_is_no_number_stops_before_the_weights_change(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, value: float
) -> None:
    def spoilt(parser: ChartParser, *_: object) -> float:
        for weight in parser.parameters():
            weight.grad.fill_(value)
        return 1.0

    trainer = make_trainer(tmp_path, **SGD, gradient_norm=1.0)
    before = {name: tensor.clone() for name, tensor in trainer.parser.state_dict().items()}
    monkeypatch.setattr(ChartParser, "gradients", spoilt)
    with pytest.raises(TrainingError, match=f"the norm of the gradient is {value}"):
        trainer.fit()
    after = trainer.parser.state_dict()
    assert all(torch.equal(after[name], before[name]) for name in before)


def test_gradient_descent_learns_and_its_checkpoint_is_read(tmp_path: Path) -> None:
    settings = {**SGD, "learning_rate": 1.0, "gradient_norm": 1.0}
    break_off(tmp_path, 9, max_epochs=9, **settings)
    trainer = make_trainer(tmp_path, max_epochs=9, **settings)
    assert load_checkpoint(tmp_path, trainer.parser, trainer.optimiser, None) is not None
    trainer.fit()
    losses = [event["loss"] for event in events(tmp_path) if event["event"] == "evaluation"]
    assert losses[-1] < 0.7 * losses[0]


@pytest.mark.parametrize(
    "wrong",
    [{"optimiser": "rmsprop"}, {"gradient_norm": 0}, {"decay_batches": 0}, {"decay_batches": 1.5}],
    ids=str,
)
def test_settings_out_of_range(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValidationError, match=next(iter(wrong))):
        train_config(**wrong)
