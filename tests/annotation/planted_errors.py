"""How many planted errors each way of looking for errors lists first.

Fifty errors are planted in about two thousand sentences (:mod:`tests.annotation.planting`), and
counted among the first 50, 100, 200 and 400 sentences that a method lists:

    python -m tests.annotation.planted_errors variation TREEBANK --of constituents --context tags
    python -m tests.annotation.planted_errors run RUN --layer constituents
    python -m tests.annotation.planted_errors folds RECIPE --variant constituents --folds 5 \
        --runs runs --set train.max_epochs=12

``variation`` plants in the training split. ``run`` plants in the dev split of a run's treebank, of
a mini treebank in two thousand new sentences of its grammar, which the run has not seen either.
``folds`` plants in the training split, and trains on it, errors and all, as one would.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Self

from spmrl_bench.annotation.compare import compared_layers, disagreements
from spmrl_bench.annotation.cross_parsing import cross_parsed, folded
from spmrl_bench.annotation.differences import ORDERS, ranked
from spmrl_bench.annotation.treebank_variation import suspects
from spmrl_bench.cli.options import parse_settings
from spmrl_bench.experiments.plan import Plan, make_plan
from spmrl_bench.experiments.run_folder import read_config
from spmrl_bench.parsers.registry import kind_named, load_parser
from spmrl_bench.treebanks.cache import digest
from spmrl_bench.treebanks.manifest import MiniManifest
from spmrl_bench.treebanks.mini.generate import generate
from spmrl_bench.treebanks.reading import SplitData, transform_parse
from spmrl_bench.treebanks.treebank import Treebank, open_treebank
from spmrl_bench.trees.parse import Layer, Parse
from tests.annotation.planting import Planted, plant

ERRORS = 50
CUTS = (50, 100, 200, 400)
#: Of the sentences that a mini treebank's grammar makes besides the treebank's own.
FRESH_SEED = 77


class PlantedTreebank(Treebank):
    """A treebank with errors in its training split."""

    planted: list[Planted]

    @classmethod
    def of(cls, whole: Treebank, errors: int, seed: int, layer: Layer) -> Self:
        bank = object.__new__(cls)
        bank.__dict__.update(whole.__dict__)
        bank._whole, bank._errors = whole, (errors, seed, layer)  # type: ignore[attr-defined]
        bank.name = f"{whole.name}+planted"
        bank.planted = plant(whole.examples("train", [layer]), errors, seed, layer)[1]
        return bank

    def _content(self, split: str, layer: Layer | None = None) -> SplitData:
        content: SplitData = self._whole._content(split, layer)  # type: ignore[attr-defined]
        errors, seed, own = self._errors  # type: ignore[attr-defined]
        if split != "train" or own not in content.sentences[0].layers:
            return content
        changed, _ = plant(content.sentences, errors, seed, own)
        return SplitData(changed, content.dropped, content.skipped)

    def fingerprint_of(self, layer: Layer) -> str:
        return digest([self._whole.fingerprint_of(layer), self._errors])  # type: ignore[attr-defined]


def planted_plan(work: Plan, seed: int, layer: Layer, errors: int = ERRORS) -> Plan:
    """The plan with errors in its treebank."""
    bank = PlantedTreebank.of(work.treebank, errors, seed, layer)
    (config,) = work.configs
    layers = kind_named(config.kind).layers
    fingerprint = "+".join(bank.fingerprint_of(each) for each in layers)
    own = config.model_copy(update={"treebank": bank.name, "fingerprint": fingerprint})
    return Plan(bank, (own,), work.note)


def counted(listed: Sequence[int], planted: Iterable[Planted]) -> dict[int, int]:
    """How many planted errors are among the first sentences, for each of the CUTS."""
    wrong = {each.sentence + 1 for each in planted}
    return {cut: len(wrong & set(listed[:cut])) for cut in CUTS}


def by_folds(
    work: Plan,
    folds: int,
    runs: Path,
    seed: int,
    layer: Layer,
    errors: int = ERRORS,
    **options: Any,
) -> dict[str, dict[int, int]]:
    """The counts of each order, by parsers that have not seen the sentences."""
    plan = planted_plan(work, seed, layer, errors)
    assert isinstance(plan.treebank, PlantedTreebank)
    found = list(cross_parsed(folded(plan, folds), runs_dir=runs, **options))
    return {
        by: counted([each.number for each in ranked(found, by)], plan.treebank.planted)
        for by in ORDERS
    }


def by_run(run: Path, seed: int, layer: Layer) -> dict[str, dict[int, int]]:
    """The counts of each order, by a run's parser."""
    parser = load_parser(run, "cpu")
    layers = compared_layers(parser)
    sentences = unseen(open_treebank(read_config(run / "run.json").treebank), layers)
    changed, planted = plant(sentences, ERRORS, seed, layer)
    found = list(disagreements(parser, changed))
    print(f"{len(sentences)} sentences, {len(found)} on which the parser and gold differ")
    return {by: counted([each.number for each in ranked(found, by)], planted) for by in ORDERS}


def unseen(bank: Treebank, layers: Sequence[Layer]) -> list[Parse]:
    """The dev split, or new sentences of a mini treebank's grammar."""
    manifest = bank.manifest
    if not isinstance(manifest, MiniManifest):
        return bank.examples("dev", layers)
    made = generate(manifest.grammar, {"train": 2000, "dev": 1, "test": 1}, FRESH_SEED)["train"]
    kept = [transform_parse(manifest.transforms, each) for each in made]
    return [each for each in kept if each is not None]


def by_variation(bank: Treebank, of: Any, seed: int, **options: Any) -> dict[str, dict[int, int]]:
    """The counts of variation."""
    changed, planted = plant(bank.examples("train", [of]), ERRORS, seed, of)
    found = suspects(changed, of, **options)
    print(f"{len(changed)} sentences, {len(found)} with variation")
    return {"variation": counted([each.number for each in found], planted)}


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("method", choices=["variation", "run", "folds"])
    arguments.add_argument("what", help="treebank, run folder, or language")
    arguments.add_argument("--of", "--layer", dest="layer", default="constituents")
    arguments.add_argument("--seed", type=int, default=1, help="of the planted errors")
    arguments.add_argument("--nucleus", default="words")
    arguments.add_argument("--context", default="words")
    arguments.add_argument("--folds", type=int, default=5)
    arguments.add_argument("--treebank")
    arguments.add_argument("--variant")
    arguments.add_argument("--runs", type=Path, default=Path("runs"))
    arguments.add_argument("--jobs", type=int)
    arguments.add_argument("--set", action="append")
    given = arguments.parse_args()
    if given.method == "variation":
        units = {"nucleus": given.nucleus, "context": given.context}
        found = by_variation(open_treebank(given.what), given.layer, given.seed, **units)
    elif given.method == "run":
        found = by_run(Path(given.what), given.seed, given.layer)
    else:
        work = make_plan(
            given.what,
            treebank=given.treebank,
            variants=[given.variant] if given.variant else None,
            settings=parse_settings(given.set),
        )
        found = by_folds(work, given.folds, given.runs, given.seed, given.layer, jobs=given.jobs)
    for name, counts in found.items():
        print(f"{name:12} " + ", ".join(f"{n} in the first {cut}" for cut, n in counts.items()))


if __name__ == "__main__":
    main()
