"""A treebank of which a part of the training sentences is held out, fold by fold.

Whoever looks for errors in training data needs parses of them by a parser that has not learnt
them. The training sentences are divided into folds, and for each fold there is a treebank without
it, which is trained on like any other: it has a name and a fingerprint of its own, so that its
runs have folders of their own, are resumed, and are never taken for runs of the whole.

The sentences of a document resemble each other in names and errors, so they are kept together where
documents are known: as the files of a treebank that has many.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from typing import Any

from spmrl_bench.errors import TreebankError
from spmrl_bench.treebanks.cache import digest
from spmrl_bench.treebanks.reading import Origin, SplitContent
from spmrl_bench.treebanks.treebank import Treebank
from spmrl_bench.trees.parse import Layer


class FoldTreebank(Treebank):
    """A treebank without one fold of its training sentences; dev and test are as they are.

    Attributes:
        held_out: places, from 0, of the training sentences that it lacks, ascending.
    """

    def __init__(self, whole: Treebank, name: str, held_out: Sequence[int]) -> None:
        """The treebank ``whole`` without these sentences, under another name."""
        self.__dict__.update(whole.__dict__)
        self._whole = whole
        self.name = name
        self.held_out = tuple(held_out)
        self._left: dict[Layer, SplitContent] = {}

    def __getstate__(self) -> dict[str, Any]:
        return super().__getstate__() | {"_left": {}}

    def _content(self, split: str, layer: Layer | None = None) -> SplitContent:
        content = self._whole._content(split, layer)
        if split != "train":
            return content
        layer = layer or self.layers[0]
        if layer not in self._left:
            without = set(self.held_out)
            kept = [each for k, each in enumerate(content.sentences) if k not in without]
            self._left[layer] = SplitContent(kept, content.dropped, content.skipped)
        return self._left[layer]

    def fingerprint_of(self, layer: Layer) -> str:
        return digest({"of": self._whole.fingerprint_of(layer), "without": self.held_out})

    def origins(self, split: str) -> list[Origin] | None:
        found = self._whole.origins(split)
        if found is None or split != "train":
            return found
        without = set(self.held_out)
        return [each for k, each in enumerate(found) if k not in without]


def fold_treebanks(
    bank: Treebank, folds: int, seed: int, origins: Sequence[Origin] | None = None
) -> list[FoldTreebank]:
    """For each fold the treebank without it, ``NAME+fold1of5`` and so on.

    Args:
        bank: the whole.
        folds: at least 2.
        seed: of the division.
        origins: of the training sentences, where they are known.

    Raises:
        TreebankError: there are fewer training sentences than folds, or fewer than 2 folds.
    """
    sentences = len(bank.content("train").sentences)
    if not 2 <= folds <= sentences:
        raise TreebankError(
            f"{bank.name}: {folds} folds of {sentences:,} training sentences: at least 2 folds "
            "are needed, and a sentence for each"
        )
    documents = None if origins is None else [str(each.path) for each in origins]
    fold_of = divided(documents or [""] * sentences, folds, seed)
    return [
        FoldTreebank(
            bank,
            f"{bank.name}+fold{fold + 1}of{folds}",
            [place for place, own in enumerate(fold_of) if own == fold],
        )
        for fold in range(folds)
    ]


def divided(documents: Sequence[str], folds: int, seed: int) -> list[int]:
    """The fold, from 0, of each sentence, such that they are about equally large.

    Documents are kept whole if there are as many as folds, and none is larger than two folds should
    be; if not, every sentence goes its own way.

    Args:
        documents: of each sentence, by name.
        folds: how many.
        seed: the same seed divides the same sentences alike.
    """
    sizes = Counter(documents)
    together = len(sizes) >= folds and max(sizes.values()) <= 2 * len(documents) / folds
    units: list[object] = list(documents if together else range(len(documents)))
    counts = Counter(units)
    order = list(counts)
    random.Random(f"folds {seed}").shuffle(order)
    order.sort(key=lambda unit: -counts[unit])  # the largest first, of equal ones as shuffled
    filled = [0] * folds
    chosen: dict[object, int] = {}
    for unit in order:
        chosen[unit] = min(range(folds), key=filled.__getitem__)
        filled[chosen[unit]] += counts[unit]
    return [chosen[unit] for unit in units]
