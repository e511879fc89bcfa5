"""The kernels of LSTMs and GRUs against torch's over packed sequences, in float64."""

from __future__ import annotations

import itertools
import math

import pytest
import torch
from torch import Tensor
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from spmrl_bench.nn.kernels.recurrence import RecurrentLayer, Steps, states
from tests import twins
from tests.nn.plain import randomise
from tests.twins import assert_near, assert_similar, needs_kernel, rounded, torch_threads

pytestmark = needs_kernel("recurrent")

LENGTHS = [3, 9, 5, 5, 2, 12, 7, 2]


def layer_of(cell: type[RecurrentLayer], features: int, size: int) -> RecurrentLayer:
    layer = cell(features, size, bidirectional=True)
    randomise(layer, seed=3)
    return layer


def outcome(
    layer: RecurrentLayer,
    lengths: list[int],
    *,
    every: bool,
    fused: bool = True,
    dtype: torch.dtype = torch.float32,
) -> dict[str, Tensor]:
    """States of random rows, and the gradients of these and of all weights."""
    steps = Steps(torch.tensor(lengths))

    def run(rows: Tensor) -> Tensor:
        if fused:
            return states(layer, rows, steps, dtype, every=every)
        table = rows.new_zeros(max(lengths), len(lengths), rows.shape[1])
        table = table.index_put((steps.step, steps.sequence), rows)
        packed = pack_padded_sequence(table, torch.tensor(lengths), enforce_sorted=False)
        found, last = layer(packed)
        if isinstance(layer, torch.nn.LSTM):
            last, _ = last
        if not every:
            return torch.cat((last[0], last[1]), dim=1)
        return pad_packed_sequence(found)[0][steps.step, steps.sequence]

    weight = layer.weight_ih_l0
    generator = torch.Generator().manual_seed(4)
    rows = torch.randn(sum(lengths), weight.shape[1], generator=generator).to(weight.dtype)
    return twins.outcome(run, rows, list(layer.named_parameters()))


every_cell = pytest.mark.parametrize("cell", [torch.nn.LSTM, torch.nn.GRU])
all_or_last = pytest.mark.parametrize("every", [True, False], ids=["all", "last"])


@pytest.mark.usefixtures(rounded.__name__)
@every_cell
@all_or_last
def test_states_are_those_of_torch(every: bool, cell: type[RecurrentLayer]) -> None:
    for lengths in (LENGTHS, [4], [1, 1, 1], LENGTHS * 20, [30, *[2] * 100]):
        for size in (7, 16) if len(lengths) < 20 else (7 + 9 * every,):
            layer = layer_of(cell, 5, size)
            with torch_threads(2):
                found = outcome(layer, lengths, every=every)
            expected = outcome(layer.double(), lengths, every=every, fused=False)
            assert_near(found, expected, 2e-5, zeros=max(lengths) == 1)


@every_cell
@all_or_last
def test_all_short_lengths_and_narrow_layers(cell: type[RecurrentLayer], every: bool) -> None:
    for size, count in itertools.product((1, 2, 3), (1, 2, 3)):
        for lengths in itertools.product(range(1, 4 if count < 3 else 3), repeat=count):
            layer = layer_of(cell, size, size)
            found = outcome(layer, list(lengths), every=every)
            expected = outcome(layer.double(), list(lengths), every=every, fused=False)
            for name, value in expected.items():
                torch.testing.assert_close(found[name].double(), value, atol=1e-5, rtol=1e-5)


@every_cell
@all_or_last
def test_states_of_bf16_products_are_near(cell: type[RecurrentLayer], every: bool) -> None:
    layer = layer_of(cell, 5, 16)
    found = outcome(layer, LENGTHS * 20, every=every, dtype=torch.bfloat16)
    assert_similar(found, outcome(layer, LENGTHS * 20, every=every))


@every_cell
def test_large_sums_saturate_and_nan_is_not_hidden(cell: type[RecurrentLayer]) -> None:
    layer = layer_of(cell, 5, 7)
    with torch.no_grad():
        for weight in layer.parameters():
            weight.mul_(200)
    found = outcome(layer, LENGTHS, every=True)["result"]
    expected = outcome(layer.double(), LENGTHS, every=True, fused=False)["result"]
    assert expected.abs().max() > 0.99
    torch.testing.assert_close(found.double(), expected, atol=1e-4, rtol=0)
    rows, steps = torch.full((3, 5), math.nan), Steps(torch.tensor([3]))
    assert states(layer.float(), rows, steps, torch.float32, every=True).isnan().all()
