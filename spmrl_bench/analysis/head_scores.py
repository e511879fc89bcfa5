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

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from spmrl_bench.analysis.rivals import rival_of, scored_label
from spmrl_bench.trees.tree import Label

if TYPE_CHECKING:
    from spmrl_bench.parsers.views import HeadOutputs

Span = tuple[int, int]

#: Features of the copies of a sentence that are worked on at once (64 MiB).
_FEATURES = 1 << 24


class Choices(NamedTuple):
    """Labels of spans of a sentence, each beside its rival.

    Attributes:
        spans: ``(start, end)`` fenceposts.
        labels, rivals: indices among the labels of the chart.
        scores: float32 ``[spans, labels]``.
    """

    spans: Sequence[Span]
    labels: list[int]
    rivals: list[int]
    scores: Tensor


def choices(
    heads: HeadOutputs,
    spans: Sequence[Span],
    labels: Sequence[Label],
    rivals: Sequence[Label | None],
) -> Choices:
    """The indices of labels, and of their rivals or, without one that is known, the runners-up."""
    n = len(heads.features) - 2
    with torch.no_grad():
        scores = heads.label_scores(torch.from_numpy(heads.features)[None], spans)[0].cpu()
    found: list[tuple[int, int]] = []
    for span, label, rival, row in zip(spans, labels, rivals, scores, strict=True):
        own = scored_label(heads.labels, label, row) or 0
        other = None if rival is None else scored_label(heads.labels, rival, row)
        found.append((own, rival_of(heads.labels, own, span, n, row) if other is None else other))
    return Choices(spans, [own for own, _ in found], [other for _, other in found], scores)


@torch.no_grad()
def lead_without_each(heads: HeadOutputs, given: Choices) -> NDArray[np.float64]:
    """How much of the lead of a label over its rival is gone without each head.

    Returns:
        ``[spans, heads]``: lead with all heads less lead without one. Positive where the head
        speaks for the label.
    """
    features = torch.from_numpy(heads.features)
    count = features.shape[1]
    most = max(1, _FEATURES // max(1, features.numel()))
    without = []
    for some in torch.arange(count).split(most):
        copies = features.repeat(len(some), 1, 1, 1)
        copies[torch.arange(len(some)), :, some] = 0
        without.append(_leads(heads.label_scores(copies, given.spans), given))
    whole = _leads(given.scores[None], given)
    return (whole - torch.cat(without).cpu()).T.double().numpy()


def lead_parts(heads: HeadOutputs, given: Choices) -> NDArray[np.float64]:
    """What each head brings into the lead of a label over its rival.

    Returns:
        ``[spans, heads]``. Their sum over the heads is the lead, but for the constant.
    """
    features = torch.from_numpy(heads.features)
    parts = [torch.zeros(0, features.shape[1])]
    most = max(1, _FEATURES // max(1, 4 * features[0].numel()))
    for low in range(0, len(given.spans), most):
        some = slice(low, low + most)
        start, end = torch.tensor(given.spans[some]).unbind(1)
        # A copy for each span of the four tokens that it is made of, in which it is span (0, 2).
        tokens = torch.stack((start, start + 1, end, end + 1), dim=1)
        copies = features[tokens].requires_grad_()
        with torch.enable_grad():
            scores = heads.label_scores(copies, [(0, 2)], held_norms=True).transpose(0, 1)
            part = given._replace(labels=given.labels[some], rivals=given.rivals[some])
            (gradient,) = torch.autograd.grad(_leads(scores, part).sum(), copies)
        parts.append((gradient * copies.detach()).sum(dim=(1, 3)))
    return torch.cat(parts).double().numpy()


def _leads(scores: Tensor, given: Choices) -> Tensor:
    """Score of the label less that of its rival, from ``[..., spans, labels]``."""
    row = torch.arange(scores.shape[1])
    return scores[:, row, given.labels] - scores[:, row, given.rivals]
