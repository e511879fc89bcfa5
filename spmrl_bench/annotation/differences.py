"""What a parser would rather have than the annotation: single decisions, and a sentence of them.

A parse differs from gold in some decisions: the label of a span, or that it is no constituent; the
head and the relation of a word. Each has a *margin*, what the parser would give up to decide it as
gold does. An error of annotation is one decision, or a few that follow from each other (a phrase
that is attached higher is in one constituent less and in another more), so that decisions are
what is looked at: the lead of a whole tree over the gold tree grows with the length of the
sentence, and with all the small doubts of the parser.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal, get_args

from spmrl_bench.parsers.base import MAX_TOKENS, Margin, Parser
from spmrl_bench.trees.parse import Layer, Parse

#: By what sentences are ranked; see :data:`_VALUES`.
Order = Literal["suspicion", "margin", "mean", "total", "differences", "share"]
ORDERS: tuple[Order, ...] = get_args(Order)
#: With so many differences in a sentence, a margin counts half.
CONFUSING = 10


@dataclass(frozen=True, slots=True)
class Disagreement:
    """A sentence, by its number in the split from 1, on which gold and parser differ.

    There is a difference at least; those of constituents come first, in the order of the sentence.
    """

    number: int
    gold: Parse
    parser: Parse
    differences: tuple[Margin, ...]

    @property
    def margin(self) -> float:
        """The largest margin of a decision."""
        return max(each.margin for each in self.differences)


def disagreements(
    parser: Parser, gold: Sequence[Parse], *, max_tokens: int = MAX_TOKENS
) -> Iterator[Disagreement]:
    """Yield the sentences on which a parser and gold differ, in no particular order.

    Args and errors are those of :meth:`~spmrl_bench.parsers.base.Parser.margins`.
    """
    for place, predicted, margins in parser.margins(gold, max_tokens=max_tokens):
        if margins:
            yield Disagreement(place + 1, gold[place], predicted, tuple(margins))


def _decisions(parse: Parse, layers: Iterable[Layer]) -> int:
    """Return how many decisions of these layers there are: constituents, and words."""
    return sum(
        len(parse.tree.labels) if layer == "constituents" and parse.tree is not None else len(parse)
        for layer in layers
    )


def ranked(
    found: Sequence[Disagreement], by: Order = "suspicion", layer: Layer | None = None
) -> list[Disagreement]:
    """The sentences, the most suspicious first; of equal ones that which comes first.

    Where both layers are compared, the margins of each count in units of their mean over all
    differences of the layer, since scores of trees and logarithms of odds are not the same.

    Args:
        by: ``margin``, the decision of which the parser is surest; ``suspicion``, the same, but
            less the more decisions differ, for a parser may be sure of one thing in a sentence
            that it has understood, or lost; ``mean``, the mean over the decisions that differ;
            ``total``, their sum; ``differences``, their number; ``share``, their number by that
            of all decisions in gold.
        layer: only the differences of this layer count, and sentences without any are left out.
    """
    kept = [
        replace(each, differences=own)
        for each in found
        if (own := tuple(one for one in each.differences if layer in (None, one.layer)))
    ]
    units, value = _units(kept), _VALUES[by]
    return sorted(kept, key=lambda each: (-value(each, units), each.number))


def _units(found: Sequence[Disagreement]) -> dict[Layer, float]:
    margins: dict[Layer, list[float]] = {}
    for each in found:
        for one in each.differences:
            margins.setdefault(one.layer, []).append(one.margin)
    # All may be 0, or the least likely ones negative; then there is nothing to compare.
    return {
        layer: mean if (mean := sum(own) / len(own)) > 0 else 1.0 for layer, own in margins.items()
    }


def _margins(each: Disagreement, units: dict[Layer, float]) -> list[float]:
    return [one.margin / units[one.layer] for one in each.differences]


_VALUES: dict[Order, Callable[[Disagreement, dict[Layer, float]], float]] = {
    "suspicion": lambda each, units: (
        max(_margins(each, units)) / (1 + len(each.differences) / CONFUSING)
    ),
    "margin": lambda each, units: max(_margins(each, units)),
    "mean": lambda each, units: sum(_margins(each, units)) / len(each.differences),
    "total": lambda each, units: sum(_margins(each, units)),
    "differences": lambda each, units: len(each.differences),
    "share": lambda each, units: (
        len(each.differences)
        / max(1, _decisions(each.gold, dict.fromkeys(one.layer for one in each.differences)))
    ),
}
