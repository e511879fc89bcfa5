"""Which label a span was given, and which it would have had instead.

A score of a label says little by itself: what decides is its lead over the best other label. The
labels of a chart are not always those of constituents: joint parsing has artificial nodes,
division spans have two forms of each label, and some labels are not allowed everywhere.
"""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor

from spmrl_bench.trees.head_driven import SUB_HEAD, TO_HEAD, constituent
from spmrl_bench.trees.tree import Label


def scored_label(labels: Sequence[Label], label: Label, scores: Tensor) -> int | None:
    """Index of the label of the chart that stands for a constituent's; None if there is none.

    With division spans a label has two forms, with the mark of what stands left of a head and
    without; the one with the better score is meant.

    Args:
        labels: of the chart.
        label: chain of nonterminals; empty for none.
        scores: ``[labels]`` of the span.
    """
    forms = [k for k, form in enumerate(labels) if form in (label, (TO_HEAD, *label))]
    return max(forms, key=lambda form: (float(scores[form]), -form), default=None)


def rival_of(
    labels: Sequence[Label], label: int, span: tuple[int, int], n: int, scores: Tensor
) -> int:
    """The best other label, which would have the span if the label had not.

    Labels that the chart does not allow there, and the other form of the label itself, are none.

    Args:
        labels: of the chart, the first of no constituent.
        label: index.
        span: of a sentence of ``n`` words.
        scores: ``[labels]`` of the span.
    """
    start, end = span
    own = constituent(labels[label])
    for other in scores.argsort(descending=True, stable=True).tolist():
        if constituent(labels[other]) == own:
            continue
        if SUB_HEAD in labels[other] and end - start in (1, n):
            continue
        if end - start == n and not constituent(labels[other]):
            continue  # a sentence has a label
        return int(other)
    return 0  # there is but one label
