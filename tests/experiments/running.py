"""What the tests of this folder do with the laboratory: train and score its recipe."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from spmrl_bench.experiments.plan import Run, make_runs
from spmrl_bench.experiments.score import KnownRecords, evaluate_all
from spmrl_bench.experiments.train import train_all
from spmrl_bench.leaderboard.record import Record
from tests.laboratory import Laboratory

RUNS, RESULTS = Path("runs"), Path("results")
FOLDERS = [RUNS / "tiny-open" / f"small-{name}-seed1" for name in ("charlstm", "word-charlstm")]
FIRST = FOLDERS[0]


def plan(laboratory: Laboratory, **options: Any) -> list[Run]:
    return make_runs(str(laboratory.recipe), **options)


def train(
    laboratory: Laboratory, *, device: str = "auto", fresh: bool = False, **options: Any
) -> list[Path]:
    runs = plan(laboratory, **options)
    train_all(runs, device=device, fresh=fresh)
    return [run.folder for run in runs]


def evaluate(
    laboratory: Laboratory, *, ensemble: bool = False, save_parses: bool = False, **options: Any
) -> list[Record]:
    runs = plan(laboratory, **options)
    return score(runs, ensemble=ensemble, save_parses=save_parses)


def score(runs: list[Run], results: Path = RESULTS, **options: Any) -> list[Record]:
    """The records of runs, all of which are scored."""
    records, errors = evaluate_all(runs, KnownRecords(results), **options)
    for error in errors:
        raise error
    return records
