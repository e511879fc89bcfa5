"""Random scores for the tests of joint decoding, and what is legal as its result."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from spmrl_bench.chart import arrays
from spmrl_bench.chart.joint import JointTrees, decode_joint
from tests.twins import running_on


class JointBatch(NamedTuple):
    """Arguments of ``decode_joint``."""

    values: NDArray[np.float64]
    arcs: NDArray[np.float64]
    lengths: NDArray[np.int32]


def random_batch(rng: np.random.Generator, lengths: list[int], *, ties: bool) -> JointBatch:
    """Scores from a few small integers when ``ties`` are wanted, else normally distributed."""
    words = np.array(lengths, dtype=np.int32)
    cells, arcs = int(arrays.cell_offsets(words)[-1]), int(arrays.arc_offsets(words)[-1])
    if ties:
        values, table = rng.integers(-2, 3, cells), rng.integers(-2, 3, arcs)
        return JointBatch(values.astype(np.float64), table.astype(np.float64), words)
    return JointBatch(rng.standard_normal(cells) - 0.3, rng.standard_normal(arcs), words)


def decode_on(kernel: str, batch: JointBatch, threads: int | None = None) -> JointTrees:
    """Decode with the kernel of this name, "cython" or "python"."""
    with running_on(kernel, "joint"):
        return decode_joint(*batch, threads=threads)


def one_sentence(batch: JointBatch, b: int) -> JointBatch:
    """Sentence ``b`` as a batch of its own."""
    cells, arcs = arrays.cell_offsets(batch.lengths), arrays.arc_offsets(batch.lengths)
    return JointBatch(
        batch.values[cells[b] : cells[b + 1]],
        batch.arcs[arcs[b] : arcs[b + 1]],
        batch.lengths[b : b + 1],
    )


def sentence_of(decoded: JointTrees, batch: JointBatch, b: int) -> JointTrees:
    """What was decoded of sentence ``b``, as of a batch of its own."""
    nodes = slice(decoded.offsets[b], decoded.offsets[b + 1])
    words = slice(decoded.word_offsets[b], decoded.word_offsets[b + 1])
    return JointTrees(
        decoded.cells[nodes] - arrays.cell_offsets(batch.lengths)[b],
        decoded.labelled[nodes],
        decoded.node_heads[nodes],
        decoded.heads[words],
        np.array([0, nodes.stop - nodes.start]),
        np.array([0, words.stop - words.start]),
        decoded.scores[b : b + 1],
    )


def score_of(decoded: JointTrees, batch: JointBatch) -> float:
    """Score of the only sentence's structure, added up once it has been found to be legal."""
    n = int(batch.lengths[0])
    _, left, right = arrays.cell_spans([n])
    nodes = list(
        zip(
            left[decoded.cells].tolist(),
            right[decoded.cells].tolist(),
            decoded.node_heads.tolist(),
            decoded.labelled.tolist(),
            strict=True,
        )
    )
    heads = [None, *decoded.heads.tolist()]
    assert len(nodes) == 2 * n - 1
    arcs = {nodes[0][2]: 0}
    waiting = [(0, n, True)]
    total = 0.0
    for node, (i, j, head, labelled) in enumerate(nodes):
        first, end, required = waiting.pop()
        assert (first, end) == (i, j)
        assert i < head <= j
        value = float(batch.values[decoded.cells[node]])
        assert labelled == (required or value > 0)
        total += value if labelled else 0.0
        if j == i + 1:
            continue
        k = nodes[node + 1][1]
        assert i < k < j
        inner = (
            nodes[node + 1][2],
            next(h for a, b, h, _ in nodes[node + 2 :] if (a, b) == (k, j)),
        )
        assert head in inner
        dependent = inner[0] if inner[1] == head else inner[1]
        arcs[dependent] = head
        waiting += [(k, j, inner[1] != head and j - k > 1), (i, k, inner[0] != head and k - i > 1)]
    assert arcs == dict(enumerate(heads[1:], start=1))
    table = batch.arcs.reshape(n, n + 1)
    return total + sum(float(table[word - 1, head]) for word, head in arcs.items())
