"""Settings of the process that make a CPU train and parse faster with the same results.

They are made once, when a run chooses the CPU, and can be kept away by settings of the user:
variables of the environment for memory, ``torch.set_float32_matmul_precision`` for products. What
they keep in memory for the sake of speed is bounded.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable
from pathlib import Path

import torch

# Of glibc's malloc.h.
_M_TRIM_THRESHOLD, _M_TOP_PAD, _M_MMAP_MAX = -1, -2, -4
_EVER = 2**31 - 1
_GROW_BY = 64 << 20

#: How many sizes of products are remembered, by the variable of the environment that says so:
#: oneDNN keeps the machine code it made for a size, and torch what it asked oneDNN for. An entry of
#: either takes about 300 kB, and 1024 of each, as there would be, 600 MB. Without its code a
#: product takes 0.4 ms more, without the other 0.02 ms. Sizes are rounded where products are many
#: (:func:`spmrl_bench.nn.kernels.product_rows`), so that those of a corpus, or of a training run,
#: are a few hundred.
REMEMBERED = {"ONEDNN_PRIMITIVE_CACHE_CAPACITY": 128, "LRU_CACHE_CAPACITY": 64}
#: The same where parsers are trained: the sizes of a treebank's batches come again in each epoch,
#: and a step of a small model has more of them than fit into less (with the ones above, steps take
#: 5 to 20 % longer).
IN_TRAINING = {"ONEDNN_PRIMITIVE_CACHE_CAPACITY": 512, "LRU_CACHE_CAPACITY": 256}
_OURS = {str(most) for sizes in (REMEMBERED, IN_TRAINING) for most in sizes.values()}

_sizes = REMEMBERED


def prepare_cpu() -> None:
    """Make the settings of this module; again and again does no harm."""
    keep_memory()
    bound_sizes()  # read with the first product
    choose_products()


def keep_memory() -> bool:
    """Tell malloc to keep freed memory; true if it was told.

    Every step of training frees and takes the same hundreds of megabytes. glibc hands large
    blocks back to the system, which clears each page when it is used again: a sixth of the time
    of a step. Other C libraries, and whoever has set malloc up by the environment, are left
    alone.
    """
    if any(name.startswith("MALLOC_") for name in os.environ) or "GLIBC_TUNABLES" in os.environ:
        return False
    mallopt = _of_glibc("mallopt")
    if mallopt is None:
        return False
    settings = ((_M_MMAP_MAX, 0), (_M_TRIM_THRESHOLD, _EVER), (_M_TOP_PAD, _GROW_BY))
    return all(mallopt(name, value) for name, value in settings)


def give_memory_back() -> None:
    """Hand what malloc keeps and nobody uses back to the system.

    Blocks of ever other sizes leave holes between those in use, and a sentence that is much longer
    than others leaves a large one; over a stream of text that adds up. It takes some milliseconds,
    and as many again until the memory in use is there again.
    """
    trim = _of_glibc("malloc_trim")
    if trim is not None:
        trim(0)


def _of_glibc(name: str) -> Callable[..., int] | None:
    """A function of glibc; None with another C library."""
    try:
        os.confstr("CS_GNU_LIBC_VERSION")
        function: Callable[..., int] = getattr(ctypes.CDLL(None), name)
    except (AttributeError, OSError, ValueError):
        return None
    return function


def bound_sizes() -> None:
    """Let no more sizes of products be remembered than is said above.

    Who has set a variable, also by the older name of oneDNN's, is left alone. It is too late once
    the process has multiplied with oneDNN.
    """
    for name, most in _sizes.items():
        older = name.replace("ONEDNN", "DNNL")
        # A process that trains may be the child of one that does not, or the other way round.
        own = os.environ.get(name) in (None, *_OURS)
        if own and (older == name or older not in os.environ):
            os.environ[name] = str(most)


def expect_training() -> None:
    """Say, before anything is multiplied, that this process trains parsers."""
    global _sizes
    _sizes = IN_TRAINING
    bound_sizes()


def choose_products(vendor: str | None = None) -> bool:
    """Let oneDNN compute float32 products where MKL would be slow; true if it will.

    MKL does not use the widest instructions of AMD's processors, where oneDNN is about twice
    as fast. torch hands products to oneDNN under the precision "medium", which allows it to
    round factors to bfloat16 where the processor is made for that. So this is done only if a
    product comes out as exact as before. The choice depends on the processor alone and not on
    a stopwatch, so that a resumed run computes what an uninterrupted one would.

    Args:
        vendor: of the processor, as in ``/proc/cpuinfo``; looked up there if not given.
    """
    given = torch.get_float32_matmul_precision()
    if given != "highest" or (vendor or _vendor(Path("/proc/cpuinfo"))) != "AuthenticAMD":
        return False
    exact = _product_error()
    torch.set_float32_matmul_precision("medium")
    if _product_error() <= 4 * exact:
        return True
    torch.set_float32_matmul_precision(given)
    return False


def _product_error() -> float:
    """Relative error of a float32 product of the size of a layer's."""
    generator = torch.Generator().manual_seed(0)
    left, right = (torch.randn(512, 512, generator=generator) for _ in range(2))
    expected = left.double() @ right.double()
    return ((left @ right - expected).norm() / expected.norm()).item()


def _vendor(cpuinfo: Path) -> str:
    """The vendor of the first processor, empty where that is not known."""
    try:
        for line in cpuinfo.read_text(encoding="utf-8").splitlines():
            key, _, value = line.partition(":")
            if key.strip() == "vendor_id":
                return value.strip()
    except (OSError, UnicodeDecodeError):
        pass
    return ""
