"""Random arc scores for the tests of dependency decoding, and decoding with a chosen kernel."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from spmrl_bench.chart.arrays import arc_offsets
from spmrl_bench.chart.dependencies import DependencyTrees, decode_dependencies
from tests.twins import running_on

Scores = NDArray[np.float64]
Shape = Literal["integers", "floats", "nested", "rooted"]


def random_arcs(rng: np.random.Generator, n: int, shape: Shape) -> Scores:
    """Arcs [n, n + 1] of one sentence.

    ``integers`` are few, so that many trees are best; ``nested`` ones prefer arcs between near
    words of a random hierarchy, so that one cycle lies in another; with ``rooted`` ones the root
    is every word's best head.
    """
    if shape == "integers":
        return rng.integers(-2, 3, (n, n + 1)).astype(np.float64)
    arcs = rng.standard_normal((n, n + 1))
    if shape == "rooted":
        arcs[:, 0] += 10
    if shape == "nested":
        words = rng.permutation(n) + 1
        for size in range(2, n + 1):
            # The hierarchy is a chain: each level joins one word to all of those before it.
            arcs[words[:size, None] - 1, words[size - 1]] -= 10 * size
            arcs[words[size - 1] - 1, words[: size - 1]] -= 10 * size
    return arcs


def random_batch(rng: np.random.Generator, lengths: Sequence[int], shape: Shape) -> Scores:
    """The packed arcs of sentences of these lengths."""
    return np.concatenate([np.empty(0), *(random_arcs(rng, n, shape).ravel() for n in lengths)])


def decode_on(
    name: str,
    arcs: Scores,
    lengths: Sequence[int],
    projective: bool,
    threads: int | None = None,
) -> DependencyTrees:
    """Decode with the kernel of this name, "cython" or "python"."""
    with running_on(name, "dependencies"):
        return decode_dependencies(arcs, lengths, projective=projective, threads=threads)


def sentence_arcs(arcs: Scores, lengths: Sequence[int], b: int) -> Scores:
    """The arcs [n, n + 1] of sentence ``b``."""
    first, end = arc_offsets(lengths)[b : b + 2]
    return arcs[first:end].reshape(lengths[b], lengths[b] + 1)
