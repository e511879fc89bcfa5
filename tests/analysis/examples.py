"""A study of a few rows, and scores that nobody had to train for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from spmrl_bench.analysis.definition import Study
from spmrl_bench.analysis.run_study import Measured
from spmrl_bench.analysis.scores import Score, ScoreKey
from spmrl_bench.analysis.trials import StudyPlan, plan_study
from tests.laboratory import Laboratory

SIGNATURE = "scorer:own|treebank:tiny-open(1234)|variant:charlstm|seed:{seed}"


def study_of(rows: Mapping[str, Mapping[str, Any]], **changes: Any) -> Study:
    """A study of these rows; the first is the reference."""
    content = {
        "name": "some",
        "title": "Some parsers",
        "source": "A paper, table 1",
        "measured": "another treebank",
        "metric": "dev F1",
        "reference": next(iter(rows)),
        "rows": [{"name": name, **row} for name, row in rows.items()],
    }
    return Study.model_validate(content | changes)


def planned(laboratory: Laboratory, study: Study, **options: Any) -> StudyPlan:
    return plan_study(study, lang=str(laboratory.recipe), **options)


def measured(work: StudyPlan, scores: Mapping[str, Sequence[float]]) -> list[Measured]:
    """The rows with these dev F1, a number for each seed."""
    return [
        Measured(
            row=trial.row,
            configs=trial.configs,
            scores=tuple(
                score(f1, seed) for seed, f1 in enumerate(scores[trial.row.name], start=1)
            ),
            epochs=tuple(range(3, 3 + len(trial.configs))),
            stopped_by=("max_epochs",) * len(trial.configs),
        )
        for trial in work.trials
    ]


def score(f1: float | None, seed: int, **key: Any) -> Score:
    whole = {"weights": f"{seed}", "fingerprint": "f", "split": "dev", "prm": "p", "limits": ()}
    return Score(
        key=ScoreKey(**(whole | key)),
        recall=f1,
        precision=f1,
        f1=f1,
        complete_match=0.0,
        sentences=1234,
        skipped=0,
        tokens_per_second=1.0,
        signature=SIGNATURE.format(seed=seed),
    )


def lines_of(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").splitlines()
