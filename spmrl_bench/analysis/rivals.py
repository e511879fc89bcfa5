"""Which label a span was given, and which it would have had instead.

A score of a label says little by itself: what decides is its lead over the best other label. The
labels of a chart are not always those of constituents: joint parsing has artificial nodes,
division spans have two forms of each label, and some labels are not allowed everywhere.
"""

from __future__ import annotations

from torch import Tensor

from spmrl_bench.parsers.chart_parser import ChartParser
from spmrl_bench.parsers.vocabulary import EMPTY
from spmrl_bench.trees.head_driven import SUB_HEAD, TO_HEAD
from spmrl_bench.trees.tree import Label


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


def rival_of(parser: ChartParser, label: int, span: tuple[int, int], n: int, scores: Tensor) -> int:
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
