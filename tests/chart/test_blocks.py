"""Scores that come block by block give the trees of all scores at once, bit for bit."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spmrl_bench import chart
from spmrl_bench.chart import BlockDecoder, reference
from tests.chart.charts import Batch, decode_on, random_batch
from tests.twins import assert_same_bits, kernels_of, running_on

augmented = pytest.mark.parametrize("gold", [False, True], ids=["plain", "augmented"])


@pytest.fixture(params=kernels_of("labels"))
def kernel(request: Any) -> Iterator[str]:
    with running_on(request.param, "labels"):
        yield request.param


def decode_blocks(batch: Batch, sizes: list[int], threads: int | None = None) -> chart.Decoded:
    """Blocks of these sizes, over and over again."""
    decoder, at, turn = BlockDecoder(batch.lengths, batch.gold), 0, 0
    while at < len(batch.scores):
        size = sizes[turn % len(sizes)]
        decoder.add(batch.scores[at : at + size])
        at, turn = at + size, turn + 1
    return decoder.decode(threads=threads)


@augmented
@pytest.mark.parametrize("ties", [False, True], ids=["floats", "integers"])
@pytest.mark.parametrize("columns", [1, 7, 16, 17, 110])
@pytest.mark.parametrize("sizes", [[1], [7, 0, 100], [10_000]], ids=str)
def test_blocks_give_the_trees_of_the_whole(
    kernel: str, gold: bool, ties: bool, columns: int, sizes: list[int]
) -> None:
    rng = np.random.default_rng(columns)
    batch = random_batch(rng, [1, 2, 9, 10, 17, 2, 1], columns, gold=gold, ties=ties)
    assert_same_bits(decode_blocks(batch, sizes), decode_on("python", batch))


@given(
    lengths=st.lists(st.integers(1, 6), max_size=5),
    columns=st.integers(1, 20),
    sizes=st.lists(st.integers(1, 30), min_size=1, max_size=4),
    gold=st.booleans(),
    seed=st.integers(0, 2**32 - 1),
)
def test_any_blocks_give_the_trees_of_the_whole(
    lengths: list[int], columns: int, sizes: list[int], gold: bool, seed: int
) -> None:
    batch = random_batch(np.random.default_rng(seed), lengths, columns, gold=gold, ties=True)
    assert_same_bits(decode_blocks(batch, sizes), chart.decode(*batch))


@augmented
def test_maxima_may_be_found_elsewhere(kernel: str, gold: bool) -> None:
    batch = random_batch(np.random.default_rng(6), [4, 1, 8], 5, gold=gold, ties=True)
    values, labels = np.empty(len(batch.scores)), np.empty(len(batch.scores), dtype=np.int32)
    reference.label_maxima(batch.scores, batch.gold, values, labels, 1)
    decoder = BlockDecoder(batch.lengths, batch.gold)
    decoder.add_maxima(values[:9], labels[:9])
    decoder.add_maxima(values[9:], labels[9:].astype(np.int64))
    assert_same_bits(decoder.decode(), chart.decode(*batch))


def test_nothing_decodes_to_nothing(kernel: str) -> None:
    assert BlockDecoder([]).decode().cells.size == 0


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_the_place_of_a_score_that_is_not_finite_is_named(kernel: str, value: float) -> None:
    decoder = BlockDecoder([1, 3])
    decoder.add(np.zeros((2, 20), dtype=np.float32))
    block = np.zeros((3, 20), dtype=np.float32)
    block[1, 17] = value
    message = r"scores\[3, 17\] \(sentence 1, span \[0, 3\), label 18\) is -?(nan|inf)"
    with pytest.raises(chart.NotFiniteError, match=message):
        decoder.add(block)


def test_maxima_that_are_not_finite_are_refused() -> None:
    with pytest.raises(chart.NotFiniteError, match=r"sentence 0, span \[0, 2\)"):
        BlockDecoder([2]).add_maxima(np.array([0, np.nan, 0]), [1, 1, 1])


def test_too_many_and_too_few_cells_are_refused() -> None:
    decoder = BlockDecoder([2])
    decoder.add(np.zeros((2, 1), dtype=np.float32))
    with pytest.raises(ValueError, match="scores of 2 cells were added; the batch has 3"):
        decoder.decode()
    with pytest.raises(ValueError, match="scores of 2 and now 2 cells"):
        decoder.add(np.zeros((2, 1), dtype=np.float32))


def test_bad_arrays_are_refused() -> None:
    with pytest.raises(ValueError, match="a sentence has at least 1 word"):
        BlockDecoder([2, 0])
    with pytest.raises(ValueError, match="gold has 2 entries; scores has 3 cells"):
        BlockDecoder([2], [0, 0])
    with pytest.raises(ValueError, match="dtype float64; it must be float32"):
        BlockDecoder([1]).add(np.zeros((1, 1)))
    decoder = BlockDecoder([2], [0, 0, 2])
    decoder.add(np.zeros((2, 1), dtype=np.float32))
    with pytest.raises(ValueError, match=r"gold\[2\] is 2; labels are 0..1"):
        decoder.add(np.zeros((1, 1), dtype=np.float32))
