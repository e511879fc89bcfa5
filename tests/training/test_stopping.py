"""Training that is asked to stop, or breaks off, saves and continues as if it never had."""

from __future__ import annotations

import json
import signal
from pathlib import Path
from typing import Any

import pytest

from spmrl_bench.interrupts import Interrupted
from spmrl_bench.training.checkpoint import read_progress
from tests.training.trainers import break_off, make_trainer, real_score


def final_bytes(run_dir: Path) -> list[bytes]:
    files = ("best/weights", "last/weights", "last/optimiser")
    return [(run_dir / f"{file}.safetensors").read_bytes() for file in files]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("evaluation", range(4))
def test_training_that_is_asked_to_stop_saves_and_resumes(
    tmp_path: Path, number: int, evaluation: int
) -> None:
    calls = 0

    def score(parser: Any) -> float:
        nonlocal calls
        if calls == evaluation:
            signal.raise_signal(number)
            signal.raise_signal(signal.SIGTERM)  # twice is no more than once
        calls += 1
        return real_score(parser)

    with pytest.raises(Interrupted) as caught:
        make_trainer(tmp_path / "parts", score=score).fit()
    assert caught.value.number == number
    steps = [2, 3, 5, 6][evaluation]
    assert make_trainer(tmp_path / "parts").fit().steps == 6
    lines = (tmp_path / "parts" / "events.jsonl").read_text(encoding="utf-8").splitlines()
    kinds = [json.loads(line)["event"] for line in lines]
    # After the last batch nothing is left to do here, but what follows must not begin either.
    assert kinds.count("interrupt") == (0 if steps == 6 else 1)
    make_trainer(tmp_path / "whole").fit()
    assert final_bytes(tmp_path / "parts") == final_bytes(tmp_path / "whole")


@pytest.mark.parametrize(("minutes", "steps"), [(10, 3), (1e-9, 4)])
def test_a_checkpoint_that_is_old_is_replaced_after_the_batch(
    tmp_path: Path, minutes: float, steps: int
) -> None:
    """Training breaks off after step 5, when dev is scored for the third time."""
    break_off(tmp_path / "parts", 2, checkpoint_minutes=minutes)
    saved = read_progress(tmp_path / "parts" / "last")
    assert saved is not None
    assert saved.steps == steps
    make_trainer(tmp_path / "parts").fit()
    make_trainer(tmp_path / "whole").fit()
    assert final_bytes(tmp_path / "parts") == final_bytes(tmp_path / "whole")
