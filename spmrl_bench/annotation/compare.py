"""Parsing sentences and comparing them with their annotation, decision by decision.

The parser reads in its usual batches, so that a whole split takes little longer than its parse.
Each kind of parser has margins of its own, which are found while a batch is encoded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

import torch

from spmrl_bench.annotation.action_margins import action_differences
from spmrl_bench.annotation.arc_margins import arc_differences
from spmrl_bench.annotation.bracket_margins import bracket_differences
from spmrl_bench.annotation.differences import Difference, Disagreement
from spmrl_bench.errors import SentenceTooLongError, SpmrlError
from spmrl_bench.parsers.base import MAX_TOKENS
from spmrl_bench.parsers.chart_parser import ChartParser
from spmrl_bench.parsers.dependency_parser import DependencyParser
from spmrl_bench.parsers.form_cache import FormCache
from spmrl_bench.parsers.joint_parser import JointParser
from spmrl_bench.parsers.neural import Encoded, NeuralParser
from spmrl_bench.parsers.streams import windows
from spmrl_bench.parsers.transition_parser import TransitionParser
from spmrl_bench.trees.dependencies import DependencyTree
from spmrl_bench.trees.parse import Layer, Parse
from spmrl_bench.trees.tree import Tree

if TYPE_CHECKING:
    from spmrl_bench.parsers.base import Parser

#: The differences of some encoded sentences: gold and the parser's parses are given.
_Compare = Callable[[Encoded, Sequence[Parse], Sequence[Parse]], list[list[Difference]]]


def compared_layers(parser: Parser) -> tuple[Layer, ...]:
    """The layers on which a parser can be compared with annotation.

    Raises:
        SpmrlError: none, since it gives no scores that are known here.
    """
    if isinstance(parser, JointParser):
        return ("constituents", "dependencies")
    if isinstance(parser, ChartParser):
        return ("constituents",)
    if isinstance(parser, DependencyParser | TransitionParser):
        return ("dependencies",)
    raise SpmrlError(
        f"a parser of kind {parser.kind} does not tell how sure it is. Choose one of kind chart, "
        "joint, biaffine or transition"
    )


def disagreements(
    parser: Parser,
    gold: Sequence[Parse],
    *,
    max_tokens: int = MAX_TOKENS,
) -> Iterator[Disagreement]:
    """The sentences on which a parser and gold differ, in no particular order.

    Args:
        parser: a single one of kind ``chart``, ``joint``, ``biaffine`` or ``transition``.
        gold: sentences with the layers that the parser finds; those without words are passed over.
        max_tokens: bound on a batch.

    Raises:
        SpmrlError: the parser is another one.
        SentenceTooLongError: a sentence has no room in the parser.
        TreeError: the parser reads tags, and there are none.
    """
    compared_layers(parser)
    assert isinstance(parser, NeuralParser)  # as all that can be compared are
    compare = _comparing(parser)
    for number, sentence in enumerate(gold, start=1):
        if problem := parser.length_problem(sentence.words):
            raise SentenceTooLongError(f"sentence {number}: {problem}")
    lstm = parser.lexical.char_lstm
    forms = None if lstm is None else FormCache(lstm)
    done = 0
    for window in windows(iter(gold), len):
        words = [sentence.words for sentence in window]
        tags = [sentence.tags for sentence in window] if parser.reads_tags else None
        for encoded in parser.encoded(words, tags, max_tokens, forms):
            right = [window[place] for place in encoded.places]
            with torch.no_grad():
                own = [
                    found.parse(sentence.words, sentence.tags)
                    for found, sentence in zip(
                        parser.found_by([encoded], [parser]), right, strict=True
                    )
                ]
                differing = compare(encoded, right, own)
            for k, rows in enumerate(differing):
                if rows:
                    number = done + encoded.places[k] + 1
                    yield Disagreement(number, right[k], own[k], tuple(rows))
        done += len(window)


def _comparing(parser: NeuralParser) -> _Compare:
    """What compares the parses of a parser with gold."""
    if isinstance(parser, JointParser):
        return lambda encoded, gold, found: [
            [*of_spans, *of_words]
            for of_spans, of_words in zip(
                bracket_differences(parser, encoded, _trees(gold), _trees(found)),
                arc_differences(parser.dependencies, encoded, _arcs(gold), _arcs(found)),
                strict=True,
            )
        ]
    if isinstance(parser, ChartParser):
        return lambda encoded, gold, found: bracket_differences(
            parser, encoded, _trees(gold), _trees(found)
        )
    if isinstance(parser, DependencyParser):
        return lambda encoded, gold, found: arc_differences(
            parser.dependencies, encoded, _arcs(gold), _arcs(found)
        )
    assert isinstance(parser, TransitionParser)
    return lambda encoded, gold, found: action_differences(
        parser, encoded, _arcs(gold), _arcs(found)
    )


def _trees(parses: Sequence[Parse]) -> list[Tree]:
    return [parse.tree for parse in parses if parse.tree is not None]


def _arcs(parses: Sequence[Parse]) -> list[DependencyTree]:
    return [parse.dependencies for parse in parses if parse.dependencies is not None]
