"""What the kernels trust and therefore has been checked: types, shapes and ranges of arrays."""

from __future__ import annotations

import operator

import numpy as np
from numpy.typing import ArrayLike, NDArray

from spmrl_bench.chart import packing

#: Beyond this the sums of scores of a tree, and their differences, could overflow.
LARGEST_ARC = 1e300


class NotFiniteError(ValueError):
    """A score is NaN or infinite, as those of a model whose training diverged are."""


def checked_threads(threads: int | None) -> None:
    """Refuse a number of threads that is none."""
    if threads is not None and operator.index(threads) < 1:
        raise ValueError(f"threads is {threads}; it must be at least 1, or None for the default.")


def checked_lengths(lengths: ArrayLike) -> NDArray[np.int32]:
    """``lengths`` as contiguous int32 [B], each at least 1."""
    words = checked_integers("lengths", lengths)
    if words.size and words.min() < 1:
        b = int((words < 1).argmax())
        raise ValueError(f"lengths[{b}] is {words[b]}; a sentence has at least 1 word.")
    return words


def checked_scores(scores: ArrayLike) -> NDArray[np.float32]:
    """``scores`` as contiguous float32 [any number, labels - 1]."""
    table = np.asarray(scores)
    if table.dtype != np.float32:
        raise ValueError(f"scores has dtype {table.dtype}; it must be float32.")
    if table.ndim != 2 or table.shape[1] < 1:
        raise ValueError(
            f"scores has shape {table.shape}; it must be [cells, labels - 1] with at least one "
            "column (label 0 has none)."
        )
    return np.ascontiguousarray(table)


def checked_gold(gold: ArrayLike, cells: int) -> NDArray[np.int32]:
    """``gold`` as contiguous int32 [cells]; :func:`check_columns` is still to be asked."""
    targets = checked_integers("gold", gold)
    if len(targets) != cells:
        raise ValueError(f"gold has {len(targets)} entries; scores has {cells} cells.")
    return targets


def check_columns(gold: NDArray[np.int32], columns: int, first: int = 0) -> None:
    """Refuse gold labels beyond 0..columns; the first of them is that of cell ``first``."""
    # As unsigned numbers the negative ones are the largest.
    if gold.size and gold.view(np.uint32).max() > columns:
        cell = int(((gold < 0) | (gold > columns)).argmax())
        raise ValueError(f"gold[{first + cell}] is {gold[cell]}; labels are 0..{columns}.")


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


def checked_arcs(arcs: ArrayLike, lengths: NDArray[np.int32]) -> NDArray[np.float64]:
    """``arcs`` as contiguous float64, packed for sentences of these ``lengths`` [B].

    Those of words to themselves may be anything, since nobody reads them.
    """
    table = np.asarray(arcs)
    if table.dtype not in (np.float32, np.float64):
        raise ValueError(f"arcs has dtype {table.dtype}; it must be float64 or float32.")
    if table.ndim != 1:
        raise ValueError(
            f"arcs has shape {table.shape}; it must have one dimension, with n(n + 1) scores for "
            "a sentence of n words."
        )
    offsets = packing.arc_offsets(lengths)
    if len(table) != offsets[-1]:
        raise ValueError(
            f"arcs has {len(table)} scores; {len(lengths)} sentences of these lengths have "
            f"{offsets[-1]}: n(n + 1) for n words."
        )
    scores = np.ascontiguousarray(table, dtype=np.float64)
    usable = np.abs(scores) <= LARGEST_ARC
    if not usable.all():
        _refuse_arcs(scores, np.flatnonzero(~usable), lengths, offsets)
    return scores


def _refuse_arcs(
    scores: NDArray[np.float64],
    places: NDArray[np.int64],
    lengths: NDArray[np.int32],
    offsets: NDArray[np.int64],
) -> None:
    """Raise an error for the first arc of ``places`` that is not one of a word to itself."""
    sentences = np.searchsorted(offsets, places, side="right") - 1
    for k, b in zip(places.tolist(), sentences.tolist(), strict=True):
        row, governor = divmod(k - int(offsets[b]), int(lengths[b]) + 1)
        if governor == row + 1:
            continue
        problem = f"arcs[{k}] (sentence {b}, word {row + 1}, governor {governor}) is {scores[k]}"
        if not np.isfinite(scores[k]):
            raise NotFiniteError(f"{problem}; every score must be finite.")
        raise ValueError(f"{problem}; scores must be from {-LARGEST_ARC} to {LARGEST_ARC}.")


def checked_integers(name: str, values: ArrayLike) -> NDArray[np.int32]:
    """``values`` as a contiguous int32 vector; other integer types are converted."""
    array = np.asarray(values)
    if array.ndim != 1:
        raise ValueError(f"{name} has shape {array.shape}; it must have one dimension.")
    if array.size and not np.issubdtype(array.dtype, np.integer):
        raise ValueError(f"{name} has dtype {array.dtype}; it must hold integers.")
    if not np.can_cast(array.dtype, np.int32) and array.size:
        limits = np.iinfo(np.int32)
        if array.min() < limits.min or array.max() > limits.max:
            raise ValueError(
                f"{name} ranges from {array.min()} to {array.max()}; it must fit 32-bit integers."
            )
    return np.ascontiguousarray(array, dtype=np.int32)
