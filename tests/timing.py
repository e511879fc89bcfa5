"""How processor time grows: nothing that else runs on the machine decides whether a test passes."""

from __future__ import annotations

import time
from collections.abc import Callable


def processor_seconds(work: Callable[[], object]) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start


def takes_linear_time(work: Callable[[str], object], text: str, longer: str) -> bool:
    """Whether a text of 32 times the length takes less than 200 times as long.

    It takes about 32 times as long, but 1,000 times where the time is quadratic. One attempt of
    several that shows it is enough.
    """
    for _ in range(5):
        short = max(processor_seconds(lambda: work(text)), 1e-3)
        if processor_seconds(lambda: work(longer)) < 200 * short:
            return True
    return False
