"""The compiled kernels of decoding, where they could be built, and how many threads they get.

A kernel works without the GIL, and with threads of its own where it was built with OpenMP. If torch
was linked with the same OpenMP library, they are the threads that it multiplies with.
"""

from __future__ import annotations

import functools
import importlib
import os
import warnings
from types import ModuleType

import numpy as np
from numpy.typing import NDArray

# Additions of about 50 microseconds, in which sleeping threads would hardly have woken up.
WORTH_A_TEAM = 200_000

# OpenMP ends the program where it cannot start as many as it was told.
MOST_THREADS = 1024


def _born_by_fork() -> bool:
    try:
        with open("/proc/self/stat", "rb") as stream:
            after_name = stream.read().rpartition(b")")[2].split()
        return bool(int(after_name[6]) & 0x40)  # the flag PF_FORKNOEXEC
    except (OSError, ValueError, IndexError):
        return False


_forked = _born_by_fork()


def _note_fork() -> None:
    global _forked
    _forked = True


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_note_fork)


@functools.cache
def load(name: str) -> ModuleType | None:
    """Return a compiled module of this room; None, with one warning that says why, without it."""
    try:
        return importlib.import_module(f"spmrl_bench.chart.{name}")
    except ImportError as error:
        warnings.warn(
            "decoding runs on the plain-Python kernels, which give the same trees but are much "
            f"slower, because the compiled ones cannot be loaded ({error}). Install the package "
            "again on a machine with a C compiler to build them.",
            RuntimeWarning,
            stacklevel=4,
        )
        return None


def for_batch(
    name: str, lengths: NDArray[np.int32], work: float
) -> tuple[ModuleType | None, NDArray[np.int64], int]:
    """Return a kernel, the sentences of a batch with the longest first, and how many threads share
    them: as many as OpenMP uses, but one where ``work``, the number of additions, is too little.

    A process that was forked gets one, since GNU OpenMP waits for ever for threads that did not
    survive the fork.
    """
    kernel, order = load(name), np.argsort(-lengths, kind="stable")
    if kernel is None or _forked or work < WORTH_A_TEAM:
        return kernel, order, 1
    return kernel, order, max(1, min(kernel.openmp_threads(), len(lengths), MOST_THREADS))
