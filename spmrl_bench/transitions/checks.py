"""What the kernel trusts and therefore has been checked, beyond :mod:`spmrl_bench.chart.checks`."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from spmrl_bench.chart.checks import checked_integers


def checked_actions(actions: ArrayLike, lengths: NDArray[np.int32]) -> NDArray[np.int32]:
    """``actions`` as contiguous int32 [B, T]; whether they are legal is for a kernel to see."""
    table = np.asarray(actions)
    if table.ndim != 2 or len(table) != len(lengths):
        raise ValueError(
            f"actions has shape {table.shape}; it must be [{len(lengths)}, steps], a row for each "
            "sentence."
        )
    return checked_integers("actions", table.ravel()).reshape(table.shape)
