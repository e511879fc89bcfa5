"""A trainer of a tiny parser of any kind, for what holds of all of them."""

from __future__ import annotations

import json
from collections.abc import Callable
from io import StringIO
from pathlib import Path

from rich.console import Console

from spmrl_bench.experiments.evaluation import evaluate_parser
from spmrl_bench.parsers.config import parts
from spmrl_bench.parsers.kinds import kind_named
from spmrl_bench.parsers.legacy import places_of
from spmrl_bench.parsers.neural import TrainedParser
from spmrl_bench.scoring.metric import SelectionMetric, metric_named
from spmrl_bench.training.report import Report
from spmrl_bench.training.trainer import Stream, Trainer, seed_torch
from spmrl_bench.trees.parse import Parse
from tests.builders import chained, config, of_layers
from tests.laboratory import make_trees, train_config

KINDS = ("chart", "biaffine", "joint", "transition")
#: Batches of an epoch.
BATCHES = 12
RULES = {"brackets": {"prm": "spmrl"}}
DROPOUT = {f"{name}_dropout": 0.2 for name in ("attention", "relu", "word", "char", "biaffine")}


def examples(name: str, number: int, seed: int) -> list[Parse]:
    """Sentences with the layers that a kind learns from."""
    return of_layers(chained(make_trees(number, seed)), kind_named(name).layers)


def make_trainer(
    name: str,
    run_dir: Path,
    *,
    seed: int = 1,
    epochs: int = 1,
    watch: Callable[[str], None] = lambda _: None,
) -> Trainer:
    """A trainer that says what it does: ``step``, ``score``, ``best``, ``save``."""
    kind = kind_named(name)
    known, dev = examples(name, 4 * BATCHES, 1), examples(name, 6, 2)
    seed_torch(seed, Stream.WEIGHTS)
    tables = parts(kind.parser_class.Config)
    dropout = {key: rate for key, rate in DROPOUT.items() if places_of(key, tables)}
    parser = kind.parser_class.build(config(name, max_positions=40, **dropout), known)
    rules = {one: metric_named(one).rules(RULES.get(one, {})) for one in kind.metrics}
    criterion = SelectionMetric.parse(
        " + ".join({"brackets": "brackets.f1", "attachment": "attachment.las"}[m] for m in rules)
    )

    def score(model: TrainedParser) -> float:
        watch("score")
        found = evaluate_parser(model, dev, rules).score(criterion)
        watch("score")
        return found

    trainer = Trainer(
        parser,
        train_config(
            batch_size=4,
            max_epochs=epochs,
            evaluations_per_epoch=3,
            decay_batches=4,
            averaging=0.9,
            learning_rate=0.005,
        ),
        seed=seed,
        sentences=list(parser.index(known)),
        dev_score=score,
        run_dir=run_dir,
        report=Report(run_dir, name, "score", Console(file=StringIO())),
    )
    gradients = parser.gradients

    def watched(*arguments: object) -> float:
        watch("step")
        return gradients(*arguments)

    parser.gradients = watched
    return trainer


def state_of(run_dir: Path) -> dict[str, bytes]:
    """The bytes of all weights and moments, and the log of losses and scores."""
    names = ("best/weights", "last/weights", "last/optimiser")
    found = {name: (run_dir / f"{name}.safetensors").read_bytes() for name in names}
    log = []
    for line in (run_dir / "events.jsonl").read_text(encoding="utf-8").splitlines():
        event = json.loads(line)
        if event["event"] in ("evaluation", "decay", "stop"):
            left_out = ("time", "tokens_per_second", "train_seconds", "dev_seconds")
            log.append({key: value for key, value in event.items() if key not in left_out})
    return found | {"log": json.dumps(log).encode()}
