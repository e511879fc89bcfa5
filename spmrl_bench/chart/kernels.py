"""The implementations of decoding: the compiled kernels, or their plain-Python twins."""

from __future__ import annotations

import functools
import importlib
import warnings
from collections.abc import Callable
from types import ModuleType
from typing import NamedTuple

from spmrl_bench.chart import reference


class Kernel(NamedTuple):
    """One implementation of decoding; its functions are described in ``reference.py``."""

    name: str
    """What :func:`kernel_name` says."""
    label_maxima: Callable[..., bool]
    find_labels: Callable[..., None]
    decode_maxima: Callable[..., None]
    openmp_threads: Callable[[], int]
    """Threads of an OpenMP team, 0 without OpenMP."""


PYTHON = Kernel(
    "python",
    reference.label_maxima,
    reference.find_labels,
    reference.decode_maxima,
    lambda: 0,
)


def compiled(module: ModuleType) -> Kernel:
    """The kernel of a compiled module."""
    return Kernel(
        "cython",
        module.label_maxima,
        module.find_labels,
        module.decode_maxima,
        module.openmp_threads,
    )


def kernel_name() -> str:
    """Which implementation decodes: "cython" or "python"."""
    return load_kernel().name


@functools.cache
def load_kernel() -> Kernel:
    """The compiled kernel where it exists, else the twin with one warning that says why."""
    try:
        module = importlib.import_module("spmrl_bench.chart._cky")
    except ImportError as error:
        warnings.warn(
            "chart decoding runs on the plain-Python kernels, which give the same trees but are "
            f"much slower, because the compiled ones cannot be loaded ({error}). Install the "
            "package again on a machine with a C compiler to build them.",
            RuntimeWarning,
            stacklevel=3,
        )
        return PYTHON
    return compiled(module)
