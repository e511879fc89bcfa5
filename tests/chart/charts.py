"""Random charts for the decoder's tests, and decoding with a chosen kernel."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from spmrl_bench.chart import arrays
from spmrl_bench.chart.spans import SpanTrees, best_labels, decode_spans
from tests.twins import running_on


class Batch(NamedTuple):
    """Arguments of :func:`decode`."""

    scores: NDArray[np.float32]
    lengths: NDArray[np.int32]
    gold: NDArray[np.int32] | None


def random_batch(
    rng: np.random.Generator, lengths: list[int], columns: int, *, gold: bool, ties: bool
) -> Batch:
    """Scores from a few small integers when ``ties`` are wanted, else normally distributed."""
    cells = int(arrays.cell_offsets(lengths)[-1])
    if ties:
        scores = rng.integers(-2, 2, (cells, columns)).astype(np.float32)
    else:
        scores = (2 * rng.standard_normal((cells, columns)) - 1).astype(np.float32)
    targets = rng.integers(0, columns + 1, cells).astype(np.int32)
    targets[rng.random(cells) < 0.5] = 0
    return Batch(scores, np.array(lengths, dtype=np.int32), targets if gold else None)


def decode(scores: Any, lengths: Any, gold: Any = None, *, threads: int | None = None) -> SpanTrees:
    """The best trees under label scores, best labels and all."""
    return decode_spans(*best_labels(scores, gold), lengths, gold, threads=threads)


def decode_on(kernel: str, batch: Batch, threads: int | None = None) -> SpanTrees:
    """Decode with the kernel of this name, "cython" or "python"."""
    with running_on(kernel, "labels"):
        return decode(*batch, threads=threads)


def one_sentence(batch: Batch, b: int) -> Batch:
    """Sentence ``b`` as a batch of its own."""
    first, stop = arrays.cell_offsets(batch.lengths)[b : b + 2]
    gold = None if batch.gold is None else batch.gold[first:stop]
    return Batch(batch.scores[first:stop], batch.lengths[b : b + 1], gold)
