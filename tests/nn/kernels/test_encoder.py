"""The encoder's kernel against the encoder of torch operations, in float64 and with dropout."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from spmrl_bench.nn import kernels
from spmrl_bench.nn.encoders.self_attention import AttentionEncoder
from tests import twins
from tests.nn.built import attention_encoder
from tests.nn.plain import layout_of, randomise
from tests.twins import assert_near, assert_same_with_threads, needs_kernel, rounded

pytestmark = needs_kernel("encoder")

LENGTHS = [3, 4, 5, 1, 2, 17, 9]
HALF = 6


def encoder(layers: int = 2, dropout: float = 0.0, **changes: Any) -> AttentionEncoder:
    rates = dict.fromkeys(("attention_dropout", "residual_dropout", "relu_dropout"), dropout)
    module = attention_encoder(2 * HALF, layers=layers, **rates, **changes)
    randomise(module, seed=3)
    return module


def content(lengths: list[int] = LENGTHS) -> Tensor:
    generator = torch.Generator().manual_seed(4)
    return torch.randn(sum(lengths), HALF, generator=generator)


def outcome(
    module: AttentionEncoder, lengths: list[int] = LENGTHS, run: Any = None
) -> dict[str, Tensor]:
    """The result of random content and the gradients of all that has some."""
    layout, rows = layout_of(lengths), content(lengths).to(module.positions.weight.dtype)
    return twins.outcome(
        run or (lambda given: module(given, layout)), rows, list(module.named_parameters())
    )


@pytest.mark.usefixtures(rounded.__name__)
@pytest.mark.parametrize(
    ("layers", "scale", "threads"), [(0, "d_kv", 1), (1, "d_model", 2), (2, "d_kv", 3)]
)
def test_kernels_compute_the_encoder(layers: int, scale: str, threads: int) -> None:
    module = encoder(layers, attention_scale=scale)
    with twins.torch_threads(threads):
        found = outcome(module)
    assert_near(found, outcome(module.double()), 2e-5)


def test_kernels_with_dropout_equal_torch_with_the_same_factors() -> None:
    """The masks are drawn as the kernels draw them, everything else is autograd in float64."""
    p, layers = 0.3, 2
    lengths = [4, 1, 19, 5]
    module, layout = encoder(layers, dropout=p), layout_of(lengths)
    torch.manual_seed(9)
    found = outcome(module, lengths)
    torch.manual_seed(9)
    seeds = torch.randint(2**62, (layers, 4)).tolist()

    def masks(seed: int, *shape: int) -> Tensor:
        return kernels.load("encoder").masks(seed, p, *shape).double()

    def drop(rows: Tensor, seed: int) -> Tensor:
        return rows * masks(seed, len(lengths), rows.shape[1]).index_select(0, layout.sentence)

    def attend(attention: Any, rows: Tensor, seed: int) -> Tensor:
        heads = attention.heads
        joined = attention.project.to_heads(rows, 3 * heads).unflatten(1, (3, heads))
        factors = masks(seed, len(rows), heads, 32)  # the longest, up to whole vectors
        parts, begin = [], 0
        for n in lengths:
            query, key, value = joined[begin : begin + n].permute(1, 2, 0, 3)
            logits = query @ key.transpose(1, 2) / math.sqrt(attention.d_kv)
            own = factors[begin : begin + n, :, :n].transpose(0, 1)
            weights = logits.softmax(dim=2) * own
            parts.append((weights @ value).transpose(0, 1))
            begin += n
        return attention.output.from_heads(torch.cat(parts))

    def plain(rows: Tensor) -> Tensor:
        joined = torch.cat((rows, module.positions(layout.position)), dim=1)
        rows = module.input_norm(joined)
        for layer, (of_weights, first, inner, second) in zip(module.layers, seeds, strict=True):
            attended = attend(layer.attention, rows, of_weights)
            rows = layer.attention_norm(rows + drop(attended, first))
            hidden = drop(layer.expand(rows).relu(), inner)
            rows = layer.feed_forward_norm(rows + drop(layer.contract(hidden), second))
        return rows

    module.double()
    expected = outcome(module, lengths, plain)
    assert_near(found, expected, 2e-5)
    undropped = outcome(module.eval(), lengths)
    assert (undropped["result"] - expected["result"]).abs().max() > 0.1


@pytest.mark.parametrize("d_kv", [2, 14, 16, 18, 64])
def test_attention_of_every_shape(d_kv: int) -> None:
    """Rows and columns that fill no vector, one vector, several; every remainder of rows."""
    for heads in (1, 5):
        for n in (1, 2, 7, 8, 15, 16, 17, 33, 140):
            module = attention_encoder(
                2 * HALF, layers=1, heads=heads, d_kv=d_kv, max_positions=142
            )
            randomise(module, seed=3)
            found = outcome(module, [n, 3])
            assert_near(found, outcome(module.double(), [n, 3]), 5e-5)


def test_threads_do_not_change_attention() -> None:
    packed = torch.randn(2, 48, 18, generator=torch.Generator().manual_seed(2))

    def attended() -> list[Tensor]:
        threads = torch.get_num_threads()
        batch = kernels.load("encoder").Batch(torch.tensor(LENGTHS), 48, False, True, threads)
        context = batch.attend(packed, 3, 0.5, 7, 0.3)
        return [context, batch.attend(packed, 3, 0.5, 7, 0.3, context)]

    assert_same_with_threads(attended)
    assert attended()[1].any()


def test_without_gradient_the_result_is_the_same_and_nothing_given_is_changed() -> None:
    module, layout, rows = encoder(), layout_of(LENGTHS), content().requires_grad_()
    before = rows.detach().clone()
    result = module(rows, layout)
    gradient = torch.ones_like(result)
    result.backward(gradient)
    assert torch.equal(rows, before)
    assert (gradient == 1).all()
    with torch.no_grad():
        assert torch.equal(module(rows, layout), result)


def test_bf16_gradients_are_near_those_of_float32() -> None:
    twins.assert_similar(outcome(encoder(precision="bf16")), outcome(encoder()))


@pytest.mark.parametrize("p", [0.1, 0.2, 0.5, 0.9])
def test_dropout_factors(p: float) -> None:
    torch.manual_seed(1)
    factors, other = (kernels.dropout_factors(torch.Size([1000, 301]), p) for _ in range(2))
    torch.manual_seed(1)
    assert torch.equal(kernels.dropout_factors(factors.shape, p), factors)
    assert not torch.equal(factors, other)
    kept = factors > 0
    count = factors.numel()
    error = 5 * math.sqrt(p * (1 - p) / count)  # five standard errors
    assert kept.float().mean().item() == pytest.approx(1 - p, abs=error)
    assert factors.unique().tolist() == pytest.approx([0, 1 / (1 - p)], rel=2e-4)
    # Neighbours, places one row apart and places four apart are independent.
    for lag in (1, 2, 3, 4, 301):
        flat = kept.flatten().float() - (1 - p)
        correlation = (flat[lag:] * flat[:-lag]).mean().item() / (p * (1 - p))
        assert abs(correlation) < 5 / math.sqrt(count), lag


def test_rounding_is_to_the_nearest_bfloat16() -> None:
    """Seen through a layer norm with unit weights of rows that it leaves alone."""
    generator = np.random.default_rng(0)
    rows = torch.from_numpy(generator.standard_normal((2, 9, 33)).astype(np.float32))
    batch = kernels.load("encoder").Batch(torch.tensor([9]), 9, True, True, 1)
    ones, zeros = torch.ones(66), torch.zeros(66)
    result, bf16, *_ = batch.norm(rows, None, None, None, ones, zeros, 1e-5)
    assert bf16.dtype == torch.bfloat16
    assert torch.equal(bf16, result.bfloat16())


def test_overflow_and_nan_are_not_hidden() -> None:
    module, layout = encoder(1), layout_of(LENGTHS)
    for value in (1e25, math.nan, math.inf):
        rows = content()
        rows[0, 0] = value
        with torch.no_grad():
            assert not module(rows, layout)[:3].isfinite().all()


@pytest.mark.parametrize("fused", [False, True])
def test_products_in_bfloat16_follow_the_weights_of_an_optimiser(fused: bool) -> None:
    """A fused optimiser changes weights without raising their version number."""
    module, layout = encoder(precision="bf16"), layout_of(LENGTHS)
    optimiser = torch.optim.Adam(module.parameters(), lr=0.1, fused=fused)
    for _ in range(2):
        optimiser.zero_grad()
        module(content(), layout).square().sum().backward()
        optimiser.step()
    fresh = encoder(precision="bf16")
    fresh.load_state_dict(module.state_dict())
    assert torch.equal(module(content(), layout), fresh(content(), layout))


def test_cached_weights_are_rounded_once_and_forgotten() -> None:
    module, layout = encoder(precision="bf16").eval(), layout_of(LENGTHS)
    with torch.no_grad():
        expected = module(content(), layout)
        with module.cached_weights():
            assert torch.equal(module(content(), layout), expected)
            rounded = set(map(id, (module.bf16_weights or {}).values()))
            assert rounded
            assert torch.equal(module(content(), layout), expected)
            assert set(map(id, (module.bf16_weights or {}).values())) == rounded
        module.layers[0].expand.content.weight.data.mul_(2)
        assert not torch.equal(module(content(), layout), expected)
