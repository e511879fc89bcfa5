"""How sure a chart is of each constituent that differs from gold.

The margin of a span is the score of the best tree less that of the best tree which decides the
span as gold does: has it with the label of gold or, where gold has no constituent, has no label
there. Both come from the max-marginals of the chart (:mod:`spmrl_bench.chart.max_marginals`), so
that the rest of the tree may change with the span: what is compared is what the parser would do
if it was told to follow gold here. A phrase that is attached elsewhere makes two or three spans
differ, and each has the whole margin of that attachment.

A joint parser's chart is searched by its labels alone, as in training; its parse, in which arcs had
a say, is what is compared with gold.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from spmrl_bench.analysis.rivals import constituent
from spmrl_bench.annotation.differences import Difference, label_text
from spmrl_bench.chart.max_marginals import MaxMarginals, max_marginals
from spmrl_bench.chart.packing import cell_index, cell_offsets
from spmrl_bench.parsers.chart_parser import ChartParser
from spmrl_bench.parsers.decoding import taken
from spmrl_bench.parsers.neural import Encoded
from spmrl_bench.trees.head_driven import SUB_HEAD
from spmrl_bench.trees.tree import Label, Tree, collapsed_spans


class _Asked(NamedTuple):
    """A span that differs."""

    sentence: int
    start: int
    end: int
    gold: Label
    parser: Label
    cell: int


def bracket_differences(
    parser: ChartParser, encoded: Encoded, gold: Sequence[Tree], found: Sequence[Tree]
) -> list[list[Difference]]:
    """The spans on which gold and the parser's trees differ, by the left end, wider ones first.

    Args:
        parser: of kind ``chart`` or ``joint``.
        encoded: some sentences.
        gold: of each.
        found: the parser's trees of each.
    """
    lengths = encoded.batch.lengths
    offsets = cell_offsets(lengths).tolist()
    asked = [
        _Asked(k, start, end, right, own, offsets[k] + cell_index(start, end, int(lengths[k])))
        for k, pair in enumerate(zip(gold, found, strict=True))
        for start, end, right, own in _differing(*pair)
    ]
    noted = _Noted(parser, asked)
    values, _ = taken(noted.passing(parser.mean_scores([encoded], [parser])), lengths).maxima()
    whole = np.array(offsets[:-1], dtype=np.int64) + lengths - 1
    values = values.astype(np.float64)
    values[np.setdiff1d(np.arange(len(values)), whole)] = np.maximum(
        np.delete(values, whole), 0.0
    )  # a sentence has a label
    chart = max_marginals(values, lengths)
    results: list[list[Difference]] = [[] for _ in gold]
    for number, each in enumerate(asked):
        best = float(chart.best[each.sentence])
        with_span = float(chart.with_span[each.cell] - values[each.cell])
        if each.gold:
            alternative = with_span + noted.scores[number]
        else:
            alternative = _without(chart, each, with_span + noted.of_none[number])
        results[each.sentence].append(
            Difference(
                "constituents",
                each.start,
                each.end,
                label_text(each.gold),
                label_text(each.parser),
                max(0.0, best - alternative),
                known=noted.known[number],
            )
        )
    return results


def _differing(gold: Tree, found: Tree) -> Iterator[tuple[int, int, Label, Label]]:
    """Span, label of gold and label of the parser, each empty where there is no constituent."""
    right = {(start, end): label for start, end, label in collapsed_spans(gold)}
    own = {(start, end): label for start, end, label in collapsed_spans(found)}
    for span in sorted(right.keys() | own.keys(), key=lambda span: (span[0], -span[1])):
        if right.get(span) != own.get(span):
            yield *span, right.get(span, ()), own.get(span, ())


def _without(chart: MaxMarginals, each: _Asked, unlabelled: float) -> float:
    """Score of the best tree in which a span is no constituent."""
    crossed = chart.without(each.sentence, each.start, each.end)
    found = max(crossed, unlabelled)
    # A sentence that is to have no label has no tree: it costs all that the label brings.
    return found if np.isfinite(found) else float(chart.best[each.sentence])


class _Noted:
    """What the labels of gold score in the cells that differ, noted while a chart passes by.

    Attributes:
        scores: float64 ``[asked]``, of the label of gold.
        of_none: float64 ``[asked]``, of what is no constituent: the empty label, or one that
            a joint parser puts over what has none.
        known: whether the parser knows the label of gold.
    """

    def __init__(self, parser: ChartParser, asked: Sequence[_Asked]) -> None:
        self.scores = np.full(len(asked), -np.inf)
        self.of_none = np.zeros(len(asked))
        forms: dict[Label, list[int]] = {}
        for index, label in enumerate(parser.vocabulary.labels):
            if index:
                own = () if SUB_HEAD in label else constituent(label)
                forms.setdefault(own, []).append(index - 1)
        every = set(range(len(parser.vocabulary.labels) - 1))
        self.known = [not each.gold or each.gold in forms for each in asked]
        # Of a label that is not known, no more is known than that it is not the parser's.
        self._columns = [
            forms.get(each.gold, [])
            if known
            else sorted(every.difference(forms.get(each.parser, []))) or sorted(every)
            for each, known in zip(asked, self.known, strict=True)
        ]
        self._asked = asked
        self._order = sorted(range(len(asked)), key=lambda number: asked[number].cell)
        self._cells = np.array([asked[number].cell for number in self._order], dtype=np.int64)

    def passing(self, blocks: Iterator[Tensor]) -> Iterator[Tensor]:
        """The blocks of scores as they are, ``[some cells, labels - 1]`` in packed order."""
        done = 0
        for block in blocks:
            low, high = np.searchsorted(self._cells, (done, done + len(block))).tolist()
            rows = block[self._cells[low:high] - done].float().cpu().numpy()
            for number, row in zip(self._order[low:high], rows, strict=True):
                self._note(number, row)
            done += len(block)
            yield block

    def _note(self, number: int, row: NDArray[np.float32]) -> None:
        columns = self._columns[number]
        if not self._asked[number].gold:
            self.of_none[number] = max([0.0, *row[columns].tolist()])
        else:
            self.scores[number] = row[columns].max()
