"""Decoding: trees are sound and have their scores at any length, and bad input is refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, get_args

import numpy as np
import pytest

from spmrl_bench.chart import arrays
from spmrl_bench.chart.dependency_trees import decode_dependencies
from spmrl_bench.chart.joint_trees import decode_joint
from spmrl_bench.chart.span_trees import span_marginals
from spmrl_bench.errors import NotFiniteError
from spmrl_bench.trees.dependencies import head_fault
from tests.chart import batches
from tests.chart.batches import Shape
from tests.chart.dependency_oracles import crosses
from tests.twins import kernels_of

every_kernel = pytest.mark.parametrize("kernel", kernels_of("dependencies"))
kinds = pytest.mark.parametrize("projective", [False, True], ids=["any", "projective"])


def test_sizes_of_packed_arrays() -> None:
    assert [arrays.cell_index(0, n, n) for n in (1, 2, 9)] == [0, 1, 8]
    assert arrays.node_offsets([1, 2, 5]).tolist() == [0, 1, 4, 13]
    assert arrays.arc_offsets([1, 2, 5]).tolist() == [0, 2, 8, 38]
    assert arrays.starts([1, 2, 5]).tolist() == [0, 1, 3, 8]
    for offsets in (arrays.cell_offsets, arrays.arc_offsets, arrays.starts):
        assert offsets([]).tolist() == [0]
    assert [array.tolist() for array in arrays.cell_spans([])] == [[], [], []]
    lengths = np.full(3, 60_000, dtype=np.int32)  # which must not overflow
    assert arrays.cell_offsets(lengths)[-1] == 3 * 60_000 * 60_001 // 2
    assert arrays.arc_offsets(lengths)[-1] == 3 * 60_000 * 60_001


@pytest.mark.parametrize("gold", [False, True], ids=["plain", "augmented"])
def test_nodes_form_a_tree_that_has_the_score(gold: bool) -> None:
    for n in [1, 2, 300]:
        batch = batches.random_batch(np.random.default_rng(n), [n], 3, gold=gold, ties=False)
        decoded = batches.decode(*batch)
        spans = batches.spans_of(decoded.cells, n)
        assert len(spans) == 2 * n - 1
        waiting = [(0, n)]
        for node, (i, j) in enumerate(spans):
            assert waiting.pop() == (i, j)
            if j - i > 1:
                k = spans[node + 1][1]
                waiting += [(k, j), (i, k)]
        assert decoded.labels[0] > 0

        total = 0.0
        for cell, label in zip(decoded.cells, decoded.labels, strict=True):
            total += float(batch.scores[cell, label - 1]) if label else 0.0
            total += 1.0 if batch.gold is not None and label != batch.gold[cell] else 0.0
        assert decoded.scores[0] == pytest.approx(total, rel=1e-12)


@pytest.mark.parametrize("n", [1, 2, 3, 20, 150])
def test_joint_structures_are_legal_and_have_their_scores(n: int) -> None:
    batch = batches.random_joint(np.random.default_rng(n), [n], ties=False)
    decoded = decode_joint(*batch)
    assert decoded.scores[0] == pytest.approx(batches.score_of(decoded, batch), rel=1e-12)


@every_kernel
@kinds
@pytest.mark.parametrize("shape", get_args(Shape))
def test_heads_form_a_tree_of_one_root(kernel: str, shape: Shape, projective: bool) -> None:
    lengths = [1, 2, 9, 10, 17, 33, 2, 1, 5, 64]
    arcs = batches.packed_arcs(np.random.default_rng(3), lengths, shape)
    for _, heads in batches.trees_on(kernel, arcs, lengths, projective):
        assert head_fault(heads, "one") is None
        assert not (projective and crosses(tuple(heads)))


@every_kernel
def test_a_tree_whose_arcs_are_by_far_the_best_is_found(kernel: str) -> None:
    """At lengths that cannot be enumerated: each word's head is any word before it in an order."""
    rng = np.random.default_rng(6)
    lengths = [50, 90]
    arcs, planted = [], []
    for n in lengths:
        order = rng.permutation(n) + 1
        heads = np.zeros(n, dtype=np.int64)
        for place in range(1, n):
            heads[order[place] - 1] = order[rng.integers(place)]
        table = batches.random_arcs(rng, n, "floats")
        table[np.arange(n), heads] += 1000
        arcs.append(table.ravel())
        planted.append(heads.tolist())
    found = batches.trees_on(kernel, np.concatenate(arcs), lengths, projective=False)
    assert [heads for _, heads in found] == planted


@kinds
def test_the_largest_scores_do_not_overflow(projective: bool) -> None:
    arcs = np.random.default_rng(9).choice([-1e300, 1e300], 30 * 31)
    heads = decode_dependencies(arcs, [30], projective=projective).tolist()
    assert batches.score_of_heads(arcs.reshape(30, 31), heads) == pytest.approx(3e301)
    assert head_fault(heads, "one") is None


