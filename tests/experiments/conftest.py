"""Trained runs, which the tests of this folder share."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from spmrl_bench.experiments import evaluation
from spmrl_bench.experiments.evaluation import Evaluated, evaluate_parser
from spmrl_bench.parsers.baselines import Baseline
from tests.experiments.running import RUNS, train
from tests.laboratory import Laboratory, build_laboratory


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
