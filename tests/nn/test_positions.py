"""Positions: the table of sines and cosines, and layers that see nothing but positions."""

from __future__ import annotations

import itertools
import math
from typing import Any, get_args

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.nn import functional

from spmrl_bench.nn import encoder as encoder_module
from spmrl_bench.nn.choices import Matrices, PositionInput
from spmrl_bench.nn.encoder import Encoder
from spmrl_bench.nn.encoder_kinds import content_width
from spmrl_bench.nn.limits import Limit
from spmrl_bench.nn.positions import SinusoidalPositions, sinusoids
from tests.nn import plain
from tests.nn.plain import array, layout_of, randomise

LENGTHS = [3, 9, 1, 6]
D_MODEL, HEADS, D_KV, D_FF, PLACES = 12, 3, 4, 10, 9
NO_DROPOUT = dict.fromkeys(("attention_dropout", "residual_dropout", "relu_dropout"), 0.0)
ADDED: dict[str, Any] = {"position": "added", "matrices": "full"}


def encoder(layers: int = 3, **choices: Any) -> Encoder:
    module = Encoder(D_MODEL, layers, HEADS, D_KV, D_FF, PLACES, **NO_DROPOUT, **choices).double()
    randomise(module, seed=1)
    return module


def rows_of(width: int, seed: int = 2) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(sum(LENGTHS), width, generator=generator, dtype=torch.float64)


# Sines and cosines -----------------------------------------------------------------------


