"""Where the compiled kernels of the layers are used, and what they share.

Layers are written with operations of torch, which run anywhere. On a CPU most of their time goes
into moving memory between small operations, so there compiled kernels do the same, up to rounding,
in fewer passes, with gradients written by hand around them.

With the precision ``bf16`` the products of the CharLSTM, of the encoder and of the decoder of
actions take bfloat16 numbers, which many processors multiply several times as fast. Weights and
their updates, the residual stream, layer norms, attention weights on the CPU, the span scorer,
charts and losses stay in float32: eight bits are too few to add small steps to or to rank trees by.

Every kernel looks at the tensors it is given (``_tensors.pxi``), so that none can be misread. The
products by torch between them write results of any shape; there :func:`check` looks first.
"""

from __future__ import annotations

import functools
import importlib
import warnings
from collections.abc import Callable, Sequence
from typing import Any, Literal, NoReturn

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from spmrl_bench.errors import ArrayError
from spmrl_bench.nn.device import matmul_precision
from spmrl_bench.nn.settings import Precision

Backward = Callable[[Tensor], Sequence[Tensor | None]]
Kernel = Literal["encoder", "recurrent", "decoder"]
#: What each kernel is for.
KERNELS: dict[Kernel, str] = {
    "encoder": "the self-attentive encoder",
    "recurrent": "LSTMs and GRUs",
    "decoder": "the decoder of actions",
}


@functools.cache
def load(name: Kernel) -> Any:
    """Return the module of a kernel, or None, with one warning, where it cannot be loaded."""
    # Torch is loaded: its OpenMP threads serve the kernels too, and no second pool is made.
    try:
        return importlib.import_module(f"spmrl_bench.nn.kernels._{name}")
    except ImportError as error:
        warnings.warn(
            f"{KERNELS[name]} on the CPU runs without its compiled kernel, on operations of torch "
            "that give the same up to rounding but take up to twice as long, because it cannot be "
            f"loaded ({error}). Install the package again on a machine with a C compiler to build "
            "it.",
            RuntimeWarning,
            stacklevel=3,
        )
        return None


def usable(rows: Tensor, name: Kernel) -> bool:
    """Whether a kernel can work on ``rows``: float32, on the CPU, and the kernel is built."""
    of_kernels = rows.device.type == "cpu" and rows.dtype == torch.float32
    return of_kernels and load(name) is not None


def check(tensor: Tensor, name: str, *shape: int) -> None:
    """Raise an ArrayError for a tensor that is not float32, on the CPU and of this shape."""
    if tensor.dtype is not torch.float32 or tensor.shape != shape or not tensor.is_cpu:
        refuse(tensor, name, f"float32 {list(shape)} on the CPU")


def check_weight(module: Any, weight: Tensor, *shape: int) -> None:
    """Check a parameter of a module, called by its name in an error."""
    if weight.dtype is not torch.float32 or weight.shape != shape or not weight.is_cpu:
        names = (name for name, own in module.named_parameters() if own is weight)
        check(weight, f"{next(names, 'a weight')} of {type(module).__name__}", *shape)


def refuse(tensor: Any, name: str, allowed: str) -> NoReturn:
    """Raise the error that says what a tensor is and what it must be."""
    if isinstance(tensor, Tensor):
        found = f"{str(tensor.dtype).removeprefix('torch.')} {list(tensor.shape)}"
        if tensor.layout is not torch.strided or not tensor.is_contiguous() or tensor.is_neg():
            found += " not contiguous"
        found += f" on {tensor.device}"
    else:
        found = "absent" if tensor is None else f"{type(tensor).__name__}, no tensor"
    raise ArrayError(f"{name} is {found}; it must be {allowed}.")


class CustomGradient(torch.autograd.Function):
    """Apply ``run(*inputs)``: a result, and what makes its gradient those of the inputs and must
    not hold the result, which holds it."""

    @staticmethod
    def forward(ctx: Any, run: Callable[..., tuple[Tensor, Backward]], *inputs: Tensor) -> Tensor:
        result, back = run(*inputs)
        if any(ctx.needs_input_grad):
            ctx.back = back
        return result

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        gradients = ctx.back(gradient)
        del ctx.back
        return None, *gradients


def dropout_factors(shape: torch.Size, p: float) -> Tensor:
    """Draw independent factors, 0 with probability ``p``, ten times as fast as ``bernoulli_``."""
    if (kernel := load("encoder")) is None:
        return torch.empty(shape).bernoulli_(1 - p).div_(1 - p)
    factors: Tensor = kernel.masks(int(torch.randint(2**62, ())), p, *shape)
    return factors


def matmul_dtype(precision: Precision) -> torch.dtype:
    """Return the type of the factors of large products."""
    return torch.bfloat16 if precision == "bf16" else torch.float32


def autocast(precision: Precision, device: torch.device) -> torch.autocast:
    """Return the context in which operations of torch compute products with this precision."""
    return torch.autocast(device.type, torch.bfloat16, enabled=precision == "bf16")


def rounds_rows(dtype: torch.dtype) -> bool:
    """Whether :func:`rounded_rows` rounds for products of this type."""
    return dtype != torch.float32 or matmul_precision() not in ("highest", "")


def rounded_rows(count: int, dtype: torch.dtype) -> int:
    """Return so many rows that products of like size have the same: up to 1/16 more. oneDNN, unlike
    MKL, makes machine code for each size of a product, which takes longer than the product."""
    if not rounds_rows(dtype):
        return count
    unit = max(16, 1 << max(0, count.bit_length() - 5))
    return -(-count // unit) * unit


def by_rounded_rows(function: Callable[[Tensor], Tensor], rows: Tensor) -> Tensor:
    """Return what a function makes of rows, each by itself, computed for as many of them, zeros
    behind these, as :func:`rounded_rows` says."""
    more = rounded_rows(len(rows), rows.dtype) - len(rows) if rows.device.type == "cpu" else 0
    return function(nn.functional.pad(rows, (0, 0, 0, more)) if more else rows)[: len(rows)]
