"""Trainers of a tiny parser on made-up trees, for the tests of this folder."""

from __future__ import annotations

from collections.abc import Callable
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from spmrl_bench.experiments.evaluation import dev_f1
from spmrl_bench.parsers.chart_parser import ChartParser
from spmrl_bench.parsers.vocabulary import Vocabulary
from spmrl_bench.training.random import Stream, seed_torch
from spmrl_bench.training.report import Report
from spmrl_bench.training.trainer import Trainer
from tests.laboratory import make_trees, model_config, train_config

TRAIN_TREES, DEV_TREES = make_trees(24, seed=1), make_trees(6, seed=2)

Score = Callable[[ChartParser], float]


def real_score(parser: ChartParser) -> float:
    """The dev F1 of the product."""
    return dev_f1(parser, DEV_TREES, "spmrl")


def make_trainer(
    run_dir: Path,
    *,
    seed: int = 1,
    score: Score = real_score,
    console: Console | None = None,
    model: dict[str, object] | None = None,
    **settings: object,
) -> Trainer:
    """A trainer of 24 sentences in batches of 8: three batches an epoch."""
    seed_torch(seed, Stream.WEIGHTS)
    parser = ChartParser(model_config(**model or {}), Vocabulary.of(TRAIN_TREES))
    indexer = parser.indexer()
    return Trainer(
        parser,
        train_config(**settings),
        seed=seed,
        sentences=[indexer.gold(tree) for tree in TRAIN_TREES],
        indexer=indexer,
        dev_f1=score,
        run_dir=run_dir,
        report=Report(run_dir, "tiny", console or Console(file=StringIO())),
    )


def weights(folder: Path) -> bytes:
    """The bytes of saved weights."""
    return (folder / "weights.safetensors").read_bytes()


def break_off(run_dir: Path, evaluations: int, **settings: Any) -> None:
    """Train until an error comes in place of a dev score, after this many of them."""

    class EnoughError(Exception):
        pass

    calls = 0

    def score(parser: ChartParser) -> float:
        nonlocal calls
        calls += 1
        if calls > evaluations:
            raise EnoughError
        return real_score(parser)

    with pytest.raises(EnoughError):
        make_trainer(run_dir, score=score, **settings).fit()
