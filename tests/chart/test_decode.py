"""Decoding: trees have their scores at any length, and bad input is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from spmrl_bench.errors import NotFiniteError
from tests.chart.batches import decode, random_batch, spans_of

augmented = pytest.mark.parametrize("gold", [False, True], ids=["plain", "augmented"])


def test_nodes_form_a_tree_that_has_the_score() -> None:
    for gold in [False, True]:
        for n in [1, 2, 300]:
            batch = random_batch(np.random.default_rng(n), [n], 3, gold=gold, ties=False)
            decoded = decode(*batch)
            spans = spans_of(decoded.cells, n)
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


GOOD = np.zeros((9, 2), dtype=np.float32)


def test_bad_input_is_refused() -> None:
    decode(GOOD, [3, 2], [0] * 9)
    cases: list[tuple[Any, Any, Any, str]] = [
        (GOOD.astype(np.float64), [3, 2], None, "dtype float64 .*must be float32"),
        (GOOD[0], [3, 2], None, r"shape \(2,\); it must be float32 \[cells, labels - 1\]"),
        (GOOD[:, :0], [3, 2], None, "at least one column"),
        (GOOD, [3, -2], None, r"lengths\[1\] is -2"),
        (GOOD, [3.0, 2.0], None, "lengths has dtype float64 .*integers"),
        (GOOD, [[3, 2]], None, r"lengths has .*shape \(1, 2\)"),
        (GOOD, 3, None, r"lengths has .*shape \(\)"),
        (GOOD, [2**40], None, "must fit 32-bit integers"),
        (GOOD, [3, 2], [0] * 8, "gold has 8 entries; the batch needs 9"),
        (GOOD, [3, 2], [0] * 8 + [3], r"gold\[8\] is 3; labels are 0..2"),
        (GOOD, [3, 2], [0.0] * 9, "gold has dtype float64 .*integers"),
        (GOOD, [3, 2], [0] * 8 + [-1], r"gold\[8\] is -1"),
    ]
    for scores, lengths, gold, message in cases:
        with pytest.raises(ValueError, match=message):
            decode(scores, lengths, gold)


def test_the_place_of_a_score_that_is_not_finite_is_named() -> None:
    for value in [np.nan, np.inf]:
        for gold in [None, [0, 0, 0, 0, 0, 0, 0, 0, 2], [0] * 8 + [1]]:
            scores = GOOD.copy()
            scores[8, 1] = value
            with pytest.raises(
                NotFiniteError, match=r"values\[8\] \(sentence 1, span \[1, 2\)\) is (nan|inf)"
            ):
                decode(scores, [3, 2], gold)
