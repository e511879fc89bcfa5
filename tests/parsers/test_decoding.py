"""Label scores become trees the same way wherever they are."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from spmrl_bench import chart
from spmrl_bench.chart import reference
from spmrl_bench.parsers import decoding
from tests.chart.charts import random_batch
from tests.twins import assert_same_bits

augmented = pytest.mark.parametrize("gold", [False, True], ids=["plain", "augmented"])


class Elsewhere:
    """A CPU tensor that says it is not on the CPU, to go the way of a GPU's."""

    device = torch.device("meta")

    def __init__(self, scores: torch.Tensor) -> None:
        self.scores = scores

    def __len__(self) -> int:
        return len(self.scores)


@augmented
def test_blocks_of_the_cpu(gold: bool) -> None:
    batch = random_batch(np.random.default_rng(1), [5, 1, 12], 30, gold=gold, ties=True)
    blocks = torch.from_numpy(batch.scores).split(17)
    assert_same_bits(
        decoding.decode_blocks(blocks, batch.lengths, batch.gold), chart.decode(*batch)
    )


@augmented
def test_blocks_of_a_gpu(gold: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    batch = random_batch(np.random.default_rng(1), [5, 1, 12], 30, gold=gold, ties=True)
    maxima, seen = decoding.label_maxima, []

    def unpacked(scores: Any, targets: Any) -> Any:
        if targets is not None:
            assert targets.device.type == "meta"
            targets = torch.from_numpy(batch.gold)[sum(seen) : sum(seen) + len(scores)]
        seen.append(len(scores))
        return maxima(scores.scores, targets)

    monkeypatch.setattr(decoding, "label_maxima", unpacked)
    blocks: Any = [Elsewhere(part) for part in torch.from_numpy(batch.scores).split(17)]
    assert_same_bits(
        decoding.decode_blocks(blocks, batch.lengths, batch.gold), chart.decode(*batch)
    )
    assert len(seen) > 1


@augmented
@pytest.mark.parametrize("ties", [False, True], ids=["floats", "integers"])
def test_maxima_of_torch_are_those_of_the_twin(gold: bool, ties: bool) -> None:
    rng = np.random.default_rng(2)
    batch = random_batch(rng, [20], 9, gold=gold, ties=ties)
    tiny = np.array([-1e-30, 0.0, 1e-30, 1e-9, 1 - 2**-24, 1.0], dtype=np.float32)
    for scores in (batch.scores, rng.choice(tiny, batch.scores.shape)):
        values, labels = np.empty(len(scores)), np.empty(len(scores), dtype=np.int32)
        reference.label_maxima(scores, batch.gold, values, labels, 1)
        targets = None if batch.gold is None else torch.from_numpy(batch.gold)
        found = decoding.label_maxima(torch.from_numpy(scores), targets)
        assert np.array_equal(found[0].numpy(), values)
        assert np.array_equal(found[1].numpy(), labels)


@augmented
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_scores_that_are_not_finite_stay_so(gold: bool, value: float) -> None:
    scores = torch.zeros(3, 4)
    scores[1, 2] = value
    targets = torch.tensor([0, 3, 1]) if gold else None
    values, _ = decoding.label_maxima(scores, targets)
    assert values.isfinite().tolist() == [True, False, True]


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")
@augmented
def test_blocks_on_a_real_gpu(gold: bool) -> None:
    batch = random_batch(np.random.default_rng(1), [5, 1, 12], 30, gold=gold, ties=True)
    blocks = torch.from_numpy(batch.scores).cuda().split(17)
    assert_same_bits(
        decoding.decode_blocks(blocks, batch.lengths, batch.gold), chart.decode(*batch)
    )
