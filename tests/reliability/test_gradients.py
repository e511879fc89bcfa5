"""The gradient of every parser's loss against finite differences, on random scores."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from spmrl_bench.parsers import transition
from tests.parsers.examples import batch_of
from tests.reliability.parsers import KINDS, examples, parser_of
from tests.reliability.tally import Tally

STEP = 1e-6
sizes = pytest.mark.parametrize("charts", [4, pytest.param(200, marks=pytest.mark.campaign)])


@sizes
@pytest.mark.parametrize("kind", KINDS)
def test_losses_of_parsers(
    kind: str, charts: int, tally: Tally, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of whatever the encoder gives; the kinks of a max-margin loss are not hit by chance."""
    held = tally("R8", "random charts against finite differences, of every parser's loss")
    # The decoder of actions rounds the factors of its products to what it is told.
    monkeypatch.setattr(transition.kernels, "matmul_dtype", lambda precision: torch.float64)
    given = examples(30, longest=5)
    parser = parser_of(kind, given).double()
    indexer = parser.indexer()
    generator = torch.Generator().manual_seed(3)
    rng = np.random.default_rng(3)
    moving = 0
    for _ in range(charts):
        held.add()
        chosen = [given[k] for k in rng.choice(len(given), 2, replace=False)]
        sentences = [indexer.sentence(each.words, each.tags) for each in chosen]
        gold = [parser.gold(each) for each in chosen]
        sentences = [
            dataclasses.replace(sentence, gold=one)
            for sentence, one in zip(sentences, gold, strict=True)
        ]
        batch = batch_of(parser, indexer, sentences)
        width = parser.encoder.d_out
        rows = sum(len(each) + 2 for each in chosen)
        encoded = torch.randn(rows, width, generator=generator, dtype=torch.float64)

        def loss(tokens: Tensor, batch: Any = batch, gold: Any = gold) -> Tensor:
            found = parser.loss(tokens, batch, gold)
            return tokens.sum() * 0 if found is None else found

        (gradient,) = torch.autograd.grad(loss(encoded.requires_grad_()), encoded)
        moving += bool(gradient.abs().max() > 1e-3)
        for _ in range(3):
            along = torch.randn(encoded.shape, generator=generator, dtype=torch.float64)
            with torch.no_grad():
                rise = loss(encoded + STEP * along) - loss(encoded - STEP * along)
            found, expected = float((gradient * along).sum()), float(rise) / (2 * STEP)
            assert found == pytest.approx(expected, rel=1e-5, abs=1e-5)
    assert moving > charts / 2
