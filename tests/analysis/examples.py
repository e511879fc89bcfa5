"""A study of a few rows, and scores that nobody had to train for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from spmrl_bench.analysis.study import Study
from spmrl_bench.analysis.study_plan import StudyPlan, plan_study
from spmrl_bench.analysis.study_run import StudyResult
from spmrl_bench.leaderboard.record import MetricResult, SplitResult
from spmrl_bench.training.schedule import Progress
from tests.laboratory import Laboratory

SIGNATURE = "scorer:own|treebank:tiny-open(1234)|skipped:0|variant:charlstm|seed:{seed}"


def study_of(rows: Mapping[str, Mapping[str, Any]], **changes: Any) -> Study:
    """A study of these rows; the first is the reference."""
    content = {
        "name": "some",
        "title": "Some parsers",
        "source": "A paper, table 1",
        "measured": "another treebank",
        "metric": "brackets.f1",
        "reference": next(iter(rows)),
        "rows": [{"name": name, **row} for name, row in rows.items()],
    }
    return Study.model_validate(content | changes)


def planned(laboratory: Laboratory, study: Study, **options: Any) -> StudyPlan:
    return plan_study(study, lang=str(laboratory.recipe), **options)


def measured(work: StudyPlan, scores: Mapping[str, Sequence[float]]) -> list[StudyResult]:
    """The rows with these figures, a number for each seed."""
    return [
        StudyResult(
            **vars(each),
            metric=work.study.metric,
            results=tuple(
                result(one, seed) for seed, one in enumerate(scores[each.row.name], start=1)
            ),
            ended=tuple(
                Progress(epoch=epoch, stopped_by="max_epochs")
                for epoch in range(3, 3 + len(each.configs))
            ),
        )
        for each in work.runs
    ]


def result(f1: float | None, seed: int) -> SplitResult:
    """Scores of 1,234 sentences, without their counts."""
    signature = SIGNATURE.format(seed=seed)
    brackets = MetricResult(
        counts={}, figures={"f1": f1}, signature=signature, signature_long=signature
    )
    return SplitResult(sentences=1234, metrics={"brackets": brackets})