LABELS = np.zeros((9, 2), dtype=np.float32)
VALUES, ARCS = np.zeros(9), np.zeros(18)


def changed(array: Any, place: Any, value: float) -> Any:
    copy = array.copy()
    copy[place] = value
    return copy


def decode_arcs(arcs: Any) -> Any:
    return decode_dependencies(arcs, [1, 3], projective=False)


def test_bad_input_is_refused() -> None:
    """What one of the three does not check of arrays, another one does in the same way."""
    batches.decode(LABELS, [3, 2], [0] * 9)
    decode_joint(VALUES, ARCS, [3, 2])
    large = changed(VALUES, 7, 1e301)
    cases: list[tuple[Callable[..., Any], Any, str]] = [
        (batches.decode, (LABELS.astype(float), [3, 2]), "dtype float64 .*must be float32"),
        (
            batches.decode,
            (LABELS[0], [3, 2]),
            r"shape \(2,\); it must be float32 \[cells, labels - 1\]",
        ),
        (batches.decode, (LABELS[:, :0], [3, 2]), "at least one column"),
        (batches.decode, (LABELS, [3, -2]), r"lengths\[1\] is -2"),
        (batches.decode, (LABELS, [3.0, 2.0]), "lengths has dtype float64 .*integers"),
        (batches.decode, (LABELS, [[3, 2]]), r"lengths has .*shape \(1, 2\)"),
        (batches.decode, (LABELS, 3), r"lengths has .*shape \(\)"),
        (batches.decode, (LABELS, [2**40]), "must fit 32-bit integers"),
        (batches.decode, (LABELS, [3, 2], [0] * 8), "gold has 8 entries; the batch needs 9"),
        (batches.decode, (LABELS, [3, 2], [0] * 8 + [3]), r"gold\[8\] is 3; labels are 0..2"),
        (batches.decode, (LABELS, [3, 2], [0.0] * 9), "gold has dtype float64 .*integers"),
        (batches.decode, (LABELS, [3, 2], [0] * 8 + [-1]), r"gold\[8\] is -1"),
        (decode_joint, (VALUES.astype(np.float16), ARCS, [3, 2]), "values has dtype float16"),
        (decode_joint, (VALUES, ARCS.astype(int), [3, 2]), "arcs has dtype int64"),
        (decode_joint, (VALUES, ARCS.reshape(9, 2), [3, 2]), r"float64 and shape \(9, 2\)"),
        (decode_joint, (VALUES, ARCS[:17], [3, 2]), "arcs has 17 entries; the batch needs 18"),
        (decode_joint, (VALUES, ARCS, [3, 3]), "values has 9 entries; the batch needs 12"),
        (decode_joint, (VALUES, ARCS, [3, 0]), r"lengths\[1\] is 0; .* has at least 1 word"),
        (decode_joint, (large, ARCS, [3, 2]), r"values\[7\] \(sentence 1, span \[0, 2\)\) is"),
        (decode_joint, (VALUES, changed(ARCS, 3, -1e301), [3, 2]), r"arcs\[3\] .*to 1e\+300 can"),
        (decode_arcs, (ARCS[:14].astype(np.float16),), "dtype float16 .*of float64 or float32"),
        (decode_arcs, (changed(ARCS[:14], 9, 1.1e300),), r"arcs\[9\] .* is 1.1e\+300; scores from"),
        (span_marginals, ([0.0, 1.0], [2]), "values has 2 entries; the batch needs 3"),
    ]
    for function, arguments, message in cases:
        with pytest.raises(ValueError, match=message):
            function(*arguments)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_the_place_of_a_score_that_is_not_finite_is_named(value: float) -> None:
    spoilt = r"is -?(nan|inf)"
    cases: list[tuple[Callable[..., Any], Any, str]] = [
        *(
            (
                batches.decode,
                (changed(LABELS, (8, 1), abs(value)), [3, 2], gold),
                r"values\[8\] .*\[1, 2\)\)",
            )
            for gold in (None, [*[0] * 8, 2], [*[0] * 8, 1])
        ),
        (decode_joint, (changed(VALUES, 4, value), ARCS, [3, 2]), r"values\[4\] .*\[1, 3\)\)"),
        (span_marginals, ([0.0, value, 1.0], [2]), r"values\[1\] \(sentence 0, span \[0, 2\)\)"),
    ]
    for place, words in [
        (0, "sentence 0, dependent 1, head 0"),
        (10, "sentence 0, dependent 3, head 2"),
        (14, "sentence 1, dependent 1, head 2"),
        (16, "sentence 1, dependent 2, head 1"),
    ]:
        arcs = changed(changed(ARCS, 1, value), place, value)  # entry 1 is a word's own head
        cases.append((decode_joint, (VALUES, arcs, [3, 2]), rf"arcs\[{place}\] \({words}\)"))
    for function, arguments, message in cases:
        with pytest.raises(NotFiniteError, match=f"{message} {spoilt}"):
            function(*arguments)
