"""A study on a treebank: the runs and limits of each row, trained, limited, parsed and scored.

All that a study, a treebank and the user's settings can contradict each other in is found before
anything is trained. Test is never touched: a study asks what a part of the parser is worth, and
that is decided on dev, as in the paper.

Scores are kept, so that nothing is parsed twice. What a score follows from is its key, so that
those of several studies, budgets and seeds lie in one folder, to which several may add at once.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

from pydantic import ValidationError

from spmrl_bench.analysis.study import AttentionLimits, Study, StudyRow, layer_numbers
from spmrl_bench.errors import RecipeError
from spmrl_bench.experiments.evaluation import rules_of, score_split
from spmrl_bench.experiments.plan import Run, make_runs
from spmrl_bench.experiments.recipe import Recipe, RunConfig, load_recipe
from spmrl_bench.experiments.run_folder import ended
from spmrl_bench.experiments.train import train_all
from spmrl_bench.leaderboard.board import SeedMean
from spmrl_bench.leaderboard.documents import Part, StoredModel, load_documents, write_document
from spmrl_bench.leaderboard.record import SplitResult
from spmrl_bench.nn.device import prepare_process
from spmrl_bench.nn.encoders.self_attention import OPEN, AttentionMask
from spmrl_bench.parsers.base import ParserConfig
from spmrl_bench.parsers.kinds import kind_named
from spmrl_bench.parsers.legacy import FLAT
from spmrl_bench.parsing.models import load_parser
from spmrl_bench.process.executors.backend import LOCAL, Backend
from spmrl_bench.scoring.metric import SelectionMetric, metric_named
from spmrl_bench.scoring.signature import Signature
from spmrl_bench.storage.toml import describe_mistake
from spmrl_bench.training import best_weights
from spmrl_bench.training.schedule import Progress
from spmrl_bench.treebanks.catalogue import load_manifest
from spmrl_bench.treebanks.treebank import Treebank

SPLIT = "dev"

#: Settings of files without which an input can not be.
_FILES = {
    "vectors": ("vectors",),
    "elmo": ("elmo_weights", "elmo_options"),
    "transformer": ("transformer",),
}
# Settings whose files must exist; those of a transformer may be the name of one on a hub.
_PATHS = {f"model.{key}" for key in ("vectors", "elmo_weights", "elmo_options", "word_vectors")}


@dataclass(frozen=True)
class StudyRun:
    """One row of a study, ready to be trained and scored."""

    row: StudyRow
    configs: tuple[RunConfig, ...]  # one for each seed
    limits: Mapping[int, AttentionMask]  # of the trained parser's attention, by layer
    parsing: Mapping[str, int | float]  # settings of the trained parser, if not those of its run


@dataclass(frozen=True)
class StudyPlan:
    """A study on a treebank."""

    study: Study
    treebank: Treebank
    runs: tuple[StudyRun, ...]  # of the rows that can be trained
    left_out: Mapping[str, str]  # name of each other row, and why
    settings: tuple[str, ...]  # KEY=VALUE of the user, for all rows
    note: str  # which treebank was taken and why

    def distinct(self, runs_dir: Path) -> list[Run]:
        """All runs, each once: rows that differ only in limits share theirs."""
        found: list[RunConfig] = []
        for each in self.runs:
            found += [config for config in each.configs if config not in found]
        return [Run.of(self.treebank, config, runs_dir, self.note) for config in found]


def plan_study(
    study: Study,
    *,
    lang: str | None = None,
    treebank: str | None = None,
    size: str | None = None,
    seeds: int = 1,
    settings: Mapping[str, str] | None = None,
) -> StudyPlan:
    """Resolve the runs of every row of a study, each with the seeds 1, 2, ...

    The language is by default that of the treebank, and the treebank the first of the language
    that is present. ``settings`` are of all rows, but a row's own win, and the files of a
    pre-trained input concern only the rows that have it. A RecipeError for unknown names, a setting
    or a size that the study decides, tags or attention where there are none, and a metric by which
    a row is not scored; a TreebankError where the treebank is absent.
    """
    if study.size and size not in (None, study.size):
        raise RecipeError(f"study {study.name} is of the size {study.size}, not of '{size}'")
    size, given = size or study.size, dict(settings or {})
    _check_settings(study, given)
    if lang is None and treebank is None:
        raise RecipeError("name a treebank (--treebank german-mini) or a language (--lang german)")
    recipe = load_recipe(lang or load_manifest(str(treebank)).language)
    chosen, *_ = make_runs(str(recipe.path), treebank=treebank, size=size)
    runs, left_out = [], {}
    for row in study.rows:
        known = _places([*given, *study.settings(row)])
        needed = [f"model.{key}" for name in study.inputs(row) for key in _FILES.get(name, ())]
        if missing := [key for key in needed if _places([key]).isdisjoint(known)]:
            left_out[row.name] = "needs " + " and ".join(f"--set {key}=..." for key in missing)
            continue
        try:
            runs.append(_study_run(study, row, recipe, chosen.treebank, size, seeds, given))
        except RecipeError as error:
            raise RecipeError(f"study {study.name}, row '{row.name}': {error}") from None
    if study.reference in left_out:
        raise RecipeError(
            f"study {study.name}: the row that all are compared with, '{study.reference}', "
            f"{left_out[study.reference]}"
        )
    pairs = tuple(f"{key}={value}" for key, value in sorted(given.items()))
    return StudyPlan(study, chosen.treebank, tuple(runs), left_out, pairs, chosen.note)


def encoder_of(model: ParserConfig) -> tuple[str, Any]:
    """Name and settings of a parser's encoder; empty and None without one."""
    return getattr(model, "own_encoder", ("", None))


