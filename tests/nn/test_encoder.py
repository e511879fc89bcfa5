"""Self-attention of every form against the computation of the paper, written down plainly."""

from __future__ import annotations

import itertools
import math
from typing import Any, get_args

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from spmrl_bench.nn.encoders.attention import EncoderLayer
from spmrl_bench.nn.layers import Matrices, ReleasedLayerNorm
from tests.nn import plain
from tests.nn.built import attention_encoder, encoder_layer, self_attention
from tests.nn.plain import array, layout_of, randomise

LENGTHS = [4, 1, 6, 3]
D_MODEL = 12
CHOICES: list[dict[str, Any]] = [
    *(
        {"position": position, "matrices": matrices, "input_norm": norm}
        for position, matrices, norm in itertools.product(
            ("concatenated", "added"), get_args(Matrices), (True, False)
        )
    ),
    {"attention_scale": "d_model"},
    {"attention_scale": "d_model", "matrices": "full"},
    {"layer_norm": "released"},
    {"position_table": "sinusoidal"},
    {"position_table": "sinusoidal", "position": "added", "matrices": "full"},
]


def rows_of(width: int) -> Tensor:
    generator = torch.Generator().manual_seed(0)
    return torch.randn(sum(LENGTHS), width, generator=generator, dtype=torch.float64)


def test_encoders_are_layers_over_content_and_position() -> None:
    layout = layout_of(LENGTHS)
    for choices, layers in itertools.product(CHOICES, (0, 1, 3)):
        module = attention_encoder(D_MODEL, layers=layers, **choices).double()
        randomise(module, seed=3)
        content = rows_of(module.content_width)
        divisor = math.sqrt(D_MODEL) if choices.get("attention_scale") == "d_model" else None
        expected = plain.encoder(module, content, LENGTHS, divisor)
        found = module(content, layout)
        torch.testing.assert_close(found, expected, atol=1e-11, rtol=0, msg=str(choices))
        # By the kernels, of what they compute.
        found = module.float()(content.float(), layout).double()
        torch.testing.assert_close(found, expected, atol=1e-4, rtol=0, msg=str(choices))


def layer(**dropout: float) -> EncoderLayer:
    module = encoder_layer(D_MODEL, **dropout).double()
    randomise(module, seed=2)
    return module


def test_attention_dropout_is_drawn_for_each_weight() -> None:
    """Uniform weights over one-hot values make the masked weights themselves visible."""
    n, p = 6, 0.5
    module = self_attention(2 * n, heads=2, d_kv=2 * n, attention_dropout=p).double()
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.zero_()
        for head in range(2):
            first_value = (2 * 2 + head) * n
            module.project.content.weight[first_value : first_value + n] = torch.eye(n)
        module.output.content.weight[:, :n] = torch.eye(n)
    rows = torch.cat((torch.eye(n), torch.zeros(n, n)), dim=1).double()
    layout = layout_of([n])
    torch.manual_seed(0)
    weights = module(rows, layout)[:, :n]
    np.testing.assert_allclose(sorted(set(array(weights).ravel())), [0, 1 / n / (1 - p)])
    assert len({tuple(row) for row in weights.tolist()}) > 1  # not one mask for all queries
    np.testing.assert_allclose(array(module.eval()(rows, layout)[:, :n]), 1 / n)


@pytest.mark.parametrize(("matrices", "parts"), [("factored", 2), ("full", 1)])
def test_initial_weights_are_xavier_over_whole_head_tensors(matrices: str, parts: int) -> None:
    d_model, heads, d_kv = 256, 8, 64
    torch.manual_seed(0)
    module = self_attention(d_model, heads=heads, d_kv=d_kv, matrices=matrices)
    sizes = (d_model // parts, d_kv // parts)
    for linear, shape in ((module.project, sizes), (module.output, sizes[::-1])):
        expected = nn.init.xavier_normal_(torch.empty(heads, *shape)).std().item()
        for weight in linear.parameters():
            assert weight.std().item() == pytest.approx(expected, rel=0.03)


class Tap:
    """Keeps the last input and output of a module."""

    def __init__(self, module: nn.Module) -> None:
        module.register_forward_hook(self._keep)

    def _keep(self, module: nn.Module, inputs: tuple[Any, ...], output: Any) -> None:
        self.input = inputs[0].detach().clone()
        joined = output if isinstance(output, Tensor) else torch.cat(output, dim=1)
        self.output = joined.detach().clone()


def assert_sentence_mask(before: Tensor, after: Tensor) -> None:
    """``after`` is ``before`` with half of the features of each sentence dropped."""
    dropped = 0
    masks = set()
    for old, new in zip(before.split(LENGTHS), after.split(LENGTHS), strict=True):
        # A feature that is 0 throughout (after a ReLU) shows no mask.
        shown = (old.abs() > 1e-9).any(dim=0)
        kept = (new.abs() > 1e-9).any(dim=0)
        torch.testing.assert_close(new, old * kept * 2)
        dropped += int((shown & ~kept).sum())
        masks.add(tuple(kept.tolist()))
    assert dropped > 0
    assert len(masks) > 1


def test_dropout_is_shared_by_a_sentence() -> None:
    module, layout = layer(residual_dropout=0.5), layout_of(LENGTHS)
    rows = rows_of(D_MODEL)
    attended, contracted = Tap(module.attention), Tap(module.contract)
    first, second = Tap(module.attention_norm), Tap(module.feed_forward_norm)
    torch.manual_seed(0)
    module(rows, layout)
    assert_sentence_mask(attended.output, first.input - rows)
    assert_sentence_mask(contracted.output, second.input - first.output)
    module = layer(relu_dropout=0.5)
    expanded, contracted = Tap(module.expand), Tap(module.contract)
    torch.manual_seed(0)
    module(rows_of(D_MODEL), layout)
    assert_sentence_mask(expanded.output.relu(), contracted.input)


# Norms of the released code --------------------------------------------------------------


def test_gradients_of_released_norms_are_right_and_finite() -> None:
    module = ReleasedLayerNorm(5).double()
    randomise(module, seed=1)
    rows = torch.randn(3, 5, generator=torch.Generator().manual_seed(3), dtype=torch.float64)
    assert torch.autograd.gradcheck(module, (rows.requires_grad_(),))
    equal = torch.full((1, 5), 7.0, dtype=torch.float64, requires_grad=True)
    result = module(equal)
    assert torch.equal(result[0], module.bias)
    result.square().sum().backward()
    assert equal.grad.isfinite().all()


def test_the_result_of_released_norms_is_not_rounded_to_bfloat16() -> None:
    rows = torch.randn(3, 8, generator=torch.Generator().manual_seed(4)).bfloat16()
    module = ReleasedLayerNorm(8)
    with torch.autocast("cpu", torch.bfloat16):
        found = module(rows)
    assert found.dtype == torch.float32
    assert torch.equal(found, module(rows.float()))


def test_a_single_feature_has_no_unbiased_deviation() -> None:
    with pytest.raises(ValueError, match="width is 1; an unbiased deviation needs 2 features"):
        ReleasedLayerNorm(1)
