"""What a parser would rather have than the annotation: single decisions, and a sentence of them.

A parse differs from gold in some decisions: the label of a span, or that it is no constituent; the
head and the relation of a word. Each has a *margin*, what the parser would give up to decide it as
gold does. An error of annotation is one decision, or a few that follow from each other (a phrase
that is attached higher is in one constituent less and in another more), so that decisions are
what is looked at: the lead of a whole tree over the gold tree grows with the length of the
sentence, and with all the small doubts of the parser.

Margins of spans are differences of scores of trees, those of words are natural logarithms of odds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from spmrl_bench.trees.parse import Layer, Parse
from spmrl_bench.trees.tree import Label

#: By what sentences are ranked; see :data:`_VALUES`.
Order = Literal["suspicion", "margin", "mean", "total", "differences", "share"]
ORDERS: tuple[Order, ...] = get_args(Order)
#: With so many differences in a sentence, a margin counts half.
CONFUSING = 10


@dataclass(frozen=True, slots=True)
class Difference:
    """A decision on which gold and parser differ.

    Attributes:
        layer: of the decision.
        start, end: fenceposts of the span; of a dependency those of the word.
        gold, parser: the labels of the span, unary chains joined by ``+``, empty where there is
            no constituent; of a dependency the relations.
        margin: what the parser would give up to decide it as gold does.
        known: whether the parser knows the label of gold. If not, the margin is that of the best
            other label than its own, which the unknown one costs at least.
        gold_head, parser_head: of a dependency the number of the head, from 1, or 0 for the root;
            None of a span.
    """

    layer: Layer
    start: int
    end: int
    gold: str
    parser: str
    margin: float
    known: bool = True
    gold_head: int | None = None
    parser_head: int | None = None


@dataclass(frozen=True, slots=True)
class Disagreement:
    """A sentence on which gold and parser differ.

    Attributes:
        number: of the sentence in its split, from 1.
        gold, parser: the two annotations.
        differences: at least one, those of constituents first, in the order of the sentence.
    """

    number: int
    gold: Parse
    parser: Parse
    differences: tuple[Difference, ...]

    @property
    def margin(self) -> float:
        """The largest margin of a decision."""
        return max(each.margin for each in self.differences)


def label_text(label: Label) -> str:
    """A unary chain, its nonterminals joined by ``+``."""
    return "+".join(label)


def decisions(parse: Parse, layers: Iterable[Layer]) -> int:
    """How many decisions of these layers an annotation has: its constituents and its words."""
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
        found: sentences.
        by: ``margin``, the decision of which the parser is surest; ``suspicion``, the same, but
            less the more decisions differ, for a parser may be sure of one thing in a sentence
            that it has understood, or lost; ``mean``, the mean over the decisions that differ;
            ``total``, their sum; ``differences``, their number; ``share``, their number by that
            of all decisions in gold.
        layer: only the differences of this layer count, and sentences without any are left out.
    """
    kept = list(found)
    if layer is not None:
        kept = [
            Disagreement(each.number, each.gold, each.parser, own)
            for each in found
            if (own := tuple(one for one in each.differences if one.layer == layer))
        ]
    units = _units(kept)
    value = _VALUES[by]
    keys = {each.number: value(each, units) for each in kept}
    return sorted(kept, key=lambda each: (-keys[each.number], each.number))


def _units(found: Sequence[Disagreement]) -> dict[Layer, float]:
    """The mean margin of the differences of each layer."""
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
        / max(1, decisions(each.gold, dict.fromkeys(one.layer for one in each.differences)))
    ),
}
