"""What a study works on: for each row the runs it needs, and the limits of its attention.

All that a study, a treebank and the user's settings can contradict each other in is found here,
before anything is trained.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from pydantic import ValidationError

from spmrl_bench.analysis.definition import AttentionLimits, Study, StudyRow
from spmrl_bench.analysis.layers import layer_numbers
from spmrl_bench.errors import RecipeError
from spmrl_bench.experiments.plan import Run, make_runs
from spmrl_bench.experiments.recipe import Recipe, RunConfig, list_recipes, load_recipe
from spmrl_bench.nn.encoders.attention import OPEN, AttentionMask
from spmrl_bench.parsers.base import ParserConfig
from spmrl_bench.parsers.config import NeuralConfig
from spmrl_bench.parsers.legacy import FLAT
from spmrl_bench.parsers.registry import kind_named
from spmrl_bench.storage.toml import describe_mistake
from spmrl_bench.treebanks.catalogue import load_manifest
from spmrl_bench.treebanks.treebank import Treebank

#: Settings without which an input of files can not be, by input.
_FILES = {
    "vectors": ("vectors",),
    "elmo": ("elmo_weights", "elmo_options"),
    "transformer": ("transformer",),
}
# Settings whose files must exist; those of a transformer may be the name of one on a hub.
_PATHS = {f"model.{key}" for key in ("vectors", "elmo_weights", "elmo_options", "word_vectors")}


@runtime_checkable
class Attentive(Protocol):
    """Settings of an encoder of attention."""

    layers: int
    position: str
    matrices: str
    window: int | None
    relaxed_window: bool


def encoder_of(model: ParserConfig) -> tuple[str, Any]:
    """Name and settings of a parser's encoder; empty and None without one."""
    return model.own_encoder if isinstance(model, NeuralConfig) else ("", None)


@dataclass(frozen=True)
class Trial:
    """One row of a study, ready to be trained and scored.

    Attributes:
        row: as the study defines it.
        configs: one run for each seed.
        limits: of the trained parser's attention, by layer; without any it is as trained.
        parsing: settings of the trained parser that are not those of its run.
    """

    row: StudyRow
    configs: tuple[RunConfig, ...]
    limits: Mapping[int, AttentionMask]
    parsing: Mapping[str, int | float]


@dataclass(frozen=True)
class StudyPlan:
    """A study on a treebank.

    Attributes:
        study: its definition.
        treebank: what it is measured on.
        trials: of the rows that can be trained.
        left_out: name of each other row, and why.
        settings: ``KEY=VALUE`` of the user, for all rows.
        note: which treebank was taken and why.
    """

    study: Study
    treebank: Treebank
    trials: tuple[Trial, ...]
    left_out: Mapping[str, str]
    settings: tuple[str, ...]
    note: str


def plan_study(
    study: Study,
    *,
    lang: str | None = None,
    treebank: str | None = None,
    size: str | None = None,
    seeds: int = 1,
    settings: Mapping[str, str] | None = None,
) -> StudyPlan:
    """Resolve the runs of every row of a study.

    Args:
        study: its definition.
        lang: recipe; by default that of the treebank's language.
        treebank: by default the first of the recipe's that is present.
        size: ``published`` or ``small``; by default the study's, or else the track's.
        seeds: how many runs each row has, with the seeds 1, 2, ...
        settings: ``model.KEY`` or ``train.KEY`` to value, for all rows. The files of a
            pre-trained input concern only the rows that have it; a row's own settings win.

    Raises:
        RecipeError: neither language nor treebank is given, an unknown name or setting, a
            setting or a size that the study decides, tags where there are none, limits of what has
            none, a metric by which a row is not scored.
        TreebankError: the treebank is absent.
    """
    if seeds < 1:
        raise RecipeError(f"{seeds} seeds; a study needs 1 or more")
    if study.size and size not in (None, study.size):
        raise RecipeError(f"study {study.name} is of the size {study.size}, not of '{size}'")
    size = size or study.size
    given = dict(settings or {})
    _check_settings(study, given)
    recipe = load_recipe(lang or _recipe_of(treebank))
    chosen, *_ = make_runs(str(recipe.path), treebank=treebank, size=size)
    bank = chosen.treebank
    trials, left_out = [], {}
    for row in study.rows:
        missing = _missing_files(study, row, given)
        if missing:
            left_out[row.name] = "needs " + " and ".join(f"--set {key}=..." for key in missing)
            continue
        try:
            trials.append(_trial(study, row, recipe, bank, size, seeds, given))
        except RecipeError as error:
            raise RecipeError(f"study {study.name}, row '{row.name}': {error}") from None
    if study.reference in left_out:
        raise RecipeError(
            f"study {study.name}: the row that all are compared with, '{study.reference}', "
            f"{left_out[study.reference]}"
        )
    pairs = tuple(f"{key}={value}" for key, value in sorted(given.items()))
    return StudyPlan(study, bank, tuple(trials), left_out, pairs, chosen.note)


