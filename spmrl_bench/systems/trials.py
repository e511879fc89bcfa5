"""Searches for settings of a parser of somebody else, whose trials are whole trainings.

It is trained without a look at its own scores of dev, which are counted otherwise; what it answers
on dev is scored as all is, and nothing ends a trial that falls behind.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from spmrl_bench.experiments.search import SearchPlan, Tried
from spmrl_bench.scoring.metric import METRICS, metric_named
from spmrl_bench.systems.description import system_paths
from spmrl_bench.systems.run import SystemRun, Trained


class SystemSearch(SearchPlan):
    """A search over a system on one treebank."""

    @property
    def select(self) -> str:
        metrics = {metric_named(name).layers: name for name in METRICS.names()}
        name = metrics[self.first.system.layer,]
        return f"{name}.{metric_named(name).headline}"

    @property
    def name(self) -> str:
        return str(self.first.system.name)

    @property
    def options(self) -> Sequence[str]:
        limit = self.first.config.minutes
        known = self.name in system_paths()
        name = self.name if known else str(self.first.system.path)
        return "--system", name, *(() if limit is None else ("--minutes", f"{limit:g}"))

    def recipe(self, run: SystemRun) -> dict[str, Any]:
        return {
            **run.recipe(),
            "treebank": run.config.treebank,
            "fingerprint": run.config.fingerprint,
        }

    def divided(self, run: SystemRun) -> tuple[dict[str, Any], dict[str, Any]]:
        found = self.recipe(run)
        for key in self.space:
            del found["settings"][f"system.{key}"]
        return found, {key: found["system"].pop(key) for key in self.space}

    def train(self, number: int, folder: Path) -> Callable[..., None]:
        return SystemRun.train_and_score_dev

    def tried(self, folder: Path) -> Tried | None:
        if (state := Trained.of(folder)) is None:
            return None
        spent = (state.processor_seconds or state.seconds) / 60
        return Tried(spent) if state.dev is None else Tried(spent, "complete", state.dev)
