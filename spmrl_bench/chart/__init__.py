"""Best binarised trees under label scores, for a whole batch of sentences at once.

This package knows no model and no tree class: it takes an array of scores, one row per chart
cell (see :mod:`spmrl_bench.chart.packing`), and returns cells and labels. The work is done by
the compiled kernel ``_cky`` or, where that could not be built, by its plain-Python twin
:mod:`spmrl_bench.chart.reference`; both give the same result bit for bit.

The kernels trust their input, so :func:`decode` checks all of it first.
"""

from __future__ import annotations

import functools
import operator
import warnings
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from spmrl_bench.chart import packing, reference
from spmrl_bench.chart.threads import Kernel, run

__all__ = ["Decoded", "NotFiniteError", "decode", "kernel_name"]


class NotFiniteError(ValueError):
    """A score is NaN or infinite, as those of a model whose training diverged are."""


@dataclass(frozen=True, slots=True, eq=False)
class Decoded:
    """The best binarised tree of each sentence of a batch.

    Sentence b owns the nodes ``offsets[b]:offsets[b + 1]``, 2n - 1 of them, in pre-order
    (a node, its left part, its right part).
    """

    cells: NDArray[np.int64]
    """[nodes] packed cell of each node, counted from the first cell of the batch."""
    labels: NDArray[np.int32]
    """[nodes] label of each node; 0 is the empty label."""
    offsets: NDArray[np.int64]
    """[B + 1] first node of each sentence."""
    scores: NDArray[np.float64]
    """[B] score of each tree, with the augmentation when gold labels were given."""


def decode(
    scores: ArrayLike,
    lengths: ArrayLike,
    gold: ArrayLike | None = None,
    *,
    threads: int | None = None,
) -> Decoded:
    """Find the tree of highest score of every sentence of a batch.

    ``scores``: float32 [cells, labels - 1], packed as in :mod:`spmrl_bench.chart.packing`;
    column c scores label c + 1. Label 0, the empty label, scores 0 everywhere and cannot be
    the label of a full sentence. ``lengths``: integers [B], words per sentence. ``gold``:
    integers [cells], the gold label of each cell, 0 where gold has no constituent; when given,
    every label but the gold one gains 1 in its cell (the loss augmentation of Kitaev & Klein
    2018). Ties go to the lowest label, then to the leftmost split. Sums are double.

    ``threads`` is the number of threads that share the sentences; the result does not depend
    on it. Without it OpenMP is asked, which follows OMP_NUM_THREADS and, where torch uses the
    same library, ``torch.set_num_threads``; a batch that is too small to share gets one.

    Raises ValueError when an array has the wrong type, shape or range or there would be no
    thread, and its subclass NotFiniteError when a score is not finite. An empty batch gives an
    empty result.
    """
    return _decode(_load_kernel(), scores, lengths, gold, threads)


def kernel_name() -> str:
    """Which implementation :func:`decode` uses: "cython" or "python"."""
    return _load_kernel().name


@functools.cache
def _load_kernel() -> Kernel:
    """The compiled kernel where it exists, else the twin with one warning that says why."""
    try:
        from spmrl_bench.chart._cky import decode_batch, openmp_threads
    except ImportError as error:
        warnings.warn(
            "chart decoding runs on the plain-Python kernels, which give the same trees but are "
            f"much slower, because the compiled ones cannot be loaded ({error}). Install the "
            "package again on a machine with a C compiler to build them.",
            RuntimeWarning,
            stacklevel=3,
        )
        return Kernel("python", reference.decode_batch, None)
    return Kernel("cython", decode_batch, openmp_threads)


def _decode(
    kernel: Kernel,
    scores: ArrayLike,
    lengths: ArrayLike,
    gold: ArrayLike | None = None,
    team: int | None = None,
) -> Decoded:
    """Check the input, allocate the output and let ``kernel`` fill it."""
    if team is not None and operator.index(team) < 1:
        raise ValueError(f"threads is {team}; it must be at least 1, or None for the default.")
    words = _checked_lengths(lengths)
    cell_offsets = packing.cell_offsets(words)
    node_offsets = packing.node_offsets(words)
    table = _checked_scores(scores, words, int(cell_offsets[-1]))
    targets = None if gold is None else _checked_gold(gold, *table.shape)
    nodes = int(node_offsets[-1])
    decoded = Decoded(
        cells=np.empty(nodes, dtype=np.int64),
        labels=np.empty(nodes, dtype=np.int32),
        offsets=node_offsets,
        scores=np.empty(len(words), dtype=np.float64),
    )
    arguments = (
        table,
        words,
        targets,
        cell_offsets,
        node_offsets,
        decoded.cells,
        decoded.labels,
        decoded.scores,
    )
    if not run(kernel, arguments, words, team, table.size):
        _refuse_not_finite(table, words)
    return decoded


def _checked_lengths(lengths: ArrayLike) -> NDArray[np.int32]:
    """``lengths`` as contiguous int32 [B], each at least 1."""
    words = _integers("lengths", lengths)
    if words.size and words.min() < 1:
        b = int((words < 1).argmax())
        raise ValueError(f"lengths[{b}] is {words[b]}; a sentence has at least 1 word.")
    return words


def _checked_scores(
    scores: ArrayLike, lengths: NDArray[np.int32], cells: int
) -> NDArray[np.float32]:
    """``scores`` as contiguous float32 [cells, labels - 1]."""
    table = np.asarray(scores)
    if table.dtype != np.float32:
        raise ValueError(f"scores has dtype {table.dtype}; it must be float32.")
    if table.ndim != 2 or table.shape[1] < 1:
        raise ValueError(
            f"scores has shape {table.shape}; it must be [cells, labels - 1] with at least one "
            "column (label 0 has none)."
        )
    if len(table) != cells:
        raise ValueError(
            f"scores has {len(table)} rows; {len(lengths)} sentences with {lengths.sum()} words "
            f"have {cells} cells (n(n+1)/2 for each sentence of n words)."
        )
    return np.ascontiguousarray(table)


def _refuse_not_finite(table: NDArray[np.float32], lengths: NDArray[np.int32]) -> None:
    """Raise NotFiniteError for the first score that is NaN or infinite, if there is one.

    A kernel may suspect scores wrongly, when they are so large that their sum overflows.
    """
    wrong = np.argwhere(~np.isfinite(table))
    if len(wrong):
        cell, column = wrong[0]
        sentence, i, j = (int(place[cell]) for place in packing.cell_spans(lengths))
        raise NotFiniteError(
            f"scores[{cell}, {column}] (sentence {sentence}, span [{i}, {j}), label {column + 1}) "
            f"is {table[cell, column]}; every score must be finite."
        )


def _checked_gold(gold: ArrayLike, cells: int, columns: int) -> NDArray[np.int32]:
    """``gold`` as contiguous int32 [cells] with labels 0..columns."""
    targets = _integers("gold", gold)
    if len(targets) != cells:
        raise ValueError(f"gold has {len(targets)} entries; scores has {cells} cells.")
    # As unsigned numbers the negative ones are the largest.
    if targets.size and targets.view(np.uint32).max() > columns:
        cell = int(((targets < 0) | (targets > columns)).argmax())
        raise ValueError(f"gold[{cell}] is {targets[cell]}; labels are 0..{columns}.")
    return targets


def _integers(name: str, values: ArrayLike) -> NDArray[np.int32]:
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
