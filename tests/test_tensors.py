"""Tensors are written as the library writes them, byte for byte."""

from __future__ import annotations

import itertools

import pytest
import torch
from safetensors.torch import save

from spmrl_bench.tensors import safetensors_bytes

TYPES = (
    *(torch.float64, torch.float32, torch.float16, torch.bfloat16),
    *(torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8, torch.bool),
)
SHAPES = ((), (0,), (1,), (3,), (2, 0, 2), (2, 3), (1, 2, 3))


def written(tensors: dict[str, torch.Tensor]) -> bytes:
    return b"".join(safetensors_bytes(tensors))


def test_types_in_any_order_are_the_librarys_bytes() -> None:
    for first, second in itertools.product(TYPES, repeat=2):
        tensors = {"b": torch.ones(3, dtype=first), "a": torch.zeros(2, dtype=second)}
        assert written(tensors) == save(tensors), (first, second)


def test_shapes_and_names_are_the_librarys_bytes() -> None:
    tensors = {f'é "{shape}/\n': torch.rand(shape) for shape in SHAPES}
    assert written(tensors) == save(tensors)
    assert written({}) == save({})


def test_parts_of_other_tensors_are_written_in_their_own_order() -> None:
    whole = torch.arange(12.0).reshape(3, 4).requires_grad_()
    parts = {"turned": whole.t(), "column": whole[:, 1]}
    assert written(parts) == save({name: part.contiguous() for name, part in parts.items()})


def test_numbers_that_the_format_lacks_are_named() -> None:
    with pytest.raises(TypeError, match=r"tensor z: torch\.complex64 has no place"):
        written({"z": torch.zeros(1, dtype=torch.complex64)})
