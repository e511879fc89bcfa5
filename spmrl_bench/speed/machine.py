"""What the machine can do: products of matrices, and reading memory.

A figure such as "3,000 tokens a second" says little without the speed of the machine. Training
is bound by matrix products and chart decoding by the reading of label scores, so these two
are measured with the same library, on the same threads, just before the program itself.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import torch

_DTYPES = {"float32": torch.float32, "bf16": torch.bfloat16}


@dataclass(frozen=True, slots=True)
class Machine:
    """Speeds of the machine with the threads in use.

    Attributes:
        device: ``"cpu"`` or ``"cuda"``.
        gflops: 10^9 floating-point operations a second of a matrix product, by precision; a
            product and a sum count as two.
        gigabytes: 10^9 bytes a second of reading what no cache holds.
    """

    device: str
    gflops: dict[str, float]
    gigabytes: float


def measure_machine(device: torch.device, seconds: float = 1.0) -> Machine:
    """Measure a processor or GPU; each measurement takes so many seconds at least."""
    return Machine(
        device.type,
        {name: _product_gflops(device, dtype, seconds) for name, dtype in _DTYPES.items()},
        reading_speed(device, 256 << 20, seconds) / 1e9,
    )


def best_time(work: Callable[[], object], device: torch.device, seconds: float) -> float:
    """Seconds of the fastest of several runs, after one that does not count.

    Work is run again until ``seconds`` have passed, and at least three times. The device is waited
    for, since work may go on there after the call returns.
    """
    work()
    wait(device)
    best, total, runs = float("inf"), 0.0, 0
    while runs < 3 or total < seconds:
        begun = time.perf_counter()
        work()
        wait(device)
        taken = time.perf_counter() - begun
        best, total, runs = min(best, taken), total + taken, runs + 1
    return best


def _product_gflops(device: torch.device, dtype: torch.dtype, seconds: float) -> float:
    """Of the shape of a feed-forward map over 2,000 tokens; on a GPU, of a larger one."""
    rows, inner, columns = (2000, 1024, 2048) if device.type == "cpu" else (16384, 4096, 4096)
    left = torch.randn(rows, inner, device=device).to(dtype)
    weight = torch.randn(columns, inner, device=device).to(dtype)
    taken = best_time(lambda: torch.nn.functional.linear(left, weight), device, seconds)
    return 2 * rows * inner * columns / taken / 1e9


def reading_speed(device: torch.device, size: int, seconds: float) -> float:
    """Bytes a second, by the sum of an array of so many bytes; a cache may hold a small one."""
    numbers = torch.ones(size // 4, device=device)
    return size / best_time(numbers.sum, device, seconds)


def wait(device: torch.device) -> None:
    """Until all work on the device has been done."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)
