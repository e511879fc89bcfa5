"""What each head of a trained parser looks at: its attention weights as numbers.

The kernels never hold these weights as a whole, so they are computed here a second time, by the
definition, from what each layer is given while the parser reads the sentence. In the factored
encoder of Kitaev & Klein 2018 (section 4) a weight comes from the sum of two products, one of
contents and one of positions; each alone gives weights too, and these say what the head would
look at if it had nothing but the content, or the position, to go by.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Literal, get_args

import torch
from torch import Tensor

from spmrl_bench.errors import SpmrlError
from spmrl_bench.nn.encoder import Encoder, SelfAttention
from spmrl_bench.nn.limits import Limit
from spmrl_bench.nn.ragged import Ragged

if TYPE_CHECKING:
    from spmrl_bench.parsers.base import Parser

Part = Literal["content", "position", "combined"]
PARTS: tuple[Part, ...] = get_args(Part)


def encoder_of(parser: Parser) -> Encoder:
    """The encoder of a parser, whose attention can be shown and limited.

    Raises:
        SpmrlError: the parser has none, or another one.
    """
    encoder = getattr(parser, "encoder", None)
    if not isinstance(encoder, Encoder):
        kind = type(encoder).__name__
        found = "it has no encoder" if encoder is None else f"its encoder is a {kind}"
        raise SpmrlError(
            f"the parser has no attention that could be shown or limited: {found}. Choose one that "
            "was trained with model.encoder=attention"
        )
    return encoder


@contextmanager
def limited(parser: Parser, limits: Mapping[int, Limit]) -> Iterator[None]:
    """Within it the attention of a parser has these limits, by layer; without any all stays.

    Raises:
        SpmrlError: there are limits, but no attention.
    """
    if not limits:
        yield
        return
    encoder = encoder_of(parser)
    trained = dict(enumerate(encoder.limits))
    encoder.limit(limits)
    try:
        yield
    finally:
        encoder.limit(trained)


def parts_of(parser: Parser) -> tuple[Part, ...]:
    """Whose weights a parser has: of both products, or only all in one."""
    return PARTS if encoder_of(parser).halves else ("combined",)


def attention_maps(
    parser: Parser,
    words: Sequence[str],
    tags: Sequence[str] | None = None,
    *,
    part: Part = "combined",
) -> Tensor:
    """Attention weights of every head for one sentence.

    Args:
        parser: with limits of its attention, if it has any.
        words: of the sentence, at least one.
        tags: of the words, for a parser that reads them.
        part: ``combined`` for the weights that the parser uses; ``content`` or ``position`` for
            those of one product alone, over the same tokens.

    Returns:
        float32 ``[layers, heads, n + 2, n + 2]`` on the CPU: entry ``[l, h, i, j]`` is how much
        token ``i`` takes of token ``j``, where token 0 is START, 1 the first word and ``n + 1``
        STOP. The layers and heads count from 0. Every row sums to 1.

    Raises:
        SpmrlError: the encoder has no attention, or content and position are not apart in it.
        SentenceTooLongError, TreeError: as of :meth:`Parser.parse`.
    """
    encoder = encoder_of(parser)
    if part not in parts_of(parser):
        raise SpmrlError(
            f"attention to the {part} alone can be told apart only in an encoder with "
            "model.position=concatenated and model.matrices=factored; of this parser there is "
            "'combined'"
        )
    if not words:
        raise SpmrlError("a sentence without words has no attention to show")
    with _observed(encoder) as seen:
        list(parser.parse([words], None if tags is None else [tags]))
    size = len(words) + 2
    if not seen:
        return torch.empty(0, 0, size, size)
    return torch.stack([_weights(module, part, *given) for module, given in seen]).cpu()


_Seen = list[tuple[SelfAttention, tuple[Any, ...]]]


@contextmanager
def _observed(encoder: Encoder) -> Iterator[_Seen]:
    """Within it the encoder works layer by layer, and what each attention is given is listed."""
    seen: _Seen = []

    def note(module: Any, given: tuple[Any, ...]) -> None:
        seen.append((module, given))

    handles = [
        layer.attention.register_forward_pre_hook(note)  # type: ignore[union-attr]
        for layer in encoder.layers
    ]
    fused = encoder.fused
    encoder.fused = False  # the kernels do not call the layers one by one
    try:
        yield seen
    finally:
        encoder.fused = fused
        for handle in handles:
            handle.remove()


@torch.no_grad()
def _weights(
    attention: SelfAttention,
    part: Part,
    rows: Tensor,
    layout: Ragged,
    limit: Limit,
    asking: Tensor | None,
) -> Tensor:
    """``[heads, tokens, tokens]`` for one sentence, from what the attention was given."""
    heads = attention.heads
    # Queries, keys and values of all heads, in this order.
    joined = attention.project.to_heads((rows if asking is None else asking).float(), 3 * heads)
    query = joined[:, :heads].transpose(0, 1)
    key = joined[:, heads : 2 * heads].transpose(0, 1)
    if part == "combined":
        query = limit.queries(query)
    else:
        half = 0 if part == "content" else 1
        query, key = query.chunk(2, dim=-1)[half], key.chunk(2, dim=-1)[half]
    products = query @ key.transpose(1, 2) * attention.factor
    allowed = limit.pairs(layout)[0]
    return products.masked_fill(~allowed, -torch.inf).softmax(dim=-1)
