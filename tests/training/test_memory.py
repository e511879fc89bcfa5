"""The memory that a record states."""

from __future__ import annotations

import subprocess
import sys

import pytest
import torch

from spmrl_bench.training.memory import peak_gpu_memory_bytes

CHILD = """
from spmrl_bench.processes import peak_memory_bytes
print(peak_memory_bytes())
"""


def test_peak_memory_is_that_of_the_process_in_bytes() -> None:
    """Not that of the process which started it."""
    held = torch.zeros(1 << 28, dtype=torch.uint8)  # a quarter of a gigabyte
    sizes = []
    for extra in ("", "held = bytearray(1 << 28)\n"):
        found = subprocess.run(
            [sys.executable, "-c", extra + CHILD], capture_output=True, text=True, check=True
        )
        sizes.append(int(found.stdout))
    del held
    assert sizes[1] - sizes[0] == pytest.approx(1 << 28, rel=0.1)
    assert peak_gpu_memory_bytes(torch.device("cpu")) is None
