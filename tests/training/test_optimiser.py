"""How weights change: Adam and plain gradient descent, the limit of the gradient, the average."""

from __future__ import annotations

import math
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from spmrl_bench.errors import CheckpointError, TrainingError
from spmrl_bench.parsers.chart import ChartParser
from spmrl_bench.training.checkpoint import load_checkpoint
from spmrl_bench.training.trainer import Trainer, WeightAverage
from tests.training.trainers import break_off, copied, events, make_trainer, weights

SGD: dict[str, Any] = {"optimiser": "sgd", "learning_rate": 0.05, "warmup_batches": 0}


def stepped(trainer: Trainer) -> tuple[list[Tensor], list[Tensor], list[Tensor]]:
    """Weights before a step, their gradients in it as they were left, weights after it."""
    parameters = list(trainer.parser.parameters())
    before = [weight.detach().clone() for weight in parameters]
    trainer._step(0, trainer.sentences[:8])
    gradients = [weight.grad.clone() for weight in parameters if weight.grad is not None]
    return before, gradients, [weight.detach() for weight in parameters]


def norm_of(gradients: list[Tensor]) -> float:
    return math.hypot(*torch.cat([each.double().flatten() for each in gradients]).tolist())


def test_a_step_of_plain_gradient_descent(tmp_path: Path) -> None:
    trainer = make_trainer(tmp_path, **SGD)
    for _ in range(2):  # the second as the first: there is no momentum
        before, gradients, after = stepped(trainer)
        assert any(gradient.any() for gradient in gradients)
        for old, gradient, new in zip(before, gradients, after, strict=True):
            torch.testing.assert_close(new, old - 0.05 * gradient, rtol=0, atol=1e-7)
    assert all(not trainer.optimiser.state[weight] for weight in trainer.parser.parameters())


def test_the_first_step_of_adam_is_as_long_as_the_rate(tmp_path: Path) -> None:
    trainer = make_trainer(tmp_path, learning_rate=0.05, warmup_batches=0)
    for old, gradient, new in zip(*stepped(trainer), strict=True):
        clear = gradient.abs() > 1e-5
        expected = 0.05 * gradient.sign()[clear]
        torch.testing.assert_close((old - new)[clear], expected, rtol=1e-3, atol=0)


