"""The report on speed: that every piece of work runs, and what share of a limit it reaches."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch

from spmrl_bench.scoring import load_prm
from spmrl_bench.speed import work
from spmrl_bench.speed.machine import Machine, best_time, measure_machine
from spmrl_bench.speed.report import to_json
from spmrl_bench.trees.parse import Parse
from tests.builders import config as tiny_config
from tests.laboratory import make_trees, train_config

MACHINE = Machine("cpu", {"float32": 100.0, "bf16": 400.0}, 10.0)
CPU = torch.device("cpu")


def test_the_machine_is_measured() -> None:
    machine = measure_machine(CPU, 0.0)
    assert machine.device == "cpu"
    assert all(speed > 0 for speed in machine.gflops.values())
    assert machine.gigabytes > 0


def test_the_best_of_three_runs_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter([0.0, 5.0, 10.0, 12.0, 20.0, 23.0])
    monkeypatch.setattr("time.perf_counter", lambda: next(clock))
    calls: list[int] = []
    assert best_time(lambda: calls.append(1), CPU, 1.0) == 2.0
    assert len(calls) == 4  # the first does not count


def test_every_piece_of_work(tmp_path: Path) -> None:
    trees = make_trees(12, seed=1)
    examples = list(map(Parse.of, trees))
    pieces = [
        work.reading(trees, tmp_path / "trees.mrg"),
        work.scoring(trees, work.baseline_parses(trees), load_prm("spmrl")),
        work.decoding(3, augmented=False),
        work.decoding(3, augmented=True),
        work.training("chart", tiny_config(), train_config(), examples, CPU),
        work.parsing("chart", tiny_config(precision="bf16"), examples, CPU),
    ]
    speeds = [work.measure(piece, CPU, 0.0) for piece in pieces]
    assert [(speed.work, speed.unit, speed.limit) for speed in speeds] == [
        ("reading brackets", "trees/s", ""),
        ("scoring", "sentences/s", ""),
        ("decoding 3 words", "sentences/s", "reading as much"),
        ("decoding 3 words, augmented", "sentences/s", "reading as much"),
        ("training, float32", "tokens/s", ""),
        ("parsing, bf16", "sentences/s", ""),
    ]
    assert all(speed.amount > 0 for speed in speeds)
    content = json.loads(to_json(MACHINE, [speeds[0].of("small size")], 2))
    assert content["figures"][0]["work"] == "reading brackets, small size"
    assert content["limits"]["gflops"] == MACHINE.gflops


def test_the_share_of_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(work, "best_time", lambda *_: 0.5)
    sizes: list[int] = []
    monkeypatch.setattr(work, "reading_speed", lambda _, size, __: sizes.append(size) or 1e10)
    read = work.Work("x", lambda: None, 6, "y", 2_500_000_000)
    assert work.measure(read, CPU, 0.0) == work.Speed("x", 12.0, "y/s", 0.5, "reading as much")
    assert sizes == [2_500_000_000]
