"""Which heads of label attention are behind the spans of which category, and behind one label.

Mrini et al. 2020 (section 4.5, figures 6 and 8) ask of every predicted span which heads its
vector comes from. Concatenated heads have features of their own in it, so there is an answer; it
is averaged by the predicted label, and counted how often a head is the first among them. Section
4.6 asks the same of the spans that are missed, and traces a wrong label back to what its heads
look at. Of how much a head contributes there are three measures:

``norm``
    The Euclidean norm of the head's features in the span vector, as a share of the sum of these
    norms.
``released``
    What the released code does, for comparison with the paper's figures: the sum of the features
    of each head, moved and scaled to 0 for the lowest and 1 for the highest head, through a
    softmax. Every head thus has between 1 and e parts, however small its features are.
``lead``
    What the head brings into the lead of the label's score over that of the runner-up, in points
    (a head may raise the scores of all labels). With the ReLUs of one span as they are, and the
    deviations that norms divide by, its score is linear in the features: exactly a sum of one part
    for each head and a constant. Negative where the head speaks for the runner-up.

Shares are taken of the features that the heads give, as in the released code. A feed-forward layer
behind them mixes them before there is a span vector; only ``lead`` sees through it.

A category is a label of the parser as a whole, a unary chain as one. Artificial nodes of joint
parsing are no constituents, and are left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from spmrl_bench.analysis.drawing import Figure, load_matplotlib, plain
from spmrl_bench.errors import SpmrlError, unknown_name
from spmrl_bench.parsers.base import Parser
from spmrl_bench.parsers.views import HeadOutputs, Span, lead_parts, leads
from spmrl_bench.trees.head_driven import constituent
from spmrl_bench.trees.tree import Label, LabeledSpan, Tree, collapsed_spans

Measure = Literal["norm", "released", "lead"]
Rows = NDArray[np.float64]

WIDTH = 7.6
MOST_CATEGORIES = 24
FEWEST_SPANS = 10  # of a category: the mean of fewer would say more of these than of heads
MARKED = 3  # heads of each category

#: Of each measure: what the axis is called, factor, and what the caption says.
_TEXTS: dict[Measure, tuple[str, float, str]] = {
    "norm": (
        "share of span vector (%)",
        100,
        "the norm of a head's features in the span vector, as a share of the sum over the heads",
    ),
    "released": (
        "contribution (%)",
        100,
        "as in the released code of Mrini et al., the sum of a head's features in the span vector, "
        "scaled to 0 to 1 over the heads, through a softmax",
    ),
    "lead": (
        "part of lead (points)",
        1,
        "what a head brings into the lead of the label's score over the runner-up",
    ),
}


class Example(NamedTuple):
    """A sentence that the parser is to read."""

    words: Sequence[str]
    tags: Sequence[str] | None = None
    gold: Tree | None = None


class SpansByHead(NamedTuple):
    """What the parser found in a sentence, and what its heads gave."""

    example: Example
    tree: Tree
    spans: list[LabeledSpan]  # predicted constituents, unary chains as one, in pre-order
    heads: HeadOutputs


def spans_by_head(parser: Parser, examples: Iterable[Example]) -> Iterator[SpansByHead]:
    """What the heads gave sentences, read lazily; errors are those of ``Parser.head_outputs``."""
    waiting: dict[int, Example] = {}

    def given() -> Iterator[tuple[Sequence[str], Sequence[str] | None]]:
        for place, each in enumerate(examples):
            waiting[place] = each
            yield each.words, each.tags

    for heads in parser.head_outputs(given()):
        if (tree := heads.predicted.tree) is not None:
            yield SpansByHead(waiting.pop(heads.place), tree, list(collapsed_spans(tree)), heads)


def span_features(features: NDArray[np.float32], spans: Sequence[Span]) -> Rows:
    """What each head contributes to span vectors (section 2, figure 6). From features
    ``[n, heads, d_proj]`` of the tokens of a sentence, START and STOP among them, to
    ``[spans, heads, d_proj]``: of each head the forward part, then the backward part."""
    start, end = np.array(spans, dtype=np.int64).reshape(-1, 2).T
    forward, backward = np.split(features.astype(np.float64), 2, axis=2)
    parts = (forward[end] - forward[start], backward[end + 1] - backward[start + 1])
    return np.concatenate(parts, axis=2)


def shares(parts: Rows, measure: Measure = "norm") -> Rows:
    """What share each head has in span vectors, by ``norm`` or as ``released``. From
    ``[spans, heads, d_proj]`` to ``[spans, heads]``, whose rows sum up to 1; with ``norm`` a span
    to which no head gives anything has zeros."""
    if measure == "norm":
        sizes = np.linalg.norm(parts, axis=2)
    else:
        sums = parts.sum(axis=2)
        lowest, highest = sums.min(axis=1, keepdims=True), sums.max(axis=1, keepdims=True)
        width = highest - lowest
        sizes = np.exp((sums - lowest) / np.where(width > 0, width, 1))
    whole = sizes.sum(axis=1, keepdims=True)
    return sizes / np.where(whole > 0, whole, 1)


def category_name(label: Label) -> str:
    """A label as text, such as ``NP`` or ``S+VP``."""
    return "+".join(label) or "no constituent"


@dataclass(frozen=True, slots=True, eq=False)
class HeadContributions:
    """Contributions of heads by category."""

    measure: Measure
    sentences: int  # how many were read, with one word at least
    categories: tuple[str, ...]  # the most frequently predicted first
    # [categories, heads]: the mean contribution of each head to the spans that are predicted to be
    # of a category (NaN for one that is never predicted); to how many of these it contributes the
    # most (the first of several); to how many of the gold spans that were missed.
    means: Rows
    firsts: NDArray[np.int64]
    missed_firsts: NDArray[np.int64]

    @property
    def spans(self) -> NDArray[np.int64]:
        """``[categories]``: how many spans were predicted to be of each."""
        return self.firsts.sum(axis=1)

    @property
    def missed(self) -> NDArray[np.int64]:
        """``[categories]``: how many gold spans of each were missed; zeros without gold trees."""
        return self.missed_firsts.sum(axis=1)

    def row(self, category: str) -> int:
        """Where a category is in the arrays; a SpmrlError if it was never predicted nor missed."""
        if category not in self.categories:
            raise SpmrlError(
                unknown_name("category", category, self.categories)
                + " These are the labels of the spans that were predicted or missed"
            )
        return self.categories.index(category)

    def frame(self) -> pd.DataFrame:
        """One row for each category and head, with unrounded numbers."""
        heads = self.means.shape[1]
        rows = pd.MultiIndex.from_product(
            [self.categories, range(heads)], names=["category", "head"]
        )
        columns = {
            "spans": self.spans.repeat(heads),
            "contribution": self.means.ravel(),
            "first": self.firsts.ravel(),
            "missed": self.missed.repeat(heads),
            "missed_first": self.missed_firsts.ravel(),
        }
        return pd.DataFrame(columns, index=rows).reset_index()


def head_contributions(
    parser: Parser, examples: Iterable[Example], measure: Measure = "norm"
) -> HeadContributions:
    """Which heads contribute how much to the spans that a parser predicts, by their labels. Memory
    does not grow with the number of sentences. What is missed is counted of those with a gold tree;
    gold labels that the parser does not know cannot be predicted, and are left out. Errors are
    those of :func:`spans_by_head`."""
    sums: dict[str, Rows] = {}  # of contributions, firsts and missed firsts, [3, heads]
    count = heads = 0
    for seen in spans_by_head(parser, examples):
        count += 1
        heads = seen.heads.features.shape[1]
        gold = [] if seen.example.gold is None else collapsed_spans(seen.example.gold)
        lost = [row for row in gold if row not in seen.spans and row[2] in seen.heads.labels]
        rows = [*seen.spans, *lost]
        spans, labels = [(start, end) for start, end, _ in rows], [label for *_, label in rows]
        if measure == "lead":
            found = lead_parts(seen.heads, leads(seen.heads, spans, labels, [None] * len(rows)))
        else:
            found = shares(span_features(seen.heads.features, spans), measure)
        for k, (label, row) in enumerate(zip(labels, found, strict=True)):
            own = sums.setdefault(category_name(label), np.zeros((3, heads)))
            if k < len(seen.spans):
                own[0] += row
            own[1 if k < len(seen.spans) else 2, row.argmax()] += 1
    names = sorted(sums, key=lambda name: (-sums[name][1].sum(), name))
    arrays = np.array([sums[name] for name in names]).reshape(len(names), 3, heads)
    totals, firsts, missed = arrays.swapaxes(0, 1)
    spans_of = firsts.sum(axis=1, keepdims=True)
    means = np.divide(totals, spans_of, out=np.full_like(totals, np.nan), where=spans_of > 0)
    counts = firsts.astype(np.int64), missed.astype(np.int64)
    return HeadContributions(measure, count, tuple(names), means, *counts)


HEADINGS = (
    "category", "spans", "highest contributions", "first in % of spans", "missed", "same heads (%)",
)  # fmt: skip


def table_rows(
    found: HeadContributions, categories: Sequence[str] = (), *, top: int = 4
) -> list[tuple[str, ...]]:
    """A row of text for each category, or for those that are named, with the statistics of sections
    4.5 ("44.9 % of the noun phrases get their top contribution from head 35") and 4.6: to what
    percentage of the missed spans one of the heads contributes the most that are first in spans."""
    rows: list[tuple[str, ...]] = []
    form, factor = ("+.3f", 1) if found.measure == "lead" else (".2f", 100)
    for k in [found.row(name) for name in categories] or range(len(found.categories)):
        spans, missed = int(found.spans[k]), int(found.missed[k])
        means, firsts = found.means[k], found.firsts[k]
        highest = np.argsort(-means, kind="stable")[:top].tolist() if spans else []
        frequent = [head for head in np.argsort(-firsts, kind="stable")[:top] if firsts[head]]
        same = found.missed_firsts[k][frequent].sum()
        rows.append(
            (
                found.categories[k],
                f"{spans:,}",
                "  ".join(f"{head}: {factor * means[head]:{form}}" for head in highest),
                "  ".join(f"{head}: {100 * firsts[head] / spans:.1f}" for head in frequent),
                f"{missed:,}",
                f"{100 * same / missed:.1f}" if missed and frequent else "",
            )
        )
    return rows


def order_of_heads(relative: Rows) -> list[int]:
    """Heads in the order of the category in which each stands out the most. Within a category,
    those that stand out the most come first. A head stands out in a category by what it contributes
    there (``[categories, heads]``, less the average head) beyond its own mean over the categories,
    in standard deviations of the heads of each; of one alone, by all of it."""
    deviation = relative.std(axis=1, keepdims=True)
    own = relative / np.where(deviation > 0, deviation, 1)
    if len(own) > 1:
        own -= own.mean(axis=0)
    return np.lexsort((-own.max(axis=0), own.argmax(axis=0))).tolist()


def draw_heads(found: HeadContributions, categories: Sequence[str] = (), *, model: str) -> Figure:
    """A heat map: some categories or those that are predicted the most, below each other, by heads.
    It shows the figures of Mrini et al. 2020 (section 4.5, figure 8) for all heads and not for some
    that were picked, beside the average head, which is the dotted line of that figure. A SpmrlError
    if no span was predicted, or none of a category that is named, or there is no matplotlib."""
    spans = found.spans
    named = [found.row(name) for name in categories]
    for row in named:
        if not spans[row]:
            raise SpmrlError(
                f"no span was predicted to be {found.categories[row]} "
                f"({found.missed[row]:,} were missed), so heads have no mean contribution to it"
            )
    if not spans.any():
        raise SpmrlError("the parser found no constituents, so there is nothing to draw")
    rows = np.flatnonzero(spans >= min(FEWEST_SPANS, spans.max()))[:MOST_CATEGORIES]
    left_out = f"Left out: the {int((spans > 0).sum()) - len(rows)} rarest categories. "
    if named:
        rows, left_out = np.array(named), ""
    label, factor, explained = _TEXTS[found.measure]
    means = found.means[rows] * factor
    relative = means - means.mean(axis=1, keepdims=True)
    order = order_of_heads(relative)
    caption = (
        f"Contribution: {explained}. Colour: its mean over the spans predicted to be of the "
        f"category, less that of the average head. Dots: the {MARKED} heads that contribute most. "
        f"Heads stand beside those that stand out in the same category. {left_out}"
        f"Parser: {model}; {found.sentences:,} sentences."
    )
    height = max(2.9, 0.155 * len(rows) + 0.55)  # the name of the colours needs some
    figure = Figure(WIDTH, height, "Contributions of heads by category", caption)
    widest = float(np.quantile(np.abs(relative), 0.995)) or 1.0
    norm = load_matplotlib().colors.Normalize(-widest, widest)
    axes = figure.axes(1, 1)
    options: dict[str, Any] = {"norm": norm, "aspect": "auto", "interpolation": "nearest"}
    image = axes.imshow(relative[:, order], cmap="RdBu", **options)
    for row in range(len(rows)):
        first = np.argsort(-means[row], kind="stable")[:MARKED].tolist()
        places = [order.index(head) for head in first]
        axes.plot(places, [row] * len(places), "o", mfc="white", mec="black", ms=2.6, mew=0.5)
    axes.set_yticks(range(len(rows)), [f"{found.categories[row]} ({spans[row]:,})" for row in rows])
    plain(axes)
    axes.set_xticks(range(len(order)), [str(head) for head in order])
    size = min(7.0, 0.8 * 72 * 6.1 / len(order))
    axes.tick_params(axis="x", length=1.5, labelsize=size, labelrotation=90 * (len(order) > 36))
    axes.set_xlim(-0.7, len(order) - 0.3)
    axes.set_xlabel("head", fontsize=8)
    figure.colours(image, axes, f"{label}, less average head", extend="both")
    return figure


class SpanTrace(NamedTuple):
    """A span, its label and the heads behind it."""

    start: int
    end: int
    label: Label  # predicted; empty where no constituent was predicted
    gold: Label | None  # empty for no constituent, None where it is not known
    other: Label  # gold where the parser knows it and it is another one, else the runner-up
    score: float
    other_score: float
    known: bool  # whether the parser knows the gold label
    # Of each head: its share of the span vector, what it brings into the lead over the other label,
    # and [n + 2] how much it attends to START, the words and STOP; with a query for each token the
    # mean over the four tokens that the span vector is made of.
    shares: Rows
    parts: Rows
    weights: Rows

    @property
    def wrong(self) -> bool:
        """Whether gold has another label, or none."""
        return self.gold is not None and self.gold != self.label


def trace(parser: Parser, example: Example) -> tuple[Tree, list[SpanTrace]]:
    """What a parser finds in a sentence, and the heads behind each constituent, gold's too; a
    SpmrlError as of :func:`spans_by_head`, or if there are no words."""
    if not example.words:
        raise SpmrlError("a sentence without words has no spans to trace")
    (seen,) = spans_by_head(parser, [example])
    heads, gold = seen.heads, example.gold
    predicted = {(start, end): label for start, end, label in seen.spans}
    right = {} if gold is None else {(i, j): label for i, j, label in collapsed_spans(gold)}
    spans = sorted(predicted.keys() | right.keys(), key=lambda span: (span[0], -span[1]))
    labels = [predicted.get(span, ()) for span in spans]
    golds = [None if gold is None else right.get(span, ()) for span in spans]
    others = [None if own == label else own for label, own in zip(labels, golds, strict=True)]
    given = leads(heads, spans, labels, others)
    parts, shared = lead_parts(heads, given), shares(span_features(heads.features, spans))
    known = {constituent(label) for label in heads.labels}
    weights = heads.weights.astype(np.float64)
    return seen.tree, [
        SpanTrace(
            *(start, end, labels[k], golds[k], constituent(heads.labels[given.others[k]])),
            float(given.scores[k, given.labels[k]]),
            float(given.scores[k, given.others[k]]),
            golds[k] is None or golds[k] in known,
            shared[k],
            parts[k],
            weights
            if weights.ndim == 2
            else weights[:, [start, end, start + 1, end + 1]].mean(axis=1),
        )
        for k, (start, end) in enumerate(spans)
    ]


def trace_text(
    tree: Tree, spans: Sequence[SpanTrace], *, errors: bool = False, top: int = 5, tokens: int = 4
) -> str:
    """Spans, or only those with errors, each with the ``top`` heads that bring the most into its
    lead, and the ``tokens`` that these look at the most."""
    lines = [str(tree)]
    if any(span.gold is not None for span in spans):
        lines.append(f"{sum(span.wrong for span in spans)} of {len(spans)} spans differ from gold")
    around = ["START", *tree.words, "STOP"]
    for span in spans:
        if errors and not span.wrong:
            continue
        shown = category_name(span.label)
        if span.gold is not None:
            shown += f", in gold {category_name(span.gold)}" if span.wrong else ", as in gold"
        words = " ".join(tree.words[span.start : span.end])
        unknown = "" if span.known else "; the parser does not know the gold label"
        lines += [
            "",
            f"{span.start}:{span.end} {shown}: {words}",
            f"  score {span.score:.2f}, lead {span.score - span.other_score:+.2f} over "
            f"{category_name(span.other)} ({span.other_score:.2f}){unknown}",
            "  head   share  of lead  looks at",
        ]
        for head in np.argsort(-span.parts, kind="stable")[:top].tolist():
            best = np.argsort(-span.weights[head], kind="stable")[:tokens].tolist()
            looked = ", ".join(f"{around[k]} {100 * span.weights[head, k]:.0f} %" for k in best)
            lines.append(
                f"  {head:4d}  {100 * span.shares[head]:4.1f} %  {span.parts[head]:+7.3f}  {looked}"
            )
    return "\n".join(lines) + "\n"
