"""A round of a leaderboard: every parser on every treebank of a track, with the same time for each.

Our variants and the parsers of others train on the same splits and are scored alike: first ours on
all treebanks, so that any number of machines has enough to do, then the others. What is done is not
done again, so the same call goes on where the last one ended. Our variants compete on dev for the
test split, layer by layer, as they do in ``eval``; a system of somebody else is one entry.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, get_args

from spmrl_bench.errors import RecipeError, SpmrlError, TreebankError, unknown_name
from spmrl_bench.experiments.campaign import train_all
from spmrl_bench.experiments.plan import Plan, layers_of, make_plan
from spmrl_bench.experiments.recipe import Recipe, list_recipes, load_recipe
from spmrl_bench.experiments.run import evaluate_all
from spmrl_bench.experiments.run_folder import MINUTES, OtherSettingsError
from spmrl_bench.leaderboard.record import Record
from spmrl_bench.process.executors.backend import LOCAL, Backend
from spmrl_bench.systems.description import Known
from spmrl_bench.systems.environment import version_of
from spmrl_bench.systems.run import SystemRun, system_runs
from spmrl_bench.systems.together import score_systems, train_systems
from spmrl_bench.treebanks.catalogue import is_known, load_manifest, treebank_status
from spmrl_bench.treebanks.manifest import Track
from spmrl_bench.trees.parse import Layer


class Field(NamedTuple):
    """A layer of a treebank, and who competes on it."""

    recipe: str
    treebank: str
    layer: Layer
    variants: list[str]
    systems: list[Known]


def plan_round(
    track: str,
    *,
    languages: Sequence[str] | None = None,
    treebanks: Sequence[str] | None = None,
    variants: Sequence[str] | None = None,
    systems: Sequence[Known] = (),
    size: str | None = None,
) -> list[Field]:
    """Who competes where: the languages in the order given, then their treebanks and layers.

    Args:
        track: whose treebanks are taken, those that are present.
        languages: names of recipes; by default all.
        treebanks: only these.
        variants: only these of the recipes; by default those that learn one layer alone and are
            trained without being named, or the first one that there is.
        systems: parsers of others.
        size: of our variants.

    Raises:
        RecipeError: unknown track, language, treebank or variant.
        TreebankError: there is nothing to compete on.
    """
    if track not in get_args(Track):
        raise RecipeError(unknown_name("track", track, get_args(Track)))
    for system in systems:
        version_of(system)  # raises where it is not installed
    found = []
    recipes = {name: load_recipe(name) for name in dict.fromkeys(languages or list_recipes())}
    known_variants = {name for recipe in recipes.values() for name in recipe.variants}
    for variant in variants or ():
        if variant not in known_variants:
            raise RecipeError(unknown_name("variant", variant, known_variants))
    for name, recipe in recipes.items():
        for bank in filter(is_known, recipe.language.treebanks):
            manifest = load_manifest(bank)
            if manifest.track != track or (treebanks and bank not in treebanks):
                continue
            if not treebank_status(manifest).present:
                continue
            for layer in manifest.layers:
                own = _variants(recipe, layer, variants, recipe.size_of(manifest.track, size))
                others = [one for one in systems if one.description.layer == layer]
                if own or others:
                    found.append(Field(name, bank, layer, own, others))
    if missing := set(treebanks or ()) - {field.treebank for field in found}:
        known = {field.treebank for field in found}
        raise RecipeError(unknown_name(f"treebank of track {track}", min(missing), known))
    if not found:
        raise TreebankError(f"no treebank of track {track} is present that anybody learns from")
    return found


def _variants(recipe: Recipe, layer: Layer, named: Sequence[str] | None, size: str) -> list[str]:
    """Our variants that learn this layer and no other."""
    able = [
        name
        for name, variant in recipe.variants.items()
        if layers_of(recipe, name) == (layer,) and size in variant.sizes
    ]
    if named:
        return [name for name in able if name in named]
    return [name for name in able if not recipe.variants[name].optional] or able[:1]


@dataclass(frozen=True)
class Round:
    """What is the same for every entry, and where things are.

    Attributes:
        minutes: that a training may take.
        seeds: of each entry.
        jobs: trainings side by side, each with its share of the threads.
        say: shows a line.
        on: where our variants are trained and scored; others are trained here.
        save_parses: keep all that is scored, and the gold trees.
    """

    minutes: float
    seeds: Sequence[int]
    jobs: int
    device: str
    size: str | None
    runs_dir: Path
    results_dir: Path
    say: Callable[[str], None]
    on: Backend = LOCAL
    save_parses: bool = False

    def run(self, fields: Sequence[Field]) -> tuple[list[Record], list[SpmrlError]]:
        """Train and score what is left.

        Returns:
            The records of all entries, ours first, and what kept others from having one.

        Raises:
            OtherSettingsError: a variant was trained with other settings; nothing is trained.
            Interrupted: Ctrl-C or SIGTERM; what runs has saved where it is, or begins anew.
        """
        for field in fields:
            names = [*field.variants, *(system.name for system in field.systems)]
            self.say(f"{field.treebank}, {field.layer}: {', '.join(names)}")
        ours, failures = self._ours([field for field in fields if field.variants])
        theirs, more = self._theirs(fields)
        return ours + theirs, list({str(error): error for error in failures + more}.values())

    def _ours(self, fields: Sequence[Field]) -> tuple[list[Record], list[SpmrlError]]:
        plans: list[Plan] = []
        unplanned: list[SpmrlError] = []
        for field in fields:
            try:
                plans.append(self._plan(field))
            except SpmrlError as error:
                unplanned.append(error)
        if not plans:
            return [], unplanned
        untrained: list[SpmrlError] = []
        try:
            train_all(plans, runs_dir=self.runs_dir, device=self.device, jobs=self.jobs, on=self.on)
        except OtherSettingsError:
            raise
        except SpmrlError as error:
            untrained.append(error)
        records, errors = evaluate_all(
            plans,
            runs_dir=self.runs_dir,
            results_dir=self.results_dir,
            device=self.device,
            on=self.on,
            save_parses=self.save_parses,
        )
        unscored = []
        for mistake in errors:
            if not isinstance(mistake, SpmrlError):
                raise mistake
            unscored.append(mistake)
        # What ended a training says more than that it has not ended.
        return records, unplanned + (untrained or unscored)

    def _plan(self, field: Field) -> Plan:
        return make_plan(
            field.recipe,
            treebank=field.treebank,
            variants=field.variants,
            size=self.size,
            seeds=self.seeds,
            settings={MINUTES: str(self.minutes)},
        )

    def _theirs(self, fields: Sequence[Field]) -> tuple[list[Record], list[SpmrlError]]:
        failures: list[SpmrlError] = []
        asked: list[SystemRun] = []
        for competing, system in [(field, one) for field in fields for one in field.systems]:
            try:
                asked += system_runs(
                    competing.recipe,
                    system,
                    self.runs_dir,
                    treebank=competing.treebank,
                    size=self.size,
                    seeds=self.seeds,
                    minutes=self.minutes,
                )
            except SpmrlError as error:
                failures.append(error)
        taught = [run for run in asked if run.system.description.train is not None]
        try:
            train_systems(taught, device=self.device, jobs=self.jobs, fresh=False, say=self.say)
        except SpmrlError as error:
            failures.append(error)
        records: list[Record] = []
        for run in asked:
            if run in taught and not run.is_trained:
                continue
            try:
                records += score_systems(
                    [run],
                    self.results_dir,
                    device=self.device,
                    jobs=1,
                    say=self.say,
                    save_parses=self.save_parses,
                )
            except SpmrlError as error:
                failures.append(error)
        return records, failures
