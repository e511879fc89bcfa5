"""Why a span got its label: the heads behind it, and what these looked at.

Mrini et al. 2020 (section 4.6) trace a wrong label back: the span "Fed Ready to Inject Big Funds"
became a noun phrase, and of the nine heads that contribute the most to it four look at "Funds"
and two at "Inject". Here this is done for any span of a sentence, predicted or not. Its label
stands beside a rival: the gold label where that is another one, else the runner-up. Of each head
there is its share in the span vector, what it brings into the lead of the label over the rival,
how much of the lead is gone without it, and its attention.
"""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from spmrl_bench.analysis.head_contributions import category_name, shares, span_features
from spmrl_bench.analysis.head_scores import Span, choices, lead_parts, lead_without_each
from spmrl_bench.analysis.observed import Asked, observe
from spmrl_bench.errors import SpmrlError
from spmrl_bench.trees.head_driven import constituent
from spmrl_bench.trees.tree import Label, Tree, collapsed_spans

if TYPE_CHECKING:
    from spmrl_bench.parsers.base import Parser

#: By what heads are ranked; as the measures of contributions.
Rank = Literal["lead", "without", "norm"]
RANKS: tuple[Rank, ...] = get_args(Rank)

Rows = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class SpanTrace:
    """A span, its label and the heads behind it.

    Attributes:
        start, end: fenceposts.
        label: predicted chain of nonterminals; empty where no constituent was predicted.
        gold: what is right; empty for no constituent, None where it is not known.
        rival: the label that the predicted one is compared with, with artificial ones as the
            chart has them.
        score, rival_score: of the two labels, in float32; 0 for the empty one.
        known: whether the parser knows the gold label; if not, the rival is the runner-up.
        shares: ``[heads]``, of the span vector, by the norm.
        parts: ``[heads]``, what each brings into the lead.
        without: ``[heads]``, how much of the lead is gone without each.
        weights: ``[heads, n + 2]``, attention of each over START, the words and STOP. Of heads with
            a query for each token it is the mean over the four tokens that the span vector is made
            of.
    """

    start: int
    end: int
    label: Label
    gold: Label | None
    rival: Label
    score: float
    rival_score: float
    known: bool
    shares: Rows
    parts: Rows
    without: Rows
    weights: Rows

    @property
    def wrong(self) -> bool:
        """Whether gold has another label, or none."""
        return self.gold is not None and self.gold != self.label

    @property
    def lead(self) -> float:
        """Score of the label less that of its rival."""
        return self.score - self.rival_score

    def top_heads(self, most: int, by: Rank = "lead") -> list[int]:
        """The heads that contribute the most, the first first."""
        values = {"lead": self.parts, "without": self.without, "norm": self.shares}[by]
        return np.argsort(-values, kind="stable")[:most].tolist()


@dataclass(frozen=True, slots=True, eq=False)
class SentenceTrace:
    """A sentence, its parse, and some of its spans.

    Attributes:
        tree: what the parser found.
        gold: what is right, where that is known.
        spans: in pre-order, or as they were asked for.
        compared: how many spans were traced, those among them that are not shown.
    """

    tree: Tree
    gold: Tree | None
    spans: tuple[SpanTrace, ...]
    compared: int

    def errors(self) -> SentenceTrace:
        """Only the spans whose label differs from gold."""
        wrong = tuple(span for span in self.spans if span.wrong)
        return SentenceTrace(self.tree, self.gold, wrong, self.compared)