def test_pretrained_weights_have_a_rate_of_their_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both rates rise and fall together; without one of their own, all have the same."""
    monkeypatch.setattr(
        ChartParser, "pretrained_parameters", lambda self: [self.scorer.first.weight]
    )
    given = {"learning_rate": 0.01, "warmup_batches": 10}
    for own, expected in ((None, 0.001), (0.0005, 0.00005)):
        trainer = make_trainer(tmp_path / str(own), pretrained_learning_rate=own, **given)
        weight = trainer.parser.scorer.first.weight
        before = weight.detach().clone()
        trainer._step(0, trainer.sentences[:8])
        main, pretrained = trainer.optimiser.param_groups
        assert [id(each) for each in pretrained["params"]] == [id(weight)]
        assert (main["lr"], pretrained["lr"]) == pytest.approx((0.001, expected))
        moved = (weight - before).abs().max().item()
        assert moved == pytest.approx(expected, rel=1e-3)


def test_a_long_gradient_is_scaled_to_the_limit_and_a_short_one_is_left(tmp_path: Path) -> None:
    free = stepped(make_trainer(tmp_path / "free", **SGD))[1]
    norm = norm_of(free)
    for limit, factor in ((norm / 3, 1 / 3), (norm * 1.01, 1.0)):
        trainer = make_trainer(tmp_path / str(limit), **SGD, gradient_norm=limit)
        before, limited, after = stepped(trainer)
        assert norm_of(limited) == pytest.approx(min(norm, limit), rel=1e-5)
        for whole, old, part, new in zip(free, before, limited, after, strict=True):
            torch.testing.assert_close(part, whole * factor, rtol=1e-5, atol=0)
            torch.testing.assert_close(new, old - 0.05 * part, rtol=0, atol=1e-7)


def test_what_is_no_number_stops_before_the_weights_change(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trainer = make_trainer(tmp_path, **SGD, gradient_norm=1.0)
    before = copied(trainer.parser)
    norm = "norm of the gradient"
    for loss, gradient, what in (
        (math.nan, 0.0, "loss is nan"), (math.inf, 0.0, "loss is inf"),
        (-math.inf, 0.0, "loss is -inf"), (1e11, 0.0, "loss is 1000"),
        (1.0, math.nan, f"{norm} is nan"), (1.0, math.inf, f"{norm} is inf"),
    ):  # fmt: skip

        def spoilt(parser: ChartParser, *_: object, loss=loss, gradient=gradient) -> float:
            for weight in parser.parameters():
                weight.grad.fill_(gradient)
            return loss

        monkeypatch.setattr(ChartParser, "gradients", spoilt)
        problem = (
            f"^tiny: training diverged after 0 of 3 batches of epoch 1: the {what}"
            r".*; lower train.learning_rate \(now 0.05\) and start anew with --fresh$"
        )
        with pytest.raises(TrainingError, match=problem):
            trainer.fit()
        after = copied(trainer.parser)
        assert all((after[name] == before[name]).all() for name in before)


def test_weights_that_a_step_has_spoilt_are_in_no_checkpoint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trainer = make_trainer(tmp_path, **SGD, checkpoint_minutes=1e-9)

    def spoilt(parser: ChartParser, *_: object) -> float:
        for weight in parser.parameters():
            weight.grad.fill_(math.inf)
        return 1.0

    monkeypatch.setattr(ChartParser, "gradients", spoilt)
    problem = "after 1 of 3 batches of epoch 1: tensor .*expected finite numbers. The last"
    with pytest.raises(TrainingError, match=problem):
        trainer.fit()
    assert not (tmp_path / "last").exists()


def test_gradient_descent_learns_and_its_checkpoint_is_read(tmp_path: Path) -> None:
    settings = {**SGD, "learning_rate": 1.0, "gradient_norm": 1.0}
    break_off(tmp_path, 9, max_epochs=9, **settings)
    trainer = make_trainer(tmp_path, max_epochs=9, **settings)
    assert load_checkpoint(tmp_path, trainer.parser, trainer.optimiser, {}) is not None
    trainer.fit()
    losses = [event["loss"] for event in events(tmp_path, "evaluation")]
    assert losses[-1] < 0.7 * losses[0]


@pytest.mark.parametrize("decay", [0.5, 0.9, 0.999])
def test_it_is_the_mean_of_the_weights_after_each_step_later_ones_more(decay: float) -> None:
    module = nn.Linear(3, 2)
    average = WeightAverage(module, decay)
    expected = module.weight.detach().double()
    for step in range(1, 40):
        with torch.no_grad():
            module.weight.normal_(generator=torch.Generator().manual_seed(step))
        average.update(step)
        kept = min(decay, (step + 1) / (step + 10))
        expected = kept * expected + (1 - kept) * module.weight.detach().double()
    torch.testing.assert_close(average.means["weight"].double(), expected, rtol=1e-5, atol=1e-6)


def test_the_module_has_its_own_weights_again_even_after_an_error() -> None:
    module = nn.Linear(3, 2)
    average = WeightAverage(module, 0.5)
    with torch.no_grad():
        module.weight.add_(1)
    own, mean = module.weight.detach().clone(), average.means["weight"].clone()
    with suppress(KeyError), average.in_place():
        assert torch.equal(module.weight, mean)
        raise KeyError
    assert torch.equal(module.weight, own)
    assert torch.equal(average.means["weight"], mean)


def test_dev_is_scored_with_the_average_and_training_goes_on_from_the_weights(
    tmp_path: Path,
) -> None:
    seen: list[dict[str, Any]] = []

    def score(parser: ChartParser) -> float:
        seen.append(copied(parser))
        return float(len(seen))

    trainer = make_trainer(tmp_path / "averaged", score=score, max_epochs=3, averaging=0.6)
    trainer.fit()
    make_trainer(tmp_path / "plain", score=lambda _: 1.0, max_epochs=3).fit()
    assert weights(tmp_path / "averaged" / "last") == weights(tmp_path / "plain" / "last")
    best = copied(ChartParser.load(tmp_path / "averaged" / "best"))
    last = copied(ChartParser.load(tmp_path / "averaged" / "last"))
    for name, mean in trainer.average.means.items():
        assert (best[name] == seen[-1][name]).all()
        assert (best[name] == mean.numpy()).all()
    assert any((best[name] != last[name]).any() for name in best)


def test_a_checkpoint_without_the_average_is_refused(tmp_path: Path) -> None:
    make_trainer(tmp_path, max_epochs=1).fit()
    problem = r"incomplete checkpoint \(tensor average/.*: found nothing, .*--fresh"
    with pytest.raises(CheckpointError, match=problem):
        make_trainer(tmp_path, max_epochs=2, averaging=0.9).fit()
