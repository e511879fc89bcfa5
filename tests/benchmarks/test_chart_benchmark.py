"""How fast label charts are decoded.

Run with ``make bench``; elsewhere each of these runs once, on few sentences. Scores are random,
so that no branch can be foretold: trained ones decode a little faster. The medians give
``sentences_per_second``. ``gigabytes_per_second`` counts the scores alone, each of which has to
be read once, in the quickest round; beside it goes the best speed at which one thread of numpy
finds the maximum of the same array, as a measure of the memory.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pytest

from spmrl_bench import chart
from spmrl_bench.chart import packing
from spmrl_bench.chart.threads import default_threads

LABELS = 112  # as many as the Penn Treebank has after collapsing unary chains


def sentences(n: int) -> int:
    """Sentences of ``n`` words in a batch."""
    return 32 if n < 160 else 8


def batch(n: int, number: int) -> tuple[Any, Any, Any]:
    """Scores, lengths, and gold labels for as many cells as there are words."""
    rng = np.random.default_rng(n)
    cells = packing.cell_count(n)
    scores = rng.standard_normal((number * cells, LABELS - 1), dtype=np.float32)
    gold = np.zeros((number, cells), dtype=np.int32)
    for row in gold:
        row[rng.choice(cells, n, replace=False)] = rng.integers(1, LABELS, n)
    return scores, np.full(number, n, dtype=np.int32), gold.ravel()


def reading_speed(scores: Any) -> float:
    """Bytes per second that one thread of numpy reads of ``scores``; the best of five runs."""
    seconds = []
    for _ in range(5):
        start = time.perf_counter()
        scores.max()
        seconds.append(time.perf_counter() - start)
    return scores.nbytes / min(seconds)


@pytest.mark.parametrize("team", ["one thread", "all threads"])
@pytest.mark.parametrize("augmented", [False, True], ids=["plain", "augmented"])
@pytest.mark.parametrize("n", [10, 20, 40, 80, 160, 300])
def test_decoding(benchmark: Any, n: int, augmented: bool, team: str) -> None:
    measured = benchmark.enabled
    number = sentences(n) if measured else 2
    scores, lengths, gold = batch(n, number)
    targets = gold if augmented else None
    threads = 1 if team == "one thread" else default_threads(chart.load_kernel())
    found = benchmark.pedantic(
        chart.decode,
        (scores, lengths, targets),
        {"threads": threads},
        rounds=50 if measured else 1,
        warmup_rounds=2 if measured else 0,
    )
    assert len(found.cells) == number * (2 * n - 1)
    if benchmark.stats:
        benchmark.extra_info.update(
            kernel=chart.kernel_name(),
            threads=threads,
            sentences_per_second=round(number / benchmark.stats["median"]),
            gigabytes_per_second=round(scores.nbytes / benchmark.stats["min"] / 1e9, 1),
            numpy_gigabytes_per_second=round(reading_speed(scores) / 1e9, 1),
        )
