"""The runs of one command: the treebanks that are there, and the settings of each run.

Training and scoring are given the same words by the user, so both start from the same runs.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, get_args

from spmrl_bench.errors import RecipeError, SpmrlError, TreebankError, unknown_name
from spmrl_bench.experiments.recipe import Recipe, RunConfig, Size, list_recipes, load_recipe
from spmrl_bench.experiments.run_folder import check_settings, ended, final_progress
from spmrl_bench.experiments.score import AnyRun, Ensemble, KnownRecords, Scoring, evaluate_all
from spmrl_bench.experiments.train import train_all, train_run
from spmrl_bench.leaderboard.record import Record
from spmrl_bench.leaderboard.saved_parses import run_name
from spmrl_bench.parsers.kinds import kind_named
from spmrl_bench.training import best_weights
from spmrl_bench.training.schedule import OUT_OF_TIME, out_of_time
from spmrl_bench.treebanks import catalogue
from spmrl_bench.treebanks.manifest import Track
from spmrl_bench.treebanks.treebank import Treebank, open_treebank
from spmrl_bench.trees.parse import Layer

# The cost of a model (see its configuration) that gains little from a second thread, at most.
_SMALL = 1e6


@dataclass(frozen=True)
class Run(AnyRun):
    """One variant on one treebank with one size, seed and settings."""

    config: RunConfig

    @classmethod
    def of(cls, treebank: Treebank, config: RunConfig, runs_dir: Path, note: str = "") -> Run:
        """The run with some settings; its folder has those in its name that were changed."""
        name = run_name(config.size, config.variant, config.overrides, config.seed)
        return cls(treebank, config, runs_dir / config.treebank / name, note)

    @property
    def cost(self) -> float:
        declared = self.treebank.manifest.splits.train.sentences or 5000
        sentences = max(declared) if isinstance(declared, tuple) else declared
        return float(sentences) * self.config.train.max_epochs * self.config.model.cost()

    @property
    def is_small(self) -> bool:
        model = self.config.model
        return model.cost() <= _SMALL and not model.files()

    @property
    def group(self) -> Hashable:
        return self.config.recipe, self.config.treebank, self.config.select

    @property
    def variant(self) -> str:
        return self.config.name

    def trained(self) -> str | None:
        check_settings(self.folder, self.config, other_minutes=True)
        if (state := final_progress(self.folder, self.config)) is None:
            return None
        best_weights(self.folder)  # an error where the best parser has been removed since
        return f"best dev {self.config.criterion.title} {state.best_score:.2f}"

    def train(self, *, device: str) -> None:
        train_run(self, device=device)

    def dev_score(self) -> float:
        state = ended(self.folder)
        # A limit that was not reached has decided nothing.
        idle = state.stopped_by != OUT_OF_TIME and not out_of_time(self.config.train, state)
        check_settings(self.folder, self.config, other_minutes=idle)
        return state.best_score or 0.0

    def recorded(self, records: Sequence[Record], scoring: Scoring) -> Record | None:
        return Ensemble([self]).recorded(records, scoring)

    def score(self, scoring: Scoring, *, device: str) -> None:
        Ensemble([self]).score(scoring, device=device)


def make_runs(
    lang: str,
    *,
    runs_dir: Path = Path("runs"),
    treebank: str | None = None,
    track: str | None = None,
    variants: Sequence[str] | None = None,
    size: str | None = None,
    seeds: Sequence[int] = (1,),
    settings: Mapping[str, str] | None = None,
) -> list[Run]:
    """The runs of each variant on a treebank, one for each seed, which follow each other. By
    default the treebank is the first of the recipe's that is present and has the track and the
    layers of the variants, where these are named. A RecipeError says what is wrong with the
    arguments, a TreebankError which treebank is absent."""
    if not seeds:
        raise RecipeError("no seeds: one at least is needed")
    recipe = load_recipe(lang)
    bank, note = choose_treebank(recipe, treebank, track, _needed(recipe, variants))
    chosen_size = recipe.size_of(bank.track, size)
    names = list(dict.fromkeys(variants or learnable(recipe, bank.layers, chosen_size)))
    if not names:
        raise RecipeError(
            f"treebank {bank.name} has {' and '.join(bank.layers)}, from which no variant of "
            f"recipe {recipe.name} for the size {chosen_size} learns ("
            f"{', '.join(recipe.variants)}). Choose another treebank with --treebank"
        )
    resolve = partial(
        recipe.resolve,
        treebank=bank.name,
        track=bank.track,
        fingerprints=dict.fromkeys(bank.layers, ""),
        size=chosen_size,
        settings=settings,
    )
    configs = [resolve(variant=one, seed=seed) for one in names for seed in dict.fromkeys(seeds)]
    # Files are read when all mistakes have been told.
    return [
        Run.of(bank, config.model_copy(update={"fingerprint": prints}), runs_dir, note)
        for config in configs
        for prints in ["+".join(map(bank.fingerprint_of, kind_named(config.kind).layers))]
    ]


def _needed(recipe: Recipe, variants: Sequence[str] | None) -> set[Layer]:
    """The layers that variants learn from."""
    kinds = (kind_named(recipe.variant(name).kind) for name in variants or ())
    return {layer for kind in kinds for layer in kind.layers}


def learnable(recipe: Recipe, layers: Collection[Layer], size: Size | None = None) -> list[str]:
    """The variants of a recipe, for a size or any, that need no more than some layers to learn
    from: those that are not optional; if there are none, the first that is."""
    able = {
        name: variant
        for name, variant in recipe.variants.items()
        if size in (None, *variant.sizes) and set(kind_named(variant.kind).layers) <= set(layers)
    }
    return [name for name, variant in able.items() if not variant.optional] or list(able)[:1]


def choose_treebank(
    recipe: Recipe, name: str | None, track: str | None, wanted: Collection[Layer]
) -> tuple[Treebank, str]:
    """The treebank asked for, or the first of the recipe's that is present and has the layers;
    and why it was taken, for the user. Errors are those of :func:`make_runs`."""
    if name is not None:
        bank = open_treebank(name)
        if track not in (None, bank.track):
            raise RecipeError(
                f"treebank {name} is of track {bank.track}, not '{track}': name one of the two only"
            )
        return bank, f"using {name}, as asked"
    manifests = map(catalogue.load_manifest, recipe.language.treebanks)
    statuses = list(map(catalogue.treebank_status, manifests))
    if track is not None:
        tracks = {status.manifest.track for status in statuses}
        if track not in tracks:
            raise RecipeError(f"recipe {recipe.name}: {unknown_name('track', track, tracks)}")
        statuses = [status for status in statuses if status.manifest.track == track]
    elif catalogue.treebanks_root() is not None:
        # Whoever has a directory of treebanks means one of these.
        statuses = [one for one in statuses if one.manifest.track != "mini"] or statuses
    present = [status for status in statuses if status.present]
    if not present and len(statuses) > 1:
        raise TreebankError(catalogue.none_present_message(f"recipe {recipe.name}", statuses))
    # If none has the layers, the first one is said to lack them; an absent one, how to get it.
    able = [one for one in present if set(wanted) <= set(one.layers)] or present or statuses
    lacking = f"without {' or '.join(sorted(wanted))}"
    passed = statuses[: statuses.index(able[0])]
    reasons = [f"{one.manifest.name} {lacking if one.present else 'not present'}" for one in passed]
    why = f" ({'; '.join(reasons)})" if reasons else ""
    manifest = able[0].manifest
    return open_treebank(manifest.name), f"using {manifest.name}, track {manifest.track}{why}"


def _recipes(
    track: str, languages: Sequence[str] | None
) -> Iterator[tuple[str, Recipe, list[catalogue.TreebankStatus]]]:
    """The recipes that are named, or all, with their treebanks of a track."""
    if track not in get_args(Track):
        raise RecipeError(unknown_name("track", track, get_args(Track)))
    for name in dict.fromkeys(languages or list_recipes()):
        recipe = load_recipe(name)
        banks = map(catalogue.load_manifest, recipe.language.treebanks)
        statuses = [catalogue.treebank_status(bank) for bank in banks if bank.track == track]
        yield name, recipe, statuses


def plan_track(
    track: str,
    *,
    languages: Sequence[str] | None = None,
    variants: Sequence[str] | None = None,
    **options: Any,
) -> tuple[list[Run], dict[str, str]]:
    """The runs of every language of a track, each on the first of its treebanks that is present;
    and for each recipe without one the places that were looked in.

    By default they are of all recipes and variants, and treebanks from which only an optional
    variant can learn do not count. The ``options`` and errors are those of :func:`make_runs`; it is
    an error, too, if a language that was named, or every language, lacks a treebank.
    """
    runs: list[Run] = []
    absent: dict[str, str] = {}
    for name, recipe, of_track in _recipes(track, languages):
        named = [one for one in variants or () if one in recipe.variants]  # others are told later
        usual = [[one] for one, own in recipe.variants.items() if not own.optional]
        needed = [_needed(recipe, each) for each in ([named] if named else usual)]
        banks = [bank for bank in of_track if any(one <= {*bank.manifest.layers} for one in needed)]
        places = [f"{bank.manifest.name}: looked in {bank.where}" for bank in banks]
        # Of a language that was named, it is said where its treebank was looked for.
        if banks and (languages or any(bank.present for bank in banks)):
            runs += make_runs(name, track=track, variants=variants, **options)
        elif banks:
            absent[name] = "; ".join(places)
        elif languages:
            learnt = f" that {' and '.join(variants)} learn from" if variants else ""
            raise RecipeError(f"recipe {name} has no treebank of track {track}{learnt}")
    if not runs:
        listed = "".join(f"\n  {name}: {where}" for name, where in absent.items())
        raise TreebankError(f"no treebank of track {track} is present{listed}")
    return runs, absent


def plan_board(
    track: str,
    *,
    languages: Sequence[str] | None = None,
    treebanks: Sequence[str] | None = None,
    variants: Sequence[str] | None = None,
    others: Sequence[tuple[Layer, Callable[..., Sequence[AnyRun]]]] = (),
    settings: Mapping[str, str] | None = None,
    **options: Any,
) -> list[AnyRun]:
    """The runs of all that compete on the treebanks of a track that are present.

    Of ours these are by default, for each layer of a treebank, the variants that learn it alone and
    are trained without being named, or the first one that there is; of ``others``, what they make
    as :func:`make_runs` does, by their layer. Options and errors are those of :func:`make_runs`,
    and a TreebankError where there is nothing to compete on.
    """
    runs: list[AnyRun] = []
    there = set()
    for name, recipe, banks in _recipes(track, languages):
        for bank in (status.manifest for status in banks if status.present):
            there.add(bank.name)
            size = recipe.size_of(bank.track, options.get("size"))
            for layer in bank.layers if bank.name in (treebanks or there) else ():
                usual = learnable(recipe, [layer], size) if variants is None else variants
                if own := [one for one in usual if _needed(recipe, [one]) == {layer}]:
                    given = {"variants": own, "settings": settings, **options}
                    runs += make_runs(name, treebank=bank.name, **given)
                for make in (make for learnt, make in others if learnt == layer):
                    runs += make(name, treebank=bank.name, **options)
    if missing := set(treebanks or ()) - there:
        raise RecipeError(unknown_name(f"treebank of track {track}", min(missing), there))
    if not runs:
        raise TreebankError(f"no treebank of track {track} is present that anybody learns from")
    return runs


def recipe_problems(treebank: str, longest: Mapping[str, tuple[int, int]]) -> list[str]:
    """Why recipes could not be trained or scored on a treebank that is there, in words; ``longest``
    has, of each split, the number of words of the longest sentence, and its number."""
    problems = []
    for name in list_recipes():
        with suppress(SpmrlError):  # whatever is wrong there, it is not with this treebank
            if treebank not in load_recipe(name).language.treebanks:
                continue
            try:
                configs = [run.config for run in make_runs(name, treebank=treebank)]
            except SpmrlError as error:
                problems.append(f"recipe {name}: {error}")
                continue
            for split, (words, number) in longest.items():
                if short := [
                    config.variant
                    for config in configs
                    for part in config.model.tables().values()
                    if words + 2 > (getattr(part, "max_positions", None) or words + 2)
                ]:
                    problems.append(
                        f"recipe {name}, variant {', '.join(short)}: sentence {number} of {split} "
                        f"has {words} words, for which model.max_positions must be {words + 2} at "
                        "least; set it in the recipe"
                    )
    return problems


# For programs ---------------------------------------------------------------------------------


def train(
    lang: str,
    *,
    device: str = "auto",
    jobs: int | None = None,
    runs: str | Path = "runs",
    **options: Any,
) -> list[Run]:
    """Train what is not finished of the variants of a recipe, as ``spmrl-bench train`` does; return
    all runs, of which :func:`spmrl_bench.load` takes the ``folder``. The options are those of
    :func:`make_runs`: ``treebank``, ``variants``, ``seeds``, ``settings`` and others. A SpmrlError
    says what is wrong with them, or which run failed."""
    made = make_runs(lang, runs_dir=Path(runs), **options)
    train_all(made, device=device, jobs=jobs)
    return made


def evaluate(
    runs: Sequence[Run], *, device: str = "auto", results: str | Path = "results"
) -> list[Record]:
    """Select on dev, score the selected variant on test, and return the records of the runs; a
    SpmrlError where one is not trained to its end, or cannot be scored."""
    records, errors = evaluate_all(runs, KnownRecords(Path(results)), device=device)
    if errors:
        raise errors[0]
    return records