def attention_limits(limits: AttentionLimits, model: ParserConfig) -> dict[int, AttentionMask]:
    """The limits of each layer of a model that has any; a RecipeError where they cannot be. A
    window that the model was trained with stays where the row has none of its own."""
    if limits == AttentionLimits():
        return {}
    name, encoder = encoder_of(model)
    if not hasattr(encoder, "relaxed_window"):
        kind = f"the encoder '{name}' has" if name else "there is"
        raise RecipeError(f"attention is limited here, but {kind} none")
    count = encoder.layers
    named = (limits.content, limits.position, limits.layers)
    content, position, windowed = (layer_numbers("limit", layers, count) for layers in named)
    apart = (encoder.position, encoder.matrices) == ("concatenated", "factored")
    if not apart and min(len(content), len(position)) < count:
        raise RecipeError(
            "the attention to content and to position can be told apart only with "
            "model.position=concatenated and model.matrices=factored"
        )
    found = {}
    for number in range(count):
        window, relaxed = encoder.window, encoder.relaxed_window
        if limits.window is not None and number in windowed:
            window, relaxed = limits.window, limits.relaxed
        found[number] = AttentionMask(number in content, number in position, window, relaxed)
    return {number: limit for number, limit in found.items() if limit != OPEN}


def _study_run(
    study: Study,
    row: StudyRow,
    recipe: Recipe,
    bank: Treebank,
    size: str | None,
    seeds: int,
    given: Mapping[str, str],
) -> StudyRun:
    variant = study.variant(row)
    lexical = recipe.inputs_of(variant)
    metrics = kind_named(recipe.variant(variant).kind).metrics
    if not set(study.metric.metrics) <= set(metrics):
        raise RecipeError(
            f"the study measures {study.metric}, but variant {variant} is scored by "
            f"{', '.join(metrics)}"
        )
    if "tag" in lexical and bank.manifest.tags == "none":
        raise RecipeError(
            f"reads tags, but treebank {bank.name} has none. Choose a treebank with tags"
        )
    settings = {key: value for key, value in given.items() if _concerns(key, lexical)}
    # As on the command line; TOML reads numbers, texts and lists as JSON does.
    settings |= {key: json.dumps(value) for key, value in study.settings(row).items()}

    resolve = partial(
        recipe.resolve,
        treebank=bank.name,
        track=bank.track,
        fingerprints={layer: bank.fingerprint_of(layer) for layer in bank.layers},
        variant=variant,
        size=size,
        settings=settings,
    )
    if row.position_only != "none":
        count = getattr(encoder_of(resolve(seed=1).model)[1], "layers", 0)
        chosen = layer_numbers("position_only", row.position_only, count)
        settings["model.position_only_layers"] = json.dumps(chosen)
    configs = tuple(resolve(seed=seed) for seed in range(1, seeds + 1))
    model = configs[0].model
    limits = attention_limits(row.limit, model)
    return StudyRun(row, configs, limits, _of_parsing(row.parsing, model))


