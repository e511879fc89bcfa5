"""Device names."""

from __future__ import annotations

import pytest
import torch

from spmrl_bench.errors import RecipeError
from spmrl_bench.parsers.device import choose_device


@pytest.mark.parametrize("there", [True, False])
def test_auto_takes_cuda_when_present(monkeypatch: pytest.MonkeyPatch, there: bool) -> None:
    monkeypatch.setattr("torch.cuda.is_available", lambda: there)
    assert choose_device("auto") == torch.device("cuda" if there else "cpu")
    assert choose_device("cpu") == torch.device("cpu")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("gpu", r"unknown device 'gpu'. Allowed: auto, cpu, cuda, cuda:N"),
        ("", r"unknown device ''"),
        ("meta", r"device 'meta' is not supported. Allowed: auto"),
        ("cuda:1", r"'cuda:1' asked for, but torch sees no CUDA device"),
    ],
)
def test_other_names_are_refused(monkeypatch: pytest.MonkeyPatch, name: str, message: str) -> None:
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    with pytest.raises(RecipeError, match=message):
        choose_device(name)
