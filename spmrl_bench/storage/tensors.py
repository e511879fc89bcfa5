"""Files of tensors (safetensors), believed only once they are what is expected.

A file is mapped, so reading it costs no memory before the numbers are used, and the library makes
sure that the tensors fill it. It does not know which are meant, and whether numbers are finite.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from pathlib import Path

from safetensors import SafetensorError, safe_open
from torch import Tensor, uint8

from spmrl_bench.storage.files import open_regular_file

#: Bytes of a header: that of a model of ten thousand tensors has one.
MAX_HEADER = 8 << 20


def read_tensors(path: Path) -> tuple[dict[str, Tensor], dict[str, str]]:
    """Return all tensors of a file by name, and the notes of its writer. Raise an OSError if it
    cannot be opened or is no regular file, a ValueError if it is not of the format or cut short."""
    try:
        str(path).encode()
    except UnicodeEncodeError:
        problem = "its path is not UTF-8, as the library of such files wants it: rename the folder"
        raise OSError(0, problem, str(path)) from None
    with open_regular_file(path) as file:
        header = int.from_bytes(file.read(8), "little")
    if header > MAX_HEADER:
        raise ValueError(f"a header of {header} bytes, where at most {MAX_HEADER} are read")
    try:
        with safe_open(path, framework="pt") as opened:
            tensors = {name: opened.get_tensor(name) for name in opened.keys()}  # noqa: SIM118
            return tensors, opened.metadata() or {}
    except (SafetensorError, RuntimeError, OverflowError, MemoryError) as error:
        raise ValueError(" ".join(str(error).split())[:300]) from None


def content_digest(tensors: Mapping[str, Tensor]) -> str:
    """Return the SHA-256, in hex, of tensors: names, types, shapes and numbers, in any order."""
    found = hashlib.sha256()
    for name, tensor in sorted(tensors.items()):
        found.update(f"{name} {tensor.dtype} {list(tensor.shape)}\n".encode())
        found.update(tensor.detach().cpu().contiguous().reshape(-1).view(uint8).numpy().data)
    return found.hexdigest()


def check_state(found: Mapping[str, Tensor], expected: Mapping[str, Tensor]) -> None:
    """Raise a ValueError, which names the first, where tensors have not the names, types and shapes
    of others, or numbers that are not finite."""
    wrong = [
        f"tensor {name[:200]}: found {_described(found.get(name))}, expected "
        f"{_described(expected.get(name))}"
        for name in [*expected, *sorted(found.keys() - expected.keys())]
        if _described(found.get(name)) != _described(expected.get(name))
    ]
    if wrong:
        raise ValueError(wrong[0] + (f" (and {len(wrong) - 1} more)" if len(wrong) > 1 else ""))
    for name, tensor in found.items():
        check_finite(name, tensor)


def _described(tensor: Tensor | None) -> str:
    if tensor is None:
        return "nothing"
    sizes = " x ".join(map(str, tensor.shape)) or "alone"
    return f"{str(tensor.dtype).removeprefix('torch.')} {sizes}"


def check_finite(name: str, tensor: Tensor) -> None:
    """Make sure that all numbers of a tensor are finite; else a ValueError says which is not."""
    # A sum is not finite if one of its terms is not, and takes a fifth of the time of a look at
    # each; where it is not, it may just be too large.
    if not tensor.is_floating_point() or math.isfinite(tensor.sum()):
        return
    bad = (~tensor.isfinite()).nonzero()
    if len(bad):
        place = tuple(bad[0].tolist())
        raise ValueError(
            f"tensor {name}: found {tensor[place].item()} at {list(place)}, expected finite numbers"
        )
