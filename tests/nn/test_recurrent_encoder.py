"""The recurrent encoders against cells that are worked through one by one."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
import torch
from torch import Tensor

from spmrl_bench.errors import RecipeError
from spmrl_bench.nn.encoders.recurrent import RecurrentEncoder
from spmrl_bench.nn.kernels.recurrence import RecurrentLayer
from spmrl_bench.nn.scorers.span_scores import fenceposts
from tests.nn import plain
from tests.nn.built import recurrent_encoder
from tests.nn.plain import layout_of, random_rows

LENGTHS = [3, 7, 1, 4]
D_MODEL = 6
every_cell = pytest.mark.parametrize("cell", ["lstm", "gru"])


def encoder(cell: str, layers: int, dropout: float = 0.0, **options: Any) -> RecurrentEncoder:
    torch.manual_seed(0)
    return recurrent_encoder(cell, D_MODEL, layers, dropout=dropout, **options).double()


def test_states_by_hand() -> None:
    """Of content as wide as tokens, narrower and wider."""
    for cell, width, layers in itertools.product(("lstm", "gru"), (D_MODEL, 3, 11), (1, 2)):
        module, rows = encoder(cell, layers, d_content=width), random_rows(LENGTHS, width)
        expected = plain.recurrent(module, rows, LENGTHS)
        found = module(rows, layout_of(LENGTHS))
        torch.testing.assert_close(found, expected, atol=1e-12, rtol=0)


@every_cell
def test_a_fencepost_has_read_the_left_and_the_right_side(cell: str) -> None:
    """Forward states of the tokens before it, backward states of those behind it."""
    n = 7
    rows = random_rows([n], D_MODEL).requires_grad_()
    posts = fenceposts(encoder(cell, 1)(rows, layout_of([n])), torch.arange(n - 1))
    for k in range(n - 1):
        left, right = posts[k].chunk(2)
        (by_left,) = torch.autograd.grad(left.sum(), rows, retain_graph=True)
        (by_right,) = torch.autograd.grad(right.sum(), rows, retain_graph=True)
        assert by_left.abs().sum(1).nonzero().flatten().tolist() == list(range(k + 1))
        assert by_right.abs().sum(1).nonzero().flatten().tolist() == list(range(k + 1, n))


def masks_of(masks: str, *, fused: bool) -> tuple[list[Tensor], Tensor]:
    """What is left of ones before each of three layers, which give ones, and behind the last."""
    module = encoder("gru", 3, dropout=0.5, masks=masks)
    if fused:
        module.float()
    seen: list[Tensor] = []

    def watched(layer: RecurrentLayer, rows: Tensor, *others: Any) -> Tensor:
        seen.append(rows)
        return torch.ones_like(rows)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_states", watched)
        torch.manual_seed(3)
        rows = torch.ones(sum(LENGTHS), D_MODEL, dtype=torch.float32 if fused else torch.float64)
        return seen, module(rows, layout_of(LENGTHS))


@pytest.mark.parametrize("fused", [True, False])
def test_masks_of_sentences_are_between_layers_and_shared_by_tokens(fused: bool) -> None:
    (first, second, third), last = masks_of("sentence", fused=fused)
    assert first.eq(1).all()
    assert last.eq(1).all()
    for found in (second, third):
        assert set(found.unique().tolist()) == {0, 2}
        for sentence in found.split(LENGTHS):
            assert torch.equal(sentence, sentence[:1].expand_as(sentence))
    assert not torch.equal(second, third)


@pytest.mark.parametrize("fused", [True, False])
def test_masks_of_tokens_are_around_every_layer_and_fresh_each_time(fused: bool) -> None:
    """Zaremba et al. 2014: into each layer and out of the last, never the same twice."""
    (first, second, third), last = masks_of("token", fused=fused)
    several = (first, second, third, last)
    for k, found in enumerate(several):
        assert set(found.unique().tolist()) == {0, 2}
        for sentence in found.split(LENGTHS):
            # Of 64 masks there can be, two tokens have the same now and then, but not all.
            assert len(sentence) == 1 or len({tuple(row) for row in sentence.tolist()}) > 1
        for other in several[:k]:
            assert not torch.equal(found, other)


def test_masks_are_of_training_only_and_their_rate_may_be_zero() -> None:
    layout, rows = layout_of(LENGTHS), random_rows(LENGTHS, D_MODEL)
    module, still = encoder("lstm", 2, 0.5, masks="token"), encoder("lstm", 2, 0.0, masks="token")
    assert not torch.equal(module(rows, layout), module(rows, layout))
    assert torch.equal(module.eval()(rows, layout), still(rows, layout))
    assert torch.equal(encoder("lstm", 0, 0.5, masks="token")(rows, layout), rows)


def test_content_of_another_width_needs_a_layer() -> None:
    with pytest.raises(RecipeError, match="no layer makes tokens of width 6 of content of 5"):
        encoder("lstm", 0, d_content=5)
