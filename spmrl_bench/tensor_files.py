"""Files of tensors (safetensors), read as they lie in the file once their header has been believed.

The header of such a file says the name, the type of numbers and the shape of each tensor, and the
library makes sure that the tensors fill the file, so that nothing in it can ask for more memory
than the file has. What it does not know is which tensors are meant: that is compared here, before
any of them is taken, and so is whether their numbers are finite.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from spmrl_bench.bounded_files import open_regular

#: Bytes of a header: that of a model of ten thousand tensors has one.
MAX_HEADER = 8 << 20

_TYPES = {
    "F64": torch.float64,
    "F32": torch.float32,
    "F16": torch.float16,
    "BF16": torch.bfloat16,
    "I64": torch.int64,
    "I32": torch.int32,
    "I16": torch.int16,
    "I8": torch.int8,
    "U8": torch.uint8,
    "BOOL": torch.bool,
}


@dataclass(frozen=True, slots=True)
class Stored:
    """What a header says of a tensor.

    Attributes:
        dtype: type of its numbers, in the words of the format.
        shape: its sizes.
    """

    dtype: str
    shape: tuple[int, ...]

    @property
    def numbers(self) -> int:
        """How many it has."""
        return math.prod(self.shape)

    def __str__(self) -> str:
        return f"{self.dtype} {' x '.join(map(str, self.shape)) or 'alone'}"

    @classmethod
    def of(cls, tensor: Tensor) -> Stored:
        """What a header would say of a tensor."""
        names = {dtype: name for name, dtype in _TYPES.items()}
        return cls(names.get(tensor.dtype, str(tensor.dtype)), tuple(tensor.shape))


class TensorFile(AbstractContextManager["TensorFile"]):
    """An open file of tensors.

    Attributes:
        path: of the file.
        tensors: what it has, by name.
        notes: text by key that its writer has added.
    """

    def __init__(self, path: Path) -> None:
        """Open a file and read its header.

        Raises:
            OSError: it cannot be opened, or is no regular file.
            ValueError: it is not of the format, or cut short.
        """
        self.path = path
        with open_regular(path) as file:
            header = int.from_bytes(file.read(8), "little")
        if header > MAX_HEADER:
            raise ValueError(f"a header of {header} bytes, where at most {MAX_HEADER} are read")
        try:
            self._file: Any = safe_open(path, framework="pt").__enter__()
            self.notes: Mapping[str, str] = self._file.metadata() or {}
            self.tensors: Mapping[str, Stored] = {
                name: Stored(part.get_dtype(), tuple(part.get_shape()))
                for name in self._file.keys()  # noqa: SIM118, it is no dictionary
                for part in (self._file.get_slice(name),)
            }
        except (SafetensorError, RuntimeError, OverflowError) as error:
            raise ValueError(" ".join(str(error).split())[:300]) from None

    def __exit__(self, *_: object) -> None:
        self._file.__exit__(None, None, None)

    @property
    def numbers(self) -> int:
        """How many all tensors have together."""
        return sum(stored.numbers for stored in self.tensors.values())

    def check(self, expected: Mapping[str, Stored]) -> None:
        """Make sure that the tensors are those that are expected; else a ValueError says which."""
        for name, wanted in expected.items():
            found = self.tensors.get(name)
            if found != wanted:
                raise ValueError(
                    f"tensor {name}: found {found or 'nothing'}, expected {wanted}"
                    f"{others(len(self._wrong(expected)) - 1)}"
                )
        surplus = [name for name in self.tensors if name not in expected]
        if surplus:
            raise ValueError(
                f"tensor {_cut(min(surplus))}: found {self.tensors[min(surplus)]}, expected "
                f"nothing{others(len(surplus) - 1)}"
            )

    def _wrong(self, expected: Mapping[str, Stored]) -> list[str]:
        return [name for name, wanted in expected.items() if self.tensors.get(name) != wanted]

    def read(self, names: Iterable[str] | None = None) -> dict[str, Tensor]:
        """Tensors by name, by default all, as they lie in the file, which is mapped into memory.

        Raises:
            ValueError: they cannot be read, or one has numbers that are not finite.
        """
        found = {}
        try:
            for name in self.tensors if names is None else names:
                found[name] = tensor = self._file.get_tensor(name)
                check_finite(name, tensor)
        except (SafetensorError, RuntimeError, OverflowError, MemoryError) as error:
            raise ValueError(" ".join(str(error).split())[:300]) from None
        return found


def check_finite(name: str, tensor: Tensor) -> None:
    """Make sure that all numbers of a tensor are finite; else a ValueError says which is not."""
    if not tensor.is_floating_point() or not tensor.numel():
        return
    # A sum is not finite if one of its terms is not, and takes a fifth of the time of a look at
    # each; where it is not, it may just be too large.
    if math.isfinite(tensor.sum()):
        return
    bad = (~tensor.isfinite()).nonzero()
    if len(bad):
        place = tuple(bad[0].tolist())
        raise ValueError(
            f"tensor {name}: found {tensor[place].item()} at {list(place)}, expected finite numbers"
        )


def others(count: int) -> str:
    """How many more there are, for a message that names one."""
    return f" (and {count} more)" if count > 0 else ""


def _cut(name: str) -> str:
    return name if len(name) <= 200 else name[:200] + "..."
