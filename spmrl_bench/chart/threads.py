"""How many threads decode a batch.

The compiled kernel works without the GIL and makes its own threads where it was built with
OpenMP. They then are the threads that torch multiplies with, if both were linked with the same
OpenMP library, and obey the same settings. A process that was forked gets one thread, since GNU
OpenMP waits for ever for threads that did not survive the fork.
"""

from __future__ import annotations

import os

from spmrl_bench.chart.kernels import AnyKernel

# A batch of so many scores takes one thread about 50 microseconds, in which sleeping threads
# would hardly have woken up.
WORTH_A_TEAM = 200_000

# OpenMP ends the program where it cannot start as many as it was told.
MOST_THREADS = 1024

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


def default_threads(kernel: AnyKernel) -> int:
    """As many as OpenMP uses, 1 in a forked process, which is seldom the only one."""
    return 1 if _forked else max(1, kernel.openmp_threads())


def team_size(kernel: AnyKernel, threads: int | None, parts: int, work: int) -> int:
    """How many threads share so many parts of some work.

    By default those of :func:`default_threads`, or one where ``work``, the number of scores, is
    too little to share.
    """
    if _forked or (threads is None and work < WORTH_A_TEAM):
        return 1
    return min(default_threads(kernel) if threads is None else threads, max(1, parts), MOST_THREADS)
