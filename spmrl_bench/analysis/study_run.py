"""Running a study: train what is missing, limit, parse and score the dev split.

Test is never touched: a study asks what a part of the parser is worth, and that is decided on
dev, as in the paper.

Scores are kept, so that nothing is parsed twice. What a score follows from is its key, so that
those of several studies, budgets and seeds lie in one folder, to which several may add at once.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, cast

from spmrl_bench.analysis.study_plan import StudyPlan, StudyRun
from spmrl_bench.experiments.evaluation import rules_of, score_split
from spmrl_bench.experiments.run_folder import ended
from spmrl_bench.experiments.train import train_all
from spmrl_bench.leaderboard.board import Scores, SeedMean
from spmrl_bench.leaderboard.documents import Part, StoredModel, load_documents, write_document
from spmrl_bench.leaderboard.record import SplitResult
from spmrl_bench.nn.device import prepare_process
from spmrl_bench.nn.encoders.self_attention import AttentionMask
from spmrl_bench.parsing.models import load_parser
from spmrl_bench.process.executors.backend import LOCAL, Backend
from spmrl_bench.scoring.metric import SelectionMetric, metric_named
from spmrl_bench.scoring.signature import Signature
from spmrl_bench.training import best_weights
from spmrl_bench.training.schedule import OUT_OF_TIME, Progress

SPLIT = "dev"
SCHEMA_VERSION = 3  # as the version of records that first said of a split what is said here


class ScoreKey(Part):
    """What a score follows from."""

    weights: str  # SHA-256
    fingerprint: str  # of the treebank
    split: str
    rules: str  # how it was counted: that part of the signature
    limits: tuple[tuple[int, AttentionMask], ...]  # by layer; those without any are left out
    parsing: tuple[tuple[str, int | float], ...] = ()  # settings that are not those of the run


class StudyScore(StoredModel):
    """The score of a parser whose attention is limited."""

    what: ClassVar[str] = "score of a study"
    version: ClassVar[int] = SCHEMA_VERSION

    schema_version: int = SCHEMA_VERSION
    key: ScoreKey
    result: SplitResult


def readable_scores(folder: Path) -> tuple[dict[ScoreKey, SplitResult], list[str]]:
    """The scores in the documents under ``scores``, and a message for each file that holds none.
    Raise a RecordError if the folder cannot be read."""
    documents, mistakes = load_documents(StudyScore, folder / "scores")
    return {score.key: score.result for score in documents.values()}, mistakes


def write_score(key: ScoreKey, result: SplitResult, folder: Path) -> None:
    """Add a score to those of a folder; a RecordError where it cannot be written."""
    write_document(StudyScore(key=key, result=result), folder / "scores")


@dataclass(frozen=True)
class StudyResult(StudyRun):
    """One row of a study and its scores."""

    metric: SelectionMetric  # by which figure the study measures
    results: tuple[SplitResult, ...]  # scores of each run, in the order of `configs`
    ended: tuple[Progress, ...]  # how the training of each run ended

    @property
    def name(self) -> str:
        return self.row.name

    @property
    def scores(self) -> dict[int, float]:
        """The study's figure of each seed; 0 where nothing counts on either side."""
        return self.scores_by(self.metric)

    def scores_by(self, metric: SelectionMetric) -> dict[int, float]:
        """Another figure of each seed; none where it was not scored."""
        return {
            config.seed: result.score(metric)
            for config, result in zip(self.configs, self.results, strict=True)
            if set(metric.metrics) <= set(result.metrics)
        }

    @property
    def score(self) -> SeedMean:
        """Mean and deviation of the figure over the seeds."""
        return estimate(self.scores)

    def score_within(self, minutes: float) -> SeedMean | None:
        """Of the best scores that the runs had after so much time; None if one had none, or was
        ended before by ``train.max_minutes``."""
        best = []
        for config, state in zip(self.configs, self.ended, strict=True):
            last = max([config.train.max_minutes or 0.0, *(s / 60 for s, _ in state.curve[-1:])])
            score = state.best_within(minutes)
            if score is None or (state.stopped_by == OUT_OF_TIME and minutes > last):
                return None
            best.append(score)
        return SeedMean.of(best)


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
) -> list[StudyResult]:
    """Train what is missing of a study and score every row; may be interrupted and repeated.

    ``runs_dir`` is shared with other studies and with ``train``. What ``scores_dir`` holds is not
    parsed again; a SpmrlError if it cannot be read. All else is as of
    :func:`~spmrl_bench.experiments.train.train_all`.
    """
    runs = work.distinct(runs_dir)
    train_all(runs, device=device, jobs=jobs, on=on)
    states = [(run.config, ended(run.folder)) for run in runs]
    scores, _ = readable_scores(scores_dir)  # with what other studies left meanwhile
    # The runs of a row are in the order of its seeds, since each row has the same seeds.
    results: list[list[SplitResult]] = [[] for _ in work.runs]
    for run in runs:
        config, weights = run.config, best_weights(run.folder)
        parser: Any = None
        for each, found in zip(work.runs, results, strict=True):
            if config not in each.configs:
                continue
            key = _key(work, weights, each)
            if key not in scores:
                if parser is None:
                    prepare_process(device)
                    parser = load_parser(run.folder, device)
                with parser.limited(each.limits), parsing_with(parser, each.parsing):
                    scores[key] = score_split(parser, work.treebank, SPLIT, config)
                write_score(key, scores[key], scores_dir)
            found.append(scores[key])
    return [
        StudyResult(
            **vars(each),
            metric=work.study.metric,
            results=tuple(found),
            ended=tuple(state for config, state in states if config in each.configs),
        )
        for each, found in zip(work.runs, results, strict=True)
    ]


def _key(work: StudyPlan, weights: str, run: StudyRun) -> ScoreKey:
    """What the score of a run with these weights follows from."""
    bank, names = work.treebank, work.study.metric.metrics
    layers = dict.fromkeys(layer for name in names for layer in metric_named(name).layers)
    counting = [metric_named(name).counting(rules) for name, rules in rules_of(bank, names).items()]
    return ScoreKey(
        weights=weights,
        fingerprint="+".join(map(bank.fingerprint_of, layers)),
        split=SPLIT,
        rules=" + ".join(Signature.of(keys).long() for keys in counting),
        limits=tuple(sorted(run.limits.items())),
        parsing=tuple(sorted(run.parsing.items())),
    )


@contextmanager
def parsing_with(parser: Any, settings: Mapping[str, int | float]) -> Iterator[None]:
    """Within it a parser has other settings of parsing, of those that are free in it."""
    if not settings:  # a parser without any may have no configuration
        yield
        return
    trained = parser.config
    parser.config = trained.model_copy(update=dict(settings))
    try:
        yield
    finally:
        parser.config = trained
