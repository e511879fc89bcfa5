"""What a chart would give up for a span: the best tree that has it, and the best one that has not.

The *max-marginal* of a span is the score of the best tree that has a node there. It is found for
all spans at once by the inside and outside charts in the semiring of maxima (Goodman 1999, Semiring
Parsing). Nothing is normalised, so scores that are trained by a margin are compared as they are.

    inside(i, j)  = value(i, j) + max over i < k < j of inside(i, k) + inside(k, j)
    outside(i, j) = max over parents: value and outside of the parent, and inside of the sibling
    best with [i, j) = inside(i, j) + outside(i, j)

Trees are binary: where a tree has no node [i, j), it has one that crosses it, so that the best tree
without is the best with any span that does.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from spmrl_bench.chart.arrays import cell_offsets, cell_spans, checked_lengths, checked_values


@dataclass(frozen=True, slots=True, eq=False)
class MaxMarginals:
    """The best trees with each span of a batch of B sentences of these lengths."""

    best: NDArray[np.float64]
    """[B] score of the best tree of each sentence."""
    with_span: NDArray[np.float64]
    """[cells] score of the best tree that has a node there, packed as the values were."""
    lengths: NDArray[np.int32]

    def without(self, sentence: int, start: int, end: int) -> float:
        """Score of the best tree of a sentence that has no node over a span; minus infinity where
        every tree has one, over a single word and over all words."""
        i, j = cell_spans(self.lengths[sentence : sentence + 1])[1:]
        first = int(cell_offsets(self.lengths)[sentence])
        crossing = ((i < start) & (start < j) & (j < end)) | ((start < i) & (i < end) & (end < j))
        own = self.with_span[first : first + len(i)]
        return float(own.max(where=crossing, initial=-np.inf))


def max_marginals(values: ArrayLike, lengths: ArrayLike) -> MaxMarginals:
    """Return the best trees with each span, where a node over it adds its value [cells]."""
    words = checked_lengths(lengths)
    table = checked_values(values, words)
    if not len(words):
        return MaxMarginals(np.empty(0), table, words)
    longest = int(words.max())
    sentence, start, end = cell_spans(words)
    width = end - start
    cells = np.full((len(words), longest + 1, longest + 1), -np.inf)
    cells[sentence, start, width] = table
    left, right = _inside(cells)
    outside = _outside(cells, left, right, words)
    whole = np.arange(len(words))
    found = left[sentence, start, width] + outside[sentence, start, width]
    return MaxMarginals(left[whole, 0, words], found, words)


#: float64 [B, N + 1, N + 1], by sentence, fencepost and width; minus infinity where no span is.
_Chart = NDArray[np.float64]


def _inside(cells: _Chart) -> tuple[_Chart, _Chart]:
    """Return inside scores by either fencepost and the width, so that parts of spans are slices."""
    longest = cells.shape[1] - 1
    left, right = np.full_like(cells, -np.inf), np.full_like(cells, -np.inf)
    for width in range(1, longest + 1):
        inside = cells[:, : longest - width + 1, width]
        if width > 1:
            parts = left[:, : longest - width + 1, 1:width] + right[:, width:, width - 1 : 0 : -1]
            inside = inside + parts.max(axis=2)
        left[:, : longest - width + 1, width] = inside
        right[:, width:, width] = inside
    return left, right


def _outside(cells: _Chart, left: _Chart, right: _Chart, words: NDArray[np.int32]) -> _Chart:
    """Return outside scores, without the span's own value, by the left fencepost and the width."""
    longest = cells.shape[1] - 1
    outside = np.full_like(cells, -np.inf)
    outside[np.arange(len(words)), 0, words] = 0.0
    # Of parents, by either fencepost: the outside score and the value.
    by_left, by_right = np.full_like(cells, -np.inf), np.full_like(cells, -np.inf)
    for width in range(longest, 0, -1):
        spans = slice(0, longest - width + 1)
        found = outside[:, spans, width]
        if width < longest:
            wider, sibling = slice(width + 1, longest + 1), slice(1, longest - width + 1)
            to_right = by_left[:, spans, wider] + left[:, width:, sibling]
            to_left = by_right[:, width:, wider] + right[:, spans, sibling]
            np.maximum(found, to_right.max(axis=2), out=found)
            np.maximum(found, to_left.max(axis=2), out=found)
        of_parent = found + cells[:, spans, width]
        by_left[:, spans, width] = of_parent
        by_right[:, width:, width] = of_parent
    return outside
