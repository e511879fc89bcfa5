"""Dependency decoding: trees are sound at any length, and bad input is refused."""

from __future__ import annotations

from typing import get_args

import numpy as np
import pytest

from spmrl_bench.chart.dependencies import decode_dependencies
from spmrl_bench.trees.dependencies import head_fault
from tests.chart.batches import Shape, packed_arcs, random_arcs, score_of_heads, trees_on
from tests.chart.dependency_oracles import crosses
from tests.twins import kernels_of

every_kernel = pytest.mark.parametrize("kernel", kernels_of("dependencies"))
shapes = pytest.mark.parametrize("shape", get_args(Shape))
kinds = pytest.mark.parametrize("projective", [False, True], ids=["any", "projective"])
MIXED = [1, 2, 9, 10, 17, 33, 2, 1, 5, 64]


@every_kernel
@kinds
@shapes
def test_heads_form_a_tree_of_one_root(kernel: str, shape: Shape, projective: bool) -> None:
    arcs = packed_arcs(np.random.default_rng(3), MIXED, shape)
    for _, heads in trees_on(kernel, arcs, MIXED, projective):
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
        table = random_arcs(rng, n, "floats")
        table[np.arange(n), heads] += 1000
        arcs.append(table.ravel())
        planted.append(heads.tolist())
    found = trees_on(kernel, np.concatenate(arcs), lengths, projective=False)
    assert [heads for _, heads in found] == planted


@kinds
def test_the_largest_scores_do_not_overflow(projective: bool) -> None:
    arcs = np.random.default_rng(9).choice([-1e300, 1e300], 30 * 31)
    heads = decode_dependencies(arcs, [30], projective=projective).tolist()
    assert score_of_heads(arcs.reshape(30, 31), heads) == pytest.approx(3e301)
    assert head_fault(heads, "one") is None


def test_bad_input_is_refused() -> None:
    """As far as the tests of the joint chart, which checks arcs in the same way, do not go."""
    large = np.zeros(14)
    large[9] = 1.1e300
    for arcs, message in (
        (np.zeros(14, np.float16), "dtype float16 .*of float64 or float32"),
        (large, r"arcs\[9\] .* is 1.1e\+300; scores from -1e\+300"),
    ):
        with pytest.raises(ValueError, match=message):
            decode_dependencies(arcs, [1, 3], projective=False)
