"""Compiled kernels beside their twins: running on one of them, and whether both give the same.

A kernel has a twin in plain Python or in torch operations. It gives the same bits or is near to
it, with any number of threads; and whatever it is given, it refuses or does what the twin does.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import spmrl_bench
from spmrl_bench.chart import kernels as chart
from spmrl_bench.nn import kernels as layers

THREADS = (None, 1, 2, 3, 1000)


def functions(package: str) -> dict[str, Any]:
    """The functions of every compiled kernel of a package, by module and name."""
    found = {}
    for source in sorted((Path(spmrl_bench.__file__).parent / package).glob("_*.pyx")):
        module = importlib.import_module(f"spmrl_bench.{package}.{source.stem}")
        for name, value in vars(module).items():
            if type(value).__name__ == "cython_function_or_method" and not name.startswith("_"):
                found[f"{source.stem}.{name}"] = value
    return found


# ---- Kernels with twins in plain Python --------------------------------------------------

#: The modules of the kernels of chart decoding.
TWINS = {"labels": "_spans", "dependencies": "_dependencies", "joint": "_joint"}


def built(name: str) -> bool:
    return importlib.util.find_spec(f"spmrl_bench.chart.{TWINS[name]}") is not None


def needs(name: str) -> pytest.MarkDecorator:
    """Skip where a kernel is not built."""
    return pytest.mark.skipif(not built(name), reason="kernel not built")


def needs_kernel(name: layers.Kernel) -> pytest.MarkDecorator:
    """Skip where a kernel of layers is not built."""
    built = importlib.util.find_spec(f"spmrl_bench.nn.kernels._{name}") is not None
    return pytest.mark.skipif(not built, reason="kernel not built")


def kernels_of(name: str) -> list[Any]:
    """The twin and the kernel, as parameters."""
    return ["python", pytest.param("cython", marks=needs(name))]


@contextmanager
def running_on(way: str, *names: str) -> Iterator[None]:
    """Work with "python" or "cython" for the kernels of these names."""
    plain = {TWINS[name] for name in names or TWINS} if way == "python" else set()
    load = chart.load
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(chart, "load", lambda name: None if name in plain else load(name))
        yield


@contextmanager
def with_threads(threads: int | None) -> Iterator[None]:
    """Decode with so many threads, however little the work; with None as always."""
    for_batch = chart.for_batch

    def with_team(name: str, lengths: Any, work: float) -> Any:
        kernel, order, team = for_batch(name, lengths, work)
        return kernel, order, max(1, min(threads or team, len(lengths)))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(chart, "for_batch", with_team)
        yield


@contextmanager
def not_built(extension: str, load: Any = chart.load) -> Iterator[None]:
    """As if an extension such as ``chart._spans``, which is loaded so, had not been built."""
    package, _, name = f"spmrl_bench.{extension}".rpartition(".")
    with pytest.MonkeyPatch.context() as patch:
        patch.delattr(importlib.import_module(package), name, raising=False)
        patch.setitem(sys.modules, f"{package}.{name}", None)
        load.cache_clear()
        yield
    load.cache_clear()


def bits(result: Any) -> list[bytes]:
    """All arrays of a result."""
    names = getattr(type(result), "__slots__", ())
    arrays = [getattr(result, name) for name in names] or [result]
    return [array.dtype.str.encode() + array.tobytes() for array in arrays
            if isinstance(array, np.ndarray)]  # fmt: skip


def assert_same_bits(found: Any, expected: Any) -> None:
    assert bits(found) == bits(expected)


def check_fallback(name: str, run: Callable[[], Any], expected: Any) -> None:
    """Without the kernel there is one warning and the result of the twin."""
    with not_built(f"chart.{TWINS[name]}"):
        with pytest.warns(RuntimeWarning, match=rf"plain-Python.*{TWINS[name]}.*C compiler"):
            found = run()
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert_same_bits(run(), found)
    assert_same_bits(found, expected)
    assert not built(name) or chart.load(TWINS[name]) is not None


# ---- Layers: kernels with twins in torch operations --------------------------------------


def outcome(
    run: Callable[[Tensor], Tensor], rows: Tensor, weights: Sequence[tuple[str, nn.Parameter]]
) -> dict[str, Tensor]:
    """The result, and gradients of everything for a random gradient of the result."""
    rows = rows.clone().requires_grad_()
    result = run(rows)
    factors = torch.randn(result.shape, generator=torch.Generator().manual_seed(5))
    total = (result * factors.to(result.dtype)).sum()
    names, tensors = zip(*weights, strict=True)
    gradients = torch.autograd.grad(total, [rows, *tensors])
    return {"result": result.detach(), **dict(zip(("rows", *names), gradients, strict=True))}


def assert_near(
    found: dict[str, Tensor], expected: dict[str, Tensor], tolerance: float, *, zeros: bool = False
) -> None:
    """The largest difference of each is a small share of its largest value, which may be zero."""
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        assert zeros or value.any(), name
        error = (found[name].double() - value.double()).abs().max()
        assert error <= tolerance * value.abs().max(), name


def assert_similar(found: dict[str, Tensor], expected: dict[str, Tensor]) -> None:
    """Results of products in bfloat16: others, of float32, in the same direction."""
    assert any(not torch.equal(found[name], value) for name, value in expected.items())
    for name, value in expected.items():
        assert found[name].dtype == torch.float32, name
        assert torch.cosine_similarity(found[name].flatten(), value.flatten(), dim=0) > 0.99, name


@contextmanager
def torch_threads(number: int) -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(number)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def assert_same_with_threads(run: Callable[[], Sequence[Tensor]]) -> None:
    """What torch multiplies itself has the threads that it has."""
    found = []
    for threads in (1, 2, 3):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(torch, "get_num_threads", lambda threads=threads: threads)
            found.append(run())
    assert all(map(torch.equal, found[0], found[1]))
    assert all(map(torch.equal, found[0], found[2]))


@pytest.fixture(params=[False, True])
def rounded(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Whether numbers of rows are rounded up, as where oneDNN multiplies."""
    monkeypatch.setattr(layers, "rounds_rows", lambda dtype: request.param)
    return bool(request.param)