@pytest.mark.parametrize("width", [2, 6, 512])
def test_the_table_is_that_of_the_paper(width: int) -> None:
    """Vaswani et al. 2017, section 3.5, feature by feature; the module holds it in float32."""
    module = SinusoidalPositions(40, width)
    for place, i in itertools.product((0, 1, 2, 17, 39), range(width // 2)):
        angle = place / 10000 ** (2 * i / width)
        assert sinusoids(40, width)[place, 2 * i] == pytest.approx(math.sin(angle), abs=1e-12)
        assert sinusoids(40, width)[place, 2 * i + 1] == pytest.approx(math.cos(angle), abs=1e-12)
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


@pytest.mark.parametrize(
    ("position", "matrices"), list(itertools.product(get_args(PositionInput), get_args(Matrices)))
)
def test_a_fixed_table_stands_where_a_learned_one_does(
    position: PositionInput, matrices: Matrices
) -> None:
    fixed = encoder(position=position, matrices=matrices, position_table="sinusoidal")
    learned = encoder(position=position, matrices=matrices)
    width = content_width(D_MODEL, position)
    learned.load_state_dict(
        {**fixed.state_dict(), "positions.weight": torch.from_numpy(sinusoids(PLACES, width))}
    )
    content, layout = rows_of(width), layout_of(LENGTHS)
    expected = learned(content, layout)
    # A buffer of float32 numbers stays what it is when the encoder becomes double.
    torch.testing.assert_close(fixed(content, layout), expected, atol=1e-5, rtol=0)


def test_the_kernels_take_a_fixed_table(monkeypatch: pytest.MonkeyPatch) -> None:
    """With gradients and without; the table itself has none."""
    exact, low = (encoder(position_table="sinusoidal") for _ in range(2))
    content, layout = rows_of(D_MODEL // 2).requires_grad_(), layout_of(LENGTHS)
    expected = exact(content, layout)
    fused, used = encoder_module.fused_encoder.encode, []

    def encode(*given: Any) -> Tensor:
        used.append(given)
        return fused(*given)

    monkeypatch.setattr(encoder_module.fused_encoder, "encode", encode)
    rows = content.detach().float().requires_grad_()
    found = low.float()(rows, layout)
    assert len(used) == encoder_module.kernels.usable(rows)
    torch.testing.assert_close(found.double(), expected, atol=1e-4, rtol=0)
    with torch.no_grad():
        torch.testing.assert_close(low(rows, layout), found, atol=1e-5, rtol=0)
    expected.pow(3).sum().backward()
    found.pow(3).sum().backward()
    compared = dict(low.named_parameters()) | {"content": rows}
    for name, other in (dict(exact.named_parameters()) | {"content": content}).items():
        gradient = compared[name].grad
        assert gradient is not None, name
        assert other.grad is not None, name
        error = (gradient.double() - other.grad).abs().max()
        assert error < 1e-4 * other.grad.abs().max(), name


# Layers that see positions only ----------------------------------------------------------


def test_position_only_attention_by_hand() -> None:
    """Queries and keys of the table's rows as they are, values of the layer's input."""
    module = encoder(1, **ADDED, position_only_layers=(0,))
    content, layout = rows_of(D_MODEL), layout_of(LENGTHS)
    places = [place for n in LENGTHS for place in range(n)]
    position = array(module.positions.weight)[places]
    given = np.array(
        [plain.layer_norm(row, module.input_norm) for row in array(content) + position]
    )
    layer = module.layers[0]
    attended = plain.full_attention(layer.attention, given, position, LENGTHS, math.sqrt(D_KV))
    expected = []
    for row, change in zip(given, attended, strict=True):
        middle = plain.layer_norm(row + change, layer.attention_norm)
        hidden = np.maximum(array(layer.expand.weight) @ middle + array(layer.expand.bias), 0)
        contracted = array(layer.contract.weight) @ hidden + array(layer.contract.bias)
        expected.append(plain.layer_norm(middle + contracted, layer.feed_forward_norm))
    np.testing.assert_allclose(array(module(content, layout)), expected, atol=1e-11)


class Tap:
    """Keeps queries, keys and values of every attention, ``[sentences, heads, longest, d_kv]``."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.calls: list[tuple[Tensor, Tensor, Tensor]] = []
        attend = functional.scaled_dot_product_attention

        def keep(query: Tensor, key: Tensor, value: Tensor, **others: Any) -> Tensor:
            self.calls.append((query.clone(), key.clone(), value.clone()))
            return attend(query, key, value, **others)

        monkeypatch.setattr(encoder_module.functional, "scaled_dot_product_attention", keep)


def test_content_changes_values_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the words of a sentence in another order, weights stay the same to the last bit."""
    only = (0, 2)
    module = encoder(3, **ADDED, position_only_layers=only)
    layout, content = layout_of(LENGTHS), rows_of(D_MODEL)
    order = [
        k
        for n, part in zip(LENGTHS, torch.arange(sum(LENGTHS)).split(LENGTHS), strict=True)
        for k in part[torch.randperm(n, generator=torch.Generator().manual_seed(n))].tolist()
    ]
    assert order != sorted(order)
    tap = Tap(monkeypatch)
    results = [module(content, layout), module(content[order], layout)]
    first, second = tap.calls[:3], tap.calls[3:]
    for number in range(3):
        for part, name in enumerate(("query", "key", "value")):
            same = torch.equal(first[number][part], second[number][part])
            assert same == (number in only and name != "value"), (number, name)
    # Each layer asks with matrices of its own.
    assert not torch.equal(first[0][0], first[2][0])
    assert (results[0] - results[1]).abs().max() > 0.01


def test_other_layers_stay_what_they_were() -> None:
    usual, none = encoder(2, **ADDED), encoder(2, **ADDED, position_only_layers=())
    content, layout = rows_of(D_MODEL), layout_of(LENGTHS)
    assert torch.equal(usual(content, layout), none(content, layout))
    found = [usual(content, layout)]
    for layers in ((0,), (1,), (0, 1)):
        module = encoder(2, **ADDED, position_only_layers=layers)
        assert module.state_dict().keys() == usual.state_dict().keys()
        found.append(module(content, layout))
    for a, b in itertools.combinations(found, 2):
        assert (a - b).abs().max() > 1e-3


def test_position_only_layers_have_windows_and_gradients() -> None:
    """A window still holds, and the table learns from queries and keys."""
    module = encoder(1, **ADDED, position_only_layers=(0,))
    content = rows_of(D_MODEL).requires_grad_()
    module.limit({0: Limit(window=1)})
    found = module(content, layout_of(LENGTHS))
    (by_content,) = torch.autograd.grad(found[3 + 4].sum(), content)  # place 4 of the second
    assert by_content.abs().sum(1).nonzero().flatten().tolist() == [3 + 3, 3 + 4, 3 + 5]
    short = content.detach()[:3]
    one = layout_of([3])
    assert torch.autograd.gradcheck(lambda rows: module(rows, one), (short.requires_grad_(),))
    module.limit({})
    (by_table,) = torch.autograd.grad(module(short, one)[0].sum(), module.positions.weight)
    assert by_table[:3].abs().sum(1).all()
    assert not by_table[3:].any()


def test_mistakes_are_refused() -> None:
    choices: list[dict[str, Any]] = [{}, {"position": "added"}, {"matrices": "full"}]
    for choice in choices:
        with pytest.raises(ValueError, match="position-only layers need an added position and"):
            encoder(2, **choice, position_only_layers=(0,))
    with pytest.raises(ValueError, match="position-only layer 2: the encoder's layers are 0 to 1"):
        encoder(2, **ADDED, position_only_layers=(0, 2))
