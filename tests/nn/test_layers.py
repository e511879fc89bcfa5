"""Dropout that the tokens of a sentence share, and weights that are drawn by one rule."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor, nn

from spmrl_bench.nn.layers import Initialisation, ReleasedLayerNorm, initialise
from spmrl_bench.nn.ragged import SentenceDropout
from tests.nn.plain import layout_of

LENGTHS = [3, 1, 5, 2]


def test_all_tokens_of_a_sentence_share_one_mask_there_and_back() -> None:
    layout, rows = layout_of(LENGTHS), torch.ones(sum(LENGTHS), 200, requires_grad=True)
    dropped = SentenceDropout(0.5)(rows, layout)
    assert set(dropped.unique().tolist()) == {0.0, 2.0}
    masks = [sentence[0] for sentence in dropped.split(LENGTHS)]
    assert torch.equal(dropped, torch.stack(masks)[layout.sentence])
    assert len({tuple(mask.tolist()) for mask in masks}) == len(LENGTHS)
    assert torch.equal(torch.autograd.grad(dropped.sum(), rows)[0], dropped)
    assert not torch.equal(SentenceDropout(0.5)(rows, layout), dropped)  # a new one
    # It is the identity outside training and without a rate.
    assert torch.equal(SentenceDropout(0.9).eval()(rows, layout), rows)
    assert torch.equal(SentenceDropout(0.0)(rows, layout), rows)


both_rules = pytest.mark.parametrize("rule", ["glorot-normal", "glorot-uniform"])


def check_sizes(weight: Tensor, rule: Initialisation, rows: int, columns: int) -> None:
    """Mean, variance and largest value of a weight with very many numbers."""
    glorot = math.sqrt(6 / (rows + columns))
    variance = glorot if rule == "glorot-normal" else 2 / (rows + columns)
    assert abs(weight.mean().item()) < 0.02 * math.sqrt(variance)
    assert weight.var().item() == pytest.approx(variance, rel=0.03)
    if rule == "glorot-uniform":
        assert 0.99 * glorot < weight.abs().max().item() <= glorot
    else:  # about a third lies beyond one standard deviation, a twentieth beyond two
        beyond = [(weight.abs() > k * math.sqrt(variance)).double().mean().item() for k in (1, 2)]
        assert beyond == pytest.approx([0.317, 0.0455], abs=0.01)


@both_rules
def test_matrices_are_drawn_with_their_rows_and_columns(rule: Initialisation) -> None:
    torch.manual_seed(1)
    linear, table = nn.Linear(150, 250), nn.Embedding(400, 100)
    cube = nn.ParameterList([nn.Parameter(torch.ones(5, 60, 140))])
    with torch.no_grad():
        linear.bias.fill_(3.0)
    for module in (linear, table, cube):
        initialise(module, rule)
    check_sizes(linear.weight, rule, 250, 150)
    check_sizes(table.weight, rule, 400, 100)
    check_sizes(cube[0], rule, 60, 140)
    assert not linear.bias.any()


@both_rules
@pytest.mark.parametrize(("cell", "gates"), [(nn.LSTM, 4), (nn.GRU, 3)])
def test_gates_are_matrices_of_their_own(
    rule: Initialisation, cell: type[nn.LSTM | nn.GRU], gates: int
) -> None:
    torch.manual_seed(1)
    layer = cell(200, 120, bidirectional=True)
    initialise(nn.Sequential(layer), rule)
    for name, weight in layer.named_parameters():
        if name.startswith("bias"):
            assert not weight.any()
        else:
            assert len(weight) == gates * 120
            check_sizes(weight, rule, 120, 200 if "_ih_" in name else 120)


@both_rules
def test_gains_rows_of_what_is_never_seen_and_weights_of_files_stay(rule: Initialisation) -> None:
    class Mix(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.mix = nn.Parameter(torch.zeros(3))

    table, linear = nn.Embedding(6, 4, padding_idx=5), nn.Linear(3, 3)
    with torch.no_grad():
        table.weight[2] = 0
        table.weight[3, 1:] = 0  # something of it is there
    norms = [nn.LayerNorm(7), ReleasedLayerNorm(7)]
    before = linear.weight.detach().clone(), linear.bias.detach().clone()
    module = nn.Sequential(table, linear, *norms, Mix())
    initialise(module, rule, kept=[linear.weight, linear.bias])
    assert table.weight.any(dim=1).tolist() == [True, True, False, True, True, False]
    assert (table.weight[3] != 0).all()
    assert torch.equal(linear.weight, before[0])
    assert torch.equal(linear.bias, before[1])
    for norm in norms:
        assert norm.weight.eq(1).all()
        assert not norm.bias.any()
    assert not module[-1].mix.any()


def test_as_usual_nothing_is_drawn() -> None:
    torch.manual_seed(1)
    module = nn.Linear(3, 4)
    before, state = module.weight.detach().clone(), torch.get_rng_state()
    initialise(module, "usual")
    assert torch.equal(module.weight, before)
    assert torch.equal(torch.get_rng_state(), state)
