"""Which device computes, and what makes a CPU train and parse faster with the same results.

The latter are settings of a whole process: only the program's own commands make them, and those of
the user keep them away, variables for memory, ``torch.set_float32_matmul_precision`` for products.
"""

from __future__ import annotations

import ctypes
import os
import re
from pathlib import Path

import torch

from spmrl_bench.errors import RecipeError
from spmrl_bench.process.pools import cards

# Names of glibc's malloc.h (M_MMAP_MAX, M_TRIM_THRESHOLD, M_TOP_PAD), and values.
_KEEP = ((-4, 0), (-1, 2**31 - 1), (-2, 64 << 20))

#: How many sizes of products are remembered, by the variable of the environment that says so:
#: oneDNN keeps the machine code it made for a size, and torch what it asked oneDNN for, 300 kB
#: each. :func:`spmrl_bench.nn.kernels.rounded_rows` makes them a few hundred.
REMEMBERED = {"ONEDNN_PRIMITIVE_CACHE_CAPACITY": 128, "LRU_CACHE_CAPACITY": 64}
#: The same in training, where the sizes of a treebank's batches come again in each epoch.
IN_TRAINING = {"ONEDNN_PRIMITIVE_CACHE_CAPACITY": 512, "LRU_CACHE_CAPACITY": 256}
_OURS = {str(most) for sizes in (REMEMBERED, IN_TRAINING) for most in sizes.values()}


def choose_device(name: str) -> torch.device:
    """Return the device of a name; ``auto`` is CUDA if present, else the CPU. RecipeError where
    this machine lacks it, or there is no such device."""
    if not re.fullmatch("auto|cpu|cuda(:(0|[1-9][0-9]?))?", name):
        raise RecipeError(f"unknown device '{name}'. Allowed: auto, cpu, cuda, cuda:N")
    there = cards()
    if name == "auto":
        name = "cuda" if there else "cpu"
    device = torch.device(name)
    if device.type == "cuda" and (device.index or 0) >= there:
        known = ", ".join(f"cuda:{number}" for number in range(there)) or "no CUDA device"
        raise RecipeError(f"device '{name}' asked for, but torch sees {known} here")
    return device


def prepare_process(name: str, *, training: bool = False) -> torch.device:
    """As :func:`choose_device`; if it is the CPU, make the settings of this process for it."""
    device = choose_device(name)
    if device.type == "cpu":
        keep_memory()
        bound_caches(training=training)  # read with the first product
        choose_products()
    return device


def keep_memory() -> bool:
    """Tell malloc to keep freed memory, of which each step of training takes hundreds of megabytes
    again, cleared page by page if glibc has handed them back; true if it was told."""
    if any(name.startswith("MALLOC_") for name in os.environ) or "GLIBC_TUNABLES" in os.environ:
        return False
    return all(_glibc("mallopt", name, value) for name, value in _KEEP)


def trim_memory() -> None:
    """Hand what malloc keeps and nobody uses, holes between blocks, back to the system."""
    _glibc("malloc_trim", 0)


def _glibc(name: str, *arguments: int) -> int:
    """What a function of glibc returns; 0 with another C library."""
    try:
        os.confstr("CS_GNU_LIBC_VERSION")
        return int(getattr(ctypes.CDLL(None), name)(*arguments))
    except (AttributeError, OSError, ValueError):
        return 0


def bound_caches(*, training: bool) -> None:
    """Let no more sizes of products be remembered than is said above, before the first product."""
    for name, most in (IN_TRAINING if training else REMEMBERED).items():
        # A process that trains may be the child of one that does not, or the other way round.
        own = os.environ.get(name) in (None, *_OURS)
        older = name.replace("ONEDNN", "DNNL")  # of the variable, which a user may have set
        if own and (older == name or older not in os.environ):
            os.environ[name] = str(most)


def matmul_precision() -> str:
    """Return torch's precision of float32 products; '' where each library has its own."""
    try:
        return torch.get_float32_matmul_precision()
    except RuntimeError:
        return ""


def choose_products(cpuinfo: Path = Path("/proc/cpuinfo")) -> bool:
    """Let oneDNN compute float32 products on AMD's processors, where it is about twice as fast as
    MKL; true if it will.

    torch uses it under the precision "medium", which lets it round factors to bfloat16; so a
    product must come out as exact as before. No stopwatch decides: resumed runs compute the same.
    """
    try:
        amd = "AuthenticAMD" in cpuinfo.read_text(encoding="latin-1")
    except OSError:
        return False
    if not amd or matmul_precision() != "highest":
        return False
    exact = product_error()
    torch.set_float32_matmul_precision("medium")
    faster = product_error() <= 4 * exact
    torch.set_float32_matmul_precision("medium" if faster else "highest")
    return faster


def product_error() -> float:
    """Return the relative error of a float32 product of the size of a layer's."""
    generator = torch.Generator().manual_seed(0)
    left, right = (torch.randn(512, 512, generator=generator) for _ in range(2))
    expected = left.double() @ right.double()
    return ((left @ right - expected).norm() / expected.norm()).item()
