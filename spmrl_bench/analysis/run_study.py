"""Running a study: train what is missing, limit, parse and score the dev split.

Test is never touched: a study asks what a part of the parser is worth, and that is decided on
dev, as in the paper.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, cast

from spmrl_bench.analysis.scores import ScoreKey, readable_scores, write_score
from spmrl_bench.analysis.trials import StudyPlan, Trial, encoder_of, study_runs
from spmrl_bench.experiments.evaluation import rules_of, score_split
from spmrl_bench.experiments.recipe import RunConfig
from spmrl_bench.experiments.run_folder import best_weights, ended
from spmrl_bench.experiments.train import train_all
from spmrl_bench.leaderboard.board import Scores, SeedMean
from spmrl_bench.leaderboard.record import SplitResult, signature_parts
from spmrl_bench.nn.device import prepare_process
from spmrl_bench.parsers.neural import NeuralParser
from spmrl_bench.parsing.models import load_parser
from spmrl_bench.process.executors.backend import LOCAL, Backend
from spmrl_bench.scoring.metric import SelectionMetric, metric_named
from spmrl_bench.scoring.signature import Signature
from spmrl_bench.training.schedule import Progress

if TYPE_CHECKING:
    from spmrl_bench.parsers.base import Parser

SPLIT = "dev"


@dataclass(frozen=True)
class Measured(Trial):
    """One row of a study and its scores.

    Attributes:
        metric: by which figure the study measures.
        results: scores of each run, in the order of ``configs``.
        ended: how the training of each run ended.
    """

    metric: SelectionMetric
    results: tuple[SplitResult, ...]
    ended: tuple[Progress, ...]

    @property
    def name(self) -> str:
        """That of the row."""
        return self.row.name

    @property
    def config(self) -> RunConfig:
        """Settings of the first run; those of the others differ in the seed only."""
        return self.configs[0]

    @property
    def scores(self) -> dict[int, float]:
        """The figure of each seed; 0 where nothing counts on either side."""
        return self.scores_by(self.metric)

    def scores_by(self, metric: SelectionMetric) -> dict[int, float]:
        """Another figure of each seed; none where it was not scored."""
        pairs = zip(self.configs, self.results, strict=True)
        return {
            config.seed: result.score(metric)
            for config, result in pairs
            if set(metric.metrics) <= set(result.metrics)
        }

    @property
    def score(self) -> SeedMean:
        """Mean and deviation of the figure over the seeds."""
        return estimate(self.scores)

    def score_within(self, minutes: float) -> SeedMean | None:
        """That of the best scores that the runs had after so much time; None if one had none.

        What a run would have had that ``train.max_minutes`` ended before is not known.
        """
        pairs = zip(self.configs, self.ended, strict=True)
        best = [
            None if _cut_before(minutes, config, state) else state.best_within(minutes)
            for config, state in pairs
        ]
        known = [score for score in best if score is not None]
        return SeedMean.of(known) if len(known) == len(best) else None

    @property
    def layers(self) -> int | None:
        """How many layers the encoder of its parsers has; None without an encoder."""
        return getattr(encoder_of(self.config.model)[1], "layers", None)

    @property
    def signatures(self) -> list[dict[str, str]]:
        """The signature of each score, by key."""
        scores = [one.metrics[name] for one in self.results for name in self.metric.metrics]
        return [signature_parts(score.signature_long) for score in scores]


def _cut_before(minutes: float, config: RunConfig, state: Progress) -> bool:
    """Whether there was no more time for the run than less than so many minutes."""
    if state.stopped_by != "max_minutes" or not state.curve:
        return False
    return minutes > max(config.train.max_minutes or 0.0, state.curve[-1][0] / 60)


def estimate(scores: Scores) -> SeedMean:
    """Mean and deviation over seeds, of which a study has one at least."""
    return cast(SeedMean, SeedMean.of(scores.values()))


def run_study(
    work: StudyPlan,
    *,
    runs_dir: Path,
    scores_dir: Path,
    device: str = "auto",
    jobs: int | None = None,
    on: Backend = LOCAL,
) -> list[Measured]:
    """Train what is missing of a study and score every row; may be interrupted and repeated.

    Args:
        work: the study on a treebank.
        runs_dir: folder of the training runs, shared with other studies and with ``train``.
        scores_dir: folder of the scores of studies; what it holds is not parsed again, unless its
            file cannot be read.
        device: as of ``train``.
        jobs, on: as of :func:`~spmrl_bench.experiments.train.train_all`; scored is here.

    Raises:
        SpmrlError: as of training; the folder of scores cannot be read.
    """
    runs = study_runs(work, runs_dir)
    train_all(runs, device=device, jobs=jobs, on=on)
    states = [(run.config, ended(run.folder)) for run in runs]
    scores, _ = readable_scores(scores_dir)  # with what other studies left meanwhile
    # The runs of a row are in the order of its seeds, since each row has the same seeds.
    results: list[list[SplitResult]] = [[] for _ in work.trials]
    for run in runs:
        config, weights = run.config, best_weights(run.folder)
        parser: Parser | None = None
        for trial, found in zip(work.trials, results, strict=True):
            if config not in trial.configs:
                continue
            key = _key(work, weights, trial)
            if key not in scores:
                if parser is None:
                    prepare_process(device)
                    parser = load_parser(run.folder, device)
                with parser.limited(trial.limits), parsing_with(parser, trial.parsing):
                    scores[key] = score_split(parser, work.treebank, SPLIT, config)
                write_score(key, scores[key], scores_dir)
            found.append(scores[key])
    return [
        Measured(
            **vars(trial),
            metric=work.study.metric,
            results=tuple(found),
            ended=tuple(state for config, state in states if config in trial.configs),
        )
        for trial, found in zip(work.trials, results, strict=True)
    ]


def _key(work: StudyPlan, weights: str, trial: Trial) -> ScoreKey:
    """What the score of a trial with these weights follows from."""
    bank, names = work.treebank, work.study.metric.metrics
    layers = dict.fromkeys(layer for name in names for layer in metric_named(name).layers)
    counting = [metric_named(name).counting(rules) for name, rules in rules_of(bank, names).items()]
    return ScoreKey(
        weights=weights,
        fingerprint="+".join(map(bank.fingerprint_of, layers)),
        split=SPLIT,
        rules=" + ".join(Signature.of(keys).long() for keys in counting),
        limits=tuple(sorted(trial.limits.items())),
        parsing=tuple(sorted(trial.parsing.items())),
    )


@contextmanager
def parsing_with(parser: Parser, settings: Mapping[str, int | float]) -> Iterator[None]:
    """Within it a parser has other settings of parsing."""
    if not settings:
        yield
        return
    assert isinstance(parser, NeuralParser)  # no other has any
    trained = parser.config
    parser.config = trained.model_copy(update=dict(settings))
    try:
        yield
    finally:
        parser.config = trained
