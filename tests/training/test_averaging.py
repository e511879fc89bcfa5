"""The moving average of the weights: what it is, that it is scored and kept, that it resumes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from spmrl_bench.errors import CheckpointError
from spmrl_bench.parsers.chart_parser import ChartParser
from spmrl_bench.training.averaging import WeightAverage
from tests.training.trainers import make_trainer, weights

Weights = dict[str, np.ndarray]


def copied(parser: nn.Module) -> Weights:
    return {name: value.numpy().copy() for name, value in parser.state_dict().items()}


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

    def fail() -> None:
        with average.in_place():
            assert torch.equal(module.weight, mean)
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    assert torch.equal(module.weight, own)
    assert torch.equal(average.means["weight"], mean)


def test_dev_is_scored_with_the_average_and_training_goes_on_from_the_weights(
    tmp_path: Path,
) -> None:
    seen: list[Weights] = []

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
    with pytest.raises(
        CheckpointError,
        match=r"incomplete checkpoint \(tensor average/.*: found nothing, .*--fresh",
    ):
        make_trainer(tmp_path, max_epochs=2, averaging=0.9).fit()
