"""The encoders of Kitaev & Klein 2018 differ in two things only: position, and matrices."""

from __future__ import annotations

import itertools
import math
from typing import Any, get_args

import pytest
import torch
from torch import Tensor

from spmrl_bench.nn.encoders.attention import AttentionEncoder, EncoderLayer, Scale
from spmrl_bench.nn.layers import FactoredLinear, FullLinear, Matrices, ReleasedLayerNorm
from tests.nn import plain
from tests.nn.built import attention_encoder, self_attention
from tests.nn.plain import layout_of, randomise

LENGTHS = [3, 1, 7]
D_MODEL, HEADS, D_KV = 12, 3, 4
POSITIONS = ("concatenated", "added")
every = pytest.mark.parametrize(
    ("position", "matrices"), list(itertools.product(POSITIONS, get_args(Matrices)))
)


def rows_of(width: int, seed: int = 1) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(sum(LENGTHS), width, generator=generator, dtype=torch.float64)


def encoder(layers: int = 2, **choices: Any) -> AttentionEncoder:
    module = attention_encoder(D_MODEL, layers=layers, **choices).double()
    randomise(module, seed=3)
    return module


def copy_blocks(
    full: FullLinear, factored: FactoredLinear, *, inputs: int = 1, outputs: int = 1
) -> None:
    """Put the matrices of both halves on the diagonal of the full one.

    ``inputs`` and ``outputs`` are the numbers of heads whose halves lie side by side there.
    """
    rows = halves(full.out_features, outputs)
    columns = halves(full.in_features, inputs)
    with torch.no_grad():
        full.weight.zero_()
        for side, part in enumerate((factored.content, factored.position)):
            full.weight[rows[side][:, None], columns[side][None, :]] = part.weight
            if full.bias is not None:
                full.bias[rows[side]] = part.bias


def halves(features: int, heads: int) -> tuple[Tensor, Tensor]:
    """Which features of ``heads`` heads belong to the content, and which to the position."""
    places = torch.arange(features).view(heads, 2, -1)
    return places[:, 0].flatten(), places[:, 1].flatten()


def copy_layer(full: EncoderLayer, factored: EncoderLayer) -> None:
    to, of = full.attention, factored.attention
    copy_blocks(to.project, of.project, outputs=3 * HEADS)
    copy_blocks(to.output, of.output, inputs=HEADS)
    copy_blocks(full.expand, factored.expand)
    copy_blocks(full.contract, factored.contract)
    for name in ("attention_norm", "feed_forward_norm"):
        getattr(full, name).load_state_dict(getattr(factored, name).state_dict())


@pytest.mark.parametrize("layers", [0, 1, 3])
def test_the_factored_encoder_is_the_concatenated_one_with_block_diagonal_matrices(
    layers: int,
) -> None:
    factored = encoder(layers)
    full = encoder(layers, matrices="full")
    full.positions.load_state_dict(factored.positions.state_dict())
    full.input_norm.load_state_dict(factored.input_norm.state_dict())
    for to, of in zip(full.layers, factored.layers, strict=True):
        copy_layer(to, of)
    layout, content = layout_of(LENGTHS), rows_of(D_MODEL // 2)
    expected = factored(content, layout)
    torch.testing.assert_close(full(content, layout), expected, atol=1e-12, rtol=0)
    # And so are the kernels, up to the rounding of float32.
    found = factored.float()(content.float(), layout)
    torch.testing.assert_close(found.double(), expected, atol=1e-4, rtol=0)


@pytest.mark.parametrize("matrices", get_args(Matrices))
def test_an_added_position_meets_the_content_before_the_first_layer(matrices: Matrices) -> None:
    module = encoder(2, position="added", matrices=matrices)
    layout, content = layout_of(LENGTHS), rows_of(D_MODEL)
    places = torch.tensor([k for n in LENGTHS for k in range(n)])
    rows = module.input_norm(content + module.positions.weight[places])
    for each in module.layers:
        rows = each(rows, layout)
    assert torch.equal(module(content, layout), rows)
    # Moving a vector from the content to the position changes nothing, as it is their sum.
    moved = torch.randn(D_MODEL, dtype=torch.float64)
    with torch.no_grad():
        module.positions.weight.add_(moved)
    torch.testing.assert_close(module(content - moved, layout), rows, atol=1e-12, rtol=0)


@pytest.mark.parametrize("scale", get_args(Scale))
def test_full_attention_by_hand(scale: Scale) -> None:
    module = self_attention(D_MODEL, matrices="full", attention_scale=scale).double()
    randomise(module, seed=4)
    layout, rows = layout_of(LENGTHS), rows_of(D_MODEL)
    found = module(rows, layout)
    divisor = math.sqrt({"d_kv": D_KV, "d_model": D_MODEL}[scale])
    expected = plain.attention(module, rows, LENGTHS, divisor=divisor)
    torch.testing.assert_close(found, expected, atol=1e-12, rtol=0)


def test_released_norms_by_hand() -> None:
    """All norms of the stack are of the chosen form, that of the input too."""
    module, content = encoder(2, layer_norm="released"), rows_of(D_MODEL // 2)
    expected = plain.encoder(module, content, LENGTHS)
    found = module(content, layout_of(LENGTHS))
    torch.testing.assert_close(found, expected, atol=1e-11, rtol=0)
    norms = [each for each in module.modules() if isinstance(each, ReleasedLayerNorm)]
    assert len(norms) == 1 + 2 * 2
    assert (encoder(2)(content, layout_of(LENGTHS)) - found).abs().max() > 1e-3


def test_without_a_norm_of_the_input() -> None:
    for position, matrices in list(itertools.product(POSITIONS, get_args(Matrices))):
        module = encoder(1, position=position, matrices=matrices, input_norm=False)
        assert not [name for name in module.state_dict() if "input_norm" in name]
        layout, content = layout_of(LENGTHS), rows_of(module.content_width)
        place = module.positions.weight[[k for n in LENGTHS for k in range(n)]]
        rows = content + place if position == "added" else torch.cat((content, place), dim=1)
        expected = module.layers[0](rows, layout)
        assert torch.equal(module(content, layout), expected)


@pytest.mark.parametrize(
    "choice",
    [{"attention_scale": "d_model"}, {"layer_norm": "released"}, {"input_norm": False}],
    ids=str,
)
def test_the_kernels_are_not_asked_for_what_they_do_not_compute(choice: dict[str, Any]) -> None:
    module, layout = encoder(2, **choice), layout_of(LENGTHS)
    content = rows_of(D_MODEL // 2)
    expected = module(content, layout)
    found = module.float()(content.float(), layout)
    torch.testing.assert_close(found.double(), expected, atol=1e-4, rtol=0)
