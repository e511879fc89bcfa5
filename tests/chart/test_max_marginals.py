"""The best trees with each span and without it, against all trees written down."""

from __future__ import annotations

import numpy as np
import pytest

from spmrl_bench.chart.arrays import cell_offsets
from spmrl_bench.chart.max_marginals import max_marginals
from spmrl_bench.errors import ArrayError, NotFiniteError
from tests.chart.enumeration import spans, trees


@pytest.mark.parametrize("ties", [False, True])
def test_every_span_of_a_batch_against_all_trees(ties: bool) -> None:
    random = np.random.default_rng(3)
    lengths = [4, 1, 7, 2, 5, 3, 6, 5]
    offsets = cell_offsets(lengths)
    values = random.integers(-2, 3, offsets[-1]) if ties else random.standard_normal(offsets[-1])
    found = max_marginals(values.astype(float), lengths)
    for b, n in enumerate(lengths):
        own = dict(zip(spans(n), values[offsets[b] : offsets[b + 1]].tolist(), strict=True))
        scored = [(tree, sum(own[span] for span in tree)) for tree in trees(0, n)]
        assert found.best[b] == pytest.approx(max(score for _, score in scored), abs=1e-12)
        for cell, span in enumerate(spans(n), start=int(offsets[b])):
            with_span = max(score for tree, score in scored if span in tree)
            assert found.with_span[cell] == pytest.approx(with_span, abs=1e-12)
            without = max((score for tree, score in scored if span not in tree), default=-np.inf)
            assert found.without(b, *span) == pytest.approx(without, abs=1e-12)


def test_an_empty_batch_gives_nothing() -> None:
    found = max_marginals(np.empty(0), [])
    assert len(found.best) == len(found.with_span) == 0


def test_what_is_no_chart_is_refused() -> None:
    with pytest.raises(ArrayError, match="values has 2 entries; the batch needs 3"):
        max_marginals([0.0, 1.0], [2])
    with pytest.raises(NotFiniteError, match=r"values\[1\] \(sentence 0, span \[0, 2\)\) is nan"):
        max_marginals([0.0, np.nan, 1.0], [2])
