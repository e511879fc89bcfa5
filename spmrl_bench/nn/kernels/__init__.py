"""Where the compiled kernels of the layers are used, and what they share.

The layers of this package are written with operations of torch, which run anywhere and have
gradients. On a CPU most of their time goes into moving memory between small operations, so there
the compiled kernels ``_factored``, ``_recurrent``, ``_span_scorer`` and ``_decoder`` do the same
work in fewer passes, with gradients written by hand around them (``fused_encoder.py``,
``fused_recurrent.py``, ``fused_steps.py``). Both ways agree up to rounding; the tests hold them
against each other.

Every kernel looks at the tensors it is given (``_tensors.pyx``), so that none can be misread. The
products by torch between them take other types too where they are rounded to bfloat16 anyway, and
write results of any shape; there :func:`check_types` and :func:`check_weight` look first.
"""

from __future__ import annotations

import functools
import importlib
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from spmrl_bench.nn.ragged import Ragged

_NAMES = ("_attention", "_decoder", "_factored", "_recurrent", "_span_scorer", "_tensors")


@functools.cache
def load(name: str) -> Any:
    """The module of a compiled kernel of this package, or None where it could not be built."""
    # Torch is loaded: its OpenMP threads serve the kernels too, and no second pool is made.
    try:
        return importlib.import_module(f"spmrl_bench.nn.{name}")
    except ImportError:
        return None


def usable(rows: Tensor) -> bool:
    """Whether the kernels can work on ``rows``: built, float32, on the CPU."""
    return rows.device.type == "cpu" and rows.dtype == torch.float32 and all(map(load, _NAMES))


def check_types(module: nn.Module) -> None:
    """Refuse a module whose parameters are not all float32 on the CPU.

    Raises:
        ArrayError: one is not.
    """
    for weight in module.parameters():
        if weight.dtype is not torch.float32 or not weight.is_cpu:
            check_weight(module, weight, *weight.shape)


def check_weight(module: nn.Module, weight: Tensor, *shape: int) -> None:
    """Refuse a parameter of a module that is not float32, on the CPU and of this shape.

    Raises:
        ArrayError: it is not.
    """
    if weight.dtype is torch.float32 and weight.shape == shape and weight.is_cpu:
        return
    names = (name for name, own in module.named_parameters() if own is weight)
    name = f"{next(names, 'a weight')} of {type(module).__name__}"
    load("_tensors").check(weight.detach().contiguous(), name, torch.float32, *shape)


def check_layout(layout: Ragged, tokens: int) -> None:
    """Refuse sentences that do not divide so many tokens between them.

    Raises:
        ArrayError: they do not.
    """
    load("_tensors").check_layout(
        layout.lengths, layout.sentence, layout.position, layout.longest, tokens
    )


class ByHand(torch.autograd.Function):
    """Work whose gradient is written by hand.

    ``work.forward(*inputs)`` gives the result, and ``work.backward(gradient)`` the gradients of
    the inputs.
    """

    @staticmethod
    def forward(ctx: Any, work: Any, *inputs: Tensor) -> Tensor:
        result: Tensor = work.forward(*inputs)
        if any(ctx.needs_input_grad):
            ctx.work = work
        return result

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        gradients = ctx.work.backward(gradient)
        del ctx.work
        return None, *gradients


def keep_scale(p: float) -> float:
    """The factor of what dropout keeps; probabilities have 16 bits in the kernels."""
    return 65536 / (65536 - int(p * 65536 + 0.5))


def dropout_factors(shape: torch.Size, p: float) -> Tensor:
    """Independent factors, 0 with probability ``p``, seeded by torch's generator.

    The same as ``bernoulli_``, which draws one number after the other and ten times as long.
    """
    factors = torch.empty(shape)
    seed = int(torch.randint(2**62, ()))
    load("_factored").masks(seed, p, factors.view(-1))
    return factors


def product_rows(count: int, dtype: torch.dtype) -> int:
    """So many rows that products of like size have the same: ``count`` or up to 1/16 more.

    oneDNN makes machine code for each size of a product. It takes several times as long as the
    product, and memory that is kept. MKL, which multiplies float32 numbers unless
    :func:`spmrl_bench.parsers.processor.choose_products` has found oneDNN faster, does not.
    """
    if not rounds_rows(dtype):
        return count
    unit = max(16, 1 << max(0, count.bit_length() - 5))
    return -(-count // unit) * unit


def rounds_rows(dtype: torch.dtype) -> bool:
    """Whether :func:`product_rows` rounds for products of this type."""
    return dtype != torch.float32 or torch.get_float32_matmul_precision() != "highest"


def with_product_rows(rows: Tensor) -> Tensor:
    """``rows``, and zeros behind them up to the number that :func:`product_rows` says.

    Layers that work on each row alone give the same for it, and those beyond are cut off again.
    """
    more = product_rows(len(rows), rows.dtype) - len(rows) if rows.device.type == "cpu" else 0
    return torch.nn.functional.pad(rows, (0, 0, 0, more)) if more else rows
