"""What the kernels trust and therefore has been checked: types, shapes and ranges of arrays."""

from __future__ import annotations

import operator

import numpy as np
from numpy.typing import ArrayLike, NDArray

from spmrl_bench.chart import packing
from spmrl_bench.errors import ArrayError

#: Beyond this the sums of scores of a structure, and their differences, could overflow.
LARGEST = 1e300


class NotFiniteError(ArrayError):
    """A score is NaN or infinite, as those of a model whose training diverged are."""


def checked_threads(threads: int | None) -> None:
    """Refuse a number of threads that is none."""
    if threads is None:
        return
    try:
        number = operator.index(threads)
    except TypeError:
        raise ArrayError(f"threads is {threads!r}; it must be a whole number, or None.") from None
    if number < 1:
        raise ArrayError(f"threads is {threads}; it must be at least 1, or None for the default.")


def checked_lengths(lengths: ArrayLike) -> NDArray[np.int32]:
    """``lengths`` as contiguous int32 [B], each at least 1."""
    words = checked_integers("lengths", lengths)
    if words.size and words.min() < 1:
        b = int((words < 1).argmax())
        raise ArrayError(f"lengths[{b}] is {words[b]}; a sentence has at least 1 word.")
    # Beyond this the numbers of cells and arcs, which are about the squares, would overflow.
    if words.size and np.square(words, dtype=np.float64).sum() > 2.0**58:
        raise ArrayError(
            f"lengths has sentences of up to {words.max()} words; no chart is so large."
        )
    return words


def checked_scores(scores: ArrayLike) -> NDArray[np.float32]:
    """``scores`` as contiguous float32 [any number, labels - 1]."""
    table = np.asarray(scores)
    if table.dtype != np.float32:
        raise ArrayError(f"scores has dtype {table.dtype}; it must be float32.")
    if table.ndim != 2 or table.shape[1] < 1:
        raise ArrayError(
            f"scores has shape {table.shape}; it must be [cells, labels - 1] with at least one "
            "column (label 0 has none)."
        )
    return np.ascontiguousarray(table)


def checked_gold(gold: ArrayLike, cells: int) -> NDArray[np.int32]:
    """``gold`` as contiguous int32 [cells]; :func:`check_columns` is still to be asked."""
    targets = checked_integers("gold", gold)
    if len(targets) != cells:
        raise ArrayError(f"gold has {len(targets)} entries; scores has {cells} cells.")
    return targets


def check_columns(gold: NDArray[np.int32], columns: int, first: int = 0) -> None:
    """Refuse gold labels beyond 0..columns; the first of them is that of cell ``first``."""
    # As unsigned numbers the negative ones are the largest.
    if gold.size and gold.view(np.uint32).max() > columns:
        cell = int(((gold < 0) | (gold > columns)).argmax())
        raise ArrayError(f"gold[{first + cell}] is {gold[cell]}; labels are 0..{columns}.")


def checked_maxima(
    values: ArrayLike, labels: ArrayLike
) -> tuple[NDArray[np.float64], NDArray[np.int32]]:
    """``values`` as float64 and ``labels`` as int32, both [any number], labels from 1 on."""
    given, best = np.asarray(values), checked_integers("labels", labels)
    if given.dtype not in (np.float32, np.float64) or given.ndim != 1:
        raise ArrayError(
            f"values has dtype {given.dtype} and shape {given.shape}; it must be float64 or "
            "float32, with one dimension."
        )
    if len(best) != len(given):
        raise ArrayError(f"labels has {len(best)} entries; values has {len(given)}.")
    if best.size and best.min() < 1:
        cell = int((best < 1).argmax())
        raise ArrayError(f"labels[{cell}] is {best[cell]}; the best label of a cell is 1 or more.")
    return given.astype(np.float64, copy=False), best


