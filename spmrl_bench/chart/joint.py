"""Best constituents and dependencies of one structure, for a whole batch of sentences at once.

Zhou & Zhao (2019) parse with trees whose nodes have head words: the score is that of the spans
plus that of the arcs, and both are decoded together and exactly. As in
:func:`spmrl_bench.chart.decode` trees are binary, and nodes with the empty label stand for no
constituent. The head of a node is the head of one of its two parts, and the head word of the
other part depends on it.

This module knows no model and no tree class. The work is done by the compiled kernel ``_joint``
or by its plain-Python twin :mod:`spmrl_bench.chart.joint_reference`.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from spmrl_bench.chart import packing
from spmrl_bench.chart.checks import (
    checked_arcs,
    checked_lengths,
    checked_threads,
    checked_values,
)
from spmrl_bench.chart.decoded import JointDecoded
from spmrl_bench.chart.kernels import load_joint_kernel
from spmrl_bench.chart.threads import team_size


def decode_joint(
    values: ArrayLike,
    arcs: ArrayLike,
    lengths: ArrayLike,
    *,
    threads: int | None = None,
) -> JointDecoded:
    """Find the structure of highest score of every sentence of a batch.

    The score of a structure is the sum over the 2n - 1 nodes of its tree, each of which has its
    value if it carries a label and 0 if not, and over the n arcs, one of which comes from the root.
    The full sentence must carry a label, and so must a dependent part of more than one word, that
    is, a node whose head word is not that of the node above. All other nodes carry one where their
    value is above 0.

    Ties go to the lowest root word; then, from the full sentence down, to the leftmost split and
    to the lowest head word of the dependent part. Sums are double. A sentence of n words takes
    time in proportion to n^4, and its chart 4 n^3 bytes: 17 megabytes for 160 words, 110 for 300.
    Each thread needs one chart, that of the longest sentence it is given.

    Args:
        values: float64 [cells], packed as in :mod:`spmrl_bench.chart.packing`: the largest score of
            a label of the cell other than the empty one. Labels that a cell cannot have are left
            out, and weights of spans and arcs multiplied in, by the caller.
        arcs: float64 [sum(n(n + 1))], sentence after sentence: n rows, one for each word as
            dependent, of n + 1 scores, one for each governor, the first being the root
            (:func:`spmrl_bench.chart.packing.arc_offsets`). What a word scores as its own
            governor is not looked at.
        lengths: integers [B], words per sentence.
        threads: how many threads share the sentences, by default as in
            :func:`spmrl_bench.chart.decode`; the result does not depend on it.

    Raises:
        ValueError: an array has the wrong type, shape or range, a score is so large that sums
            could overflow, or there would be no thread.
        NotFiniteError: a score is NaN or infinite.
    """
    checked_threads(threads)
    words = checked_lengths(lengths)
    inside = checked_values(values, words)
    table = checked_arcs(arcs, words)
    kernel = load_joint_kernel()
    decoded = JointDecoded.empty(words)
    # A score of the charts that WORTH_A_TEAM counts takes as long as two sums.
    work = int((words.astype(np.float64) ** 4).sum() / 12)
    kernel.decode(
        inside,
        table,
        words,
        packing.cell_offsets(words),
        packing.arc_offsets(words),
        decoded.offsets,
        decoded.word_offsets,
        decoded.cells,
        decoded.labelled.view(np.uint8),
        decoded.node_heads,
        decoded.heads,
        decoded.scores,
        np.argsort(-words, kind="stable"),  # long sentences first
        team_size(kernel, threads, len(words), work),
    )
    return decoded
