"""Decoding from label scores that come block by block.

All label scores of a sentence of 300 words are 20 megabytes, of a batch of them hundreds. A
chart needs only the best label of each cell and its score. So a :class:`BlockDecoder` takes
the scores of some cells at a time, while they are in the processor's cache, and keeps these
two; or it is given the two, where the scores are on a GPU and should stay there.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from spmrl_bench.chart import packing
from spmrl_bench.chart.checks import (
    check_columns,
    checked_gold,
    checked_lengths,
    checked_maxima,
    checked_scores,
    checked_threads,
    refuse_not_finite,
)
from spmrl_bench.chart.decoded import Decoded
from spmrl_bench.chart.kernels import load_kernel
from spmrl_bench.chart.threads import team_size
from spmrl_bench.errors import ArrayError


class BlockDecoder:
    """Takes label scores in the packed order of cells and then finds the best trees.

    Args:
        lengths: integers [B], words per sentence.
        gold: integers [cells], the gold label of each cell, for the loss augmentation of
            :func:`spmrl_bench.chart.decode`; None for none.

    Raises:
        ArrayError: an array has the wrong type, shape or range.
    """

    def __init__(self, lengths: ArrayLike, gold: ArrayLike | None = None) -> None:
        self._kernel = load_kernel()
        self._words = checked_lengths(lengths)
        self._offsets = packing.cell_offsets(self._words)
        cells = int(self._offsets[-1])
        self._gold = None if gold is None else checked_gold(gold, cells)
        self._values = np.empty(cells, dtype=np.float64)
        self._labels = np.empty(cells, dtype=np.int32)
        self._done = 0

    def add(self, scores: ArrayLike) -> None:
        """Take the label scores of the next cells.

        Args:
            scores: float32 [any number of cells, labels - 1], as for
                :func:`spmrl_bench.chart.decode`.

        Raises:
            ArrayError: there are more rows than cells are left, or a wrong type or shape, or
                the gold label of a cell has no column.
            NotFiniteError: a score is NaN or infinite.
        """
        table = checked_scores(scores)
        team = team_size(self._kernel, None, len(table), table.size)
        self._add(table, self._labels, team)

    def _add(self, table: NDArray[np.float32], labels: NDArray[np.int32] | None, team: int) -> None:
        block = self._next(len(table))
        gold = None if self._gold is None else self._gold[block]
        if gold is not None:
            check_columns(gold, table.shape[1], block.start)
        found = None if labels is None else labels[block]
        if not self._kernel.label_maxima(table, gold, self._values[block], found, team):
            refuse_not_finite(table, self._words, block.start)
        self._done = block.stop

    def add_maxima(self, values: ArrayLike, labels: ArrayLike) -> None:
        """Take the best label of each of the next cells, and its score.

        Args:
            values: float64 [cells], the largest score of a label other than the empty one,
                with 1 for all but gold's where gold labels were given; NaN or infinite where
                a score of the cell is.
            labels: integers [cells], the lowest label with this score, 1 or more.

        Raises:
            ArrayError: as in :meth:`add`.
            NotFiniteError: a value is.
        """
        given, best = checked_maxima(values, labels)
        block = self._next(len(given))
        if not np.isfinite(given).all():
            refuse_not_finite(given[:, None], self._words, block.start)
        self._values[block] = given
        self._labels[block] = best
        self._done = block.stop

    def maxima(self) -> tuple[NDArray[np.float64], NDArray[np.int32]]:
        """The best label of each cell but the empty one, and its score, which is first.

        All cells must have been taken. With gold labels all others have 1 more.
        """
        if self._done != len(self._values):
            raise ArrayError(
                f"scores of {self._done} cells were added; the batch has {len(self._values)}."
            )
        return self._values, self._labels

    def decode(self, *, threads: int | None = None) -> Decoded:
        """The tree of highest score of every sentence; all cells must have been taken.

        Args:
            threads: as in :func:`spmrl_bench.chart.decode`.
        """
        checked_threads(threads)
        self.maxima()
        decoded = Decoded.empty(self._words)
        # Sums of 64-bit numbers take as long as maxima of some labels.
        team = team_size(self._kernel, threads, len(self._words), 8 * self._done)
        self._kernel.decode_maxima(
            self._values,
            self._labels,
            self._words,
            self._gold,
            self._offsets,
            decoded.offsets,
            decoded.cells,
            decoded.labels,
            decoded.scores,
            np.argsort(-self._words, kind="stable"),  # long sentences first
            team,
        )
        return decoded

    def decode_whole(self, scores: ArrayLike, *, threads: int | None = None) -> Decoded:
        """As :func:`spmrl_bench.chart.decode`: only labels of the trees have to be found."""
        checked_threads(threads)
        table = checked_scores(scores)
        if self._done:
            raise ArrayError(
                f"scores of {self._done} cells were added before; here all must come at once."
            )
        team = team_size(self._kernel, threads, len(self._words), table.size)
        self._add(table, None, team)
        self._labels.fill(1)  # stands for whatever is not the empty one
        decoded = self.decode(threads=team)
        self._kernel.find_labels(
            table, self._gold, self._values, decoded.cells, decoded.labels, team
        )
        return decoded

    def _next(self, cells: int) -> slice:
        """Where the next cells lie; they are done once their scores are known to be finite."""
        first = self._done
        if first + cells > len(self._values):
            raise ArrayError(
                f"scores of {first} and now {cells} cells were added; the batch has "
                f"{len(self._values)}."
            )
        return slice(first, first + cells)
