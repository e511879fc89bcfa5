"""The implementations of transitions: the compiled kernel, or its plain-Python twin."""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import ModuleType
from typing import NamedTuple

from spmrl_bench.chart.kernels import load_extension
from spmrl_bench.transitions import reference


class TransitionKernel(NamedTuple):
    """One implementation; its functions are described in ``reference.py``."""

    name: str
    """"cython" or "python"."""
    legal_moves: Callable[..., None]
    legal_actions: Callable[..., None]
    advance: Callable[..., int]
    masks: Callable[..., None]
    tops: Callable[..., None]
    oracle: Callable[..., int]
    history: Callable[..., int]


PYTHON = TransitionKernel(
    "python",
    reference.legal_moves,
    reference.legal_actions,
    reference.advance,
    reference.masks,
    reference.tops,
    reference.oracle,
    reference.history,
)


def compiled(module: ModuleType) -> TransitionKernel:
    """The kernel of a compiled module."""
    return TransitionKernel(
        "cython",
        module.legal_moves,
        module.legal_actions,
        module.advance,
        module.masks,
        module.tops,
        module.oracle,
        module.history,
    )


@functools.cache
def load_kernel() -> TransitionKernel:
    """The compiled kernel where it exists, else the twin with one warning that says why."""
    module = load_extension("transitions._transitions", "transition-based parsing", "trees")
    return PYTHON if module is None else compiled(module)
