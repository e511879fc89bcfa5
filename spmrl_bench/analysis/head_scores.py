"""What single heads of label attention do for the scores of labels.

How large the part of a head in a span vector is does not say what it is good for: the scorer may
ignore it, or hold it against the label. A label by itself says little as well: a head may raise
the scores of all labels. So a label is compared with a rival, and what is shared out among the
heads is its lead over the rival. There are two answers:

**Parts of the lead.** Between the features of the heads and a score there are linear maps, ReLUs
and layer norms. For one span the ReLUs are open or closed and the norms divide by some deviation;
with these held as they are the score is linear in the features, and exactly a sum of one part
for each head and a constant of the biases. (It is the gradient times the features, when no
gradient goes through the deviations; what else reads the span is settled, so each head has what
it brings into it.)

**The lead without a head.** The ``d_proj`` features of a head are set to zero in every token, as
they leave the heads, and all that follows (the feed-forward layer where there is one, the
fenceposts, the span scorer) is computed anew. That is what the parser itself would say. But heads
that know the same stand in for each other, and a layer norm makes up for what is missing, so
the changes can be much smaller than the parts, and need not sum up to anything.

In both the other heads, the chart and the scores of arcs stay as they are. Everything is computed
in float32, also of a parser with bf16, in whose numbers the small changes of single heads would
drown; its predictions are those of the parser as it is.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from spmrl_bench.analysis.label_views import label_layer_of
from spmrl_bench.analysis.observed import evaluating
from spmrl_bench.nn.norms import ReleasedLayerNorm
from spmrl_bench.nn.ragged import Ragged
from spmrl_bench.nn.span_scorer import fenceposts
from spmrl_bench.parsers.chart_parser import ChartParser

Span = tuple[int, int]

#: Features of the copies of a sentence that are worked on at once (64 MiB).
_FEATURES = 1 << 24


@torch.no_grad()
def label_scores(parser: ChartParser, blocks: Tensor, spans: Sequence[Span]) -> Tensor:
    """Scores of all labels of some spans, from what the heads give.

    Args:
        parser: with concatenated label attention.
        blocks: ``[copies, n, heads, d_proj]``: features of the tokens of a sentence, as in
            :class:`LabelView`, which may differ from copy to copy.
        spans: ``(start, end)`` fenceposts.

    Returns:
        float32 ``[copies, spans, labels]``; those of the empty label, the first, are zero.
    """
    copies, n = blocks.shape[:2]
    device, scorer = blocks.device, parser.scorer
    feed_forward = label_layer_of(parser).feed_forward
    with evaluating(parser), torch.autocast(device.type, enabled=False):
        rows = blocks.float().flatten(2).flatten(0, 1)
        if feed_forward is not None:
            layout = Ragged.of(np.full(copies, n, dtype=np.int64), device)
            rows = feed_forward(rows, layout)
        first = torch.arange(copies, device=device)[:, None]
        left = (first * n + torch.arange(n - 1, device=device)).flatten()
        projected = scorer.project(fenceposts(rows, left, parser.encoder.d_block))
        places = torch.tensor(list(spans), device=device).view(-1, 2).long()
        start, end = ((first * (n - 1) + column).flatten() for column in places.unbind(1))
        hidden = scorer.hidden(projected, start, end)
        scores = functional.linear(hidden, scorer.second.weight, scorer.second.bias)
        return functional.pad(scores, (1, 0)).view(copies, len(spans), -1)


def scores_without_each(
    parser: ChartParser, blocks: Tensor, spans: Sequence[Span]
) -> Iterator[Tensor]:
    """Label scores without one head, for some heads at a time and all heads in order.

    Args:
        parser, spans: as of :func:`label_scores`.
        blocks: ``[n, heads, d_proj]``, as in :class:`LabelView`.

    Yields:
        float32 ``[some heads, spans, labels]``.
    """
    heads = blocks.shape[1]
    most = max(1, _FEATURES // max(1, blocks.numel()))
    for low in range(0, heads, most):
        high = min(low + most, heads)
        copies = blocks.float().repeat(high - low, 1, 1, 1)
        copies[torch.arange(high - low), :, torch.arange(low, high)] = 0
        yield label_scores(parser, copies, spans)


def lead_without_each(
    parser: ChartParser,
    blocks: Tensor,
    spans: Sequence[Span],
    labels: Sequence[int],
    rivals: Sequence[int],
) -> Tensor:
    """How much of the lead of a label over its rival is gone without each head.

    Args:
        parser, blocks, spans: as of :func:`scores_without_each`.
        labels: index of the label of each span.
        rivals: likewise of its rival.

    Returns:
        float32 ``[spans, heads]``: lead with all heads less lead without one. Positive where the
        head speaks for the label.
    """
    whole = _leads(label_scores(parser, blocks[None], spans), labels, rivals)
    without = [
        _leads(scores, labels, rivals) for scores in scores_without_each(parser, blocks, spans)
    ]
    return (whole - torch.cat(without)).T


def lead_parts(
    parser: ChartParser,
    blocks: Tensor,
    spans: Sequence[Span],
    labels: Sequence[int],
    rivals: Sequence[int],
) -> Tensor:
    """What each head brings into the lead of a label over its rival.

    Args:
        parser, blocks, spans, labels, rivals: as of :func:`lead_without_each`.

    Returns:
        float32 ``[spans, heads]``. Their sum over the heads is the lead, but for the constant.
    """
    most = max(1, _FEATURES // max(1, 4 * blocks[0].numel()))
    parts = []
    for low in range(0, len(spans), most):
        chosen = slice(low, low + most)
        parts.append(_parts(parser, blocks, spans[chosen], labels[chosen], rivals[chosen]))
    return torch.cat(parts) if parts else blocks.new_zeros(0, blocks.shape[1])


def _parts(
    parser: ChartParser,
    blocks: Tensor,
    spans: Sequence[Span],
    labels: Sequence[int],
    rivals: Sequence[int],
) -> Tensor:
    """As of :func:`lead_parts`, of spans that fit into memory at once."""
    scorer = parser.scorer
    feed_forward = label_layer_of(parser).feed_forward
    start, end = torch.tensor(list(spans), device=blocks.device).long().unbind(1)
    # The tokens of each span, of which the first two give forward and the others backward parts.
    places = torch.stack((start, end, start + 1, end + 1))
    with (
        evaluating(parser),
        torch.enable_grad(),
        torch.autocast(blocks.device.type, enabled=False),
    ):
        features = blocks.detach().float()[places].requires_grad_()
        rows = features.flatten(2)
        if feed_forward is not None:
            expanded = feed_forward.expand(rows.flatten(0, 1)).relu()
            contracted = feed_forward.contract(expanded).view_as(rows)
            rows = _held_norm(feed_forward.norm, rows + contracted)
        forward, backward = rows.unflatten(2, (-1, 2, parser.encoder.d_block // 2)).unbind(3)
        vectors = torch.cat((forward[1] - forward[0], backward[3] - backward[2]), dim=1).flatten(1)
        hidden = _held_norm(scorer.norm, scorer.first(vectors)).relu()
        scores = functional.pad(scorer.second(hidden), (1, 0))
        lead = _leads(scores[None], labels, rivals).sum()
        (gradient,) = torch.autograd.grad(lead, features)
    return (gradient * features.detach()).sum(dim=(0, 3))


def _held_norm(norm: nn.LayerNorm | ReleasedLayerNorm, rows: Tensor) -> Tensor:
    """A layer norm whose deviations are numbers through which no gradient goes."""
    centred = rows - rows.mean(dim=-1, keepdim=True)
    squares = centred.detach().square()
    if isinstance(norm, ReleasedLayerNorm):
        deviation = (squares.sum(dim=-1, keepdim=True) / (rows.shape[-1] - 1)).sqrt() + norm.eps
    else:
        deviation = (squares.mean(dim=-1, keepdim=True) + norm.eps).sqrt()
    return centred / deviation * norm.weight + norm.bias


def _leads(scores: Tensor, labels: Sequence[int], rivals: Sequence[int]) -> Tensor:
    """Score of the label less that of its rival, from ``[..., spans, labels]``."""
    label, rival = (torch.tensor(list(ids), device=scores.device) for ids in (labels, rivals))
    row = torch.arange(scores.shape[1], device=scores.device)
    return scores[:, row, label] - scores[:, row, rival]
