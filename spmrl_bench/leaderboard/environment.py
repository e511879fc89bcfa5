"""What a record says of the program and the machine: what cannot be found out is None or empty."""

from __future__ import annotations

import platform
import re
import subprocess
from contextlib import suppress
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING

from spmrl_bench import __version__
from spmrl_bench.leaderboard.record import Hardware
from spmrl_bench.process.pools import usable_cores

if TYPE_CHECKING:
    import torch


def find_hardware(device: torch.device | None = None) -> Hardware:
    """The machine, for weights on ``device``; without it, for a parser that has no weights."""
    import torch

    from spmrl_bench.chart import kernels as chart
    from spmrl_bench.nn.kernels import KERNELS, load

    device = device or torch.device("cpu")
    needed = KERNELS if device.type == "cpu" else ()
    compiled = chart.load("_spans") is not None and all(map(load, needed))
    gpu = f" ({torch.cuda.get_device_name(device)})" if device.type == "cuda" else ""
    info = ""
    with suppress(OSError):
        info = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
    processor = re.search(r"^model name\s*:(.*)$", info, re.MULTILINE)
    return Hardware(
        device=f"{device.type}{gpu}",
        platform=f"{platform.system()} {platform.machine()}",
        processor=processor[1].strip() if processor else platform.processor(),
        cpu_count=usable_cores(),
        threads=torch.get_num_threads(),
        kernels="compiled" if compiled else "plain",
    )


def find_versions() -> dict[str, str]:
    versions = {"python": platform.python_version(), "spmrl_bench": __version__}
    return versions | {name: metadata.version(name) for name in ("torch", "numpy")}


_ROOT = Path(__file__).resolve().parents[2]


def find_commit(root: Path = _ROOT) -> str | None:
    """Commit of the checkout the program runs from, with ``-dirty`` after it if files changed. None
    outside a checkout, such as in an installed wheel, and where git is not installed."""
    if not (root / ".git").exists():
        return None
    describe = ["git", "describe", "--always", "--dirty", "--abbrev=40", "--exclude=*"]
    try:
        return subprocess.check_output(
            describe, cwd=root, stderr=subprocess.DEVNULL, text=True, timeout=30
        ).strip()
    except (OSError, subprocess.SubprocessError):
        return None
