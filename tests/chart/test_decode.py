"""Decoding: both kernels return the same bits, on any batch, and bad input is refused."""

from __future__ import annotations

import importlib.util
import sys
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from spmrl_bench import chart
from spmrl_bench.chart import kernels, packing
from tests.chart.charts import Batch, assert_same, decode_on, one_sentence, random_batch

compiled = importlib.util.find_spec("spmrl_bench.chart._cky") is not None
needs_compiled = pytest.mark.skipif(not compiled, reason="kernel not built")
augmented = pytest.mark.parametrize("gold", [False, True], ids=["plain", "augmented"])


@needs_compiled
@augmented
@pytest.mark.parametrize("ties", [False, True], ids=["floats", "integers"])
@pytest.mark.parametrize("columns", [1, 7, 8, 9, 110])
def test_kernels_agree_bit_for_bit(gold: bool, ties: bool, columns: int) -> None:
    rng = np.random.default_rng(columns)
    batch = random_batch(rng, [1, 2, 9, 10, 11, 18, 33, 2, 1], columns, gold=gold, ties=ties)
    assert_same(decode_on("cython", batch), decode_on("python", batch))


@needs_compiled
@augmented
def test_kernels_agree_where_rounding_makes_ties(gold: bool) -> None:
    """Adding 1 makes tiny scores equal, huge ones swallow it, and zeros come with two signs."""
    rng = np.random.default_rng(5)
    values = np.array([-1e-30, 0.0, -0.0, 1e-30, 1e-9, 1 - 2**-24, 1.0, 1e17], dtype=np.float32)
    for choice in (values[1:3], values[:4], values[:-1], values):
        batch = random_batch(rng, [1, 1, 1, 3, 5, 12], 10, gold=gold, ties=False)
        batch = batch._replace(scores=rng.choice(choice, batch.scores.shape))
        assert_same(decode_on("cython", batch), decode_on("python", batch))


@needs_compiled
def test_kernels_return_no_negative_zero() -> None:
    batch = Batch(
        np.array([[-0.0]], dtype=np.float32),
        np.array([1], dtype=np.int32),
        np.array([1], dtype=np.int32),
    )
    for kernel in ("cython", "python"):
        assert not np.signbit(decode_on(kernel, batch).scores[0])


@augmented
def test_a_batch_decodes_like_its_sentences(gold: bool) -> None:
    batch = random_batch(np.random.default_rng(3), [4, 1, 17, 2, 9], 6, gold=gold, ties=True)
    whole = chart.decode(*batch)
    first_cells = packing.cell_offsets(batch.lengths)
    for b in range(len(batch.lengths)):
        alone = chart.decode(*one_sentence(batch, b))
        nodes = slice(whole.offsets[b], whole.offsets[b + 1])
        assert np.array_equal(whole.cells[nodes] - first_cells[b], alone.cells)
        assert np.array_equal(whole.labels[nodes], alone.labels)
        assert whole.scores[b] == alone.scores[0]


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


@needs_compiled
def test_kernels_agree_on_a_sentence_of_300_words() -> None:
    batch = random_batch(np.random.default_rng(300), [300], 5, gold=True, ties=True)
    assert_same(decode_on("cython", batch), decode_on("python", batch))


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


def test_an_empty_batch_has_an_empty_result() -> None:
    decoded = chart.decode(np.zeros((0, 3), dtype=np.float32), [], [])
    assert decoded.offsets.tolist() == [0]
    assert len(decoded.cells) == len(decoded.labels) == len(decoded.scores) == 0


def test_layout_and_integer_types_do_not_matter_and_input_stays() -> None:
    batch = random_batch(np.random.default_rng(1), [3, 6], 4, gold=True, ties=True)
    expected = chart.decode(*batch)
    before = batch.scores.copy()
    assert batch.gold is not None
    found = chart.decode(
        np.asfortranarray(batch.scores), batch.lengths.tolist(), batch.gold.astype(np.uint8)
    )
    assert_same(found, expected)
    batch.scores.setflags(write=False)
    batch.gold.setflags(write=False)
    assert_same(chart.decode(*batch), expected)
    assert np.array_equal(batch.scores, before)


def with_value(value: float) -> Any:
    scores = np.zeros((9, 2), dtype=np.float32)
    scores[7, 1] = value
    return scores


GOOD = np.zeros((9, 2), dtype=np.float32)
BAD_INPUT = [
    (GOOD.astype(np.float64), [3, 2], None, "dtype float64; it must be float32"),
    (GOOD.astype(np.int32), [3, 2], None, "dtype int32; it must be float32"),
    (GOOD[0], [3, 2], None, r"shape \(2,\); it must be \[cells, labels - 1\]"),
    (GOOD[:, :0], [3, 2], None, "at least one column"),
    (GOOD[:8], [3, 2], None, "scores of 8 cells were added; the batch has 9"),
    (GOOD, [3, 3], None, "scores of 9 cells were added; the batch has 12"),
    (with_value(np.nan), [3, 2], None, r"scores\[7, 1\] \(sentence 1, span \[0, 2\), label 2\)"),
    (with_value(np.inf), [3, 2], None, "is inf; every score must be finite"),
    (with_value(-np.inf), [3, 2], None, "is -inf; every score must be finite"),
    (GOOD, [3, 2, 0], None, r"lengths\[2\] is 0; a sentence has at least 1 word"),
    (GOOD, [3, -2], None, r"lengths\[1\] is -2"),
    (GOOD, [3.0, 2.0], None, "lengths has dtype float64; it must hold integers"),
    (GOOD, [[3, 2]], None, r"lengths has shape \(1, 2\); it must have one dimension"),
    (GOOD, 3, None, r"lengths has shape \(\)"),
    (GOOD, [2**40], None, "must fit 32-bit integers"),
    (GOOD, [3, 2], [0] * 8, "gold has 8 entries; scores has 9 cells"),
    (GOOD, [3, 2], [0] * 8 + [3], r"gold\[8\] is 3; labels are 0..2"),
    (GOOD, [3, 2], [-1] + [0] * 8, r"gold\[0\] is -1; labels are 0..2"),
    (GOOD, [3, 2], [0.0] * 9, "gold has dtype float64; it must hold integers"),
    (GOOD, [3, 2], [[0] * 9], r"gold has shape \(1, 9\)"),
]


@pytest.mark.parametrize(("scores", "lengths", "gold", "message"), BAD_INPUT)
def test_bad_input_is_refused(scores: Any, lengths: Any, gold: Any, message: str) -> None:
    chart.decode(GOOD, [3, 2], [0] * 9)
    with pytest.raises(ValueError, match=message):
        chart.decode(scores, lengths, gold)


@pytest.fixture
def without_kernel(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """As if the extension had not been built."""
    monkeypatch.delattr(chart, "_cky", raising=False)
    monkeypatch.setitem(sys.modules, "spmrl_bench.chart._cky", None)
    kernels.load_kernel.cache_clear()
    yield
    kernels.load_kernel.cache_clear()


@pytest.mark.usefixtures("without_kernel")
def test_fallback_warns_once_and_returns_the_same() -> None:
    batch: Batch = random_batch(np.random.default_rng(8), [5, 3], 4, gold=True, ties=True)
    with pytest.warns(RuntimeWarning, match=r"plain-Python kernels.*_cky.*C compiler"):
        found = chart.decode(*batch)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert_same(chart.decode(*batch), found)
        assert chart.kernel_name() == "python"
    assert_same(found, decode_on("python", batch))


@needs_compiled
def test_the_compiled_kernel_is_used_where_it_exists() -> None:
    assert chart.kernel_name() == "cython"
