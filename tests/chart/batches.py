"""Random scores for the tests of decoding, decoding with a chosen kernel, and parts of batches."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from spmrl_bench.chart.arrays import arc_offsets, cell_offsets, cell_spans, node_offsets, starts
from spmrl_bench.chart.dependency_trees import decode_dependencies
from spmrl_bench.chart.joint_trees import JointTrees, decode_joint
from spmrl_bench.chart.span_trees import SpanTrees, best_labels, decode_spans
from tests.twins import running_on

Scores = NDArray[np.float64]
Shape = Literal["integers", "floats", "nested", "rooted"]


def part(array: Any, offsets: Callable[[Any], Any], lengths: Any, b: int) -> Any:
    """What sentence ``b`` has of an array."""
    first, end = offsets(lengths)[b : b + 2]
    return array[first:end]


class Batch(NamedTuple):
    """Arguments of :func:`decode`."""

    scores: NDArray[np.float32]
    lengths: NDArray[np.int32]
    gold: NDArray[np.int32] | None

    def sentence(self, b: int) -> Batch:
        """Sentence ``b`` as a batch of its own."""
        own = [None if array is None else part(array, cell_offsets, self.lengths, b)
               for array in (self.scores, self.gold)]  # fmt: skip
        return Batch(own[0], self.lengths[b : b + 1], own[1])


def random_batch(
    rng: np.random.Generator, lengths: Sequence[int], columns: int, *, gold: bool, ties: bool
) -> Batch:
    """Scores from a few small integers when ``ties`` are wanted, else normally distributed."""
    cells = int(cell_offsets(lengths)[-1])
    if ties:
        scores = rng.integers(-2, 2, (cells, columns)).astype(np.float32)
    else:
        scores = (2 * rng.standard_normal((cells, columns)) - 1).astype(np.float32)
    targets = rng.integers(0, columns + 1, cells).astype(np.int32)
    targets[rng.random(cells) < 0.5] = 0
    return Batch(scores, np.array(lengths, dtype=np.int32), targets if gold else None)


def decode(scores: Any, lengths: Any, gold: Any = None) -> SpanTrees:
    """The best trees under label scores, best labels and all."""
    return decode_spans(*best_labels(scores, gold), lengths, gold)


def decode_on(kernel: str, batch: Batch) -> SpanTrees:
    """Decode with this kernel, "cython" or "python"."""
    with running_on(kernel):
        return decode(*batch)


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


def packed_arcs(rng: np.random.Generator, lengths: Sequence[int], shape: Shape) -> Scores:
    """The arcs of sentences of these lengths."""
    return np.concatenate([np.empty(0), *(random_arcs(rng, n, shape).ravel() for n in lengths)])


def trees_on(
    kernel: str, arcs: Scores, lengths: Sequence[int], projective: bool
) -> list[tuple[Scores, list[int]]]:
    """The arcs [n, n + 1] of each sentence, and the heads that are decoded with this kernel."""
    with running_on(kernel):
        heads = decode_dependencies(arcs, lengths, projective=projective)
    tables = [part(arcs, arc_offsets, lengths, b).reshape(n, n + 1) for b, n in enumerate(lengths)]
    return [(table, part(heads, starts, lengths, b).tolist()) for b, table in enumerate(tables)]


def score_of_heads(arcs: Scores, heads: Sequence[int]) -> float:
    """The sum of the arcs of a tree."""
    return sum(arcs[np.arange(len(heads)), heads].tolist())


class JointBatch(NamedTuple):
    """Arguments of ``decode_joint``."""

    values: Scores
    arcs: Scores
    lengths: Any

    def sentence(self, b: int) -> JointBatch:
        """Sentence ``b`` as a batch of its own."""
        values = part(self.values, cell_offsets, self.lengths, b)
        arcs = part(self.arcs, arc_offsets, self.lengths, b)
        return JointBatch(values, arcs, self.lengths[b : b + 1])


def random_joint(rng: np.random.Generator, lengths: Sequence[int], *, ties: bool) -> JointBatch:
    """Scores from a few small integers when ``ties`` are wanted, else normally distributed."""
    words = np.array(lengths, dtype=np.int32)
    sizes = int(cell_offsets(words)[-1]), int(arc_offsets(words)[-1])
    if ties:
        values, arcs = (rng.integers(-2, 3, size).astype(np.float64) for size in sizes)
    else:
        values, arcs = map(rng.standard_normal, sizes)
        values -= 0.3
    return JointBatch(values, arcs, words)


def joint_on(kernel: str, batch: JointBatch) -> JointTrees:
    """Decode with this kernel."""
    with running_on(kernel):
        return decode_joint(*batch)


def of_sentence(found: JointTrees, lengths: Any, b: int) -> JointTrees:
    """What was decoded of sentence ``b``, as of a batch of its own."""
    return JointTrees(
        part(found.cells, node_offsets, lengths, b) - cell_offsets(lengths)[b],
        part(found.labelled, node_offsets, lengths, b),
        part(found.heads, starts, lengths, b),
        found.scores[b : b + 1],
    )


def spans_of(cells: NDArray[np.int64], n: int) -> list[tuple[int, int]]:
    """The spans of cells of a sentence."""
    _, left, right = cell_spans([n])
    return list(zip(left[cells].tolist(), right[cells].tolist(), strict=True))


def score_of(found: JointTrees, batch: JointBatch) -> float:
    """Score of the only sentence's structure, added up once it has been found to be legal."""
    n, heads = int(batch.lengths[0]), found.heads.tolist()

    def head_of(i: int, j: int) -> int:
        (head,) = (w for w in range(i + 1, j + 1) if not i < heads[w - 1] <= j)
        return head

    spans = spans_of(found.cells, n)
    assert len(spans) == 2 * n - 1
    assert heads[head_of(0, n) - 1] == 0
    waiting, total = [(0, n, True)], 0.0
    rows = zip(spans, found.labelled.tolist(), batch.values[found.cells].tolist(), strict=True)
    for node, ((i, j), labelled, value) in enumerate(rows):
        *span, required = waiting.pop()
        assert span == [i, j]
        assert labelled == (required or value > 0)
        total += value if labelled else 0.0
        if j > i + 1:
            k = spans[node + 1][1]
            left, right, head = head_of(i, k), head_of(k, j), head_of(i, j)
            assert heads[(left + right - head) - 1] == head
            waiting += [(k, j, right != head and j - k > 1), (i, k, left != head and k - i > 1)]
    return total + score_of_heads(batch.arcs.reshape(n, n + 1), heads)
