"""Models of others are built within the sizes of their weights.

The settings of a model say how large it is, and whoever builds it believes them: a million layers
take minutes, a million labels gigabytes, before any weight has been read. But the weights' file
says how large the model really is. So within a :class:`TensorBudget` a model is built only as far
as it can still fit its file: each tensor is counted before it is made.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from contextvars import ContextVar, Token
from typing import Any, Self

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

#: Numbers beside those of the file: tables that are computed, and layers that are not kept.
SPARE_NUMBERS = 3 << 24
# Tensors beside those of the file, which may each be made of a few.
_SPARE_TENSORS = 500
_TENSORS_FOR_ONE = 6

_OF_SIZES = {torch.empty, torch.zeros, torch.ones, torch.rand, torch.randn, torch.full}

_innermost: ContextVar[TensorBudget | None] = ContextVar("_innermost", default=None)


class TensorBudget(TorchFunctionMode):
    """Within it, no more tensors are made than a model of some size needs, and none are filled.

    No random numbers are drawn for weights that will be replaced, and memory that is not filled is
    not taken. (The device ``meta`` would do as much, but draws random numbers by way of the
    compiler, whose modules take a second to load.) Within another one only the inner one counts.
    """

    def __init__(self, tensors: int, numbers: int, *, filled: bool = False) -> None:
        """A budget.

        Args:
            tensors: that the file of the weights has.
            numbers: that they have together.
            filled: whether weights are drawn all the same.
        """
        super().__init__()
        self._of_file = (tensors, numbers)
        self._tensors = _SPARE_TENSORS + _TENSORS_FOR_ONE * tensors
        self._numbers = SPARE_NUMBERS + 2 * numbers
        self._filled = filled
        self._token: Token[TensorBudget | None] | None = None

    def __enter__(self) -> Self:
        self._token = _innermost.set(self)
        super().__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        super().__exit__(*error)
        if self._token is not None:
            _innermost.reset(self._token)

    def __torch_function__(
        self,
        func: Callable[..., object],
        types: object,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> object:
        kwargs = kwargs or {}
        if (func in _OF_SIZES or func is torch.arange) and _innermost.get() is self:
            self._claim(_numbers(func, args, kwargs))
        if not self._filled:
            if func in (Tensor.normal_, Tensor.uniform_):
                return args[0]
            if getattr(func, "__module__", "") == nn.init.__name__:
                return kwargs["tensor"] if "tensor" in kwargs else args[0]
        return func(*args, **kwargs)

    def _claim(self, numbers: int) -> None:
        """Count a tensor that is about to be made; a ValueError where it is too much."""
        self._tensors -= 1
        self._numbers -= numbers
        if self._tensors < 0 or self._numbers < 0:
            tensors, all_numbers = self._of_file
            raise ValueError(
                "its settings make a model that is too large for the weights, which are "
                f"{tensors} tensors of {all_numbers} numbers"
            )


def _numbers(func: object, args: tuple[Any, ...], kwargs: dict[str, Any]) -> int:
    """How many numbers a tensor will have that a function makes; 0 where it will refuse to."""
    try:
        if func is torch.arange:
            names = ("end",) if len(args) == 1 else ("start", "end", "step")
            given = {"start": 0, "step": 1, **dict(zip(names, args, strict=False)), **kwargs}
            return max(0, math.ceil((given["end"] - given["start"]) / given["step"]))
        sizes = kwargs.get("size", args[0] if args and not isinstance(args[0], int) else args)
        return math.prod(sizes)
    except (TypeError, ValueError, ArithmeticError, KeyError):
        return 0
