"""Decoding: both kernels return the same bits, on any batch, and bad input is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from spmrl_bench import chart
from spmrl_bench.chart import packing
from tests.chart.charts import random_batch
from tests.twins import assert_same_bits

augmented = pytest.mark.parametrize("gold", [False, True], ids=["plain", "augmented"])


@augmented
@pytest.mark.parametrize("n", [1, 2, 300])
def test_nodes_form_a_tree_that_has_the_score(gold: bool, n: int) -> None:
    batch = random_batch(np.random.default_rng(n), [n], 3, gold=gold, ties=False)
    decoded = chart.decode(*batch)
    _, left, right = packing.cell_spans([n])
    spans = list(zip(left[decoded.cells].tolist(), right[decoded.cells].tolist(), strict=True))
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


def test_one_word_takes_the_best_label_but_never_the_empty_one() -> None:
    scores = np.array([[-3.0, -2.0, -2.0]], dtype=np.float32)
    decoded = chart.decode(scores, [1])
    assert decoded.labels.tolist() == [2]
    assert decoded.scores.tolist() == [-2.0]


def test_ties_prefer_the_empty_label_and_the_leftmost_split() -> None:
    scores = np.zeros((packing.cell_count(4), 2), dtype=np.float32)
    decoded = chart.decode(scores, [4])
    assert decoded.labels.tolist() == [1, 0, 0, 0, 0, 0, 0]
    _, left, right = packing.cell_spans([4])
    assert left[decoded.cells].tolist() == [0, 0, 1, 1, 2, 2, 3]
    assert right[decoded.cells].tolist() == [4, 1, 4, 2, 4, 3, 4]


def test_augmentation_counts_the_nodes_that_differ_from_gold() -> None:
    """With scores of zero the best tree avoids gold labels wherever it can."""
    gold = np.array([0, 0, 1, 0, 2, 0])
    decoded = chart.decode(np.zeros((6, 2), dtype=np.float32), [3], gold)
    assert decoded.scores.tolist() == [5.0]
    assert (decoded.labels != gold[decoded.cells]).all()


def test_layout_and_integer_types_do_not_matter_and_input_stays() -> None:
    batch = random_batch(np.random.default_rng(1), [3, 6], 4, gold=True, ties=True)
    expected = chart.decode(*batch)
    before = batch.scores.copy()
    found = chart.decode(
        np.asfortranarray(batch.scores), batch.lengths.tolist(), batch.gold.astype(np.uint8)
    )
    assert_same_bits(found, expected)
    batch.scores.setflags(write=False)
    batch.gold.setflags(write=False)
    assert_same_bits(chart.decode(*batch), expected)
    assert np.array_equal(batch.scores, before)


GOOD = np.zeros((9, 2), dtype=np.float32)
BAD_INPUT = [
    (GOOD.astype(np.float64), [3, 2], None, "dtype float64; it must be float32"),
    (GOOD[0], [3, 2], None, r"shape \(2,\); it must be \[cells, labels - 1\]"),
    (GOOD[:, :0], [3, 2], None, "at least one column"),
    (GOOD[:8], [3, 2], None, "scores of 8 cells were added; the batch has 9"),
    (GOOD, [3, 3], None, "scores of 9 cells were added; the batch has 12"),
    (GOOD, [3, 2, 0], None, r"lengths\[2\] is 0; a sentence has at least 1 word"),
    (GOOD, [3, -2], None, r"lengths\[1\] is -2"),
    (GOOD, [3.0, 2.0], None, "lengths has dtype float64; it must hold integers"),
    (GOOD, [[3, 2]], None, r"lengths has shape \(1, 2\); it must have one dimension"),
    (GOOD, 3, None, r"lengths has shape \(\)"),
    (GOOD, [2**40], None, "must fit 32-bit integers"),
    (GOOD, [3, 2], [0] * 8, "gold has 8 entries; scores has 9 cells"),
    (GOOD, [3, 2], [0] * 8 + [3], r"gold\[8\] is 3; labels are 0..2"),
    (GOOD, [3, 2], [0.0] * 9, "gold has dtype float64; it must hold integers"),
]


@pytest.mark.parametrize(("scores", "lengths", "gold", "message"), BAD_INPUT)
def test_bad_input_is_refused(scores: Any, lengths: Any, gold: Any, message: str) -> None:
    chart.decode(GOOD, [3, 2], [0] * 9)
    with pytest.raises(ValueError, match=message):
        chart.decode(scores, lengths, gold)
