"""Every language of a track: what to train, training it, and scoring it.

The table of Kitaev & Klein 2018 over nine languages is one experiment, repeated for each
recipe that has a treebank of the track. One call does all of it and can be given again after an
interruption: finished runs are not trained twice, and what was scored is not scored twice.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple, get_args

from spmrl_bench.errors import RecipeError, SpmrlError, TreebankError, unknown_name
from spmrl_bench.experiments.campaign import train_all
from spmrl_bench.experiments.plan import Plan, layers_of, learnable, make_plan
from spmrl_bench.experiments.recipe import list_recipes, load_recipe
from spmrl_bench.experiments.run import evaluate_all
from spmrl_bench.leaderboard.record import Record
from spmrl_bench.process.executors.backend import LOCAL, Backend
from spmrl_bench.treebanks.catalogue import is_known, load_manifest, treebank_status
from spmrl_bench.treebanks.manifest import Track


class TrackPlan(NamedTuple):
    """What there is of a track."""

    plans: list[Plan]  # one for each recipe with a treebank that is present
    absent: list[tuple[str, str]]  # recipes without, each with the places that were looked in


def plan_track(
    track: str,
    *,
    languages: Sequence[str] | None = None,
    variants: Sequence[str] | None = None,
    size: str | None = None,
    seeds: Sequence[int] = (1,),
    settings: Mapping[str, str] | None = None,
) -> TrackPlan:
    """Find the recipes of a track and resolve the settings of their runs.

    Args:
        track: a treebank of this track is taken from each recipe, the first that is present.
        languages: names of recipes; by default all that have a treebank of the track.
        variants: of each recipe; by default all of it.
        size: ``published`` or ``small``; by default the track's.
        seeds: of every variant.
        settings: as of :func:`~spmrl_bench.experiments.plan.make_plan`.

    Raises:
        RecipeError: unknown track, language, variant, size or setting, or a language that was
            named has no treebank of the track.
        TreebankError: no treebank of the track is present, or that of a language that was named
            is not.
    """
    if track not in get_args(Track):
        raise RecipeError(unknown_name("track", track, get_args(Track)))
    of_track = {name: banks for name in list_recipes() if (banks := _banks(name, track, variants))}
    chosen = list(dict.fromkeys(languages or of_track))
    for name in chosen:
        if not _banks(name, track, variants):
            learnt = f" that {' and '.join(variants)} learn from" if variants else ""
            raise RecipeError(
                f"recipe {name} has no treebank of track {track}{learnt}; "
                f"recipes that have: {', '.join(of_track) or 'none'}"
            )
    work = TrackPlan([], [])
    for name in chosen:
        statuses = [treebank_status(load_manifest(bank)) for bank in _banks(name, track, variants)]
        # Of a language that was named, the plan says where its treebank was looked for.
        if languages or any(status.present for status in statuses):
            plan = make_plan(
                name, track=track, variants=variants, size=size, seeds=seeds, settings=settings
            )
            work.plans.append(plan)
        else:
            places = (f"{status.manifest.name}: looked in {status.where}" for status in statuses)
            work.absent.append((name, "; ".join(places)))
    if not work.plans:
        listed = "".join(f"\n  {name}: {where}" for name, where in work.absent)
        raise TreebankError(f"no treebank of track {track} is present{listed}")
    return work


def _banks(recipe: str, track: str, variants: Sequence[str] | None) -> list[str]:
    """The treebanks of a track from which the named variants of a recipe can learn, or the usual.

    One without manifest has no track. Without names, tables over languages have no place for those
    that only an optional variant can learn from.
    """
    loaded = load_recipe(recipe)
    named = [name for name in variants or () if name in loaded.variants]  # others are told later
    wanted = {layer for name in named for layer in layers_of(loaded, name)}
    known = [load_manifest(bank) for bank in loaded.language.treebanks if is_known(bank)]
    return [
        bank.name
        for bank in known
        if bank.track == track
        and (
            wanted <= set(bank.layers)
            if named
            else any(not loaded.variants[name].optional for name in learnable(loaded, bank.layers))
        )
    ]


def run_track(
    work: TrackPlan,
    *,
    runs_dir: Path,
    results_dir: Path,
    device: str = "auto",
    jobs: int | None = None,
    on: Backend = LOCAL,
) -> tuple[list[Record], Exception | None]:
    """Train what is not trained and score what is not scored.

    A run that fails keeps no other from being trained and scored; the languages that it belongs
    to are not scored.

    Args:
        work: of :func:`plan_track`.
        runs_dir: folder of the training runs.
        results_dir: records are written to its folder ``runs``.
        device: of :func:`~spmrl_bench.nn.device.choose_device`.
        jobs, on: as of :func:`~spmrl_bench.experiments.campaign.train_all`; without a number of
            jobs, runs are scored in turn.

    Returns:
        The records of all runs that were trained to their end and scored, and what kept the
        others from it.

    Raises:
        SpmrlError: nothing could be scored.
        KeyboardInterrupt: Ctrl-C; every run has saved where it is.
    """
    failure: Exception | None = None
    try:
        train_all(work.plans, runs_dir=runs_dir, device=device, jobs=jobs, on=on)
    except SpmrlError as error:
        failure = error
    records, errors = evaluate_all(
        work.plans, runs_dir=runs_dir, results_dir=results_dir, device=device, jobs=jobs or 1, on=on
    )
    # What ended the training says more than that it has not ended.
    failure = next(iter(filter(None, [failure, *errors])), None)
    if failure is not None and not records:
        raise failure
    return records, failure
