"""Kernels that cannot be loaded, and how large products are."""

from __future__ import annotations

import warnings
from collections.abc import Iterator

import pytest
import torch

from spmrl_bench.nn import kernels
from tests.twins import needs_kernel, not_built


@pytest.fixture
def without_decoder() -> Iterator[None]:
    """As if one kernel had not been built."""
    with not_built("nn.kernels._decoder", kernels.load):
        yield


@needs_kernel("encoder")
@pytest.mark.usefixtures(without_decoder.__name__)
def test_a_missing_kernel_warns_once_and_leaves_the_others_on() -> None:
    rows = torch.zeros(2)
    with pytest.warns(RuntimeWarning, match=r"decoder of actions.*_decoder.*C compiler"):
        assert not kernels.usable(rows, "decoder")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert not kernels.usable(rows, "decoder")
        assert kernels.usable(rows, "encoder")


@pytest.mark.usefixtures(without_decoder.__name__)
def test_nobody_is_warned_where_no_kernel_would_work() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for rows in (torch.zeros(2, dtype=torch.float64), torch.zeros(2, device="meta")):
            assert not kernels.usable(rows, "decoder")


def test_without_the_kernel_dropout_is_that_of_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernels, "load", lambda name: None)
    factors = kernels.dropout_factors(torch.Size([100, 100]), 0.25)
    assert factors.unique().tolist() == pytest.approx([0, 4 / 3])
    assert (factors == 0).float().mean().item() == pytest.approx(0.25, abs=0.03)


def test_rows_are_rounded_up_by_a_sixteenth_at_most(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernels, "rounds_rows", lambda dtype: True)
    for count in (0, 1, 15, 16, 17, 100, 511, 513, 100_001):
        found = kernels.rounded_rows(count, torch.float32)
        assert count <= found <= max(count + 15, count * 17 // 16)
    sizes: list[int] = []
    rows = torch.ones(17, 3)
    found = kernels.by_rounded_rows(lambda rows: sizes.append(len(rows)) or 2 * rows, rows)
    assert torch.equal(found, 2 * rows)
    assert sizes == [32]