# ---- What a kernel might be given --------------------------------------------------------

DTYPES = (
    torch.float16, torch.bfloat16, torch.float32, torch.float64, torch.float8_e5m2,
    torch.int32, torch.int64, torch.uint8, torch.bool,
)  # fmt: skip


def spoilt(tensor: Tensor) -> Iterator[tuple[str, Any]]:
    """What might come in place of a tensor, each with a name."""
    yield from ((str(dtype), tensor.to(dtype)) for dtype in DTYPES if dtype != tensor.dtype)
    yield "strided", torch.stack((tensor, tensor), dim=-1)[..., 0]
    if tensor.dim() > 1:
        yield "transposed", tensor.transpose(0, -1)
        yield "turned", tensor.transpose(0, -1).contiguous()
        yield "column by column", tensor.mT.contiguous().mT
        yield "flat", tensor.flatten()
    yield "one more dimension", tensor.unsqueeze(0)
    yield "one row short", tensor[:-1]
    yield "one column short", tensor[..., :-1].contiguous()
    yield "one row more", torch.cat((tensor, tensor[-1:]))
    yield "one column more", torch.cat((tensor, tensor[..., -1:]), dim=-1)
    yield "empty", tensor[:0]
    yield "elsewhere", tensor.to("meta")
    yield "an array of numpy", tensor.float().numpy()
    yield "a list", tensor.tolist()
    yield "sparse", tensor.to_sparse()


def with_numbers(
    tensor: Tensor, numbers: Sequence[float], places: Sequence[int] | None = None
) -> Iterator[tuple[str, Tensor]]:
    """Each of the numbers, in turn, in each of the places."""
    for place in range(tensor.numel()) if places is None else places:
        for number in numbers:
            wrong = tensor.clone()
            wrong.view(-1)[place] = number
            yield f"{number} at {place}", wrong
