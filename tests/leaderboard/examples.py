"""Records made by hand for the tests of this folder and of the command line."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from spmrl_bench.leaderboard.record import (
    Hardware,
    MetricResult,
    Record,
    SplitResult,
    Training,
    TreebankInfo,
)
from spmrl_bench.scoring.counts import Status
from spmrl_bench.scoring.metric import metric_named

# Counts of sentences: brackets, then attachment (of the scored words, of all words).
PERFECT = (3, Status.VALID, 2, 2, 2, 0, 3, 3)
HALF = (4, Status.VALID, 1, 2, 2, 1, 4, 4)
ATTACHED = (4, 4, 4, 4, 4, 4, 4, 4)
LOOSE = (4, 2, 3, 1, 4, 2, 3, 1)
SKIPPED = (5, Status.WORDS_UNMATCH, 0, 0, 0, 0, 0, 0)


def make_result(
    *rows: tuple[int, ...], split: str = "dev", metric: str = "brackets", **changes: str
) -> SplitResult:
    """A result with these rows of counts; keywords change keys of the long signature."""
    scorer = metric_named(metric)
    counts = scorer.counts.from_rows(rows)
    parts = {
        "scorer": "spmrl_bench",
        **({"prm": "spmrl"} if metric == "brackets" else {"match": metric}),
        "treebank": "german-mini",
        "split": split,
        "sentences": str(len(rows)),
        "skipped": str(counts.skipped),
        "seed": "1",
        "version": "0.1.0",
    } | changes
    scored = MetricResult(
        counts=counts.to_columns(),
        figures=scorer.values(counts),
        signature="|".join(f"{key}:{parts[key]}" for key in ("prm", "match") if key in parts),
        signature_long="|".join(f"{key}:{value}" for key, value in parts.items()),
    )
    return SplitResult(sentences=len(rows), metrics={metric: scored}, tokens_per_second=900.0)


def joined(*results: SplitResult) -> SplitResult:
    """One result with the metrics of several."""
    metrics = {name: found for result in results for name, found in result.metrics.items()}
    return results[0].model_copy(update={"metrics": metrics})


def make_record(**changes: Any) -> Record:
    """A selected German run; keywords replace fields."""
    fields: dict[str, Any] = {
        "finished": datetime(2020, 5, 1, 12, 0, tzinfo=UTC),
        "lang": "german",
        "treebank": make_treebank(),
        "variant": "charlstm",
        "size": "small",
        "seed": 1,
        "selected": True,
        "weights": "cd" * 32,
        "recipe": {"variant": "charlstm", "learning_rate": 0.0008},
        "dev": make_result(PERFECT, HALF),
        "test": make_result(PERFECT, PERFECT, HALF, split="test"),
        "baselines": {"right-branching": make_result(HALF, HALF, HALF, split="test")},
        "training": Training(
            epochs=3, updates=24, parameters=1000, wall_seconds=60, tokens_per_second=1234.5
        ),
        "hardware": Hardware(
            device="cpu", platform="Linux x86_64", processor="", cpu_count=2, threads=2
        ),
        "versions": {"spmrl_bench": "0.1.0"},
    }
    return Record(**(fields | changes))


def make_treebank(name: str = "german-mini", track: str = "mini", **changes: str) -> TreebankInfo:
    """A treebank of a record."""
    fields = {"language": "german", "fingerprint": "ab" * 32} | changes
    fingerprint = fields.pop("fingerprint")
    layers = {"constituents": fingerprint, "dependencies": fingerprint[::-1]}
    return TreebankInfo(name=name, track=track, fingerprints=layers, **fields)
