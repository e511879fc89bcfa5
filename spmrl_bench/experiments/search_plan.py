"""What a search works on: a variant of a recipe, a treebank, and settings with several values.

They are written as on the command line: ``KEY=VALUE`` is a setting of all trials, ``KEY=LOW:HIGH``
any number between two ends, ``KEY=log:LOW:HIGH`` one whose logarithm is, ``KEY=int:LOW:HIGH`` a
whole number, ``KEY=A|B|C`` one of some values. All that recipe and values can contradict each other
in is looked for before anything is trained.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from spmrl_bench.errors import RecipeError, SpmrlError
from spmrl_bench.experiments.plan import choose_treebank, fingerprints_of, learnable, make_runs
from spmrl_bench.experiments.recipe import Recipe, RunConfig, load_recipe
from spmrl_bench.experiments.run_folder import MINUTES
from spmrl_bench.experiments.search_document import PREFIX
from spmrl_bench.parsers.legacy import FLAT, leaves
from spmrl_bench.scoring.settings_text import settings_folder
from spmrl_bench.training.config import TrainConfig
from spmrl_bench.treebanks.treebank import Treebank

if TYPE_CHECKING:
    from optuna.distributions import BaseDistribution

SAMPLERS = ("tpe", "random")
PRUNERS = ("median", "none")

#: What trials are compared at; where it differs between them, nothing is.
_EVALUATIONS = "train.evaluations_per_epoch"

Value = str | int | float
"""A value of a trial: a number of a range, or the text of a choice."""


def require_optuna() -> None:
    """Raise a SpmrlError with what to install unless Optuna is there."""
    try:
        import optuna
    except ImportError as error:
        raise SpmrlError(
            f"a search needs the package optuna ({error}). Install it: "
            "pip install 'spmrl-bench[search]'"
        ) from None
    optuna.logging.set_verbosity(optuna.logging.ERROR)


def read_space(
    given: Mapping[str, str],
) -> tuple[dict[str, str], dict[str, BaseDistribution]]:
    """Return the settings that all trials have, and what is searched, by key.

    Raises:
        RecipeError: a range or a list of values that is none, or nothing is searched.
        SpmrlError: Optuna is not installed.
    """
    require_optuna()
    found = {key: _distribution(key, text) for key, text in sorted(given.items())}
    space = {key: each for key, each in found.items() if each is not None}
    if not space:
        raise RecipeError(
            "nothing to search: give one setting at least several values, such as "
            "--set train.learning_rate=log:1e-4:5e-3, --set model.layers=int:2:8 or "
            "--set 'train.batch_size=8|16|32'"
        )
    return {key: given[key] for key in found if key not in space}, space


def _distribution(key: str, text: str) -> BaseDistribution | None:
    """Return what a value says is searched; None for a value that all trials have."""
    from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

    if "|" in text:
        values = [value.strip() for value in text.split("|")]
        if not all(values) or len(set(values)) < len(values):
            found = "is there twice" if all(values) else "beside | is empty"
            raise RecipeError(f"--set {key}={text}: a value {found}; expected A|B|C")
        return CategoricalDistribution(values)
    parts = [part.strip() for part in text.split(":")]
    marked = parts[0] in ("log", "int")
    if not marked and (len(parts) == 1 or _number(parts[0]) is None):
        return None  # a value that may have colons, such as the name of a file
    kind, ends = (parts[0], parts[1:]) if marked else ("", parts)
    numbers = [number for end in ends if (number := _number(end)) is not None]
    if len(ends) != 2 or len(numbers) != 2:
        raise RecipeError(
            f"--set {key}={text}: expected {kind and f'{kind}:'}LOW:HIGH with two finite numbers"
        )
    low, high = numbers
    if low >= high:
        raise RecipeError(f"--set {key}={text}: {ends[0]} is not less than {ends[1]}")
    if kind == "int":
        if not (low.is_integer() and high.is_integer()):
            raise RecipeError(f"--set {key}={text}: int:LOW:HIGH has whole numbers")
        return IntDistribution(int(low), int(high))
    if kind == "log" and low <= 0:
        raise RecipeError(f"--set {key}={text}: log:LOW:HIGH has numbers above 0")
    return FloatDistribution(low, high, log=kind == "log")


def _number(text: str) -> float | None:
    with suppress(ValueError):
        if math.isfinite(found := float(text)):
            return found
    return None


def notation(distribution: Any) -> str:
    """Return how the command line writes what is searched, the same for all ways to write it."""
    if hasattr(distribution, "choices"):
        return "|".join(distribution.choices)
    kind = "int:" if isinstance(distribution.low, int) else "log:" if distribution.log else ""
    return f"{kind}{distribution.low}:{distribution.high}"


def rounded(distribution: Any, drawn: Value) -> Value:
    """Return a value that was drawn as trials have it: with four significant digits at most, so
    that a command can repeat it exactly."""
    if isinstance(drawn, str) or isinstance(distribution.low, int):
        return drawn
    return min(distribution.high, max(distribution.low, float(f"{float(drawn):.4g}")))


def probes(distribution: Any) -> tuple[Value, ...]:
    """Return all choices; or the ends, and one number between them that is not round."""
    if hasattr(distribution, "choices"):
        return tuple(distribution.choices)
    low, high = distribution.low, distribution.high
    between = low + 0.382 * (high - low)
    return low, int(between) if isinstance(low, int) else rounded(distribution, between), high


@dataclass(frozen=True)
class SearchPlan:
    """A search over one variant of a recipe on one treebank.

    Attributes:
        treebank: its test split closed.
        note: which treebank was taken and why, for the user.
        fixed, space: what all trials have and what is searched, by key.
        first: the settings of a run with the first value of all that is searched.
        fingerprints: of the treebank's layers that the variant learns from.
        sampler, pruner: by name.
    """

    recipe: Recipe
    treebank: Treebank
    note: str
    fixed: Mapping[str, str]
    space: Mapping[str, BaseDistribution]
    first: RunConfig
    fingerprints: Mapping[str, str]
    sampler: str
    pruner: str

    @property
    def base(self) -> dict[str, Any]:
        """The resolved settings that all trials have."""
        common = with_leaves(self.first)
        for key in self.space:
            for name in names_of(key, common):
                del common[key.partition(".")[0]][name]
            for table in ("settings", "files"):
                common[table].pop(key, None)
        return common

    def resolve(self, values: Mapping[str, Value]) -> RunConfig:
        """Return the settings of a trial.

        Raises:
            RecipeError: the recipe refuses them together.
        """
        return self.recipe.resolve(
            treebank=self.treebank.name,
            track=self.treebank.track,
            fingerprints=self.fingerprints,
            variant=self.first.variant,
            size=self.first.size,
            seed=self.first.seed,
            settings={**self.fixed, **{key: str(value) for key, value in values.items()}},
        )

    def folder(self, runs_dir: Path) -> Path:
        """Of the search, beside the runs of the treebank; its name has what makes it another."""
        told: dict[str, Any] = dict(self.fixed)
        for key, searched in self.space.items():
            told[key] = notation(searched).replace("|", ":").split(":")
        first = self.first
        parts = (settings_folder(told), self.sampler, self.pruner, f"seed{first.seed}")
        return (
            runs_dir / self.treebank.name / "-".join((PREFIX + first.size, first.variant, *parts))
        )


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
    """Choose the treebank and try the recipe on both ends of every range, a number between them,
    and every choice, so that nothing is refused after hours.

    Args:
        settings: ``section.key`` to a value, or to several in the notation above.
        treebank, track, size: as :func:`~spmrl_bench.experiments.plan.make_runs` takes them.
        variant: may be left out where the recipe has one only.
        seed: of the sampler, and of the training of all trials.

    Raises:
        RecipeError: an unknown name, a value that the recipe refuses, several variants, or
            nothing to search.
        TreebankError: the treebank asked for, or every one of the recipe, is absent.
    """
    fixed, space = read_space(settings)
    if MINUTES in space:
        problem = "trials of different times do not compare; --minutes gives all the same"
        raise RecipeError(f"--set {MINUTES}: {problem}")
    if pruner != "none" and _EVALUATIONS in space:
        raise RecipeError(
            f"--set {_EVALUATIONS}: trials are pruned by their scores at the same evaluations; "
            "give one value, or --pruner none"
        )
    recipe = load_recipe(lang)
    if variant is None:
        bank, _ = choose_treebank(recipe, treebank, track, set())
        names = learnable(recipe, bank.layers, recipe.size_of(bank.track, size))
        if len(names) != 1:
            raise RecipeError(
                f"a search is over one variant: name it with --variant. Recipe {recipe.name} has: "
                f"{', '.join(recipe.variants)}"
            )
        (variant,) = names
    first = {key: probes(searched)[0] for key, searched in space.items()}
    (run,) = make_runs(
        lang,
        treebank=treebank,
        track=track,
        variants=[variant],
        size=size,
        seeds=[seed],
        settings={**fixed, **{key: str(value) for key, value in first.items()}},
    )
    for key in space:
        section, _, name = key.partition(".")
        if section == "train" and TrainConfig.model_fields[name].exclude:
            raise RecipeError(f"--set {key}: it does not change what is learnt; give one value")
    fingerprints = fingerprints_of(recipe, run.treebank, [variant])
    work = SearchPlan(
        recipe, run.treebank, run.note, fixed, space, run.config, fingerprints, sampler, pruner
    )
    for key, searched in space.items():
        for value in probes(searched):
            try:
                work.resolve({**first, key: value})
            except RecipeError as error:
                hint = "; of whole numbers int:LOW:HIGH is a range" * isinstance(value, float)
                text = f"--set {key}={notation(searched)}: {value} is refused: {error}{hint}"
                raise RecipeError(text) from None
    return work


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
