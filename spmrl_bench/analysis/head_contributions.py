"""Which heads of label attention contribute to the spans of which category.

Mrini et al. 2020 (section 4.5, figures 6 and 8) ask of every predicted span which heads its
vector comes from. Concatenated heads have features of their own in it, so there is an answer; it
is averaged by the predicted label, and counted how often a head is the first among them. Section
4.6 asks the same of the spans that are missed.

There is more than one way to say how much a head contributes:

``norm``
    The Euclidean norm of the head's features in the span vector, as a share of the sum of these
    norms. A head that gives nothing has none; the sign and the order of features, which
    mean nothing, do not matter.
``released``
    What the released code does, for comparison with the paper's figures (figure 6 shows much the
    same): the sum of the features of each head, signs and all, moved and scaled to 0 for the
    lowest and 1 for the highest head, through a softmax. Every head thus has between 1 and e
    parts, however small its features are, and one whose features cancel out has not the fewest.
``lead``
    What the head brings into the lead of the label over the runner-up, in points of score: parts
    that sum up to the lead but for a constant (:mod:`spmrl_bench.analysis.head_scores`). Negative
    where the head speaks for the runner-up.
``without``
    How far that lead falls when the head is taken away, which costs a pass through feed-forward
    layer and scorer for each. Heads that stand in for each other all have little.

The first two are shares, and sum up to 1 over the heads. They are taken of the features that the
heads give. Where a feed-forward layer follows, it mixes them before there is a span vector (the
paper leaves it out for this analysis, and the released code takes no notice of it); then they
are the shares of what the layer reads, and only the other two see through it.

A category is a label of the parser as a whole: the nonterminals of a unary chain stand for one
decision over one span vector, and the paper has as many heads as there are such labels. Artificial
nodes of joint parsing are no constituents, and are left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, get_args

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from spmrl_bench.analysis.head_scores import Span, choices, lead_parts, lead_without_each
from spmrl_bench.analysis.observed import Asked, Observed, observe
from spmrl_bench.errors import SpmrlError, unknown_name
from spmrl_bench.parsers.base import MAX_TOKENS
from spmrl_bench.trees.tree import Label, LabeledSpan, collapsed_spans

if TYPE_CHECKING:
    from spmrl_bench.parsers.base import Parser
    from spmrl_bench.parsers.views import HeadOutputs

Measure = Literal["norm", "released", "lead", "without"]
MEASURES: tuple[Measure, ...] = get_args(Measure)


def category_name(label: Label) -> str:
    """A label as one word, such as ``NP`` or ``S+VP``."""
    return "+".join(label)


def span_features(features: NDArray[np.float32], spans: Sequence[Span]) -> NDArray[np.float64]:
    """What each head contributes to span vectors (section 2, figure 6).

    Args:
        features: ``[n, heads, d_proj]`` of the tokens of a sentence, START and STOP among them.
        spans: fenceposts, ``0 <= start < end <= n - 2``.

    Returns:
        ``[spans, heads, d_proj]``: of each head the forward part, then the backward part.
    """
    start, end = np.array(spans, dtype=np.int64).reshape(-1, 2).T
    forward, backward = np.split(features.astype(np.float64), 2, axis=2)
    parts = (forward[end] - forward[start], backward[end + 1] - backward[start + 1])
    return np.concatenate(parts, axis=2)


def shares(parts: NDArray[np.float64], measure: Measure = "norm") -> NDArray[np.float64]:
    """What share each head has in span vectors.

    Args:
        parts: ``[spans, heads, d_proj]``, of :func:`span_features`.
        measure: ``norm`` or ``released``.

    Returns:
        ``[spans, heads]``, whose rows sum up to 1; with ``norm`` a span to which no head gives
        anything has zeros.
    """
    if measure == "norm":
        sizes = np.linalg.norm(parts, axis=2)
    else:
        sums = parts.sum(axis=2)
        lowest, highest = sums.min(axis=1, keepdims=True), sums.max(axis=1, keepdims=True)
        width = highest - lowest
        sizes = np.exp((sums - lowest) / np.where(width > 0, width, 1))
    whole = sizes.sum(axis=1, keepdims=True)
    return sizes / np.where(whole > 0, whole, 1)


@dataclass(frozen=True, slots=True, eq=False)
class HeadContributions:
    """Contributions of heads by category.

    Attributes:
        measure: what a contribution is.
        sentences: how many were read, with one word at least.
        categories: names, the most frequently predicted first, those equally frequent by name.
        spans: int64 ``[categories]``: how many spans were predicted to be of each.
        means: float64 ``[categories, heads]``: mean contribution of each head to these spans; NaN
            for a category that is never predicted.
        firsts: int64 ``[categories, heads]``: to how many of them the head contributes the most
            (the first of several).
        missed: int64 ``[categories]``: how many gold spans of the category were not predicted as
            such; zeros without gold trees.
        missed_firsts: int64 ``[categories, heads]``: to how many of those the head contributes the
            most (section 4.6).
    """

    measure: Measure
    sentences: int
    categories: tuple[str, ...]
    spans: NDArray[np.int64]
    means: NDArray[np.float64]
    firsts: NDArray[np.int64]
    missed: NDArray[np.int64]
    missed_firsts: NDArray[np.int64]

    @property
    def heads(self) -> int:
        """How many heads there are."""
        return self.means.shape[1]

    def row(self, category: str) -> int:
        """Where a category is in the arrays.

        Raises:
            SpmrlError: it was never predicted, nor missed.
        """
        if category not in self.categories:
            found = unknown_name("category", category, self.categories)
            raise SpmrlError(
                f"{found} These are the labels of the spans that were predicted or missed"
            )
        return self.categories.index(category)

    def top_heads(self, category: str, most: int) -> list[int]:
        """The heads with the highest mean contribution to a category, the highest first."""
        means = self.means[self.row(category)]
        return np.argsort(-means, kind="stable")[:most].tolist()

    def frame(self) -> pd.DataFrame:
        """One row for each category and head, with unrounded numbers.

        Columns: ``category``, ``spans``, ``head``, ``contribution``, ``first`` (spans to which the
        head contributes the most), ``missed`` and ``missed_first``.
        """
        rows, heads = self.means.shape
        repeated = {
            name: np.repeat(values, heads)
            for name, values in (
                ("category", np.array(self.categories, dtype=object)),
                ("spans", self.spans),
                ("missed", self.missed),
            )
        }
        return pd.DataFrame(
            {
                "category": repeated["category"],
                "spans": repeated["spans"],
                "head": np.tile(np.arange(heads), rows),
                "contribution": self.means.ravel(),
                "first": self.firsts.ravel(),
                "missed": repeated["missed"],
                "missed_first": self.missed_firsts.ravel(),
            }
        )


def head_contributions(
    parser: Parser,
    sentences: Iterable[Asked],
    *,
    measure: Measure = "norm",
    max_tokens: int = MAX_TOKENS,
) -> HeadContributions:
    """Which heads contribute how much to the spans that a parser predicts, by their labels.

    Memory does not grow with the number of sentences, which are read lazily, and what is found
    does not depend on their order or on how they are put into batches (but for rounding in the
    last digits).

    Args:
        parser: a single one of kind ``chart`` or ``joint`` with concatenated label attention.
        sentences: to parse; what is missed is counted of those with a gold tree. Gold labels that
            the parser does not know cannot be predicted, and are left out.
        measure: what a contribution is.
        max_tokens: bound on a batch.

    Raises:
        UnsupportedError, SentenceTooLongError, TreeError: as of :func:`observe`.
    """
    predicted, missed = _Sums(), _Sums()
    count = heads = 0
    for seen in observe(parser, sentences, max_tokens=max_tokens):
        count += 1
        heads = seen.heads.features.shape[1]
        lost = _missed(seen)
        rows = [*seen.rows, *lost]
        if not rows:
            continue
        found = _contributions(seen.heads, rows, measure)
        predicted.add(seen.rows, found[: len(seen.rows)])
        missed.add(lost, found[len(seen.rows) :])
    names = sorted(
        predicted.spans.keys() | missed.spans.keys(),
        key=lambda name: (-predicted.spans.get(name, 0), name),
    )
    spans, sums, firsts = predicted.arrays(names, heads)
    missed_spans, _, missed_firsts = missed.arrays(names, heads)
    means = np.full_like(sums, np.nan)
    np.divide(sums, spans[:, None], out=means, where=spans[:, None] > 0)
    return HeadContributions(
        measure, count, tuple(names), spans, means, firsts, missed_spans, missed_firsts
    )


class _Sums:
    """Contributions summed up by category."""

    def __init__(self) -> None:
        self.spans: dict[str, int] = {}
        self._sums: dict[str, NDArray[np.float64]] = {}
        self._firsts: dict[str, NDArray[np.int64]] = {}

    def add(self, rows: Sequence[LabeledSpan], found: NDArray[np.float64]) -> None:
        """Spans, and their contributions ``[spans, heads]``."""
        heads = found.shape[1]
        for (_, _, label), contributions in zip(rows, found, strict=True):
            name = category_name(label)
            if name not in self.spans:
                self.spans[name] = 0
                self._sums[name] = np.zeros(heads)
                self._firsts[name] = np.zeros(heads, dtype=np.int64)
            self.spans[name] += 1
            self._sums[name] += contributions
            self._firsts[name][contributions.argmax()] += 1

    def arrays(
        self, names: Sequence[str], heads: int
    ) -> tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.int64]]:
        """Spans, sums and firsts of these categories."""
        spans = np.array([self.spans.get(name, 0) for name in names], dtype=np.int64)
        sums = np.zeros((len(names), heads))
        firsts = np.zeros((len(names), heads), dtype=np.int64)
        for k, name in enumerate(names):
            if name in self.spans:
                sums[k], firsts[k] = self._sums[name], self._firsts[name]
        return spans, sums, firsts


def _missed(seen: Observed) -> list[LabeledSpan]:
    """The gold spans that were not predicted as what they are."""
    if seen.asked.gold is None:
        return []
    known = set(seen.heads.labels)
    gold = collapsed_spans(seen.asked.gold)
    return [row for row in gold if row not in seen.rows and row[2] in known]


def _contributions(
    heads: HeadOutputs, rows: Sequence[LabeledSpan], measure: Measure
) -> NDArray[np.float64]:
    """Of each head to each labelled span of a sentence, ``[spans, heads]``."""
    spans = [(start, end) for start, end, _ in rows]
    if measure in ("norm", "released"):
        return shares(span_features(heads.features, spans), measure)
    given = choices(heads, spans, [label for *_, label in rows], [None] * len(rows))
    return (lead_parts if measure == "lead" else lead_without_each)(heads, given)