def _of_parsing(settings: Mapping[str, int | float], model: ParserConfig) -> dict[str, int | float]:
    """The settings that are not those of the run; a RecipeError where one cannot be changed."""
    for name in settings:
        if name not in model.free:
            raise RecipeError(
                f"parsing.{name} is no setting that such a parser can be given after its training; "
                f"known: {', '.join(sorted(model.free)) or 'none'}"
            )
    try:
        type(model).model_validate(model.model_dump() | dict(settings))
    except ValidationError as error:
        mistakes = "; ".join(describe_mistake(type(model), item) for item in error.errors())
        raise RecipeError(f"parsing: {mistakes}") from None
    return {name: value for name, value in settings.items() if value != getattr(model, name)}


def _check_settings(study: Study, given: Mapping[str, str]) -> None:
    """Refuse settings that some row of the study decides: it would no longer be the study's."""
    decided = {key for row in study.rows for key in study.settings(row)} - set(study.free)
    decided.add("model.lexical")
    if any(row.position_only != "none" for row in study.rows):
        decided.add("model.position_only_layers")
    for key, value in given.items():
        if not _places([key]).isdisjoint(_places(_PATHS)) and not Path(value).exists():
            raise RecipeError(f"--set {key}: no such file: {value}")
        if not _places([key]).isdisjoint(_places(decided)):
            raise RecipeError(
                f"--set {key}: the rows of study {study.name} decide it. Without it, or with a "
                "study file of your own"
            )


def _concerns(key: str, lexical: Sequence[str]) -> bool:
    """Whether a setting is of use to a run with these inputs."""
    places = _places([key])
    if "model.word.vectors" in places:
        return "word" in lexical
    tables = {place.split(".")[1] for place in places}
    return not tables.isdisjoint(lexical) or not tables <= _FILES.keys()


def _places(keys: Iterable[str]) -> set[str]:
    """The settings of parts that keys mean, by dotted key."""
    return {
        f"model.{place}" if place else key
        for key in keys
        for place in FLAT.get(key.removeprefix("model."), ()) or [""]
    }


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
    version: ClassVar[int] = 3  # as of records that first said of a split what is said here

    schema_version: int = version
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
        return SeedMean.of(self.scores.values())


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
    :func:`~spmrl_bench.experiments.train.train_all`."""
    runs = work.distinct(runs_dir)
    train_all(runs, device=device, jobs=jobs, on=on)
    scores, _ = readable_scores(scores_dir)  # with what other studies left meanwhile

    def scored(each: StudyRun, run: Run) -> SplitResult:
        key = _key(work, best_weights(run.folder), each)
        if key not in scores:
            prepare_process(device)
            parser: Any = load_parser(run.folder, device)
            if each.parsing:
                parser.config = parser.config.model_copy(update=dict(each.parsing))
            with parser.limited(each.limits):
                scores[key] = score_split(parser, work.treebank, SPLIT, run.config)
            write_score(key, scores[key], scores_dir)
        return scores[key]

    found = []
    for each in work.runs:
        # They are in the order of its seeds, since each row has the same seeds.
        own = [run for run in runs if run.config in each.configs]
        states = tuple(ended(run.folder) for run in own)
        results = tuple(scored(each, run) for run in own)
        metric = work.study.metric
        found.append(StudyResult(**vars(each), metric=metric, results=results, ended=states))
    return found


def _key(work: StudyPlan, weights: str, run: StudyRun) -> ScoreKey:
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
