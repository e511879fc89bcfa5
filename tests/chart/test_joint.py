"""Joint decoding: all kernels return the same bits, on any batch, and bad input is refused."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spmrl_bench import chart
from spmrl_bench.chart import kernels, packing
from tests.chart.joint_charts import (
    KERNELS,
    JointBatch,
    assert_same,
    decode_on,
    needs_compiled,
    one_sentence,
    random_batch,
    score_of,
    sentence_of,
)

kinds = pytest.mark.parametrize("ties", [False, True], ids=["floats", "integers"])
vectors = pytest.mark.parametrize("kernel", ["two lanes", "widest"])


@needs_compiled
@vectors
@kinds
def test_kernels_agree_bit_for_bit(kernel: str, ties: bool) -> None:
    """Blocks, panels and vectors end at 2, 4, 8 and 16 words; all lengths around them are there."""
    batch = random_batch(np.random.default_rng(1), [*range(1, 37), 47, 48, 49, 50], ties=ties)
    assert_same(decode_on(kernel, batch), decode_on("python", batch))


@needs_compiled
@vectors
def test_kernels_agree_where_rounding_makes_ties(kernel: str) -> None:
    """Huge scores swallow small ones, and zeros come with two signs."""
    rng = np.random.default_rng(5)
    numbers = np.array([-1e-30, 0.0, -0.0, 1e-30, 1e-9, -1.0, 1.0, 1e17, -1e300, 1e300])
    for choice in (numbers[1:3], numbers[:4], numbers[:-2], numbers):
        batch = random_batch(rng, [1, 1, 1, 3, 5, 12, 20], ties=False)
        batch = JointBatch(
            rng.choice(choice, batch.values.shape),
            rng.choice(choice, batch.arcs.shape),
            batch.lengths,
        )
        assert_same(decode_on(kernel, batch), decode_on("python", batch))


@pytest.mark.parametrize("kernel", KERNELS)
def test_kernels_return_no_negative_zero(kernel: str) -> None:
    batch = JointBatch(np.array([-0.0]), np.array([-0.0, 0.0]), np.array([1], dtype=np.int32))
    assert not np.signbit(decode_on(kernel, batch).scores[0])


@needs_compiled
@kinds
def test_any_number_of_threads_gives_the_same(ties: bool) -> None:
    lengths = [2, 40, 1, 1, 17, 3, 33, 8, 1, 25]
    batch = random_batch(np.random.default_rng(4), lengths, ties=ties)
    expected = decode_on("python", batch)
    for team in (None, 1, 2, 3, 7, 100):
        assert_same(decode_on("widest", batch, team), expected)
    assert_same(decode_on("python", batch, 2), expected)


@needs_compiled
def test_many_teams_at_once_do_not_disturb_each_other() -> None:
    rng = np.random.default_rng(9)
    batches = [random_batch(rng, [5, 31, 12, 1], ties=True) for _ in range(6)]
    with ThreadPoolExecutor(3) as pool:
        found = list(pool.map(lambda batch: chart.decode_joint(*batch, threads=2), batches * 5))
    for batch, decoded in zip(batches * 5, found, strict=True):
        assert_same(decoded, chart.decode_joint(*batch, threads=1))


@kinds
def test_a_batch_decodes_like_its_sentences(ties: bool) -> None:
    batch = random_batch(np.random.default_rng(3), [4, 1, 17, 2, 9, 30], ties=ties)
    whole = chart.decode_joint(*batch)
    for b in range(len(batch.lengths)):
        assert_same(sentence_of(whole, batch, b), chart.decode_joint(*one_sentence(batch, b)))


@given(lengths=st.lists(st.integers(1, 9), max_size=4), seed=st.integers(0, 2**32 - 1))
def test_any_batch_decodes_like_its_sentences(lengths: list[int], seed: int) -> None:
    batch = random_batch(np.random.default_rng(seed), lengths, ties=True)
    whole = chart.decode_joint(*batch)
    for b in range(len(lengths)):
        assert_same(sentence_of(whole, batch, b), decode_on("python", one_sentence(batch, b)))


@pytest.mark.parametrize("n", [1, 2, 3, 20, 100])
def test_structures_are_legal_and_have_their_scores(n: int) -> None:
    batch = random_batch(np.random.default_rng(n), [n], ties=False)
    decoded = chart.decode_joint(*batch)
    assert decoded.scores[0] == pytest.approx(score_of(decoded, batch), rel=1e-12)


@pytest.mark.parametrize("kernel", KERNELS)
def test_one_word_must_carry_a_label(kernel: str) -> None:
    decoded = decode_on(kernel, JointBatch(np.array([-3.0]), np.array([1.5, 9.0]), np.array([1])))
    assert decoded.labelled.tolist() == [True]
    assert decoded.heads.tolist() == [0]
    assert decoded.node_heads.tolist() == [1]
    assert decoded.scores.tolist() == [-1.5]


@pytest.mark.parametrize("kernel", KERNELS)
def test_ties_prefer_low_roots_left_splits_and_the_empty_label(kernel: str) -> None:
    batch = JointBatch(np.zeros(packing.cell_count(4)), np.zeros(20), np.array([4]))
    decoded = decode_on(kernel, batch)
    _, left, right = packing.cell_spans([4])
    assert left[decoded.cells].tolist() == [0, 0, 1, 1, 2, 2, 3]
    assert right[decoded.cells].tolist() == [4, 1, 4, 2, 4, 3, 4]
    assert decoded.heads.tolist() == [0, 1, 2, 3]
    assert decoded.node_heads.tolist() == [1, 1, 2, 2, 3, 3, 4]
    assert decoded.labelled.tolist() == [True, False, True, False, True, False, False]


@pytest.mark.parametrize("kernel", KERNELS)
def test_a_dependent_part_pays_for_its_label(kernel: str) -> None:
    """[0, 2) would be a dependent of word 3, but its label costs more than another tree."""
    values, arcs = np.zeros(6), np.full((3, 4), -10.0)
    arcs[2, 0] = arcs[0, 2] = arcs[1, 3] = 0  # word 1 depends on 2, which depends on 3, the root
    for cost, total in [(-4.0, -4.0), (-30.0, -10.0)]:
        values[1] = cost
        decoded = decode_on(kernel, JointBatch(values, arcs.ravel(), np.array([3])))
        assert decoded.scores.tolist() == [total]
        assert (1 in decoded.cells[decoded.labelled]) == (cost == -4.0)


@needs_compiled
def test_a_sentence_of_150_words() -> None:
    batch = random_batch(np.random.default_rng(150), [150], ties=True)
    found = decode_on("widest", batch)
    assert_same(found, decode_on("two lanes", batch))
    assert found.scores[0] == score_of(found, batch)


def test_an_empty_batch_has_an_empty_result() -> None:
    decoded = chart.decode_joint(np.zeros(0), np.zeros(0), [])
    assert decoded.offsets.tolist() == decoded.word_offsets.tolist() == [0]
    for array in (decoded.cells, decoded.labelled, decoded.node_heads, decoded.heads):
        assert len(array) == 0


def test_layout_does_not_matter_and_input_stays() -> None:
    batch = random_batch(np.random.default_rng(1), [3, 6], ties=True)
    expected = chart.decode_joint(*batch)
    strided = JointBatch(np.repeat(batch.values, 2)[::2], np.repeat(batch.arcs, 3)[::3], [3, 6])
    assert_same(chart.decode_joint(*strided), expected)
    before = [array.copy() for array in batch]
    for array in batch:
        array.setflags(write=False)
    assert_same(chart.decode_joint(*batch), expected)
    assert all(map(np.array_equal, batch, before))


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 1e308])
def test_what_a_word_scores_as_its_own_governor_is_not_looked_at(kernel: str, value: float) -> None:
    batch = random_batch(np.random.default_rng(2), [3, 20], ties=True)
    expected = decode_on("python", batch)
    for b, n in enumerate([3, 20]):
        table = one_sentence(batch, b).arcs.reshape(n, n + 1)
        table[np.arange(n), np.arange(1, n + 1)] = value
    assert_same(decode_on(kernel, batch), expected)


VALUES, ARCS = np.zeros(9), np.zeros(18)


def changed(array: Any, place: int, value: float) -> Any:
    copy = array.copy()
    copy[place] = value
    return copy


BAD_INPUT = [
    (VALUES.astype(np.float16), ARCS, [3, 2], "values has dtype float16; it must be float64"),
    (VALUES, ARCS.astype(np.int64), [3, 2], "arcs has dtype int64; it must be float64"),
    (VALUES[:, None], ARCS, [3, 2], r"values has shape \(9, 1\); it must have one dimension"),
    (VALUES, ARCS.reshape(9, 2), [3, 2], r"arcs has shape \(9, 2\)"),
    (VALUES[:8], ARCS, [3, 2], "values has 8 entries; the batch has 9 cells"),
    (VALUES, ARCS[:17], [3, 2], r"arcs has 17 entries; the batch has 18 arcs \(n rows of n \+ 1\)"),
    (VALUES, ARCS, [3, 3], "values has 9 entries; the batch has 12 cells"),
    (VALUES, ARCS, [3, 0], r"lengths\[1\] is 0; a sentence has at least 1 word"),
    (VALUES, ARCS, [3.0, 2.0], "lengths has dtype float64; it must hold integers"),
    (
        changed(VALUES, 7, 1e301),
        ARCS,
        [3, 2],
        r"values\[7\] \(sentence 1, span \[0, 2\)\) is 1e\+301",
    ),
    (
        VALUES,
        changed(ARCS, 3, -1e301),
        [3, 2],
        r"arcs\[3\] .*from -1e\+300 to 1e\+300 can be added",
    ),
]


@pytest.mark.parametrize(("values", "arcs", "lengths", "message"), BAD_INPUT)
def test_bad_input_is_refused(values: Any, arcs: Any, lengths: Any, message: str) -> None:
    chart.decode_joint(VALUES, ARCS, [3, 2])
    with pytest.raises(ValueError, match=message):
        chart.decode_joint(values, arcs, lengths)


@pytest.mark.parametrize("threads", [0, -1])
def test_no_threads_are_refused(threads: int) -> None:
    with pytest.raises(ValueError, match="at least 1"):
        chart.decode_joint(VALUES, ARCS, [3, 2], threads=threads)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_the_place_of_a_score_that_is_not_finite_is_named(value: float) -> None:
    message = (
        r"values\[4\] \(sentence 0, span \[1, 3\)\) is -?(nan|inf); every score must be finite"
    )
    with pytest.raises(chart.NotFiniteError, match=message):
        chart.decode_joint(changed(VALUES, 4, value), ARCS, [3, 2])
    for place, words in [
        (0, "sentence 0, dependent 1, governor 0"),
        (10, "sentence 0, dependent 3, governor 2"),
        (14, "sentence 1, dependent 1, governor 2"),
        (16, "sentence 1, dependent 2, governor 1"),
    ]:
        arcs = changed(changed(ARCS, 1, value), place, value)  # entry 1 is a word's own governor
        with pytest.raises(chart.NotFiniteError, match=rf"arcs\[{place}\] \({words}\) is"):
            chart.decode_joint(VALUES, arcs, [3, 2])


@pytest.fixture
def without_kernel(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """As if the extension had not been built."""
    monkeypatch.delattr(chart, "_joint", raising=False)
    monkeypatch.setitem(sys.modules, "spmrl_bench.chart._joint", None)
    kernels.load_joint_kernel.cache_clear()
    yield
    kernels.load_joint_kernel.cache_clear()


@pytest.mark.usefixtures("without_kernel")
def test_fallback_warns_once_and_returns_the_same() -> None:
    batch = random_batch(np.random.default_rng(8), [5, 3], ties=True)
    with pytest.warns(
        RuntimeWarning, match=r"joint decoding.*plain-Python.*_joint.*C compiler"
    ) as warned:
        found = chart.decode_joint(*batch)
    assert [warning.filename for warning in warned] == [__file__]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert_same(chart.decode_joint(*batch), found)
        assert kernels.load_joint_kernel().name == "python"
    assert_same(found, decode_on("python", batch))


@needs_compiled
def test_the_compiled_kernel_is_used_where_it_exists() -> None:
    assert kernels.load_joint_kernel().name == "cython"
