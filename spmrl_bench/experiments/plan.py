"""What one command works on: the treebank that is there, and the settings of each variant.

Training and scoring are given the same words by the user and must understand them alike, so
both start from the same :class:`Plan`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from spmrl_bench.errors import RecipeError, TreebankError, unknown_name
from spmrl_bench.experiments.recipe import Recipe, load_recipe
from spmrl_bench.experiments.recipe_layers import Size
from spmrl_bench.experiments.run_config import RunConfig
from spmrl_bench.leaderboard.saved_parses import run_name
from spmrl_bench.parsers.registry import kind_named
from spmrl_bench.treebanks.catalogue import is_known, load_manifest, manifest_names, treebank_status
from spmrl_bench.treebanks.treebank import Treebank, open_treebank
from spmrl_bench.trees.parse import Layer


@dataclass(frozen=True)
class Plan:
    """What one command works on: a treebank and the settings of each run.

    The runs of a variant, one for each seed, follow each other. The test split of the treebank is
    closed (:meth:`Treebank.without_test`), whatever the plan was made with: of all that works
    with plans, the evaluation alone opens it.
    """

    treebank: Treebank
    configs: tuple[RunConfig, ...]
    note: str
    """Which treebank was taken and why, for the user."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "treebank", self.treebank.without_test())

    def folder(self, runs_dir: Path, config: RunConfig) -> Path:
        """Folder of one run; its name has the settings that were changed, but for its time."""
        name = run_name(config.size, config.variant, config.settings, config.seed)
        return runs_dir / config.treebank / name


def make_plan(
    lang: str,
    *,
    treebank: str | None = None,
    track: str | None = None,
    variants: Sequence[str] | None = None,
    size: str | None = None,
    seeds: Sequence[int] = (1,),
    settings: Mapping[str, str] | None = None,
) -> Plan:
    """Choose the treebank and resolve the settings of each variant, for each seed.

    Without ``treebank`` it is the first of the recipe's that is present, has the track if one is
    named, and the layers that the variants need if some are named.

    Raises:
        RecipeError: unknown language, variant, size, track or setting, no seed, or no variant
            that learns from what the treebank has.
        TreebankError: the treebank asked for, or every one of the recipe, is absent.
    """
    if not seeds:
        raise RecipeError("no seeds: one at least is needed")
    recipe = load_recipe(lang)
    wanted = {layer for name in variants or () for layer in layers_of(recipe, name)}
    chosen, note = choose_treebank(recipe, treebank, track, wanted)
    chosen_size = recipe.size_of(chosen.track, size)
    names = list(dict.fromkeys(variants or learnable(recipe, chosen.layers, chosen_size)))
    if not names:
        raise RecipeError(
            f"treebank {chosen.name} has {' and '.join(chosen.layers)}, from which no variant of "
            f"recipe {recipe.name} for the size {chosen_size} learns "
            f"({', '.join(recipe.variants)}); 'spmrl-bench validate {chosen.name}' and "
            "'spmrl-bench score-dependencies' work on it, or choose another treebank with "
            "--treebank"
        )

    def resolved(fingerprints: Mapping[str, str]) -> tuple[RunConfig, ...]:
        return tuple(
            recipe.resolve(
                treebank=chosen.name,
                track=chosen.track,
                fingerprints=fingerprints,
                variant=variant,
                size=chosen_size,
                seed=seed,
                settings=settings,
            )
            for variant in names
            for seed in dict.fromkeys(seeds)
        )

    resolved(dict.fromkeys(chosen.layers, ""))  # mistakes are told before any file is read
    return Plan(chosen, resolved(fingerprints_of(recipe, chosen, names)), note)


def fingerprints_of(recipe: Recipe, bank: Treebank, variants: Iterable[str]) -> dict[str, str]:
    """The fingerprints of the treebank's layers that the variants learn from."""
    wanted = {layer for name in variants for layer in layers_of(recipe, name)}
    return {layer: bank.fingerprint_of(layer) for layer in bank.layers if layer in wanted}


def layers_of(recipe: Recipe, variant: str) -> tuple[Layer, ...]:
    """The layers that a variant learns from."""
    return kind_named(recipe.variant(variant).kind).layers


def learnable(recipe: Recipe, layers: Collection[Layer], size: Size | None = None) -> list[str]:
    """The variants of a recipe that need no more than some layers to learn from.

    Args:
        size: that the variants are for; without it, any.

    Returns:
        Those that are not optional; if there are none, the first that is.
    """
    able = {
        name: variant
        for name, variant in recipe.variants.items()
        if size in (None, *variant.sizes) and set(kind_named(variant.kind).layers) <= set(layers)
    }
    return [name for name, variant in able.items() if not variant.optional] or list(able)[:1]


def choose_treebank(
    recipe: Recipe, name: str | None, track: str | None, wanted: Collection[Layer]
) -> tuple[Treebank, str]:
    """The treebank asked for, or the first of the recipe's that is present and has the layers.

    Returns:
        It, and why it was taken, for the user.

    Raises:
        RecipeError: unknown treebank or track, or one that is not the other's.
        TreebankError: the treebank asked for, or every one of the recipe, is absent.
    """
    if name is not None:
        bank = open_treebank(name)
        if track not in (None, bank.track):
            raise RecipeError(
                f"treebank {name} is of track {bank.track}, not '{track}': name one of the two only"
            )
        return bank, f"using {name}, as asked"
    listed = recipe.language.treebanks
    unknown = [bank for bank in listed if not is_known(bank)]
    if unknown:
        known = manifest_names()
        raise RecipeError(f"{recipe.path}: {unknown_name('treebank', unknown[0], known)}")
    statuses = {bank: treebank_status(load_manifest(bank)) for bank in listed}
    if track is not None:
        tracks = {statuses[bank].manifest.track for bank in listed}
        if track not in tracks:
            raise RecipeError(f"recipe {recipe.name}: {unknown_name('track', track, tracks)}")
        listed = [bank for bank in listed if statuses[bank].manifest.track == track]
    present = [bank for bank in listed if statuses[bank].present]
    # If none has the layers, the first one is said to lack them.
    able = [bank for bank in present if set(wanted) <= set(statuses[bank].layers)] or present
    if able:
        passed = listed[: listed.index(able[0])]
        absent = [bank for bank in passed if bank not in present]
        without = [bank for bank in passed if bank in present]
        reasons = [f"{', '.join(absent)} not present"] if absent else []
        if without:
            reasons.append(f"{', '.join(without)} without {' or '.join(sorted(wanted))}")
        why = f" ({'; '.join(reasons)})" if reasons else ""
        note = f"using {able[0]}, track {statuses[able[0]].manifest.track}{why}"
        return open_treebank(able[0]), note
    if len(listed) == 1:
        open_treebank(listed[0])  # raises, and says where it looked and how to get it
    places = "\n  ".join(f"{bank}: looked in {statuses[bank].where}" for bank in listed)
    raise TreebankError(f"no treebank of recipe {recipe.name} is present\n  {places}")
