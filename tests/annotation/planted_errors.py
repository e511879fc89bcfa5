"""How many planted errors each way of looking for errors lists first.

Fifty errors are planted in about two thousand sentences (:mod:`tests.annotation.planting`), and
counted among the first 50, 100, 200 and 400 sentences that a method lists:

    python -m tests.annotation.planted_errors variation TREEBANK --of constituents --context tags
    python -m tests.annotation.planted_errors run RUN --layer constituents

``variation`` plants in the training split, ``run`` in the dev split of a run's treebank.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from spmrl_bench.annotation.differences import ORDERS, disagreements, ranked
from spmrl_bench.annotation.treebank_variation import suspects
from spmrl_bench.experiments.run_folder import read_config
from spmrl_bench.parsers.registry import kind_named
from spmrl_bench.parsing.models import load_parser
from spmrl_bench.treebanks.treebank import Treebank, open_treebank
from spmrl_bench.trees.parse import Layer
from tests.annotation.planting import Planted, plant

ERRORS = 50
CUTS = (50, 100, 200, 400)


def counted(listed: Sequence[int], planted: Iterable[Planted]) -> dict[int, int]:
    """How many planted errors are among the first sentences, for each of the CUTS."""
    wrong = {each.sentence + 1 for each in planted}
    return {cut: len(wrong & set(listed[:cut])) for cut in CUTS}


def by_run(run: Path, seed: int, layer: Layer) -> dict[str, dict[int, int]]:
    """The counts of each order, by a run's parser."""
    parser = load_parser(run, "cpu")
    layers = kind_named(parser.kind).layers
    sentences = open_treebank(read_config(run / "run.json").treebank).examples("dev", layers)
    changed, planted = plant(sentences, ERRORS, seed, layer)
    found = list(disagreements(parser, changed))
    print(f"{len(sentences)} sentences, {len(found)} on which the parser and gold differ")
    return {by: counted([each.number for each in ranked(found, by)], planted) for by in ORDERS}


def by_variation(bank: Treebank, of: Any, seed: int, **options: Any) -> dict[str, dict[int, int]]:
    """The counts of variation."""
    changed, planted = plant(bank.examples("train", [of]), ERRORS, seed, of)
    found = suspects(changed, of, **options)
    print(f"{len(changed)} sentences, {len(found)} with variation")
    return {"variation": counted([each.number for each in found], planted)}


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("method", choices=["variation", "run"])
    arguments.add_argument("what", help="treebank, or run folder")
    arguments.add_argument("--of", "--layer", dest="layer", default="constituents")
    arguments.add_argument("--seed", type=int, default=1, help="of the planted errors")
    arguments.add_argument("--nucleus", default="words")
    arguments.add_argument("--context", default="words")
    given = arguments.parse_args()
    if given.method == "variation":
        units = {"nucleus": given.nucleus, "context": given.context}
        found = by_variation(open_treebank(given.what), given.layer, given.seed, **units)
    else:
        found = by_run(Path(given.what), given.seed, given.layer)
    for name, counts in found.items():
        print(f"{name:12} " + ", ".join(f"{n} in the first {cut}" for cut, n in counts.items()))


if __name__ == "__main__":
    main()
