"""What the kernel trusts and therefore has been checked, beyond :mod:`spmrl_bench.chart.checks`."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from spmrl_bench.chart.checks import checked_integers
from spmrl_bench.errors import ArrayError
from spmrl_bench.transitions.moves import NONE


def checked_actions(actions: ArrayLike, lengths: NDArray[np.int32]) -> NDArray[np.int32]:
    """``actions`` as contiguous int32 [B, T]; whether they are legal is for a kernel to see."""
    table = np.asarray(actions)
    if table.ndim != 2 or len(table) != len(lengths):
        raise ArrayError(
            f"actions has shape {table.shape}; it must be [{len(lengths)}, steps], a row for each "
            "sentence."
        )
    return checked_integers("actions", table.ravel()).reshape(table.shape)


Arrays = tuple[
    NDArray[np.int32],
    NDArray[np.int32],
    NDArray[np.int32],
    NDArray[np.int32],
    NDArray[np.int32],
    NDArray[np.int32],
    NDArray[np.int32],
]
"""Those of :class:`~spmrl_bench.transitions.states.States`, in the order of its constructor."""

_NAMES = ("sentences", "lengths", "stack", "sizes", "fronts", "heads", "relations")
_TABLES = ("stack", "heads", "relations")


def check_states(arrays: Arrays, relations: int) -> None:
    """Refuse arrays that are not those of states of a system with so many relations."""
    for name, array in zip(_NAMES, arrays, strict=True):
        if not isinstance(array, np.ndarray) or array.dtype != np.int32:
            found = getattr(array, "dtype", type(array).__name__)
            raise ArrayError(f"{name} has dtype {found}; it must be an array of int32.")
        if not (array.flags.c_contiguous and array.flags.writeable):
            raise ArrayError(f"{name} is not contiguous, or not to be written; it must be both.")
    sentences, lengths, stack, sizes, fronts, heads, names = arrays
    if sentences.ndim != 1 or stack.ndim != 2:
        raise ArrayError(
            f"sentences and stack have the shapes {sentences.shape} and {stack.shape}; they must "
            "have one and two dimensions."
        )
    for name, array in zip(_NAMES, arrays, strict=True):
        shape = (len(sentences), stack.shape[1]) if name in _TABLES else (len(sentences),)
        if array.shape != shape:
            raise ArrayError(f"{name} has shape {array.shape}; it must be {list(shape)}.")
    words = stack.shape[1] - 1
    on_stack = np.arange(words + 1) < sizes[:, None]
    _check_range("sentences", sentences, 0, np.iinfo(np.int32).max)
    _check_range("lengths", lengths, 1, words)
    _check_range("fronts", fronts, 1, lengths + 1)
    _check_range("sizes", sizes, 1, fronts)
    _check_range("stack", np.where(on_stack, stack, 0), 0, fronts[:, None] - 1)
    _check_range("heads", heads, NONE, lengths[:, None])
    _check_range("relations", names, NONE, relations - 1)


def _check_range(
    name: str, numbers: NDArray[np.int32], least: int, most: int | NDArray[np.int32]
) -> None:
    wrong = (numbers < least) | (numbers > most)
    if wrong.any():
        place = tuple(np.argwhere(wrong)[0].tolist())
        bound = np.broadcast_to(most, numbers.shape)[place]
        raise ArrayError(
            f"{name}{list(place)} is {numbers[place]}; it must be from {least} to {bound}."
        )
