"""Running the package on a chosen kernel."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from spmrl_bench.transitions import history, kernels, oracle, states, system

compiled = importlib.util.find_spec("spmrl_bench.transitions._transitions") is not None
needs_compiled = pytest.mark.skipif(not compiled, reason="kernel not built")
KERNELS = ["python", pytest.param("cython", marks=needs_compiled)]


@contextmanager
def running_on(name: str) -> Iterator[None]:
    """The package works with the kernel of this name, "cython" or "python"."""
    kernel = kernels.PYTHON
    if name == "cython":
        from spmrl_bench.transitions import _transitions

        kernel = kernels.compiled(_transitions)
    with pytest.MonkeyPatch.context() as patch:
        for module in (history, oracle, states, system):
            patch.setattr(module, "load_kernel", lambda: kernel)
        yield
