"""What a parser would rather have than the annotation: single decisions, and a sentence of them.

A parse differs from gold in some decisions: the label of a span, or that it is no constituent; the
head and the relation of a word. Each has a *margin*, what the parser would give up to decide it as
gold does. An error of annotation is one decision, or a few that follow from each other (a phrase
that is attached higher is in one constituent less and in another more), so that decisions are
what is looked at: the margin of a whole tree over the gold tree grows with the length of the
sentence, and with all the small doubts of the parser.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from spmrl_bench.parsers.base import Margin, Parser
from spmrl_bench.trees.parse import Layer, Parse

#: With so many differences in a sentence, a margin counts half: the parser has not understood it.
CONFUSING = 10


class Disagreement(NamedTuple):
    """A sentence, by its number in the split from 1, on which gold and parser differ.

    There is a difference at least; those of constituents come first, in the order of the sentence.
    """

    number: int
    gold: Parse
    parser: Parse
    differences: list[Margin]


def disagreements(
    parser: Parser, gold: Sequence[Parse], layer: Layer | None = None
) -> list[Disagreement]:
    """The sentences on which a parser and gold differ, the most suspicious first.

    They are ordered by their largest margin, which counts less the more decisions differ. Scores
    of trees and logarithms of odds are not the same, so the margins of each layer are in units of
    their mean. With ``layer`` only its differences count.

    Raises:
        UnsupportedError, SpmrlError: as of :meth:`~spmrl_bench.parsers.base.Parser.margins`.
    """
    return ranked(
        [
            Disagreement(place + 1, gold[place], predicted, own)
            for place, predicted, margins in parser.margins(gold)
            if (own := [one for one in margins if layer in (None, one.layer)])
        ]
    )


def ranked(found: Sequence[Disagreement]) -> list[Disagreement]:
    """The most suspicious sentences first; of equal ones that which comes first."""
    margins: dict[Layer, list[float]] = {}
    for each in found:
        for one in each.differences:
            margins.setdefault(one.layer, []).append(one.margin)
    # All may be 0, or the least likely ones negative; then there is nothing to compare.
    means = {layer: sum(own) / len(own) for layer, own in margins.items()}
    units = {layer: mean if mean > 0 else 1.0 for layer, mean in means.items()}

    def suspicion(each: Disagreement) -> float:
        largest = max(one.margin / units[one.layer] for one in each.differences)
        return largest / (1 + len(each.differences) / CONFUSING)

    return sorted(found, key=lambda each: (-suspicion(each), each.number))
