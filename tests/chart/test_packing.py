"""Packed cells: the formulas against a plain listing of spans."""

from __future__ import annotations

import numpy as np

from spmrl_bench.chart import arrays

LENGTHS = [3, 1, 7, 2, 1, 40]
LISTED = [(b, i, j) for b, n in enumerate(LENGTHS) for i in range(n) for j in range(i + 1, n + 1)]


def test_cell_spans_lists_sentences_row_by_row() -> None:
    sentence, left, right = arrays.cell_spans(LENGTHS)
    assert list(zip(sentence.tolist(), left.tolist(), right.tolist(), strict=True)) == LISTED


def test_cell_index_and_offsets_find_every_span() -> None:
    offsets = arrays.cell_offsets(LENGTHS).tolist()
    found = [offsets[b] + arrays.cell_index(i, j, LENGTHS[b]) for b, i, j in LISTED]
    assert found == list(range(len(LISTED)))
    assert offsets[-1] == len(LISTED)


def test_cell_index_takes_arrays() -> None:
    sentence, left, right = arrays.cell_spans(LENGTHS)
    words = np.array(LENGTHS)[sentence]
    index = arrays.cell_offsets(LENGTHS)[sentence] + arrays.cell_index(left, right, words)
    assert np.array_equal(index, np.arange(len(LISTED)))


def test_counts() -> None:
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
