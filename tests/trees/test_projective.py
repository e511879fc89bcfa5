"""Lifting: against the definition of a projective arc and of an order, over all small trees."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spmrl_bench.errors import TreeError
from spmrl_bench.trees.dependencies import head_fault
from spmrl_bench.trees.projective import (
    is_projective,
    nonprojective_words,
    projectivize,
    pseudo_projective_lift,
)
from tests.trees.dependency_strategies import head_lists as drawn_heads
from tests.trees.head_driven_oracle import head_lists


def dominated(word: int, head: int, heads: Sequence[int]) -> bool:
    while word != head and word:
        word = heads[word - 1]
    return word == head


def crossing(heads: Sequence[int]) -> list[int]:
    """The words whose arc spans one that the head does not dominate."""
    return [
        word
        for word, head in enumerate(heads, start=1)
        if head
        and not all(
            dominated(between, head, heads)
            for between in range(min(word, head) + 1, max(word, head))
        )
    ]


def lowest(heads: Sequence[int]) -> list[int]:
    """The projective lifting in which every word is as low as in any; fails if there is none."""
    above: list[list[int]] = []
    for head in heads:
        path = [head]
        while path[-1] and heads[path[-1] - 1]:
            path.append(heads[path[-1] - 1])
        above.append(path)
    liftings = [
        [path.index(head) for path, head in zip(above, found, strict=True)]
        for found in product(*above)
        if not crossing(found)
    ]
    least = [min(column) for column in zip(*liftings, strict=True)]
    assert least in liftings
    return [path[steps] for path, steps in zip(above, least, strict=True)]


def shortest_first(heads: Sequence[int]) -> list[int]:
    """Lifting by the algorithm of Nivre & Nilsson (2005), as it is written."""
    heads = list(heads)
    while found := crossing(heads):
        word = min(found, key=lambda word: arc_order(word, heads[word - 1]))
        heads[word - 1] = heads[heads[word - 1] - 1]
    return heads


def arc_order(word: int, head: int) -> tuple[int, int]:
    return abs(word - head), min(word, head)


def test_all_trees_of_up_to_five_words() -> None:
    changed = 0
    for n in range(1, 6):
        for heads in head_lists(n):
            found = projectivize(heads)
            assert is_projective(heads) == (not crossing(heads)) == (found == heads)
            if found != heads:
                assert found == lowest(heads)
                changed += 1
    # 1 + 2 + 7 + 30 + 143 of the 1 + 2 + 9 + 64 + 625 trees are projective.
    assert changed == 2 + 34 + 482


def test_shortest_first_of_all_trees_of_up_to_five_words_with_any_roots() -> None:
    further = 0
    for n in range(1, 6):
        for heads in product(range(n + 1), repeat=n):
            if head_fault(heads, "several"):
                continue
            found = pseudo_projective_lift(heads)
            assert nonprojective_words(heads) == crossing(heads)
            assert found == shortest_first(heads)
            assert not crossing(found)
            further += found != projectivize(heads)
    assert further == 126


@given(heads=st.integers(1, 12).flatmap(lambda n: drawn_heads(n, "several")))
def test_lifted_trees_are_projective_trees_of_words_that_governed_before(heads: list[int]) -> None:
    least, shortest = projectivize(heads), pseudo_projective_lift(heads)
    assert shortest == shortest_first(heads)
    for found in (least, shortest):
        assert not crossing(found)
        assert head_fault(found, "several") is None
        assert all(dominated(word, head, heads) for word, head in enumerate(found, start=1))
        assert (found == heads) == is_projective(heads) == (not crossing(heads))
        assert projectivize(found) == pseudo_projective_lift(found) == found
    assert all(
        dominated(low, high, heads) for low, high in zip(least, shortest, strict=True) if low
    )


def test_a_hearing_is_scheduled() -> None:
    heads = [2, 3, 0, 3, 2, 7, 5, 4]
    assert nonprojective_words(heads) == [5, 8]
    assert projectivize(heads) == pseudo_projective_lift(heads) == [2, 3, 0, 3, 3, 7, 5, 3]


def test_a_dependent_is_lifted_until_nothing_is_in_the_way() -> None:
    # Word 4 rises from 1 past 2 to 3, and 3 from 6 to the root.
    assert projectivize([2, 3, 6, 1, 0, 5]) == [2, 3, 5, 3, 0, 5]
    # Word 3 rises to the root, where it is in the way of 4.
    assert projectivize([0, 0, 1, 2]) == [0, 0, 0, 0]


def test_the_shortest_first_may_rise_further_than_needed() -> None:
    # Word 4 rises from 1, which 3 still governs, past 3 to 2; were 1 lifted first, 3 could keep 4.
    assert projectivize([3, 0, 2, 1]) == [2, 0, 2, 3]
    assert pseudo_projective_lift([3, 0, 2, 1]) == [2, 0, 2, 2]


def test_of_two_arcs_of_one_length_the_left_one_is_lifted() -> None:
    # Word 4 rises from 1 before 2 does from 5. Were it the other way round, 3 would govern 4.
    assert pseudo_projective_lift([2, 5, 0, 1, 3]) == [2, 3, 0, 5, 3]


def test_long_sentences_take_no_recursion() -> None:
    chain = list(range(20_000))
    assert projectivize(chain) == pseudo_projective_lift(chain) == chain
    chain[2:4] = [1, 2]  # the arcs from 1 to 3 and from 2 to 4 cross
    assert nonprojective_words(chain) == [4]
    assert pseudo_projective_lift(chain)[:6] == [0, 1, 1, 1, 4, 5]


def test_heads_that_form_no_tree() -> None:
    for function in (projectivize, pseudo_projective_lift, nonprojective_words):
        with pytest.raises(TreeError, match="cycle"):
            function([2, 1, 0])
