"""Training, scoring and results for a program: what the commands do, in a call each."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from spmrl_bench.experiments.plan import Run, make_runs
from spmrl_bench.experiments.score import KnownRecords, evaluate_all
from spmrl_bench.experiments.train import train_all
from spmrl_bench.leaderboard.board import load_results
from spmrl_bench.leaderboard.frame import records_frame
from spmrl_bench.leaderboard.record import Record

if TYPE_CHECKING:
    import pandas as pd


def train(
    lang: str,
    *,
    device: str = "auto",
    jobs: int | None = None,
    runs: str | Path = "runs",
    **options: Any,
) -> list[Run]:
    """Train what is not finished of the variants of a recipe, as ``spmrl-bench train`` does; return
    all runs, of which :func:`spmrl_bench.load` takes the ``folder``. The options are those of
    :func:`~spmrl_bench.experiments.plan.make_runs`: ``treebank``, ``variants``, ``seeds``,
    ``settings`` and others. A SpmrlError says what is wrong with them, or which run failed."""
    made = make_runs(lang, runs_dir=Path(runs), **options)
    train_all(made, device=device, jobs=jobs)
    return made


def evaluate(
    runs: Sequence[Run], *, device: str = "auto", results: str | Path = "results"
) -> list[Record]:
    """Select on dev, score the selected variant on test, and return the records of the runs; a
    SpmrlError where one is not trained to its end, or cannot be scored."""
    records, errors = evaluate_all(runs, KnownRecords(Path(results)), device=device)
    if errors:
        raise errors[0]
    return records


def results_frame(results: str | Path = "results") -> pd.DataFrame:
    """All numbers of a folder of results, one row for each record, split, metric and figure. Files
    in it that cannot be read are left out; a RecordError where the folder cannot be."""
    return records_frame(load_results([Path(results)]).stored)
