"""Dependency decoding: both kernels return the same bits, and bad input is refused."""

from __future__ import annotations

from itertools import pairwise
from typing import Any, get_args

import numpy as np
import pytest

from spmrl_bench.chart.dependencies import decode_dependencies
from spmrl_bench.errors import NotFiniteError
from spmrl_bench.trees.dependencies import head_fault
from tests.chart.arcs import Shape, decode_on, random_arcs, random_batch, sentence_arcs
from tests.chart.dependency_oracles import crosses
from tests.twins import assert_same_bits, kernels_of

every_kernel = pytest.mark.parametrize("kernel", kernels_of("dependencies"))
shapes = pytest.mark.parametrize("shape", get_args(Shape))
kinds = pytest.mark.parametrize("projective", [False, True], ids=["any", "projective"])
MIXED = [1, 2, 9, 10, 17, 33, 2, 1, 5, 64]


@every_kernel
@kinds
@shapes
def test_heads_form_a_tree_of_one_root_that_has_the_score(
    kernel: str, shape: Shape, projective: bool
) -> None:
    arcs = random_batch(np.random.default_rng(3), MIXED, shape)
    decoded = decode_on(kernel, arcs, MIXED, projective)
    assert decoded.offsets.tolist() == [0, *np.cumsum(MIXED).tolist()]
    for b, (low, high) in enumerate(pairwise(decoded.offsets)):
        heads = decoded.heads[low:high].tolist()
        assert head_fault(heads, "one") is None
        assert not (projective and crosses(tuple(heads)))
        table = sentence_arcs(arcs, MIXED, b)
        assert decoded.scores[b] == sum(table[np.arange(len(heads)), heads].tolist())


def test_a_spanning_tree_is_never_worse_than_the_projective_one() -> None:
    arcs = random_batch(np.random.default_rng(5), [40] * 8, "floats")
    any_kind = decode_dependencies(arcs, [40] * 8, projective=False).scores
    assert (any_kind > decode_dependencies(arcs, [40] * 8, projective=True).scores).all()


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
        planted += heads.tolist()
    found = decode_on(kernel, np.concatenate(arcs), lengths, projective=False)
    assert found.heads.tolist() == planted


@every_kernel
@kinds
def test_every_word_may_want_the_root_but_one_gets_it(kernel: str, projective: bool) -> None:
    arcs = np.array([[9, 0, 1, 0], [9, 2, 0, 0], [9.5, 0, 1, 0]]).ravel()
    decoded = decode_on(kernel, arcs, [3], projective)
    # 3 as the child of the root would give 9.5 + 1 + 1 or less, 1 gives 9 + 2 + 1.
    assert decoded.heads.tolist() == [0, 1, 2]
    assert decoded.scores.tolist() == [12.0]


@every_kernel
@pytest.mark.parametrize("n", [1, 2, 3, 5])
def test_where_all_trees_are_equal(kernel: str, n: int) -> None:
    """The lowest heads win, as far as the rules of the two searches reach."""
    arcs = np.zeros(n * (n + 1))
    chain = [*range(n)]
    star = [0, *[1] * (n - 1)]
    assert decode_on(kernel, arcs, [n], projective=True).heads.tolist() == chain
    assert decode_on(kernel, arcs, [n], projective=False).heads.tolist() == star


@kinds
def test_scores_of_words_to_themselves_may_be_anything(projective: bool) -> None:
    arcs = random_arcs(np.random.default_rng(7), 6, "floats")
    expected = decode_dependencies(arcs.ravel(), [6], projective=projective)
    for value in (np.nan, np.inf, -np.inf, 1e308, 5.0):
        arcs[np.arange(6), np.arange(1, 7)] = value
        assert_same_bits(decode_dependencies(arcs.ravel(), [6], projective=projective), expected)


@kinds
def test_types_and_layout_do_not_matter_and_input_stays(projective: bool) -> None:
    single = random_batch(np.random.default_rng(8), [3, 6], "floats").astype(np.float32)
    expected = decode_dependencies(single, [3, 6], projective=projective)
    double = np.repeat(single.astype(np.float64), 2)
    double.setflags(write=False)
    found = decode_dependencies(double[::2], np.array([3, 6], np.uint8), projective=projective)
    assert_same_bits(found, expected)


@kinds
def test_the_largest_scores_do_not_overflow(projective: bool) -> None:
    scores = np.random.default_rng(9).choice([-1e300, 1e300], 30 * 31)
    decoded = decode_dependencies(scores, [30], projective=projective)
    assert decoded.scores[0] == pytest.approx(3e301)
    assert head_fault(decoded.heads.tolist(), "one") is None


def with_value(value: float) -> Any:
    arcs = np.zeros(14)
    arcs[9] = value
    return arcs


def test_bad_input_is_refused() -> None:
    """As far as the tests of the joint chart, which checks arcs in the same way, do not go."""
    for arcs, message in (
        (np.zeros(14, np.float16), "dtype float16 .*of float64 or float32"),
        (with_value(1.1e300), r"arcs\[9\] .* is 1.1e\+300; scores from -1e\+300"),
    ):
        with pytest.raises(ValueError, match=message):
            decode_dependencies(arcs, [1, 3], projective=False)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_the_place_of_a_score_that_is_not_finite_is_named(value: float) -> None:
    arcs = with_value(value)
    arcs[3] = value  # of the first word of the second sentence to itself
    message = r"arcs\[9\] \(sentence 1, dependent 2, head 3\) is -?(nan|inf); every score must be"
    for scores in (arcs, arcs.astype(np.float32)):
        with pytest.raises(NotFiniteError, match=message):
            decode_dependencies(scores, [1, 3], projective=True)
