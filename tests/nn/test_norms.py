"""The layer norm of the released code against its formula, in plain Python."""

from __future__ import annotations

import pytest
import torch

from spmrl_bench.nn.layers import ReleasedLayerNorm
from tests.nn.plain import randomise


def released(width: int) -> ReleasedLayerNorm:
    module = ReleasedLayerNorm(width).double()
    randomise(module, seed=1)
    return module


def test_gradients_are_right_and_finite() -> None:
    module = released(5)
    rows = torch.randn(3, 5, generator=torch.Generator().manual_seed(3), dtype=torch.float64)
    assert torch.autograd.gradcheck(module, (rows.requires_grad_(),))
    equal = torch.full((1, 5), 7.0, dtype=torch.float64, requires_grad=True)
    result = module(equal)
    assert torch.equal(result[0], module.bias)
    result.square().sum().backward()
    assert equal.grad.isfinite().all()


def test_the_result_is_not_rounded_to_bfloat16() -> None:
    rows = torch.randn(3, 8, generator=torch.Generator().manual_seed(4)).bfloat16()
    module = ReleasedLayerNorm(8)
    with torch.autocast("cpu", torch.bfloat16):
        found = module(rows)
    assert found.dtype == torch.float32
    assert torch.equal(found, module(rows.float()))


def test_a_single_feature_has_no_unbiased_deviation() -> None:
    with pytest.raises(ValueError, match="width is 1; an unbiased deviation needs 2 features"):
        ReleasedLayerNorm(1)
