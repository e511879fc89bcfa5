"""Trainers of a tiny parser on made-up trees, for the tests of this folder."""

from __future__ import annotations

import json
from collections.abc import Callable
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rich.console import Console
from torch import nn

from spmrl_bench.experiments.evaluation import evaluate_parser
from spmrl_bench.parsers.chart import ChartParser
from spmrl_bench.scoring.metric import SelectionMetric, metric_named
from spmrl_bench.training.report import Report
from spmrl_bench.training.substitution import Substitution
from spmrl_bench.training.trainer import Stream, Trainer, seed_torch
from spmrl_bench.trees import Parse
from tests.builders import config
from tests.laboratory import MODEL, make_trees, train_config

TRAIN_TREES, DEV_TREES = make_trees(24, seed=1), make_trees(6, seed=2)

DEV_PARSES = [Parse.of(tree) for tree in DEV_TREES]
RULES = {"brackets": metric_named("brackets").rules({"prm": "spmrl"})}

Score = Callable[[ChartParser], float]


def real_score(parser: ChartParser) -> float:
    """The dev score of the product."""
    return evaluate_parser(parser, DEV_PARSES, RULES).score(SelectionMetric.parse("brackets.f1"))


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
    examples = [Parse.of(tree) for tree in TRAIN_TREES]
    parser = ChartParser.build(
        config(**{"lexical": ["charlstm"], **MODEL, **(model or {})}), examples
    )
    substitution = Substitution(examples)
    return Trainer(
        parser,
        train_config(**settings),
        seed=seed,
        sentences=list(parser.index(examples)),
        dev_score=score,
        run_dir=run_dir,
        report=Report(run_dir, "tiny", "F1", console or Console(file=StringIO())),
        substitute=lambda number, random: next(parser.index([substitution(number, random)[0]])),
    )


def weights(folder: Path) -> bytes:
    """The bytes of saved weights."""
    return (folder / "weights.safetensors").read_bytes()


def copied(parser: nn.Module) -> dict[str, np.ndarray]:
    """The weights as they are now."""
    return {name: value.numpy().copy() for name, value in parser.state_dict().items()}


def events(run_dir: Path, kind: str = "") -> list[dict[str, Any]]:
    """The events of a run, or those of a kind."""
    lines = (run_dir / "events.jsonl").read_text(encoding="utf-8").splitlines()
    return [event for event in map(json.loads, lines) if event["event"] == (kind or event["event"])]


def final_bytes(run_dir: Path) -> list[bytes]:
    """All tensors that a run leaves."""
    files = ("best/weights", "last/weights", "last/optimiser")
    return [(run_dir / f"{file}.safetensors").read_bytes() for file in files]


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
