"""Tensors as the bytes of a safetensors file, without a second copy of them in memory.

The format (https://github.com/huggingface/safetensors#format): eight bytes with the length of a
JSON header, the header, padded with spaces to a multiple of eight, and the tensors one after the
other. Larger elements come first, and of equal ones the names decide, as in the library, so that
the same weights are the same bytes whoever writes them.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping

import torch

_NAMES = {
    torch.float64: "F64",
    torch.int64: "I64",
    torch.float32: "F32",
    torch.int32: "I32",
    torch.bfloat16: "BF16",
    torch.float16: "F16",
    torch.int16: "I16",
    torch.int8: "I8",
    torch.uint8: "U8",
    torch.bool: "BOOL",
}
# Of elements of one size, the order that the library has.
_ORDER = ["U64", "I64", "F64", "F32", "U32", "I32", "BF16", "F16", "U16", "I16", "I8", "U8", "BOOL"]


def safetensors_bytes(tensors: Mapping[str, torch.Tensor]) -> Iterator[bytes | memoryview]:
    """The pieces of a file that holds the tensors, for :func:`~spmrl_bench.files.put`.

    Raises:
        TypeError: a tensor of numbers that the format does not have.
    """
    for name, tensor in tensors.items():
        if tensor.dtype not in _NAMES:
            raise TypeError(f"tensor {name}: {tensor.dtype} has no place in a safetensors file")
    names = sorted(tensors, key=lambda name: (_ORDER.index(_NAMES[tensors[name].dtype]), name))
    header: dict[str, object] = {}
    place = 0
    for name in names:
        tensor = tensors[name]
        end = place + tensor.numel() * tensor.element_size()
        header[name] = {
            "dtype": _NAMES[tensor.dtype],
            "shape": list(tensor.shape),
            "data_offsets": [place, end],
        }
        place = end
    text = json.dumps(header, ensure_ascii=False, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    yield len(text).to_bytes(8, "little") + text
    for name in names:
        flat = tensors[name].detach().cpu().contiguous().reshape(-1)
        if flat.numel():
            yield flat.view(torch.uint8).numpy().data
