"""How many threads decode a batch, and who makes them.

The compiled kernel works without the GIL and makes its own threads where it was built with
OpenMP. They then are the threads that torch multiplies with, if both were linked with the same
OpenMP library, and obey the same settings. Two cases need threads of Python instead: a kernel
built without OpenMP, and a process that was forked, since GNU OpenMP waits for ever for threads
that did not survive the fork.
"""

from __future__ import annotations

import os

import numpy as np
from numpy.typing import NDArray

from spmrl_bench.chart.kernels import Kernel
from spmrl_bench.processes import available_threads

# A batch of so many scores takes one thread about 50 microseconds, in which sleeping threads
# would hardly have woken up.
WORTH_A_TEAM = 200_000

# The flag PF_FORKNOEXEC in the ninth field of Linux's /proc/PID/stat.
FORKED_WITHOUT_EXEC = 0x40


def _born_by_fork() -> bool:
    """Whether this process was forked before it came here; False where that cannot be known."""
    try:
        with open("/proc/self/stat", "rb") as stream:
            after_name = stream.read().rpartition(b")")[2].split()
        return bool(int(after_name[6]) & FORKED_WITHOUT_EXEC)
    except (OSError, ValueError, IndexError):
        return False


_forked = _born_by_fork()


def _note_fork() -> None:
    global _forked
    _forked = True


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_note_fork)


def default_threads(kernel: Kernel) -> int:
    """As many as OpenMP uses, 1 in a forked process, which is seldom the only one."""
    if kernel.openmp_threads is None or _forked:
        return 1
    return kernel.openmp_threads() or available_threads()


def run(
    kernel: Kernel,
    arguments: tuple[object, ...],
    lengths: NDArray[np.int32],
    threads: int | None,
    work: int,
) -> None:
    """Let a kernel decode every sentence, long ones first.

    Args:
        kernel: what decodes.
        arguments: of its ``decode_maxima``, up to ``order``.
        lengths: words of each sentence [B].
        threads: that many; None for :func:`default_threads`, or 1 where ``work``, the number
            of scores, is too little to share.
    """
    if threads is None:
        team = 1 if work < WORTH_A_TEAM or len(lengths) == 1 else default_threads(kernel)
    else:
        team = min(threads, max(1, len(lengths)))
    order = np.argsort(-lengths, kind="stable")
    if team == 1 or (kernel.openmp_threads is not None and kernel.openmp_threads() and not _forked):
        kernel.decode_maxima(*arguments, order, team)
        return
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(team) as pool:
        shares = [order[first::team] for first in range(team)]
        list(pool.map(lambda share: kernel.decode_maxima(*arguments, share, 1), shares))
