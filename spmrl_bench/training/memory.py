"""How much memory a training run needed, for its record."""

from __future__ import annotations

from collections.abc import Iterable

import torch


def peak_gpu_memory_bytes(device: torch.device) -> int | None:
    """Largest memory of this process's tensors on a GPU; None for other devices."""
    if device.type != "cuda":
        return None
    return torch.cuda.max_memory_allocated(device)


def largest(sizes: Iterable[int | None]) -> int | None:
    """The largest of some sizes, of which any may be unknown."""
    return max((size for size in sizes if size is not None), default=None)
