"""The implementations of decoding: the compiled kernels, or their plain-Python twins."""

from __future__ import annotations

import functools
import importlib
import warnings
from collections.abc import Callable
from types import ModuleType
from typing import NamedTuple

from spmrl_bench.chart import dependency_reference, joint_reference, reference


class Kernel(NamedTuple):
    """One implementation of decoding; its functions are described in ``reference.py``."""

    name: str
    """What :func:`kernel_name` says."""
    label_maxima: Callable[..., bool]
    find_labels: Callable[..., None]
    decode_maxima: Callable[..., None]
    openmp_threads: Callable[[], int]
    """Threads of an OpenMP team, 0 without OpenMP."""


class DependencyKernel(NamedTuple):
    """One implementation of decoding dependencies, described in ``dependency_reference.py``."""

    name: str
    """"cython" or "python"."""
    decode_projective: Callable[..., None]
    decode_spanning: Callable[..., None]
    openmp_threads: Callable[[], int]
    """Threads of an OpenMP team, 0 without OpenMP."""


class JointKernel(NamedTuple):
    """One implementation of joint decoding, described in ``joint_reference.py``."""

    name: str
    decode: Callable[..., None]
    openmp_threads: Callable[[], int]


AnyKernel = Kernel | DependencyKernel | JointKernel

PYTHON = Kernel(
    "python",
    reference.label_maxima,
    reference.find_labels,
    reference.decode_maxima,
    lambda: 0,
)

DEPENDENCY_PYTHON = DependencyKernel(
    "python",
    dependency_reference.decode_projective,
    dependency_reference.decode_spanning,
    lambda: 0,
)

JOINT_PYTHON = JointKernel("python", joint_reference.decode, lambda: 0)


def compiled(module: ModuleType) -> Kernel:
    """The kernel of a compiled module."""
    return Kernel(
        "cython",
        module.label_maxima,
        module.find_labels,
        module.decode_maxima,
        module.openmp_threads,
    )


def compiled_dependency(module: ModuleType) -> DependencyKernel:
    """The dependency kernel of a compiled module."""
    return DependencyKernel(
        "cython", module.decode_projective, module.decode_spanning, module.openmp_threads
    )


def kernel_name() -> str:
    """Which implementation decodes: "cython" or "python"."""
    return load_kernel().name


@functools.cache
def load_kernel() -> Kernel:
    """The compiled kernel where it exists, else the twin with one warning that says why."""
    module = load_extension("chart._cky", "chart decoding", "trees")
    return PYTHON if module is None else compiled(module)


@functools.cache
def load_dependency_kernel() -> DependencyKernel:
    """As :func:`load_kernel`, for dependencies."""
    module = load_extension("chart._dependency", "decoding of dependencies", "trees")
    return DEPENDENCY_PYTHON if module is None else compiled_dependency(module)


@functools.cache
def load_joint_kernel() -> JointKernel:
    """As :func:`load_kernel`, for joint decoding."""
    module = load_extension("chart._joint", "joint decoding", "structures")
    if module is None:
        return JOINT_PYTHON
    return JointKernel("cython", module.decode, module.openmp_threads)


def load_extension(name: str, what: str, results: str) -> ModuleType | None:
    """A compiled module of ``spmrl_bench``; None, with a warning that says why, without it.

    Args:
        name: such as ``chart._cky``.
        what: what is slower without it.
        results: what is the same without it.
    """
    try:
        return importlib.import_module(f"spmrl_bench.{name}")
    except ImportError as error:
        warnings.warn(
            f"{what} runs on the plain-Python kernels, which give the same {results} but are "
            f"much slower, because the compiled ones cannot be loaded ({error}). Install the "
            "package again on a machine with a C compiler to build them.",
            RuntimeWarning,
            stacklevel=4,
        )
        return None
