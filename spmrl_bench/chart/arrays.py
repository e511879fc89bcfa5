"""Where the cells and arcs of a batch lie in flat arrays, and whether arrays are what they must be.

A chart has one cell per span [i, j) of a sentence, 0 <= i < j <= n. Cells are packed: sentence
after sentence, and within a sentence of n words row by row, (0,1) (0,2) ... (0,n) (1,2) ...
(n-1,n). Scores of arcs are packed likewise: for each word 1..n as a dependent one row of n + 1
columns, for its head: 0 for the root, 1..n for the words. The word's own column is not used.

``lengths`` [B] are the words of each sentence. Offsets are int64 [B + 1]: sentence b owns
``offsets[b]:offsets[b + 1]``. Kernels trust their input, so all of it is checked here first.
"""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from spmrl_bench.errors import ArrayError, NotFiniteError

Integers = TypeVar("Integers", int, NDArray[np.int64])

#: Beyond this the sums of scores of a structure, and their differences, could overflow.
LARGEST = 1e300


def cell_index(i: Integers, j: Integers, n: Integers) -> Integers:
    """Return the index of span [i, j) among the cells of its sentence of ``n`` words."""
    return i * n - i * (i - 1) // 2 + (j - i - 1)


def starts(counts: ArrayLike) -> NDArray[np.int64]:
    """Return the offsets of runs that lie one after the other; ``starts(lengths)`` are of words."""
    first = np.zeros(np.size(counts) + 1, dtype=np.int64)
    np.cumsum(counts, out=first[1:])
    return first


def cell_offsets(lengths: ArrayLike) -> NDArray[np.int64]:
    """Return the offsets of cells, n(n + 1) / 2 of each sentence."""
    words = np.asarray(lengths, dtype=np.int64)
    return starts(words * (words + 1) // 2)


def arc_offsets(lengths: ArrayLike) -> NDArray[np.int64]:
    """Return the offsets of arcs, n(n + 1) of each sentence."""
    return 2 * cell_offsets(lengths)


def node_offsets(lengths: ArrayLike) -> NDArray[np.int64]:
    """Return the offsets of the nodes of binary trees, 2n - 1 of each sentence."""
    return starts(2 * np.asarray(lengths, dtype=np.int64) - 1)


def cell_spans(
    lengths: ArrayLike,
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Return sentence, left and right fencepost of every cell of a batch, in packed order."""
    words = np.asarray(lengths, dtype=np.int64)
    # One chart row per word: row i of a sentence of n words holds n - i cells.
    row_sentence = np.repeat(np.arange(len(words)), words)
    row_left = _within(words)
    row_cells = words[row_sentence] - row_left
    left = np.repeat(row_left, row_cells)
    return np.repeat(row_sentence, row_cells), left, left + 1 + _within(row_cells)


def _within(counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return 0, ..., counts[0] - 1, 0, ..., counts[1] - 1, and so on."""
    first = starts(counts)
    return np.arange(first[-1]) - np.repeat(first[:-1], counts)


def checked(name: str, values: ArrayLike, dtype: type[Any], size: int | None = None) -> Any:
    """Return an array as a contiguous vector of int32 or float64, if it can be one."""
    array, whole = np.asarray(values), dtype is np.int32
    wanted = "integers" if whole else "float64 or float32"
    right = array.dtype.kind in "iu" if whole else array.dtype in (np.float32, np.float64)
    if array.ndim != 1 or (array.size and not right):
        found = f"dtype {array.dtype} and shape {array.shape}"
        raise ArrayError(f"{name} has {found}; it must be a vector of {wanted}.")
    if size is not None and len(array) != size:
        raise ArrayError(f"{name} has {len(array)} entries; the batch needs {size}.")
    if whole and array.size and not np.can_cast(array.dtype, np.int32):
        low, high = array.min(), array.max()
        if not -(2**31) <= low <= high < 2**31:
            raise ArrayError(f"{name} ranges from {low} to {high}; it must fit 32-bit integers.")
    return np.ascontiguousarray(array, dtype=dtype)


def checked_lengths(lengths: ArrayLike) -> NDArray[np.int32]:
    """Return ``lengths`` as int32 [B], each at least 1."""
    words: NDArray[np.int32] = checked("lengths", lengths, np.int32)
    if words.size and words.min() < 1:
        b = int((words < 1).argmax())
        raise ArrayError(f"lengths[{b}] is {words[b]}; a sentence has at least 1 word.")
    # Beyond this the numbers of cells and arcs, which are about the squares, would overflow.
    if np.square(words, dtype=np.float64).sum() > 2.0**58:
        raise ArrayError(f"lengths has up to {words.max()} words; no chart is so large.")
    return words


def checked_values(values: ArrayLike, lengths: NDArray[np.int32]) -> NDArray[np.float64]:
    """Return the scores of cells as float64 [cells], none beyond :data:`LARGEST`."""
    size = int(cell_offsets(lengths)[-1])
    array: NDArray[np.float64] = checked("values", values, np.float64, size)
    for cell in np.flatnonzero(~(np.abs(array) <= LARGEST)):
        sentence, i, j = (int(place[cell]) for place in cell_spans(lengths))
        _refuse(f"values[{cell}] (sentence {sentence}, span [{i}, {j}))", array[cell])
    return array


def checked_arcs(arcs: ArrayLike, lengths: NDArray[np.int32]) -> NDArray[np.float64]:
    """Return the scores of arcs as float64 [sum(n(n + 1))], none beyond :data:`LARGEST` but those
    of a word to itself, which are read nowhere."""
    offsets = arc_offsets(lengths)
    array: NDArray[np.float64] = checked("arcs", arcs, np.float64, int(offsets[-1]))
    for arc in np.flatnonzero(~(np.abs(array) <= LARGEST)):
        sentence = int(np.searchsorted(offsets, arc, side="right")) - 1
        row, head = divmod(int(arc - offsets[sentence]), int(lengths[sentence]) + 1)
        if head != row + 1:
            place = f"sentence {sentence}, dependent {row + 1}, head {head}"
            _refuse(f"arcs[{arc}] ({place})", array[arc])
    return array


def _refuse(place: str, score: float) -> None:
    if not np.isfinite(score):
        raise NotFiniteError(f"{place} is {score}; every score must be finite.")
    raise ArrayError(f"{place} is {score}; scores from {-LARGEST} to {LARGEST} can be added up.")
