"""What heads of label attention bring into the lead of a label's score over that of another one.

A score of a label says little by itself: a head may raise the scores of all labels, or be ignored
by the scorer. What decides is the lead over the best other label. For one span the ReLUs are open
or closed and the norms divide by some deviation; with these held as they are the score is linear in
the features of the heads, and exactly a sum of one part for each head and a constant of the biases.

The labels of a chart are not always those of constituents: joint parsing has artificial nodes,
division spans have two forms of each label, and some labels are not allowed everywhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from spmrl_bench.parsers.views import HeadOutputs
from spmrl_bench.trees.head_driven import SUB_HEAD, TO_HEAD, constituent
from spmrl_bench.trees.tree import Label

#: Features of the copies of a sentence that are worked on at once (64 MiB).
_FEATURES = 1 << 24

Span = tuple[int, int]


class Leads(NamedTuple):
    """Labels of spans of a sentence, each beside the one that it is compared with."""

    spans: Sequence[Span]
    labels: list[int]  # indices among the labels of the chart
    others: list[int]
    scores: Tensor  # float32 [spans, labels]


def leads(
    heads: HeadOutputs,
    spans: Sequence[Span],
    labels: Sequence[Label],
    others: Sequence[Label | None],
) -> Leads:
    """Labels beside others or, without one that the parser knows, beside the runners-up."""
    n, known = len(heads.features) - 2, heads.labels
    with torch.no_grad():
        scores = heads.label_scores(torch.from_numpy(heads.features)[None], spans)[0].cpu()
    found = Leads(spans, [], [], scores)
    for span, label, other, row in zip(spans, labels, others, scores, strict=True):
        own = scored_label(known, label, row) or 0
        beside = None if other is None else scored_label(known, other, row)
        found.labels.append(own)
        found.others.append(runner_up(known, own, span, n, row) if beside is None else beside)
    return found


def scored_label(labels: Sequence[Label], label: Label, scores: Tensor) -> int | None:
    """Index of the label of the chart that stands for a constituent's; None if there is none.

    With division spans a label has two forms, with the mark of what stands left of a head and
    without; the one with the better score is meant.
    """
    forms = [k for k, form in enumerate(labels) if form in (label, (TO_HEAD, *label))]
    return max(forms, key=lambda form: (float(scores[form]), -form), default=None)


def runner_up(labels: Sequence[Label], label: int, span: Span, n: int, scores: Tensor) -> int:
    """The best other label, which a span of ``n`` words would have if the label had not.

    Labels that the chart does not allow there, and the other form of the label itself, are none.
    """
    length = span[1] - span[0]
    for other in scores.argsort(descending=True, stable=True).tolist():
        if constituent(labels[other]) == constituent(labels[label]):
            continue
        if SUB_HEAD in labels[other] and length in (1, n):
            continue
        if length < n or constituent(labels[other]):  # a sentence has a label
            return int(other)
    return 0  # there is but one label


def lead_parts(heads: HeadOutputs, given: Leads) -> NDArray[np.float64]:
    """What each head brings into the lead of a label, in float32 also of a parser with bf16.

    The gradient times the features, when no gradient goes through the deviations of the norms.

    Returns:
        ``[spans, heads]``. Their sum over the heads is the lead, but for the constant.
    """
    features = torch.from_numpy(heads.features)
    parts = [torch.zeros(0, features.shape[1])]
    most = max(1, _FEATURES // max(1, 4 * features[0].numel()))
    for low in range(0, len(given.spans), most):
        high = low + most
        start, end = torch.tensor(given.spans[low:high]).unbind(1)
        # A copy for each span of the four tokens that it is made of, in which it is span (0, 2).
        tokens = torch.stack((start, start + 1, end, end + 1), dim=1)
        copies = features[tokens].requires_grad_()
        with torch.enable_grad():
            scores, row = (
                heads.label_scores(copies, [(0, 2)], held_norms=True)[:, 0],
                range(len(start)),
            )
            lead = scores[row, given.labels[low:high]] - scores[row, given.others[low:high]]
            (gradient,) = torch.autograd.grad(lead.sum(), copies)
        parts.append((gradient * copies.detach()).sum(dim=(1, 3)))
    return torch.cat(parts).double().numpy()
