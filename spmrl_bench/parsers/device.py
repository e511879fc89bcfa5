"""Which processor a run uses, and which each of several that go on at once."""

from __future__ import annotations

import torch

from spmrl_bench.errors import RecipeError
from spmrl_bench.parsers.processor import prepare_cpu


def choose_device(name: str) -> torch.device:
    """``auto`` is CUDA when present, else the CPU; other names are torch's own.

    Choosing the CPU also makes the settings of :mod:`spmrl_bench.parsers.processor`.

    Raises:
        RecipeError: no such device, or one that this machine lacks.
    """
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    try:
        device = torch.device(name)
    except RuntimeError:
        raise RecipeError(f"unknown device '{name}'. Allowed: auto, cpu, cuda, cuda:N") from None
    if device.type == "cuda" and not torch.cuda.is_available():
        raise RecipeError(f"device '{name}' asked for, but torch sees no CUDA device here")
    if device.type not in ("cpu", "cuda"):
        raise RecipeError(f"device '{name}' is not supported. Allowed: auto, cpu, cuda, cuda:N")
    if device.type == "cpu":
        prepare_cpu()
    return device


def cards() -> int:
    """Graphics cards that torch sees."""
    return torch.cuda.device_count() if torch.cuda.is_available() else 0


def device_of_job(job: int, device: str, cards: int) -> str:
    """The device of one of several jobs that go on at once: the graphics cards in turn.

    Args:
        job: its number among them, from 0.
        device: that was asked for. One that names a card, or the CPU, is that of all jobs.
        cards: how many there are.
    """
    return f"cuda:{job % cards}" if device in ("auto", "cuda") and cards > 1 else device
