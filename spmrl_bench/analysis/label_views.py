"""What each head of label attention sees in a sentence, and what it says of each token.

Mrini et al. 2020 (section 4.5) ask which heads are behind a label: a head whose features are the
larger part of a span vector has contributed to its label, and the words that it takes its context
from say why. Both are read off here while a trained parser reads a sentence.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from spmrl_bench.errors import SpmrlError
from spmrl_bench.nn.label_attention import LabelAttentionLayer, LabelView

if TYPE_CHECKING:
    from spmrl_bench.parsers.base import Parser


def label_layer_of(parser: Parser) -> LabelAttentionLayer:
    """The label attention of a parser.

    Raises:
        SpmrlError: it has none.
    """
    layer = getattr(getattr(parser, "encoder", None), "label_attention", None)
    if not isinstance(layer, LabelAttentionLayer):
        raise SpmrlError(
            "the parser has no label attention to show. Choose one that was trained with "
            "model.label_attention=true"
        )
    return layer


def label_view(
    parser: Parser, words: Sequence[str], tags: Sequence[str] | None = None
) -> LabelView:
    """Weights and contributions of every head for one sentence.

    Args:
        parser: with label attention.
        words: of the sentence, at least one.
        tags: of the words, for a parser that reads them.

    Returns:
        Of the ``n + 2`` tokens, of which token 0 is START and token 1 the first word;
        ``view.of_span(i, j)`` is what each head contributes to the vector of a span.

    Raises:
        SpmrlError: the parser has no label attention, or there are no words.
        SentenceTooLongError, TreeError: as of :meth:`Parser.parse`.
    """
    layer = label_layer_of(parser)
    if not words:
        raise SpmrlError("a sentence without words has no attention to show")
    found: list[LabelView] = []

    def note(_: Any, given: tuple[Any, ...]) -> None:
        found.extend(layer.views(*given))

    handle = layer.register_forward_pre_hook(note)
    try:
        list(parser.parse([words], None if tags is None else [tags]))
    finally:
        handle.remove()
    return found[0]
