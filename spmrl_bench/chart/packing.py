"""Where the cells of a batch of charts lie in one flat array.

A chart has one cell per span [i, j) of a sentence, 0 <= i < j <= n. Padding every chart of a
batch to the longest sentence would waste most of the memory, so cells are packed: sentence
after sentence, and inside a sentence of n words the upper triangle row by row, i ascending
and then j ascending. The n(n+1)/2 cells of one sentence start with the spans of the first
word: (0,1) (0,2) ... (0,n) (1,2) ... (n-1,n). The full sentence is cell n-1.

The scores of the arcs of dependency trees are packed likewise: sentence after sentence, and
inside a sentence of n words one row for each word 1..n as a dependent, with n + 1 columns for
its governor: 0 for the root, 1..n for the words. The column of the word itself is not used.

Everything here is index arithmetic on integer arrays; nothing depends on scores or labels.
"""

from __future__ import annotations

from typing import TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

Integers = TypeVar("Integers", int, NDArray[np.int64])


def cell_count(n: Integers) -> Integers:
    """Number of cells of a chart over ``n`` words (a number or an array of lengths)."""
    return n * (n + 1) // 2


def cell_index(i: Integers, j: Integers, n: Integers) -> Integers:
    """Index of span [i, j) among the cells of its sentence of ``n`` words.

    Numbers or arrays that broadcast against each other; add the sentence's entry of
    :func:`cell_offsets` for the index into a batch. The caller guarantees
    0 <= i < j <= n: this is the bare formula, cheap enough for inner loops.
    """
    return i * n - i * (i - 1) // 2 + (j - i - 1)


def cell_offsets(lengths: ArrayLike) -> NDArray[np.int64]:
    """First cell of each sentence of a batch.

    ``lengths``: [B] words per sentence. Returns [B + 1]; sentence b owns the cells
    ``offsets[b]:offsets[b + 1]`` and the last entry is the number of cells of the batch.
    """
    return _starts(cell_count(np.asarray(lengths, dtype=np.int64)))


def node_offsets(lengths: ArrayLike) -> NDArray[np.int64]:
    """First node of each sentence's binarised tree, which has 2n - 1 nodes.

    ``lengths``: [B], each at least 1. Returns [B + 1], used like :func:`cell_offsets`.
    """
    return _starts(2 * np.asarray(lengths, dtype=np.int64) - 1)


def word_offsets(lengths: ArrayLike) -> NDArray[np.int64]:
    """First word of each sentence; ``lengths``: [B]. Returns [B + 1], as :func:`cell_offsets`."""
    return _starts(np.asarray(lengths, dtype=np.int64))


def arc_offsets(lengths: ArrayLike) -> NDArray[np.int64]:
    """First arc of each sentence of a batch.

    A sentence of n words has n rows, for its words as dependents, of n + 1 arcs, from the root and
    from its words as governors. ``lengths``: [B]. Returns [B + 1], as :func:`cell_offsets`.
    """
    words = np.asarray(lengths, dtype=np.int64)
    return _starts(words * (words + 1))


def cell_spans(
    lengths: ArrayLike,
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Sentence, left and right fencepost of every cell of a batch, in packed order.

    ``lengths``: [B]. Returns three arrays [cells]: sentence number 0..B-1, and i and j of
    the half-open span [i, j).
    """
    words = np.asarray(lengths, dtype=np.int64)
    # One chart row per word: row i of a sentence of n words holds n - i cells.
    row_sentence = np.repeat(np.arange(len(words)), words)
    row_left = _within(words)
    row_cells = words[row_sentence] - row_left
    left = np.repeat(row_left, row_cells)
    return np.repeat(row_sentence, row_cells), left, left + 1 + _within(row_cells)


def _starts(counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """Running sum with a leading zero: [B] counts to [B + 1] offsets."""
    offsets = np.zeros(len(counts) + 1, dtype=np.int64)
    np.cumsum(counts, out=offsets[1:])
    return offsets


def _within(counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """0, 1, ..., counts[0] - 1, 0, 1, ..., counts[1] - 1, and so on, flat."""
    offsets = _starts(counts)
    return np.arange(offsets[-1]) - np.repeat(offsets[:-1], counts)
