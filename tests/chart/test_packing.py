"""Packed cells: the formulas against a plain listing of spans."""

from __future__ import annotations

import numpy as np

from spmrl_bench.chart import packing

LENGTHS = [3, 1, 7, 2, 1, 40]
LISTED = [(b, i, j) for b, n in enumerate(LENGTHS) for i in range(n) for j in range(i + 1, n + 1)]


def test_cell_spans_lists_sentences_row_by_row() -> None:
    sentence, left, right = packing.cell_spans(LENGTHS)
    assert list(zip(sentence.tolist(), left.tolist(), right.tolist(), strict=True)) == LISTED


def test_cell_index_and_offsets_find_every_span() -> None:
    offsets = packing.cell_offsets(LENGTHS).tolist()
    found = [offsets[b] + packing.cell_index(i, j, LENGTHS[b]) for b, i, j in LISTED]
    assert found == list(range(len(LISTED)))
    assert offsets[-1] == len(LISTED)


def test_cell_index_takes_arrays() -> None:
    sentence, left, right = packing.cell_spans(LENGTHS)
    words = np.array(LENGTHS)[sentence]
    index = packing.cell_offsets(LENGTHS)[sentence] + packing.cell_index(left, right, words)
    assert np.array_equal(index, np.arange(len(LISTED)))


def test_the_full_sentence_is_cell_n_minus_1() -> None:
    assert [packing.cell_index(0, n, n) for n in (1, 2, 9)] == [0, 1, 8]


def test_counts() -> None:
    assert [packing.cell_count(n) for n in (1, 2, 3, 10)] == [1, 3, 6, 55]
    assert packing.node_offsets([1, 2, 5]).tolist() == [0, 1, 4, 13]


def test_large_batches_do_not_overflow() -> None:
    lengths = np.full(3, 60_000, dtype=np.int32)
    assert packing.cell_offsets(lengths)[-1] == 3 * 60_000 * 60_001 // 2


def test_an_empty_batch_has_no_cells() -> None:
    assert packing.cell_offsets([]).tolist() == [0]
    assert [array.tolist() for array in packing.cell_spans([])] == [[], [], []]
