"""The recurrent encoders against cells that are worked through one by one."""

from __future__ import annotations

from typing import get_args

import pytest
import torch
from torch import Tensor

from spmrl_bench.nn import kernels
from spmrl_bench.nn.choices import Cell
from spmrl_bench.nn.fused_recurrent import RecurrentLayer
from spmrl_bench.nn.recurrent_encoder import RecurrentEncoder
from spmrl_bench.nn.span_scorer import fenceposts
from tests.nn.plain import layout_of

LENGTHS = [3, 7, 1, 4]
D_MODEL = 6
every_cell = pytest.mark.parametrize("cell", get_args(Cell))


def encoder(cell: Cell, layers: int, dropout: float = 0.0) -> RecurrentEncoder:
    torch.manual_seed(0)
    return RecurrentEncoder(cell, D_MODEL, layers, dropout=dropout).double()


def content(lengths: list[int] = LENGTHS) -> Tensor:
    generator = torch.Generator().manual_seed(1)
    return torch.randn(sum(lengths), D_MODEL, generator=generator, dtype=torch.float64)


def one_direction(layer: RecurrentLayer, suffix: str, rows: list[Tensor]) -> list[Tensor]:
    """States after each row, in reading order."""
    half = D_MODEL // 2
    state, memory, found = torch.zeros(half).double(), torch.zeros(half).double(), []
    weights = dict(layer.named_parameters())
    for row in rows:
        given = weights[f"weight_ih_l0{suffix}"] @ row + weights[f"bias_ih_l0{suffix}"]
        carried = weights[f"weight_hh_l0{suffix}"] @ state + weights[f"bias_hh_l0{suffix}"]
        if isinstance(layer, torch.nn.LSTM):
            enter, keep, fresh, leave = (given + carried).chunk(4)
            memory = keep.sigmoid() * memory + enter.sigmoid() * fresh.tanh()
            state = leave.sigmoid() * memory.tanh()
        else:
            reset, update = (given + carried)[: 2 * half].sigmoid().chunk(2)
            fresh = (given[2 * half :] + reset * carried[2 * half :]).tanh()
            state = (1 - update) * fresh + update * state
        found.append(state)
    return found


@every_cell
@pytest.mark.parametrize("layers", [1, 2])
def test_states_by_hand(cell: Cell, layers: int) -> None:
    module = encoder(cell, layers)
    found = module(content(), layout_of(LENGTHS)).split(LENGTHS)
    for rows, result in zip(content().split(LENGTHS), found, strict=True):
        given = list(rows)
        for layer in module.layers:
            forward = one_direction(layer, "", given)
            backward = one_direction(layer, "_reverse", given[::-1])[::-1]
            given = []
            for f, b in zip(forward, backward, strict=True):
                row = torch.empty(D_MODEL, dtype=torch.float64)
                row[0::2], row[1::2] = f, b
                given.append(row)
        torch.testing.assert_close(result, torch.stack(given), atol=1e-12, rtol=0)


@pytest.mark.skipif(kernels.load("_recurrent") is None, reason="the kernels are not built")
@every_cell
@pytest.mark.parametrize("layers", [1, 2])
def test_kernels_compute_the_encoder(cell: Cell, layers: int) -> None:
    module, layout = encoder(cell, layers), layout_of(LENGTHS)
    rows = content().requires_grad_()
    weights = torch.randn(rows.shape, generator=torch.Generator().manual_seed(2)).double()

    def outcome(given: Tensor) -> list[Tensor]:
        result = module(given, layout)
        total = (result * weights.to(result.dtype)).sum()
        return [result.detach(), *torch.autograd.grad(total, [given, *module.parameters()])]

    expected = outcome(rows)
    module.float()
    found = outcome(rows.detach().float().requires_grad_())
    for ours, theirs in zip(found, expected, strict=True):
        assert ours.dtype == torch.float32
        assert (ours.double() - theirs).abs().max() <= 2e-5 * theirs.abs().max()


@every_cell
def test_a_fencepost_has_read_the_left_and_the_right_side(cell: Cell) -> None:
    """Forward states of the tokens before it, backward states of those behind it."""
    n = 7
    rows = content([n]).requires_grad_()
    posts = fenceposts(encoder(cell, 1)(rows, layout_of([n])), torch.arange(n - 1))
    for k in range(n - 1):
        left, right = posts[k].chunk(2)
        (by_left,) = torch.autograd.grad(left.sum(), rows, retain_graph=True)
        (by_right,) = torch.autograd.grad(right.sum(), rows, retain_graph=True)
        assert by_left.abs().sum(1).nonzero().flatten().tolist() == list(range(k + 1))
        assert by_right.abs().sum(1).nonzero().flatten().tolist() == list(range(k + 1, n))


def test_dropout_is_on_what_goes_into_later_layers() -> None:
    layout = layout_of(LENGTHS)
    single = encoder("lstm", 1, dropout=0.9)
    assert torch.equal(single(content(), layout), single.eval()(content(), layout))
    double = encoder("lstm", 2, dropout=0.9)
    assert not torch.equal(double(content(), layout), double.eval()(content(), layout))


@every_cell
def test_products_in_bfloat16_are_close(cell: Cell) -> None:
    module = encoder(cell, 2).float()
    expected = module(content().float(), layout_of(LENGTHS))
    module.precision = "bf16"
    found = module(content().float(), layout_of(LENGTHS))
    assert found.dtype == torch.float32
    assert 0 < (found - expected).abs().max() < 0.05
