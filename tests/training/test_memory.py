"""The memory that a record states."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from spmrl_bench.training.memory import peak_gpu_memory_bytes, peak_memory_bytes


def test_peak_memory_is_in_bytes() -> None:
    status = Path("/proc/self/status")
    if not status.exists():
        pytest.skip("the system keeps no /proc/self/status to compare with")
    (line,) = (line for line in status.read_text().splitlines() if line.startswith("VmHWM:"))
    kibibytes = int(line.split()[1])
    assert peak_memory_bytes() == pytest.approx(kibibytes * 1024, rel=0.05)
    assert peak_gpu_memory_bytes(torch.device("cpu")) is None
