"""Parses of a treebank's training sentences, each by a parser that has not seen it.

The training sentences are divided into folds (:mod:`spmrl_bench.treebanks.folds`). For each a
parser is trained on the others, by the recipe, the variant and the settings of any training, in
folders of its own: what is interrupted continues, and what is trained is not trained again. The
epoch is chosen on dev, which no fold is part of.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from spmrl_bench.annotation.compare import compared_layers, disagreements
from spmrl_bench.annotation.differences import Disagreement
from spmrl_bench.errors import RecipeError
from spmrl_bench.experiments.campaign import train_all
from spmrl_bench.experiments.plan import Plan
from spmrl_bench.parsers.registry import kind_named, load_parser
from spmrl_bench.treebanks.folds import FoldTreebank, fold_treebanks
from spmrl_bench.treebanks.reading import Origin


@dataclass(frozen=True)
class Folded:
    """The trainings of all folds.

    Attributes:
        work: of the whole treebank, with one variant and one seed.
        plans: of each fold.
        origins: where each training sentence stands, if that is known.
    """

    work: Plan
    plans: tuple[Plan, ...]
    origins: list[Origin] | None


def folded(work: Plan, folds: int) -> Folded:
    """The trainings of the folds of a plan's treebank, divided by the seed of its run.

    Raises:
        RecipeError: the plan has several runs.
        TreebankError: the treebank cannot be divided into so many folds.
    """
    if len(work.configs) > 1:
        names = list(dict.fromkeys(config.variant for config in work.configs))
        raise RecipeError(
            f"--folds trains {folds} parsers of one variant with one seed; the recipe has the "
            f"variants {', '.join(names)}: name one with --variant"
        )
    (config,) = work.configs
    bank, layers = work.treebank, kind_named(config.kind).layers
    origins = bank.origins("train")
    plans = []
    for fold in fold_treebanks(bank, folds, config.seed, origins):
        fingerprint = "+".join(fold.fingerprint_of(layer) for layer in layers)
        own = config.model_copy(update={"treebank": fold.name, "fingerprint": fingerprint})
        plans.append(Plan(fold, (own,), f"{work.note}, without {len(fold.held_out):,} sentences"))
    return Folded(work, tuple(plans), origins)


def cross_parsed(
    work: Folded,
    *,
    runs_dir: Path,
    device: str = "auto",
    jobs: int | None = None,
    fresh: bool = False,
) -> Iterator[Disagreement]:
    """Train what is missing, and yield the training sentences on which gold and parsers differ.

    Their numbers are those of the training split.

    Raises:
        SpmrlError: as of training and of :func:`~spmrl_bench.annotation.compare.disagreements`.
    """
    train_all(work.plans, runs_dir=runs_dir, device=device, jobs=jobs, fresh=fresh)
    bank = work.work.treebank
    for plan in work.plans:
        (config,), fold = plan.configs, plan.treebank
        assert isinstance(fold, FoldTreebank)
        parser = load_parser(plan.folder(runs_dir, config), device)
        examples = bank.examples("train", compared_layers(parser))
        for found in disagreements(parser, [examples[place] for place in fold.held_out]):
            place = fold.held_out[found.number - 1]
            yield replace(found, number=place + 1)
