"""Label scores of spans when the features of a head are taken away.

How large the part of a head in a span vector is does not say what it is good for: the scorer may
ignore it, or hold it against the label. What a head does for a label can be measured by leaving
it out. Its ``d_proj`` features are set to zero in every token, as they leave the heads, and all
that follows (the feed-forward layer where there is one, the fenceposts, the span scorer) is
computed anew. The change of a score is then what the parser's own function says, not an
approximation of it. (The other heads, the chart and the scores of arcs stay as they are. Since
the function is not linear, the changes of all heads need not sum up to the score.)

A label by itself says little as well: a head may raise the scores of all labels. So a label is
compared with a rival, and what counts is its lead.

Everything is computed in float32, also of a parser with bf16, in whose numbers the small
changes of single heads would drown; its predictions are those of the parser as it is.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from spmrl_bench.analysis.label_views import label_layer_of
from spmrl_bench.analysis.observed import evaluating
from spmrl_bench.nn.ragged import Ragged
from spmrl_bench.nn.span_scorer import fenceposts
from spmrl_bench.parsers.chart_parser import ChartParser
from spmrl_bench.parsers.vocabulary import EMPTY
from spmrl_bench.trees.chains import Label
from spmrl_bench.trees.division_span import TO_HEAD
from spmrl_bench.trees.head_driven import SUB_HEAD

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


def lead_changes(
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
    label, rival = (torch.tensor(list(ids), device=blocks.device) for ids in (labels, rivals))
    row = torch.arange(len(spans), device=blocks.device)

    def leads(scores: Tensor) -> Tensor:
        return scores[:, row, label] - scores[:, row, rival]

    whole = leads(label_scores(parser, blocks[None], spans))
    without = torch.cat([leads(part) for part in scores_without_each(parser, blocks, spans)])
    return (whole - without).T


def scored_label(parser: ChartParser, label: Label, scores: Tensor) -> int | None:
    """Index of the label of the chart that stands for a constituent's.

    With division spans a label has two forms, with the mark of what stands left of a head and
    without; the one with the better score is meant.

    Args:
        parser: whose labels.
        label: chain of nonterminals; empty for none.
        scores: ``[labels]`` of the span.

    Returns:
        None if the parser does not know the label.
    """
    ids = parser.vocabulary.label_ids
    forms = [ids[form] for form in (label, (TO_HEAD, *label)) if form in ids]
    return max(forms, key=lambda form: (float(scores[form]), -form), default=None)


def rival_of(parser: ChartParser, label: int, span: Span, n: int, scores: Tensor) -> int:
    """The best other label, which would have the span if the label had not.

    Labels that the chart does not allow there, and the other form of the label itself, are none.

    Args:
        parser: whose labels.
        label: index, 0 for the empty label.
        span: of a sentence of ``n`` words.
        scores: ``[labels]`` of the span.
    """
    names = parser.vocabulary.labels
    start, end = span
    own = constituent(names[label])
    for other in scores.argsort(descending=True, stable=True).tolist():
        if constituent(names[other]) == own:
            continue
        if SUB_HEAD in names[other] and end - start in (1, n):
            continue
        if end - start == n and not constituent(names[other]):
            continue  # a sentence has a label
        return int(other)
    return EMPTY  # there is but one label


def constituent(label: Label) -> Label:
    """The nonterminals of a label of the chart, without the mark of division spans."""
    return label[1:] if label[:1] == (TO_HEAD,) else label
