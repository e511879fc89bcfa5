"""Positions: the table of sines and cosines, and layers that see nothing but positions."""

from __future__ import annotations

import itertools
import math
from typing import Any

import pytest
import torch
from pydantic import ValidationError
from torch import Tensor

from spmrl_bench.errors import RecipeError
from spmrl_bench.nn.encoders.attention import AttentionEncoder, AttentionMask
from spmrl_bench.nn.layers import SinusoidalPositions
from tests import twins
from tests.nn import plain
from tests.nn.built import attention_config, attention_encoder
from tests.nn.plain import layout_of, randomise

LENGTHS = [3, 9, 1, 6]
D_MODEL, D_KV, PLACES = 12, 4, 9
ADDED: dict[str, Any] = {"position": "added", "matrices": "full"}


def encoder(layers: int = 3, **choices: Any) -> AttentionEncoder:
    module = attention_encoder(D_MODEL, layers=layers, max_positions=PLACES, **choices).double()
    randomise(module, seed=1)
    return module


def rows_of(width: int, seed: int = 2) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(sum(LENGTHS), width, generator=generator, dtype=torch.float64)


# Sines and cosines -----------------------------------------------------------------------


@pytest.mark.parametrize("width", [2, 6, 512])
def test_the_table_is_that_of_the_paper(width: int) -> None:
    """Vaswani et al. 2017, section 3.5, feature by feature, in float32."""
    module = SinusoidalPositions(40, width)
    for place, i in itertools.product((0, 1, 2, 17, 39), range(width // 2)):
        angle = place / 10000 ** (2 * i / width)
        row = module(torch.tensor([place]))[0]
        assert row[2 * i].item() == pytest.approx(math.sin(angle), abs=1e-7)
        assert row[2 * i + 1].item() == pytest.approx(math.cos(angle), abs=1e-7)


def test_a_fixed_table_is_neither_trained_nor_saved() -> None:
    module = encoder(position_table="sinusoidal")
    assert not [name for name, _ in module.named_parameters() if "positions" in name]
    assert not [name for name in module.state_dict() if "positions" in name]
    learned = encoder()
    counts = [sum(p.numel() for p in each.parameters()) for each in (learned, module)]
    assert counts[0] - counts[1] == PLACES * D_MODEL // 2


@twins.needs_kernel("encoder")
def test_the_kernels_take_a_fixed_table() -> None:
    """With gradients and without; the table itself has none."""
    module, layout = encoder(position_table="sinusoidal"), layout_of(LENGTHS)
    content, weights = rows_of(D_MODEL // 2), list(module.named_parameters())
    expected = twins.outcome(lambda rows: module(rows, layout), content, weights)
    content, weights = content.float(), list(module.float().named_parameters())
    found = twins.outcome(lambda rows: module(rows, layout), content, weights)
    twins.assert_near(found, expected, 1e-4)
    with torch.no_grad():
        torch.testing.assert_close(module(content, layout), found["result"], atol=1e-5, rtol=0)


# Layers that see positions only ----------------------------------------------------------


def test_position_only_attention_by_hand() -> None:
    """Queries and keys of the table's rows as they are, values of the layer's input."""
    only = (0, 2)
    module = encoder(3, **ADDED, position_only_layers=only)
    content, layout = rows_of(D_MODEL), layout_of(LENGTHS)
    places = [place for n in LENGTHS for place in range(n)]
    position = module.positions.weight[places]
    rows = plain.layer_norm(content + position, module.input_norm)
    for number, layer in enumerate(module.layers):
        rows = plain.layer(layer, rows, LENGTHS, position if number in only else None)
    torch.testing.assert_close(module(content, layout), rows, atol=1e-11, rtol=0)


def test_position_only_layers_have_windows_and_gradients() -> None:
    """A window still holds, and the table learns from queries and keys."""
    module = encoder(1, **ADDED, position_only_layers=(0,))
    content, one = rows_of(D_MODEL).requires_grad_(), layout_of([3])
    short = content.detach()[:3].requires_grad_()
    with module.limited({0: AttentionMask(window=1)}):
        found = module(content, layout_of(LENGTHS))
        (by_content,) = torch.autograd.grad(found[3 + 4].sum(), content)  # place 4 of the second
        assert by_content.abs().sum(1).nonzero().flatten().tolist() == [3 + 3, 3 + 4, 3 + 5]
        assert torch.autograd.gradcheck(lambda rows: module(rows, one), (short,))
    (by_table,) = torch.autograd.grad(module(short, one)[0].sum(), module.positions.weight)
    assert by_table[:3].abs().sum(1).all()
    assert not by_table[3:].any()


def test_mistakes_are_refused() -> None:
    refused: list[tuple[dict[str, Any], str]] = [
        *(
            ({**choice, "position_only_layers": (0,)}, "needs position = 'added' and matrices")
            for choice in ({}, {"position": "added"}, {"matrices": "full"})
        ),
        ({**ADDED, "position_only_layers": (0, 2)}, "layer 2; the encoder's layers are 0 to 1"),
        ({**ADDED, "position_only_layers": (0,), "layers": 0}, "layer 0; .* are none"),
        ({"relaxed_window": True}, "no window to relax"),
        ({"forward_features": "first"}, "forward_features = 'first' needs position = 'added'"),
    ]
    for choices, words in refused:
        with pytest.raises(ValidationError, match=words):
            attention_config(**choices)
    with pytest.raises(RecipeError, match=r"more than 33554432 numbers; .* can have 9998 rows"):
        SinusoidalPositions(10_000, 3356)
