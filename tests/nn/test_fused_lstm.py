"""The kernels of the CharLSTM against torch's LSTM over packed sequences, in float64."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from spmrl_bench.nn import kernels
from spmrl_bench.nn.fused_lstm import Steps, all_states
from spmrl_bench.nn.lexical import CharLSTM
from tests.nn.plain import randomise

pytestmark = pytest.mark.skipif(kernels.load("_lexical") is None, reason="kernels not built")

LENGTHS = [3, 9, 5, 5, 2, 12, 7, 2]


def char_lstm(**changes: Any) -> CharLSTM:
    module = CharLSTM(30, 5, 14, unknown=0, **{"dropout": 0.0, **changes})
    randomise(module, seed=6)
    return module


def table(lengths: list[int]) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(7)
    ids = torch.randint(30, (max(lengths), len(lengths)), generator=generator)
    return ids, torch.tensor(lengths)


def gradients(module: CharLSTM, lengths: list[int]) -> dict[str, Tensor]:
    result = module(*table(lengths))
    weights = torch.randn(result.shape, generator=torch.Generator().manual_seed(8))
    module.zero_grad()
    (result * weights.to(result.dtype)).sum().backward()
    found = {name: p.grad for name, p in module.named_parameters() if p.grad is not None}
    return {"result": result.detach(), **found}


@pytest.fixture(params=[False, True])
def rounded(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Whether numbers of rows are rounded up, as where oneDNN multiplies."""
    monkeypatch.setattr(kernels, "rounds_rows", lambda dtype: request.param)
    return bool(request.param)


@pytest.mark.usefixtures("rounded")
@pytest.mark.parametrize("lengths", [LENGTHS, [4], [1, 1, 1], LENGTHS * 20, [30, *[2] * 100]])
def test_kernels_compute_the_lstm(lengths: list[int]) -> None:
    module = char_lstm()
    found = gradients(module, lengths)
    expected = gradients(module.double(), lengths)
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        scale = value.abs().max().item()
        assert (found[name].double() - value).abs().max().item() <= 1e-5 * scale, name


def test_states_of_large_sums_saturate() -> None:
    module = char_lstm()
    with torch.no_grad():
        for weight in module.lstm.parameters():
            weight.mul_(200)
    found = gradients(module, LENGTHS)["result"]
    expected = gradients(module.double(), LENGTHS)["result"]
    assert expected.abs().max() > 0.99
    torch.testing.assert_close(found.double(), expected, atol=1e-4, rtol=0)


def test_nan_is_not_hidden() -> None:
    module = char_lstm()
    with torch.no_grad():
        module.embedding.weight[3] = math.nan
        ids = torch.full((2, 1), 3)
        assert module(ids, torch.tensor([2])).isnan().all()


def test_bf16_products_are_near() -> None:
    expected = gradients(char_lstm(), LENGTHS * 20)
    found = gradients(char_lstm(precision="bf16"), LENGTHS * 20)
    for name, value in expected.items():
        assert found[name].dtype == torch.float32
        assert not torch.equal(found[name], value), name
        cosine = torch.cosine_similarity(found[name].flatten(), value.flatten(), dim=0)
        assert cosine > 0.99, name


def test_dropout_is_drawn_for_each_value_of_each_character() -> None:
    module = char_lstm(dropout=0.5)
    with torch.no_grad():
        module.embedding.weight.fill_(1.0)
    seen: list[Tensor] = []
    function = module.embedding.forward

    def watched(ids: Tensor) -> Tensor:
        result = function(ids)
        result.register_hook(seen.append)
        return result

    module.embedding.forward = watched
    torch.manual_seed(0)
    lengths = [6] * 40
    module(*table(lengths)).sum().backward()
    ((gradient),) = seen
    zero = (gradient == 0).float()
    assert zero.mean().item() == pytest.approx(0.5, abs=0.06)
    assert len({tuple(row) for row in zero.tolist()}) > 25  # of 32 rows there can be
    module.eval()
    assert torch.equal(module(*table(lengths)), module(*table(lengths)))


def test_steps_walk_both_ways_at_once() -> None:
    steps = Steps(torch.tensor([2, 3, 1]))
    assert steps.order.tolist() == [1, 0, 2]
    assert steps.counts == [3, 2, 1]
    # Sequence 1 is the longest; each item with its sequence and place.
    items = list(zip(steps.sequence.tolist(), steps.step.tolist(), strict=True))
    assert items == [(1, 0), (0, 0), (2, 0), (1, 1), (0, 1), (1, 2)]
    mirrored = [items[k] for k in steps.backward.tolist()]
    assert mirrored == [(1, 2), (0, 1), (2, 0), (1, 1), (0, 0), (1, 0)]
    # The state after an item lies at the next item, or behind all of them.
    assert steps.after.tolist() == [3, 4, 8, 5, 7, 6]


@pytest.mark.usefixtures("rounded")
@pytest.mark.parametrize("lengths", [LENGTHS, [4], [1, 1, 1], LENGTHS * 20, [30, *[2] * 100]])
@pytest.mark.parametrize("threads", [1, 2])
def test_all_states_are_those_of_torch(lengths: list[int], threads: int) -> None:
    lstm = torch.nn.LSTM(5, 7, bidirectional=True)
    randomise(lstm, seed=3)
    steps = Steps(torch.tensor(lengths))
    generator = torch.Generator().manual_seed(4)
    rows = torch.randn(sum(lengths), 5, generator=generator)
    weights = torch.randn(sum(lengths), 14, generator=generator)

    def outcome(result: Tensor, given: Tensor) -> list[Tensor]:
        total = (result * weights.to(result.dtype)).sum()
        return [result.detach(), *torch.autograd.grad(total, [given, *lstm.parameters()])]

    given = rows.clone().requires_grad_()
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        found = outcome(all_states(lstm, given, steps, torch.float32), given)
    finally:
        torch.set_num_threads(before)
    lstm.double()
    given = rows.double().requires_grad_()
    table = given.new_zeros(max(lengths), len(lengths), 5)
    table = table.index_put((steps.step, steps.sequence), given)
    packed = pack_padded_sequence(table, torch.tensor(lengths), enforce_sorted=False)
    states, _ = pad_packed_sequence(lstm(packed)[0])
    expected = outcome(states[steps.step, steps.sequence], given)
    for ours, theirs in zip(found, expected, strict=True):
        assert (ours.double() - theirs).abs().max() <= 2e-5 * theirs.abs().max()
