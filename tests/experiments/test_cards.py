"""Jobs that go on at once share the graphics cards out, one each as long as there are enough."""

from __future__ import annotations

import pytest
import torch

from spmrl_bench.experiments import train
from spmrl_bench.experiments.train import usual_jobs
from spmrl_bench.process.devices import cards, device_of_job
from tests.experiments.running import plan
from tests.laboratory import Laboratory


def test_cards_are_taken_in_turn_unless_one_is_named() -> None:
    for asked in ("auto", "cuda"):
        assert [device_of_job(job, asked, 2) for job in range(4)] == ["cuda:0", "cuda:1"] * 2
        for few in (0, 1):
            assert device_of_job(3, asked, few) == asked
    for named in ("cpu", "cuda:1"):
        assert device_of_job(3, named, 2) == named


@pytest.mark.parametrize("there", [True, False])
def test_cards_are_counted(monkeypatch: pytest.MonkeyPatch, there: bool) -> None:
    monkeypatch.setattr("torch.cuda.is_available", lambda: there)
    monkeypatch.setattr("torch.cuda.device_count", lambda: 3)
    assert cards() == (3 if there else 0)


@pytest.mark.parametrize(
    ("there", "device", "expected"),
    [(1, "cuda", 1), (4, "cuda", 4), (9, "cuda", 6), (4, "cuda:2", 1)],
)
def test_each_card_gets_a_run(
    laboratory: Laboratory,
    monkeypatch: pytest.MonkeyPatch,
    there: int,
    device: str,
    expected: int,
) -> None:
    monkeypatch.setattr(train, "cards", lambda: there)
    assert usual_jobs(plan(laboratory, seeds=[1, 2, 3]), torch.device(device)) == expected
