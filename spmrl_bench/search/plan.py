"""What a search works on, and the settings of each of its trials.

All that a recipe and a space can contradict each other in is looked for before anything is trained:
the recipe has to accept both ends of every range, a number between them, and every choice.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from spmrl_bench.errors import RecipeError
from spmrl_bench.experiments.plan import choose_treebank, fingerprints_of, learnable, make_runs
from spmrl_bench.experiments.recipe import Recipe, load_recipe
from spmrl_bench.experiments.run_config import RunConfig
from spmrl_bench.experiments.run_folder import MINUTES
from spmrl_bench.parsers.legacy import FLAT, leaves
from spmrl_bench.scoring.settings_text import settings_folder
from spmrl_bench.search.document import PREFIX
from spmrl_bench.search.journal import Rules
from spmrl_bench.search.space import Range, Settings, Value, read_settings
from spmrl_bench.training.config import TrainConfig
from spmrl_bench.treebanks.treebank import Treebank

#: What trials are compared at; where it differs between them, nothing is.
_EVALUATIONS = "train.evaluations_per_epoch"


@dataclass(frozen=True)
class SearchPlan:
    """A search over one variant of a recipe on one treebank.

    Attributes:
        recipe: of which the variant is.
        treebank: its test split closed.
        note: which treebank was taken and why, for the user.
        settings: what is fixed and what is searched.
        first: the settings of a run with the first value of all that is searched.
        fingerprints: of the treebank's layers that the variant learns from.
        sampler, pruner: by name.
        longest: dev evaluations of a trial at most, over the ends of the space.
    """

    recipe: Recipe
    treebank: Treebank
    note: str
    settings: Settings
    first: RunConfig
    fingerprints: Mapping[str, str]
    sampler: str
    pruner: str
    longest: int

    @property
    def rules(self) -> Rules:
        """How settings are drawn and trials judged."""
        evaluations = self.first.train.evaluations_per_epoch
        return Rules(self.sampler, self.pruner, self.first.seed, evaluations, self.longest)

    @property
    def base(self) -> dict[str, Any]:
        """The resolved settings that all trials have."""
        common = with_leaves(self.first)
        for key in self.settings.space:
            for name in names_of(key, common):
                del common[key.partition(".")[0]][name]
            for table in ("settings", "files"):
                common[table].pop(key, None)
        return common

    def resolve(self, values: Mapping[str, Value]) -> RunConfig:
        """The settings of the trial with some values of what is searched.

        Raises:
            RecipeError: the recipe refuses them together.
        """
        return _resolved(self.recipe, self.first, self.treebank, self.fingerprints, {
            **self.settings.fixed, **{key: str(value) for key, value in values.items()},
        })  # fmt: skip

    def folder(self, runs_dir: Path) -> Path:
        """Of the search, beside the runs of the treebank; its name has what makes it another."""
        told: dict[str, Any] = dict(self.settings.fixed)
        for key, parameter in self.settings.space.items():
            told[key] = parameter.text.replace("|", ":").split(":")
        name = "-".join((
            f"{PREFIX}{self.first.size}", self.first.variant, settings_folder(told),
            self.sampler, self.pruner, f"seed{self.first.seed}",
        ))  # fmt: skip
        return runs_dir / self.treebank.name / name


def with_leaves(config: RunConfig) -> dict[str, Any]:
    """Return settings as in JSON, those of the parser by dotted key, as recipes name them."""
    found = config.model_dump(mode="json")
    return {**found, "model": leaves(found["model"])}


def names_of(key: str, settings: Mapping[str, Any]) -> list[str]:
    """Return what ``section.key`` is called in its section of :func:`with_leaves`; an old name
    stands for several settings."""
    section, _, name = key.partition(".")
    places = [name, *FLAT.get(name, ())] if section == "model" else [name]
    return [place for place in places if place in settings[section]]


def plan_search(
    lang: str,
    *,
    settings: Mapping[str, str],
    treebank: str | None = None,
    track: str | None = None,
    variant: str | None = None,
    size: str | None = None,
    seed: int = 1,
    sampler: str = "tpe",
    pruner: str = "median",
) -> SearchPlan:
    """Choose the treebank and look through the space.

    Args:
        settings: ``section.key`` to a value, or to several in the notation of
            :mod:`~spmrl_bench.search.space`.
        treebank, track, size: as :func:`~spmrl_bench.experiments.plan.make_runs` takes them.
        variant: may be left out where the recipe has one only.
        seed: of the sampler, and of the training of all trials.
        sampler, pruner: by name.

    Raises:
        RecipeError: an unknown name, a value that the recipe refuses, several variants, or
            nothing to search.
        TreebankError: the treebank asked for, or every one of the recipe, is absent.
    """
    asked = read_settings(settings)
    _refuse_time(asked, pruner)
    recipe = load_recipe(lang)
    if variant is None:
        variant = _only_variant(recipe, treebank, track, size)
    first = {key: str(parameter.probes[0]) for key, parameter in asked.space.items()}
    (run,) = make_runs(
        lang, treebank=treebank, track=track, variants=[variant], size=size, seeds=[seed],
        settings={**asked.fixed, **first},
    )  # fmt: skip
    config, bank = run.config, run.treebank
    for key in asked.space:
        section, _, name = key.partition(".")
        if section == "train" and TrainConfig.model_fields[name].exclude:
            raise RecipeError(f"--set {key}: it does not change what is learnt; give one value")
    fingerprints = fingerprints_of(recipe, bank, [variant])

    def resolve(key: str, value: Value) -> RunConfig:
        given = {**asked.fixed, **first, key: str(value)}
        try:
            return _resolved(recipe, config, bank, fingerprints, given)
        except RecipeError as error:
            parameter = asked.space[key]
            whole = isinstance(parameter, Range) and not parameter.whole
            hint = "; of whole numbers int:LOW:HIGH is a range" if whole else ""
            text = f"--set {key}={parameter.text}: {value} is refused: {error}{hint}"
            raise RecipeError(text) from None

    tried = [
        resolve(key, value) for key, parameter in asked.space.items() for value in parameter.probes
    ]
    longest = max(one.train.max_epochs * one.train.evaluations_per_epoch for one in tried)
    return SearchPlan(
        recipe=recipe,
        treebank=bank,
        note=run.note,
        settings=asked,
        first=config,
        fingerprints=fingerprints,
        sampler=sampler,
        pruner=pruner,
        longest=longest,
    )


def _resolved(
    recipe: Recipe,
    like: RunConfig,
    bank: Treebank,
    fingerprints: Mapping[str, str],
    settings: Mapping[str, str],
) -> RunConfig:
    """The settings of a run that is like another but for what the command line sets."""
    return recipe.resolve(
        treebank=bank.name,
        track=bank.track,
        fingerprints=fingerprints,
        variant=like.variant,
        size=like.size,
        seed=like.seed,
        settings=settings,
    )


def _refuse_time(asked: Settings, pruner: str) -> None:
    if MINUTES in asked.space:
        raise RecipeError(
            f"--set {MINUTES}: trials of different times do not compare; --minutes gives all the "
            "same"
        )
    if pruner != "none" and _EVALUATIONS in asked.space:
        raise RecipeError(
            f"--set {_EVALUATIONS}: trials are pruned by their scores at the same evaluations; "
            "give one value, or --pruner none"
        )


def _only_variant(recipe: Recipe, treebank: str | None, track: str | None, size: str | None) -> str:
    """The variant of a recipe that has one only.

    Raises:
        RecipeError: it has several.
    """
    bank, _ = choose_treebank(recipe, treebank, track, set())
    names = learnable(recipe, bank.layers, recipe.size_of(bank.track, size))
    if len(names) != 1:
        raise RecipeError(
            f"a search is over one variant: name it with --variant. Recipe {recipe.name} has: "
            f"{', '.join(recipe.variants)}"
        )
    return names[0]
