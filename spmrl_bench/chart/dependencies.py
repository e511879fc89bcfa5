"""Best dependency trees under arc scores, for a whole batch of sentences at once.

Exactly one word of a sentence has the root for its governor, as in nearly all treebanks; a tree
with several such words is never returned, however high its arcs score. The best projective tree
is found by the chart of Eisner 1996 in O(n^3), the best tree of any kind as a maximum spanning
arborescence in O(n^2); both are exact. How, and which tree wins where several are best, is
written in :mod:`spmrl_bench.chart.dependency_reference`.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from spmrl_bench.chart import packing
from spmrl_bench.chart.checks import checked_arcs, checked_lengths, checked_threads
from spmrl_bench.chart.decoded import DecodedDependencies
from spmrl_bench.chart.kernels import load_dependency_kernel
from spmrl_bench.chart.threads import team_size


def decode_dependencies(
    arcs: ArrayLike,
    lengths: ArrayLike,
    *,
    projective: bool,
    threads: int | None = None,
) -> DecodedDependencies:
    """Find the dependency tree of highest score of every sentence of a batch.

    Args:
        arcs: float64 or float32 [sum of n(n + 1)], packed as in :mod:`spmrl_bench.chart.packing`:
            for each word the scores of its governors 0 (the root) to n. A word is not its own
            governor; that score may be anything. Sums are double.
        lengths: integers [B], words per sentence.
        projective: whether only trees without crossing arcs are searched.
        threads: as in :func:`spmrl_bench.chart.decode`; the result does not depend on it.

    Raises:
        ValueError: an array has the wrong type, shape or range or there would be no thread, and
            its subclass NotFiniteError when a score is not finite.

    An empty batch gives an empty result.
    """
    checked_threads(threads)
    words = checked_lengths(lengths)
    scores = checked_arcs(arcs, words)
    kernel = load_dependency_kernel()
    decoded = DecodedDependencies.empty(words)
    # In units of the maximum of two numbers, as a chart's label scores are counted.
    size = words.astype(np.float64)
    work = int((size**3 / 2 if projective else 16 * size**2).sum())
    decode = kernel.decode_projective if projective else kernel.decode_spanning
    decode(
        scores,
        words,
        packing.arc_offsets(words),
        decoded.offsets,
        decoded.heads,
        decoded.scores,
        np.argsort(-words, kind="stable"),  # long sentences first
        team_size(kernel, threads, len(words), work),
    )
    return decoded
