"""Running a study: train what is missing, limit, parse and score the dev split.

Test is never touched: a study asks what a part of the parser is worth, and that is decided on
dev, as in the paper.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from spmrl_bench.analysis.definition import Row
from spmrl_bench.analysis.scores import Score, ScoreFile, ScoreKey, limits_key
from spmrl_bench.analysis.trials import StudyPlan, Trial, joint_plan
from spmrl_bench.experiments.campaign import train_all
from spmrl_bench.experiments.evaluation import evaluate_parser, split_result
from spmrl_bench.experiments.recipe import RunConfig
from spmrl_bench.experiments.run_folder import best_weights, ended
from spmrl_bench.nn.encoder import Encoder
from spmrl_bench.parsers.chart_parser import ChartParser
from spmrl_bench.parsers.registry import load_parser
from spmrl_bench.scoring import load_prm
from spmrl_bench.scoring.signature import prm_signature

SPLIT = "dev"


@dataclass(frozen=True)
class Measured:
    """One row of a study and its scores.

    Attributes:
        row: as the study defines it.
        configs: settings of its runs, one for each seed.
        scores: of each run, in the same order.
        epochs: how many epochs each run was trained.
        stopped_by: the rule that ended each run.
    """

    row: Row
    configs: tuple[RunConfig, ...]
    scores: tuple[Score, ...]
    epochs: tuple[int, ...]
    stopped_by: tuple[str, ...]

    @property
    def config(self) -> RunConfig:
        """Settings of the first run; those of the others differ in the seed only."""
        return self.configs[0]

    @property
    def f1(self) -> tuple[float, ...]:
        """Dev F1 of each seed in percent; 0 where no bracket counts on either side."""
        return tuple(score.f1 or 0.0 for score in self.scores)


def run_study(
    work: StudyPlan,
    *,
    runs_dir: Path,
    scores_path: Path,
    device: str = "auto",
    jobs: int = 1,
) -> list[Measured]:
    """Train what is missing of a study and score every row; may be interrupted and repeated.

    Args:
        work: the study on a treebank.
        runs_dir: folder of the training runs, shared with other studies and with ``train``.
        scores_path: JSON file of the scores; what it holds is not parsed again.
        device: as of ``train``.
        jobs: runs trained at a time.

    Raises:
        SpmrlError: as of training; the file of scores is broken.
    """
    scores = ScoreFile(scores_path)  # raises before hours of training
    plan = joint_plan(work)
    train_all([plan], runs_dir=runs_dir, device=device, jobs=jobs)
    states = [ended(plan.folder(runs_dir, config)) for config in plan.configs]
    found: list[dict[int, Score]] = [{} for _ in work.trials]
    for number, config in enumerate(plan.configs):
        asked = [k for k, trial in enumerate(work.trials) if config in trial.configs]
        trials = [work.trials[k] for k in asked]
        folder = plan.folder(runs_dir, config)
        for k, score in zip(
            asked, _score_run(work, config, trials, folder, scores, device), strict=True
        ):
            found[k][number] = score
    # The runs of a row are in the order of its seeds, since each row has the same seeds.
    return [
        Measured(
            row=trial.row,
            configs=trial.configs,
            scores=tuple(scores_of.values()),
            epochs=tuple(states[number].epoch for number in scores_of),
            stopped_by=tuple(states[number].stopped_by or "" for number in scores_of),
        )
        for trial, scores_of in zip(work.trials, found, strict=True)
    ]


def _score_run(
    work: StudyPlan,
    config: RunConfig,
    trials: Sequence[Trial],
    folder: Path,
    scores: ScoreFile,
    device: str,
) -> list[Score]:
    """The score of one run for each of the rows that need it."""
    bank = work.treebank
    parameters = prm_signature(load_prm(bank.prm))
    weights = best_weights(folder)
    parser: ChartParser | None = None
    results = []
    for trial in trials:
        key = ScoreKey(
            weights=weights,
            fingerprint=bank.fingerprint,
            split=SPLIT,
            prm=parameters,
            limits=limits_key(trial.limits),
        )
        score = scores.find(key)
        if score is None:
            if parser is None:
                parser = load_parser(folder, device)
            score = _score(work, config, trial, parser, key)
            scores.add(score)
        results.append(score)
    return results


def _score(
    work: StudyPlan, config: RunConfig, trial: Trial, parser: ChartParser, key: ScoreKey
) -> Score:
    """Score a parser with the limits of a row; it is left as it was trained."""
    bank, encoder = work.treebank, parser.encoder
    if trial.limits and isinstance(encoder, Encoder):
        trained = dict(enumerate(encoder.limits))
        encoder.limit(trial.limits)
        scored = evaluate_parser(parser, bank.split(SPLIT), bank.prm)
        encoder.limit(trained)
    else:
        scored = evaluate_parser(parser, bank.split(SPLIT), bank.prm)
    result = split_result(scored.counts, bank, SPLIT, config, scored.tokens_per_second)
    return Score(
        key=key,
        recall=result.recall,
        precision=result.precision,
        f1=result.f1,
        complete_match=result.complete_match,
        sentences=result.sentences,
        skipped=result.skipped,
        tokens_per_second=scored.tokens_per_second,
        signature=result.signature_long,
    )