def study_runs(work: StudyPlan, runs_dir: Path) -> list[Run]:
    """All runs of a study, each once: rows that differ only in limits share theirs."""
    distinct: list[RunConfig] = []
    for trial in work.trials:
        distinct += [config for config in trial.configs if config not in distinct]
    return [Run.of(work.treebank, config, runs_dir, work.note) for config in distinct]


def attention_limits(limits: AttentionLimits, model: ParserConfig) -> dict[int, AttentionMask]:
    """The limits of each layer of a model; layers without any are left out.

    A window that the model was trained with stays where the row has none of its own.

    Raises:
        RecipeError: there is no attention or no such layer, or content and position cannot be
            told apart.
    """
    if limits == AttentionLimits():
        return {}
    name, encoder = encoder_of(model)
    if not isinstance(encoder, Attentive):
        kind = f"the encoder '{name}' has" if name else "there is"
        raise RecipeError(f"attention is limited here, but {kind} none")
    count = encoder.layers
    content, position, windowed = (
        _numbers("limit", layers, count)
        for layers in (limits.content, limits.position, limits.layers)
    )
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


def _numbers(key: str, layers: str | tuple[int, ...], count: int) -> tuple[int, ...]:
    """The layers that a key of a row names."""
    try:
        return layer_numbers(layers, count)
    except ValueError as problem:
        raise RecipeError(f"{key}: {problem}") from None


def _trial(
    study: Study,
    row: StudyRow,
    recipe: Recipe,
    bank: Treebank,
    size: str | None,
    seeds: int,
    given: Mapping[str, str],
) -> Trial:
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
        chosen = _numbers("position_only", row.position_only, count)
        settings["model.position_only_layers"] = json.dumps(chosen)
    configs = tuple(resolve(seed=seed) for seed in range(1, seeds + 1))
    model = configs[0].model
    limits = attention_limits(row.limit, model)
    return Trial(row, configs, limits, _of_parsing(row.parsing, model))


def _of_parsing(settings: Mapping[str, int | float], model: ParserConfig) -> dict[str, int | float]:
    """The settings that are not those of the run; a RecipeError where one cannot be changed."""
    known = sorted(model.free)
    for name in settings:
        if name not in known:
            listed = ", ".join(known) or "none"
            raise RecipeError(
                f"parsing.{name} is no setting that such a parser can be given after its training; "
                f"known: {listed}"
            )
    try:
        type(model).model_validate(model.model_dump() | dict(settings))
    except ValidationError as error:
        mistakes = "; ".join(describe_mistake(type(model), item) for item in error.errors())
        raise RecipeError(f"parsing: {mistakes}") from None
    return {name: value for name, value in settings.items() if value != getattr(model, name)}


def _recipe_of(treebank: str | None) -> str:
    """The recipe for a treebank's language."""
    if treebank is None:
        raise RecipeError("name a treebank (--treebank german-mini) or a language (--lang german)")
    language = load_manifest(treebank).language
    if language not in list_recipes():
        raise RecipeError(
            f"treebank {treebank} is of language {language}, which has no recipe: name one "
            f"with --lang. Known: {', '.join(list_recipes())}"
        )
    return language


def _check_settings(study: Study, given: Mapping[str, str]) -> None:
    """Refuse settings that some row of the study decides: it would no longer be the study's."""
    decided = {key for row in study.rows for key in study.settings(row)} - set(study.free)
    decided.add("model.lexical")
    if any(row.position_only != "none" for row in study.rows):
        decided.add("model.position_only_layers")
    decided = _places(decided)
    for key, value in given.items():
        if not _places([key]).isdisjoint(_places(_PATHS)) and not Path(value).exists():
            raise RecipeError(f"--set {key}: no such file: {value}")
        if not _places([key]).isdisjoint(decided):
            raise RecipeError(
                f"--set {key}: the rows of study {study.name} decide it. Without it, or with a "
                "study file of your own"
            )


def _concerns(key: str, lexical: Sequence[str]) -> bool:
    """Whether a setting is of use to a run with these inputs."""
    places = _places([key])
    if "model.word.vectors" in places:
        return "word" in lexical
    return any(
        table in lexical or table not in _FILES for _, table, *_ in (at.split(".") for at in places)
    )


def _places(keys: Iterable[str]) -> set[str]:
    """The settings of parts that keys mean, by dotted key."""
    short = ((key, FLAT.get(key.removeprefix("model."), ())) for key in keys)
    return {
        place
        for key, places in short
        for place in ([f"model.{each}" for each in places] if places else [key])
    }


def _missing_files(study: Study, row: StudyRow, given: Mapping[str, str]) -> list[str]:
    """The settings of files that a row needs and nobody gave."""
    known = _places([*given, *study.settings(row)])
    needed = [f"model.{key}" for name in study.inputs(row) for key in _FILES.get(name, ())]
    return [key for key in needed if _places([key]).isdisjoint(known)]
