"""The training loop: it learns, keeps the best, repeats itself bit by bit, fails in words."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from spmrl_bench.errors import CheckpointError
from spmrl_bench.parsers.batches import Sentence
from spmrl_bench.parsers.chart import ChartParser
from spmrl_bench.training.trainer import Stream, Trainer, generator
from tests.training.trainers import copied, events, final_bytes, make_trainer, weights


def test_loss_falls_and_dev_score_rises_and_the_curve_has_every_score(tmp_path: Path) -> None:
    progress = make_trainer(tmp_path, max_epochs=8, learning_rate=0.02).fit()
    evaluations = events(tmp_path, "evaluation")
    losses = [event["loss"] for event in evaluations]
    assert losses[-1] < losses[0] / 2
    best = max(event["dev"] for event in evaluations)
    assert progress.best_score == pytest.approx(best, abs=1e-4)
    assert progress.best_score > evaluations[0]["dev"] + 10
    times = [event["train_seconds"] + event["dev_seconds"] for event in evaluations]
    assert [score for _, score in progress.curve] == [event["dev"] for event in evaluations]
    assert [seconds for seconds, _ in progress.curve] == pytest.approx(times, abs=0.02)


def test_events_are_one_json_object_a_line_with_these_fields(tmp_path: Path) -> None:
    make_trainer(tmp_path, decay_patience=1, max_epochs=4, score=lambda _: 50.0).fit()
    found = events(tmp_path)
    kinds = [event["event"] for event in found]
    assert kinds.count("evaluation") == 8
    # The first epoch has the best; each later one is barren and decays the rate.
    assert [e["rate_factor"] for e in found if e["event"] == "decay"] == [0.5, 0.25, 0.125]
    assert found[-1] | {"time": None} == {
        "event": "stop", "time": None, "rule": "max_epochs", "steps": 12
    }  # fmt: skip
    evaluations = events(tmp_path, "evaluation")
    assert evaluations[0].keys() == {
        "event", "time", "epoch", "step", "loss", "dev", "best", "best_dev",
        "rate_factor", "tokens_per_second", "train_seconds", "dev_seconds",
    }  # fmt: skip
    assert [event["step"] for event in evaluations] == [2, 3, 5, 6, 8, 9, 11, 12]
    assert [event["epoch"] for event in evaluations[:4]] == [0.667, 1.0, 1.667, 2.0]
    assert [event["best"] for event in evaluations] == [True] + [False] * 7
    assert {event["best_dev"] for event in evaluations} == {50.0}
    assert all(event["tokens_per_second"] > 0 for event in evaluations)


def test_the_parser_of_the_best_score_is_kept(tmp_path: Path) -> None:
    scores = iter([10.0, 30.0, 20.0, 30.0, 29.9, 5.0])
    seen: list[dict[str, np.ndarray]] = []

    def score(parser: ChartParser) -> float:
        seen.append(copied(parser))
        return next(scores)

    progress = make_trainer(tmp_path, score=score, max_epochs=3).fit()
    assert (progress.best_score, progress.best_step) == (30.0, 3)
    for name, number in (("best", 1), ("last", 5)):
        saved = copied(ChartParser.load(tmp_path / name))
        assert all((saved[weight] == seen[number][weight]).all() for weight in saved)
    assert weights(tmp_path / "best") != weights(tmp_path / "last")


def test_another_seed_gives_other_bytes(tmp_path: Path) -> None:
    """That the same one gives the same says :mod:`tests.reliability.test_resume`."""
    for seed in (1, 2):
        make_trainer(tmp_path / str(seed), seed=seed, max_epochs=1).fit()
    assert not set(final_bytes(tmp_path / "1")) & set(final_bytes(tmp_path / "2"))


def test_data_order_is_a_function_of_seed_and_epoch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    batches: list[list[Sentence]] = []
    step = Trainer._step

    def watched(trainer: Trainer, number: int, batch: list[Sentence]) -> None:
        batches.append(batch)
        step(trainer, number, batch)

    monkeypatch.setattr(Trainer, "_step", watched)
    trainer = make_trainer(tmp_path, seed=5, max_epochs=2)
    trainer.fit()
    place = {id(sentence): k for k, sentence in enumerate(trainer.sentences)}
    used = [place[id(sentence)] for batch in batches for sentence in batch]
    first, second = used[:24], used[24:]
    assert sorted(first) == sorted(second) == list(range(24))
    assert first == generator(5, Stream.ORDER, 0).permutation(24).tolist()
    assert second == generator(5, Stream.ORDER, 1).permutation(24).tolist()
    assert first != second


def test_training_ends_within_the_processor_time_that_is_given(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On clocks on which a batch takes a second of the processor and three in all, since others
    work too, and an evaluation, which does not count, five."""
    clock, processor = [0.0], [0.0]

    def score(_: object) -> float:
        clock[0] += 5
        processor[0] += 5
        return 1.0

    trainer = make_trainer(
        tmp_path, score=score, max_minutes=1.0, max_epochs=500, stop_patience=500
    )
    gradients = trainer.parser.gradients

    def timed(*given: Any) -> float:
        clock[0] += 3
        processor[0] += torch.get_num_threads()
        return gradients(*given)

    monkeypatch.setattr(trainer.parser, "gradients", timed)
    monkeypatch.setattr("spmrl_bench.training.trainer.time.perf_counter", lambda: clock[0])
    monkeypatch.setattr("spmrl_bench.training.trainer.time.process_time", lambda: processor[0])
    progress = trainer.fit()
    assert progress.stopped_by == "max_minutes"
    assert progress.steps == 60
    assert progress.train_seconds == pytest.approx(180)
    assert progress.curve[-1][0] == pytest.approx(clock[0])


def test_another_model_in_the_folder_is_refused(tmp_path: Path) -> None:
    make_trainer(tmp_path).fit()
    with pytest.raises(CheckpointError, match=r"last: belongs to a parser with another config"):
        make_trainer(tmp_path, model={"d_ff": 8}).fit()
