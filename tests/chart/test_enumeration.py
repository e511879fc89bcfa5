"""Decoding against the enumeration of all trees, ties included."""

from __future__ import annotations

import numpy as np
import pytest

from spmrl_bench.chart.arrays import cell_offsets, node_offsets
from tests.chart import enumeration
from tests.chart.batches import Batch, decode_on, part, random_batch, spans_of
from tests.reliability.tally import Tally
from tests.twins import assert_same_bits, kernels_of, needs

every_kernel = pytest.mark.parametrize("kernel", kernels_of("labels"))
CHARTS = "charts of labels against all binary trees"


def check_against_enumeration(batch: Batch, kernel: str) -> None:
    """Every tree of the batch is the one that enumeration prefers."""
    decoded, lengths = decode_on(kernel, batch), batch.lengths
    for b, n in enumerate(lengths.tolist()):
        scores, _, gold = batch.sentence(b)
        table = enumeration.label_table(scores, gold, n)
        cells = part(decoded.cells, node_offsets, lengths, b) - cell_offsets(lengths)[b]
        labels = part(decoded.labels, node_offsets, lengths, b).tolist()
        found = decoded.scores[b], spans_of(cells, n), labels
        assert found == enumeration.best_tree(table, n)
        if n <= 4 and table.shape[1] <= 3:
            assert found == enumeration.best_labelled_tree(table, n)


@every_kernel
@pytest.mark.parametrize("gold", [False, True], ids=["plain", "augmented"])
@pytest.mark.parametrize("columns", [1, 2, 3, 9, 20])
def test_decoding_is_the_best_of_all_trees(
    kernel: str, gold: bool, columns: int, tally: Tally
) -> None:
    rng, lengths = np.random.default_rng(columns), [1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 6]
    tally("R4", CHARTS).add(len(lengths))
    check_against_enumeration(random_batch(rng, lengths, columns, gold=gold, ties=True), kernel)


def test_enumeration_knows_every_tree() -> None:
    """The number of binary trees over n words is the Catalan number of n - 1."""
    assert [len(enumeration.trees(0, n)) for n in range(1, 8)] == [1, 1, 2, 5, 14, 42, 132]


@pytest.mark.campaign
@needs("labels")
def test_ten_thousand_charts(tally: Tally) -> None:
    """10,000 random charts with n <= 8: Cython, plain Python and enumeration agree."""
    best, alike = tally("R4", CHARTS), tally("R9", "charts decoded by the kernel and its twin")
    rng = np.random.default_rng(2018)
    for _ in range(400):
        lengths = rng.integers(1, 9, 25).tolist()
        best.add(25)
        alike.add(25)
        columns = int(rng.choice([1, 2, 3, 9, 20]))
        batch = random_batch(rng, lengths, columns, gold=bool(rng.integers(2)), ties=True)
        assert_same_bits(decode_on("cython", batch), decode_on("python", batch))
        check_against_enumeration(batch, "cython")
