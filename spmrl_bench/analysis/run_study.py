"""Running a study: train what is missing, limit, parse and score the dev split.

Test is never touched: a study asks what a part of the parser is worth, and that is decided on
dev, as in the paper.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from spmrl_bench.analysis.attention_maps import limited
from spmrl_bench.analysis.definition import StudyRow
from spmrl_bench.analysis.scores import ScoreKey, ScoreStore
from spmrl_bench.analysis.trials import StudyPlan, Trial, joint_plan
from spmrl_bench.errors import RecipeError
from spmrl_bench.experiments.campaign import train_all
from spmrl_bench.experiments.evaluation import score_split
from spmrl_bench.experiments.recipe import RunConfig
from spmrl_bench.experiments.run_folder import best_weights, ended
from spmrl_bench.leaderboard.record import SplitResult
from spmrl_bench.parsers.registry import load_parser
from spmrl_bench.scoring.metric import Criterion, metric_named
from spmrl_bench.scoring.signature import Signature
from spmrl_bench.treebanks.treebank import Treebank

if TYPE_CHECKING:
    from spmrl_bench.parsers.base import Parser

SPLIT = "dev"


@dataclass(frozen=True)
class Measured:
    """One row of a study and its scores.

    Attributes:
        row: as the study defines it.
        metric: by which figure the study measures.
        configs: settings of its runs, one for each seed.
        results: scores of each run, in the same order.
        epochs: how many epochs each run was trained.
        stopped_by: the rule that ended each run.
    """

    row: StudyRow
    metric: Criterion
    configs: tuple[RunConfig, ...]
    results: tuple[SplitResult, ...]
    epochs: tuple[int, ...]
    stopped_by: tuple[str, ...]

    @property
    def config(self) -> RunConfig:
        """Settings of the first run; those of the others differ in the seed only."""
        return self.configs[0]

    @property
    def scores(self) -> dict[int, float]:
        """The figure of each seed; 0 where nothing counts on either side."""
        pairs = zip(self.configs, self.results, strict=True)
        return {config.seed: result.score(self.metric) for config, result in pairs}


def run_study(
    work: StudyPlan, *, runs_dir: Path, scores_dir: Path, device: str = "auto", jobs: int = 1
) -> list[Measured]:
    """Train what is missing of a study and score every row; may be interrupted and repeated.

    Args:
        work: the study on a treebank.
        runs_dir: folder of the training runs, shared with other studies and with ``train``.
        scores_dir: folder of the scores of studies; what it holds is not parsed again.
        device: as of ``train``.
        jobs: runs trained at a time.

    Raises:
        SpmrlError: as of training; a file of scores is broken.
    """
    ScoreStore(scores_dir)  # raises before hours of training
    plan = joint_plan(work)
    train_all([plan], runs_dir=runs_dir, device=device, jobs=jobs)
    folders = [plan.folder(runs_dir, config) for config in plan.configs]
    states = [ended(folder) for folder in folders]
    scores = ScoreStore(scores_dir)  # with what other studies left meanwhile
    found: list[dict[int, SplitResult]] = [{} for _ in work.trials]
    for number, (config, folder) in enumerate(zip(plan.configs, folders, strict=True)):
        asked = [k for k, trial in enumerate(work.trials) if config in trial.configs]
        trials = [work.trials[k] for k in asked]
        results = _score_run(work, config, trials, folder, scores, device)
        for k, result in zip(asked, results, strict=True):
            found[k][number] = result
    # The runs of a row are in the order of its seeds, since each row has the same seeds.
    return [
        Measured(
            row=trial.row,
            metric=work.study.metric,
            configs=trial.configs,
            results=tuple(results_of.values()),
            epochs=tuple(states[number].epoch for number in results_of),
            stopped_by=tuple(states[number].stopped_by or "" for number in results_of),
        )
        for trial, results_of in zip(work.trials, found, strict=True)
    ]


def _score_run(
    work: StudyPlan,
    config: RunConfig,
    trials: Sequence[Trial],
    folder: Path,
    scores: ScoreStore,
    device: str,
) -> list[SplitResult]:
    """The score of one run for each of the rows that need it; the parser stays as trained."""
    bank, metric = work.treebank, work.study.metric
    weights, rules = best_weights(folder), _rules(bank, metric)
    parser: Parser | None = None
    results = []
    for trial in trials:
        key = ScoreKey(
            weights=weights,
            fingerprint=config.fingerprint,
            split=SPLIT,
            rules=rules,
            limits=tuple(sorted(trial.limits.items())),
        )
        result = scores.find(key)
        if result is None:
            parser = parser or load_parser(folder, device)
            with limited(parser, trial.limits):
                result = score_split(parser, bank, SPLIT, config)
            missing = [name for name in metric.metrics if name not in result.metrics]
            if missing:
                raise RecipeError(
                    f"study {work.study.name} measures {metric}, but {config.name} is scored by "
                    f"{', '.join(result.metrics)} only"
                )
            scores.add(key, result)
        results.append(result)
    return results


def _rules(bank: Treebank, criterion: Criterion) -> str:
    """How the metrics of a criterion count on a treebank: that part of their signatures."""
    metrics = [metric_named(name) for name in criterion.metrics]
    counting = [metric.counting(metric.rules(bank.rules[metric.name])) for metric in metrics]
    return " + ".join(Signature.of(keys).long() for keys in counting)
