"""What the tests of this folder do with the laboratory: train and score its recipe."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from spmrl_bench.experiments import run
from spmrl_bench.experiments.plan import Plan, make_runs
from spmrl_bench.experiments.train import train_all
from spmrl_bench.leaderboard.record import Record
from tests.laboratory import Laboratory

RUNS, RESULTS = Path("runs"), Path("results")
FOLDERS = [RUNS / "tiny-open" / f"small-{name}-seed1" for name in ("charlstm", "word-charlstm")]
FIRST = FOLDERS[0]


def train(
    laboratory: Laboratory,
    *,
    runs_dir: Path = RUNS,
    device: str = "auto",
    fresh: bool = False,
    **options: Any,
) -> list[Path]:
    work = plan(laboratory, **options)
    train_all([work], runs_dir=runs_dir, device=device, fresh=fresh)
    return [work.folder(runs_dir, config) for config in work.configs]


def evaluate(
    laboratory: Laboratory,
    *,
    device: str = "auto",
    ensemble: bool = False,
    save_parses: bool = False,
    **options: Any,
) -> list[Record]:
    return run.evaluate(
        plan(laboratory, **options),
        runs_dir=RUNS,
        results_dir=RESULTS,
        device=device,
        ensemble=ensemble,
        save_parses=save_parses,
    )


def plan(laboratory: Laboratory, **options: Any) -> Plan:
    return make_runs(str(laboratory.recipe), **options)
