"""What a parser finds in many sentences, beside what the heads of its label attention gave it.

Both analyses of heads need the same two things of a sentence: the spans that the parser labels,
and the features that each head gave its tokens. Reading a corpus twice, or one sentence at a
time, would be slow, and the features of a corpus do not fit into memory (112 heads of 128
features are 57 kB a token). So the parser reads in its usual batches, and each sentence is
handed on with its features while its batch is there.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

from spmrl_bench.analysis.label_views import label_layer_of
from spmrl_bench.errors import SentenceTooLongError, SpmrlError, TreeError
from spmrl_bench.nn.label_attention import LabelView
from spmrl_bench.parsers.base import MAX_TOKENS
from spmrl_bench.parsers.chart_parser import ChartParser
from spmrl_bench.parsers.ensemble import Ensemble
from spmrl_bench.parsers.form_cache import FormCache
from spmrl_bench.parsers.streams import windows
from spmrl_bench.trees.tree import LabeledSpan, Tree, collapsed_spans

if TYPE_CHECKING:
    from spmrl_bench.parsers.base import Parser


class Asked(NamedTuple):
    """A sentence that the parser is to read."""

    words: Sequence[str]
    tags: Sequence[str] | None = None
    """Of its words, for a parser that reads them."""
    gold: Tree | None = None
    """What is right, where that is known."""


class Observed(NamedTuple):
    """What the parser found in a sentence."""

    place: int
    """Which of the sentences it is, the first being 0."""
    asked: Asked
    tree: Tree
    """What the parser found, with the tags that were given or that it predicts."""
    rows: list[LabeledSpan]
    """The predicted constituents as labelled spans, unary chains as one, in pre-order."""
    view: LabelView
    """What the heads gave; its ``blocks`` are there."""


def parser_of_heads(parser: Parser) -> ChartParser:
    """The parser, if parts of its span vectors are those of heads.

    Raises:
        SpmrlError: it is an ensemble, finds no constituents, has no label attention, or adds its
            heads up.
    """
    if isinstance(parser, Ensemble):
        raise SpmrlError(
            f"an ensemble of {len(parser.parsers)} parsers has heads of each of them; choose one"
        )
    layer = label_layer_of(parser)
    if not isinstance(parser, ChartParser):
        raise SpmrlError(
            f"a parser of kind {parser.kind} labels no spans to which heads could contribute. "
            "Choose one of kind chart or joint"
        )
    if not layer.concatenated:
        raise SpmrlError(
            "the parser adds the outputs of its heads up (model.label_outputs=projected), so no "
            "part of a span vector is that of a head. Choose one that was trained with "
            "model.label_outputs=concatenated"
        )
    return parser


@contextmanager
def evaluating(parser: ChartParser) -> Iterator[None]:
    """Within it nothing is dropped at random."""
    was_training = parser.training
    parser.eval()
    try:
        yield
    finally:
        parser.train(was_training)


def observe(
    parser: Parser, sentences: Iterable[Asked], *, max_tokens: int = MAX_TOKENS
) -> Iterator[Observed]:
    """Parse sentences and see what the heads gave each.

    Args:
        parser: a single one of kind ``chart`` or ``joint`` with concatenated label attention.
        sentences: read lazily, a window at a time; those without words are passed over.
        max_tokens: bound on a batch, as of :meth:`Parser.parse`.

    Yields:
        The sentences of a window in the order of its batches, which follows from their lengths.

    Raises:
        SpmrlError: the parser is another one.
        SentenceTooLongError: a sentence has no room in the parser.
        TreeError: the parser reads tags and there are none, they do not fit the words, or a gold
            tree has other words.
    """
    own = parser_of_heads(parser)
    layer = label_layer_of(own)
    lstm = own.lexical.char_lstm
    forms = None if lstm is None else FormCache(lstm)
    views: list[LabelView] = []

    def note(_: Any, given: tuple[Any, ...]) -> None:
        views[:] = layer.views(*given)

    done = 0
    for window in windows(_checked(own, sentences), lambda each: len(each.words)):
        tags = [each.tags or () for each in window] if own.reads_tags else None
        handle = layer.register_forward_pre_hook(note)
        try:
            words = [each.words for each in window]
            for encoded in own.encoded(words, tags, max_tokens, forms):
                results = own.found_by([encoded], [own])
                for k, found, view in zip(encoded.places, results, views, strict=True):
                    tree = found.parse(words[k], window[k].tags).tree
                    assert tree is not None  # of a chart parser
                    yield Observed(done + k, window[k], tree, list(collapsed_spans(tree)), view)
        finally:
            handle.remove()
        done += len(window)


def _checked(parser: ChartParser, sentences: Iterable[Asked]) -> Iterator[Asked]:
    """The sentences, or the error of the first that cannot be read."""
    for number, each in enumerate(sentences, start=1):
        words, tags, gold = each
        if problem := parser.length_problem(words):
            raise SentenceTooLongError(f"sentence {number}: {problem}")
        if gold is not None and tuple(gold.words) != tuple(words):
            raise TreeError(
                f"sentence {number}: the words of the gold tree are others: "
                f"'{' '.join(gold.words[:8])}' and '{' '.join(words[:8])}'"
            )
        if tags is not None and len(tags) != len(words):
            raise TreeError(f"sentence {number}: {len(words)} words but {len(tags)} tags")
        if tags is None and parser.reads_tags:
            raise TreeError(f"sentence {number}: this parser reads tags, but none are given")
        yield each
