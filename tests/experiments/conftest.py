"""What the tests of this folder do with the laboratory: train and score its recipe."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from spmrl_bench.experiments import evaluation
from spmrl_bench.experiments.evaluation import Evaluated, evaluate_parser
from spmrl_bench.experiments.plan import Run, make_runs
from spmrl_bench.experiments.score import KnownRecords, evaluate_all
from spmrl_bench.experiments.train import train_all
from spmrl_bench.leaderboard.record import Record
from spmrl_bench.parsers.baselines import Baseline
from tests.damage import edited
from tests.laboratory import Laboratory, build_laboratory

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


def everything(folder: Path = RUNS) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def change(folder: Path, **values: object) -> None:
    """Let the progress of a run be another, as if a version before had written it, which noted no
    digest."""
    edited("last/progress.json", lambda progress: progress.update(values, content=None))(folder)


@pytest.fixture(scope="session")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Runs of both variants, for copying."""
    folder = tmp_path_factory.mktemp("finished")
    built = build_laboratory(folder / "laboratory")
    with pytest.MonkeyPatch.context() as patch:
        built.in_use(patch)
        train(built, runs_dir=folder / "runs")
    return folder / "runs"


@pytest.fixture
def trained(laboratory: Laboratory, finished: Path) -> Laboratory:
    """A laboratory where both variants are trained; their folders are in FOLDERS."""
    shutil.copytree(finished, RUNS)
    return laboratory


@pytest.fixture
def splits_parsed(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Numbers of sentences of the splits that ``evaluate`` parses."""
    found: list[int] = []

    def watched(parser: Any, gold: Any, rules: Any) -> Evaluated:
        if not isinstance(parser, Baseline):
            found.append(len(gold))
        return evaluate_parser(parser, gold, rules)

    monkeypatch.setattr(evaluation, "evaluate_parser", watched)
    return found