def refuse_not_finite(
    table: NDArray[np.float32] | NDArray[np.float64], lengths: NDArray[np.int32], first: int = 0
) -> None:
    """Raise NotFiniteError for the first score that is NaN or infinite, if there is one.

    A kernel may suspect scores wrongly, when they are so large that their sum overflows.

    Args:
        table: [cells, labels - 1], the scores from cell ``first`` of the batch on.
        lengths: [B] of the batch.
        first: a cell.
    """
    wrong = np.argwhere(~np.isfinite(table))
    if len(wrong):
        row, column = wrong[0]
        cell = first + row
        sentence, i, j = (int(place[cell]) for place in packing.cell_spans(lengths))
        raise NotFiniteError(
            f"scores[{cell}, {column}] (sentence {sentence}, span [{i}, {j}), label {column + 1}) "
            f"is {table[row, column]}; every score must be finite."
        )


def checked_values(values: ArrayLike, lengths: NDArray[np.int32]) -> NDArray[np.float64]:
    """``values`` as contiguous float64 [cells], none of them beyond :data:`LARGEST`."""
    cells = int(packing.cell_offsets(lengths)[-1])
    array = _checked_doubles("values", values, cells, "cells")
    if not _within_bounds(array):
        cell = int((~(np.abs(array) <= LARGEST)).argmax())
        sentence, i, j = (int(place[cell]) for place in packing.cell_spans(lengths))
        _refuse(f"values[{cell}] (sentence {sentence}, span [{i}, {j}))", array[cell])
    return array


def checked_arcs(arcs: ArrayLike, lengths: NDArray[np.int32]) -> NDArray[np.float64]:
    """``arcs`` as contiguous float64 [sum(n(n + 1))], none beyond :data:`LARGEST`.

    Arcs from a word to itself may be anything.
    """
    offsets = packing.arc_offsets(lengths)
    array = _checked_doubles("arcs", arcs, int(offsets[-1]), "arcs (n rows of n + 1)")
    if not _within_bounds(array):
        for arc in np.flatnonzero(~(np.abs(array) <= LARGEST)).tolist():
            sentence = int(np.searchsorted(offsets, arc, side="right")) - 1
            row, governor = divmod(arc - int(offsets[sentence]), int(lengths[sentence]) + 1)
            if governor != row + 1:
                place = f"sentence {sentence}, dependent {row + 1}, governor {governor}"
                _refuse(f"arcs[{arc}] ({place})", array[arc])
    return array


def _checked_doubles(name: str, values: ArrayLike, count: int, counted: str) -> NDArray[np.float64]:
    array = np.asarray(values)
    if array.dtype not in (np.float32, np.float64):
        raise ArrayError(f"{name} has dtype {array.dtype}; it must be float64 or float32.")
    if array.ndim != 1:
        raise ArrayError(f"{name} has shape {array.shape}; it must have one dimension.")
    if len(array) != count:
        raise ArrayError(f"{name} has {len(array)} entries; the batch has {count} {counted}.")
    return np.ascontiguousarray(array, dtype=np.float64)


def _within_bounds(array: NDArray[np.float64]) -> bool:
    return not array.size or bool(array.max() <= LARGEST and array.min() >= -LARGEST)


def _refuse(place: str, score: float) -> None:
    if not np.isfinite(score):
        raise NotFiniteError(f"{place} is {score}; every score must be finite.")
    raise ArrayError(f"{place} is {score}; scores from {-LARGEST} to {LARGEST} can be added up.")


def checked_integers(name: str, values: ArrayLike) -> NDArray[np.int32]:
    """``values`` as a contiguous int32 vector; other integer types are converted."""
    array = np.asarray(values)
    if array.ndim != 1:
        raise ArrayError(f"{name} has shape {array.shape}; it must have one dimension.")
    if array.size and not np.issubdtype(array.dtype, np.integer):
        raise ArrayError(f"{name} has dtype {array.dtype}; it must hold integers.")
    if not np.can_cast(array.dtype, np.int32) and array.size:
        limits = np.iinfo(np.int32)
        if array.min() < limits.min or array.max() > limits.max:
            raise ArrayError(
                f"{name} ranges from {array.min()} to {array.max()}; it must fit 32-bit integers."
            )
    return np.ascontiguousarray(array, dtype=np.int32)
