"""Sentences beside what a parser finds in them and what its heads of label attention gave it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from spmrl_bench.errors import TreeError
from spmrl_bench.parsers.base import MAX_TOKENS
from spmrl_bench.trees.tree import LabeledSpan, Tree, collapsed_spans

if TYPE_CHECKING:
    from spmrl_bench.parsers.base import Parser
    from spmrl_bench.parsers.views import HeadOutputs


class Asked(NamedTuple):
    """A sentence that the parser is to read."""

    words: Sequence[str]
    tags: Sequence[str] | None = None
    """Of its words, for a parser that reads them."""
    gold: Tree | None = None
    """What is right, where that is known."""


class Observed(NamedTuple):
    """What the parser found in a sentence."""

    asked: Asked
    tree: Tree
    """What the parser found, with the tags that were given or that it predicts."""
    rows: list[LabeledSpan]
    """The predicted constituents as labelled spans, unary chains as one, in pre-order."""
    heads: HeadOutputs


def observe(
    parser: Parser, sentences: Iterable[Asked], *, max_tokens: int = MAX_TOKENS
) -> Iterator[Observed]:
    """Parse sentences and see what the heads gave each, as of :meth:`Parser.head_outputs`.

    Raises:
        TreeError: as there, or a gold tree has other words than its sentence.
    """
    waiting: dict[int, Asked] = {}

    def given() -> Iterator[tuple[Sequence[str], Sequence[str] | None]]:
        for place, each in enumerate(sentences):
            if each.gold is not None and tuple(each.gold.words) != tuple(each.words):
                raise TreeError(
                    f"sentence {place + 1}: the words of the gold tree are others: "
                    f"'{' '.join(each.gold.words[:8])}' and '{' '.join(each.words[:8])}'"
                )
            if each.words:
                waiting[place] = each
            yield each.words, each.tags

    outputs = parser.head_outputs(given(), max_tokens=max_tokens)  # refuses before it reads
    return (_observed(waiting.pop(heads.place), heads) for heads in outputs)


def _observed(asked: Asked, heads: HeadOutputs) -> Observed:
    tree = heads.predicted.tree
    assert tree is not None  # of a parser that labels spans
    return Observed(asked, tree, list(collapsed_spans(tree)), heads)
