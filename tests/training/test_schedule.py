"""The schedule: warm-up, decay, stopping rules, what counts as best, when dev is scored."""

from __future__ import annotations

from typing import Any

import pytest

from spmrl_bench.training.schedule import (
    Progress,
    end_epoch,
    end_evaluation,
    evaluation_batches,
    learning_rate,
    record_dev_score,
    stopping_rule,
)
from tests.laboratory import train_config


def test_rate_rises_linearly_over_the_warmup_and_then_stays() -> None:
    config = train_config(learning_rate=0.8, warmup_batches=4)
    rates = [learning_rate(config, Progress(steps=steps)) for steps in range(7)]
    assert rates == pytest.approx([0.2, 0.4, 0.6, 0.8, 0.8, 0.8, 0.8])
    assert learning_rate(train_config(learning_rate=0.8, warmup_batches=0), Progress()) == 0.8
    # Decays multiply it, during the warm-up and after it.
    for steps, expected in ((1, 0.1), (9, 0.2)):
        decayed = learning_rate(config, Progress(steps=steps, rate_factor=0.25))
        assert decayed == pytest.approx(expected)


def test_only_a_strictly_better_dev_f1_is_the_best() -> None:
    progress = Progress(steps=10)
    assert record_dev_score(progress, 0.0)  # the first is the best, whatever it is
    progress.steps = 20
    assert not record_dev_score(progress, 0.0)
    assert (progress.best_score, progress.best_step) == (0.0, 10)
    assert record_dev_score(progress, 50.0)
    progress.steps = 30
    assert not record_dev_score(progress, 49.9)
    assert (progress.best_score, progress.best_step) == (50.0, 20)


def run_epochs(progress: Progress, improved: str, **settings: object) -> list[int]:
    """Epochs (from 1) whose end decays the rate; ``improved`` has + for a new best, else -."""
    config = train_config(**{"warmup_batches": 0, "decay_patience": 5} | settings)
    decays = []
    for epoch, sign in enumerate(improved, start=1):
        progress.steps += 10
        if sign == "+":
            record_dev_score(progress, (progress.best_score or 0.0) + 1)
        if end_epoch(config, progress):
            decays.append(epoch)
    return decays


def test_decays_by_epochs() -> None:
    progress = Progress(next_batch=7, loss_sum=12.5)
    assert run_epochs(progress, "+-----" + "-----" + "--") == [6, 11]
    assert (progress.rate_factor, progress.epochs_since_best) == (0.25, 12)
    assert run_epochs(Progress(), "+----" + "+----" + "+-----") == [16], "a new best counts anew"
    # Step 80 ends the warm-up, after the eighth epoch; the patience has run out by then.
    assert run_epochs(Progress(), "+" + "-" * 11, warmup_batches=80) == [8]
    assert (progress.epoch, progress.next_batch, progress.loss_sum) == (13, 0, 0.0)


def run_evaluations(progress: Progress, every: int, improved: str, **settings: object) -> list[int]:
    """Steps of the evaluations that decay the rate; one evaluation in so many steps."""
    config = train_config(**{"warmup_batches": 0, "decay_batches": 900} | settings)
    decays = []
    for sign in improved:
        progress.steps += every
        if sign == "+":
            record_dev_score(progress, (progress.best_score or 0.0) + 1)
        if end_evaluation(config, progress):
            decays.append(progress.steps)
    return decays


def test_decays_by_batches() -> None:
    progress = Progress()
    assert run_evaluations(progress, 300, "+--" + "-" * 7) == [1200, 2100, 3000]
    assert (progress.rate_factor, progress.decay_step, progress.best_step) == (0.125, 3000, 300)
    # Evaluations that 900 does not meet: the first behind it decays, and the next count from it.
    assert run_evaluations(Progress(), 400, "+" + "-" * 7) == [1600, 2800]
    assert run_evaluations(Progress(), 899, "+-----") == [899 * 3, 899 * 5]
    assert run_evaluations(Progress(), 900, "+---") == [1800, 2700, 3600]
    assert run_evaluations(Progress(), 300, "+--+--+---" + "+--") == [3000], "anew"
    assert run_evaluations(Progress(), 300, "+" + "-" * 8, warmup_batches=2000) == [2100]
    # By epochs no more, and by epochs alone without the setting.
    by_batches = Progress()
    assert run_epochs(by_batches, "+" + "-" * 20, decay_batches=5) == []
    assert (by_batches.rate_factor, by_batches.epochs_since_best) == (1.0, 20)
    assert run_evaluations(Progress(), 300, "+" + "-" * 20, decay_batches=None) == []


def test_the_schedule_of_before_is_read() -> None:
    saved = {"epoch": 3, "steps": 30, "rate_factor": 0.5, "best_dev_f1": 70.0, "best_step": 10}
    progress = Progress.model_validate(saved)
    assert progress.decay_step == 0
    assert Progress.model_validate_json(progress.model_dump_json()) == progress


def test_stopping_rules_by_name() -> None:
    config = train_config(max_epochs=10, stop_patience=4, max_minutes=1.0)
    minute: dict[str, Any] = {"processor_seconds": 54, "train_seconds": 200, "dev_seconds": 900}
    cases: list[tuple[dict[str, Any], str | None]] = [
        ({}, None),
        ({"epoch": 9, "epochs_since_best": 3, **minute, "steps": 20}, None),
        ({**minute, "steps": 8}, "max_minutes"),  # another batch would be too much
        ({"epoch": 10}, "max_epochs"),
        ({"epochs_since_best": 4}, "stop_patience"),
        ({"train_seconds": 61}, "max_minutes"),  # of an earlier version
        ({"train_seconds": 61, "processor_seconds": 10, "steps": 1}, None),
    ]
    found = [stopping_rule(config, Progress.model_validate(state)) for state, _ in cases]
    assert found == [rule for _, rule in cases]
    assert stopping_rule(train_config(max_epochs=10), Progress(train_seconds=1e9)) is None
    reached = [
        stopping_rule(train_config(target_score=80.0), Progress(best_score=score))
        for score in (None, 79.99, 80.0)
    ]
    assert reached == [None, None, "target_score"]


def test_evaluation_points_of_all_small_epochs_are_spread_and_end_the_epoch() -> None:
    assert evaluation_batches(160, 4) == {40, 80, 120, 160}
    assert evaluation_batches(3, 1 << 62) == {1, 2, 3}
    for batches in range(1, 60):
        for evaluations in range(1, 9):
            points = sorted(evaluation_batches(batches, evaluations))
            assert points[0] >= 1
            assert points[-1] == batches
            assert len(points) == min(batches, evaluations)
            gaps = [b - a for a, b in zip([0, *points], points, strict=False)]
            assert max(gaps) - min(gaps) <= 2