def trace(
    parser: Parser,
    words: Sequence[str],
    tags: Sequence[str] | None = None,
    *,
    gold: Tree | None = None,
    spans: Sequence[Span] | None = None,
) -> SentenceTrace:
    """Trace spans of a sentence back to the heads.

    Args:
        parser: a single one of kind ``chart`` or ``joint`` with concatenated label attention.
        words: of the sentence, at least one.
        tags: of the words, for a parser that reads them.
        gold: the right tree of these words.
        spans: ``(start, end)`` fenceposts; without them, every predicted constituent and every
            one of gold.

    Raises:
        SpmrlError: there are no words, or no such span.
        UnsupportedError, SentenceTooLongError, TreeError: as of :func:`observe`.
    """
    if not words:
        raise SpmrlError("a sentence without words has no spans to trace")
    n = len(words)
    for start, end in spans or ():
        if not 0 <= start < end <= n:
            raise SpmrlError(
                f"there is no span {start}:{end}: the fenceposts of these {n} words are 0 to {n}, "
                f"and a span begins before it ends; 0:1 is the first word, 0:{n} the sentence"
            )
    (seen,) = observe(parser, [Asked(words, tags, gold)])
    predicted = {(start, end): label for start, end, label in seen.rows}
    right = {} if gold is None else {(i, j): label for i, j, label in collapsed_spans(gold)}
    if spans is None:
        spans = sorted(predicted.keys() | right.keys(), key=lambda span: (span[0], -span[1]))
    if not spans:
        return SentenceTrace(seen.tree, gold, (), 0)
    heads = seen.heads
    labels = [predicted.get(span, ()) for span in spans]
    others: list[Label | None] = [None] * len(spans)
    if gold is not None:
        others = [right.get(span, ()) for span in spans]
    rivals = [
        None if other == label else other for label, other in zip(labels, others, strict=True)
    ]
    given = choices(heads, spans, labels, rivals)
    parts, without = lead_parts(heads, given), lead_without_each(heads, given)
    shared = shares(span_features(heads.features, spans))
    known = {constituent(label) for label in heads.labels}
    traced = tuple(
        SpanTrace(
            *span,
            labels[k],
            others[k],
            constituent(heads.labels[given.rivals[k]]),
            float(given.scores[k, given.labels[k]]),
            float(given.scores[k, given.rivals[k]]),
            others[k] is None or others[k] in known,
            shared[k],
            parts[k],
            without[k],
            _weights_of_span(heads.weights.astype(np.float64), *span),
        )
        for k, span in enumerate(spans)
    )
    return SentenceTrace(seen.tree, gold, traced, len(spans))


def _weights_of_span(weights: Rows, start: int, end: int) -> Rows:
    """``[heads, n]`` of weights ``[heads, n]`` or ``[heads, n, n]``."""
    if weights.ndim == 2:
        return weights
    found: Rows = weights[:, [start, end, start + 1, end + 1]].mean(axis=1)
    return found


# As text ----------------------------------------------------------------------------------------


def shown_label(label: Label) -> str:
    """A label as it is shown; the empty one says so."""
    return category_name(label) or "no constituent"


def heading(span: SpanTrace) -> str:
    """What a span is: ``NP, in gold S``."""
    shown = shown_label(span.label)
    if span.gold is None:
        return shown
    return f"{shown}, in gold {shown_label(span.gold)}" if span.wrong else f"{shown}, as in gold"


def lead_text(span: SpanTrace) -> str:
    """How the label compares with its rival."""
    rival = f"{shown_label(span.rival)} ({span.rival_score:.2f})"
    if not span.known:
        rival += "; the parser does not know the gold label"
    return f"score {span.score:.2f}, lead {span.lead:+.2f} over {rival}"


def looked_at(weights: Rows, words: Sequence[str], most: int) -> str:
    """The tokens that a head looks at the most, the first of several in the sentence first."""
    tokens = ["START", *words, "STOP"]
    best = np.argsort(-weights, kind="stable")[:most].tolist()
    return ", ".join(f"{tokens[token]} {100 * weights[token]:.0f} %" for token in best)


def trace_text(
    found: SentenceTrace, *, top: int = 5, by: Rank = "lead", tokens: int = 4, width: int = 60
) -> str:
    """Spans with the heads that contribute the most, for reading.

    Args:
        found: spans.
        top: heads of each.
        by: what they are ranked by.
        tokens: of those that each looks at.
        width: of what is shown of the words of a span.
    """
    lines = [str(found.tree)]
    if found.gold is not None:
        wrong = sum(span.wrong for span in found.spans)
        lines.append(f"{wrong} of {found.compared} spans differ from gold")
    words = found.tree.words
    for span in found.spans:
        text = _shortened(" ".join(words[span.start : span.end]), width)
        lines += [
            "",
            f"{span.start}:{span.end} {heading(span)}: {text}",
            f"  {lead_text(span)}",
            "  head   share  of lead  without  looks at",
        ]
        for head in span.top_heads(top, by):
            lines.append(
                f"  {head:4d}  {100 * span.shares[head]:4.1f} %  {span.parts[head]:+7.3f}  "
                f"{span.without[head]:+7.3f}  {looked_at(span.weights[head], words, tokens)}"
            )
    return "\n".join(lines) + "\n"


def _shortened(text: str, width: int) -> str:
    """The first and the last words, where there is no room for all."""
    if len(text) <= width:
        return text
    first = textwrap.shorten(text, width // 2, placeholder="")
    last = textwrap.shorten(text[::-1], width // 2, placeholder="")[::-1]
    return f"{first} ... {last}"
