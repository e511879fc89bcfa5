"""The encoders of Kitaev & Klein 2018 differ in two things only: position, and matrices."""

from __future__ import annotations

import itertools
import math
from typing import Any, get_args

import numpy as np
import pytest
import torch
from torch import Tensor

from spmrl_bench.nn.choices import AttentionScale, LayerNormForm, Matrices, PositionInput
from spmrl_bench.nn.encoder import Encoder, EncoderLayer, SelfAttention
from spmrl_bench.nn.encoder_kinds import content_width
from spmrl_bench.nn.maps import FactoredLinear, FullLinear
from spmrl_bench.nn.norms import ReleasedLayerNorm
from tests.nn import plain
from tests.nn.plain import array, layout_of, randomise

LENGTHS = [3, 1, 7]
D_MODEL, HEADS, D_KV, D_FF = 12, 3, 4, 10
NO_DROPOUT = dict.fromkeys(("attention_dropout", "residual_dropout", "relu_dropout"), 0.0)
every = pytest.mark.parametrize(
    ("position", "matrices"), list(itertools.product(get_args(PositionInput), get_args(Matrices)))
)


def rows_of(width: int, seed: int = 1) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(sum(LENGTHS), width, generator=generator, dtype=torch.float64)


def layer(matrices: Matrices) -> EncoderLayer:
    module = EncoderLayer(D_MODEL, HEADS, D_KV, D_FF, **NO_DROPOUT, matrices=matrices).double()
    randomise(module, seed=2)
    return module


def encoder(layers: int = 2, dropout: float = 0.0, **choices: Any) -> Encoder:
    rates = dict.fromkeys(NO_DROPOUT, dropout)
    module = Encoder(D_MODEL, layers, HEADS, D_KV, D_FF, 9, **rates, **choices).double()
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


def test_a_factored_layer_is_a_full_one_with_block_diagonal_matrices() -> None:
    factored, full = layer("factored"), layer("full")
    copy_layer(full, factored)
    layout, rows = layout_of(LENGTHS), rows_of(D_MODEL)
    given = (rows, layout)
    expected = factored(*given)
    torch.testing.assert_close(full(*given), expected, atol=1e-12, rtol=0)
    # The layer is not the identity, and what is off the diagonal would show.
    assert (expected - rows).abs().max() > 0.1
    with torch.no_grad():
        full.expand.weight[0, -1] += 1
    assert (full(*given) - expected).abs().max() > 1e-3


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


@every
def test_which_features_meet(position: PositionInput, matrices: Matrices) -> None:
    """Of the maps, content reaches position only through full matrices or an added position."""
    module = encoder(1, position=position, matrices=matrices)
    each = module.layers[0]
    rows = rows_of(D_MODEL).requires_grad_()
    first, second = each.contract(each.expand(rows).relu()).chunk(2, dim=1)
    (by_first,) = torch.autograd.grad(first.square().sum(), rows)
    assert bool(by_first[:, D_MODEL // 2 :].any()) == (matrices == "full")
    assert module.positions.embedding_dim == content_width(D_MODEL, position)
    assert content_width(D_MODEL, position) == (D_MODEL if position == "added" else D_MODEL // 2)
    assert second.shape == first.shape


@every
def test_sentences_of_a_batch_do_not_see_each_other(
    position: PositionInput, matrices: Matrices
) -> None:
    module = encoder(2, position=position, matrices=matrices)
    content = rows_of(content_width(D_MODEL, position))
    together = module(content, layout_of(LENGTHS)).split(LENGTHS)
    for n, rows, expected in zip(LENGTHS, content.split(LENGTHS), together, strict=True):
        torch.testing.assert_close(module(rows, layout_of([n])), expected, atol=1e-12, rtol=0)


@pytest.mark.parametrize("matrices", get_args(Matrices))
def test_attention_is_drawn_as_in_the_released_code(matrices: Matrices) -> None:
    torch.manual_seed(0)
    d_model, heads, d_kv = 64, 4, 16
    module = SelfAttention(d_model, heads, d_kv, 0.0, matrices)
    parts = 2 if matrices == "factored" else 1
    shape = (heads, d_model // parts, d_kv // parts)
    expected = torch.nn.init.xavier_normal_(torch.empty(shape)).std().item()
    for name, weight in module.project.named_parameters():
        assert weight.std().item() == pytest.approx(expected, rel=0.1), name


@pytest.mark.parametrize("form", get_args(LayerNormForm))
@every
def test_bfloat16_products_are_close(
    position: PositionInput, matrices: Matrices, form: LayerNormForm
) -> None:
    module = encoder(2, position=position, matrices=matrices, layer_norm=form).float()
    content = rows_of(content_width(D_MODEL, position)).float()
    expected = module(content, layout_of(LENGTHS))
    module.precision = "bf16"
    found = module(content, layout_of(LENGTHS))
    assert found.dtype == torch.float32
    assert 0 < (found - expected).abs().max() < 0.3


def test_dividing_by_the_root_of_d_model() -> None:
    """As in the released code: the same as queries that are smaller by that ratio."""
    usual, released = encoder(2), encoder(2, attention_scale="d_model")
    layout, content = layout_of(LENGTHS), rows_of(D_MODEL // 2)
    found = released(content, layout)
    assert (found - usual(content, layout)).abs().max() > 1e-3
    queries = HEADS * D_KV // 2
    with torch.no_grad():
        for each in usual.layers:
            for part in (each.attention.project.content, each.attention.project.position):
                part.weight[:queries] *= math.sqrt(D_KV / D_MODEL)
    torch.testing.assert_close(found, usual(content, layout), atol=1e-12, rtol=0)


@pytest.mark.parametrize("scale", get_args(AttentionScale))
def test_full_attention_by_hand(scale: AttentionScale) -> None:
    module = SelfAttention(D_MODEL, HEADS, D_KV, 0.0, "full", scale).double()
    randomise(module, seed=4)
    layout, rows = layout_of(LENGTHS), rows_of(D_MODEL)
    found = module(rows, layout)
    divisor = math.sqrt({"d_kv": D_KV, "d_model": D_MODEL}[scale])
    expected = plain.full_attention(module, array(rows), array(rows), LENGTHS, divisor)
    np.testing.assert_allclose(array(found), expected, atol=1e-12)


def test_released_norms_by_hand() -> None:
    """All norms of the stack are of the chosen form, that of the input too."""
    module, content = encoder(2, layer_norm="released"), rows_of(D_MODEL // 2)
    expected = plain.encoder(module, array(content), LENGTHS)
    found = module(content, layout_of(LENGTHS))
    np.testing.assert_allclose(array(found), expected, atol=1e-11)
    norms = [each for each in module.modules() if isinstance(each, ReleasedLayerNorm)]
    assert len(norms) == 1 + 2 * 2
    assert (encoder(2)(content, layout_of(LENGTHS)) - found).abs().max() > 1e-3


@every
def test_without_a_norm_of_the_input(position: PositionInput, matrices: Matrices) -> None:
    module = encoder(1, position=position, matrices=matrices, input_norm=False)
    assert not [name for name in module.state_dict() if "input_norm" in name]
    layout, content = layout_of(LENGTHS), rows_of(content_width(D_MODEL, position))
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
