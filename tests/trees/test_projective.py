"""Lifting: against the definition of a projective arc, over all small trees."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spmrl_bench.errors import TreeError
from spmrl_bench.trees.dependencies import DependencyTree, head_fault
from spmrl_bench.trees.projective import is_projective, lift_crossing_arcs, lifted
from tests.trees.dependency_strategies import dependency_trees
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


def test_all_trees_of_up_to_five_words() -> None:
    changed = 0
    for n in range(1, 6):
        for heads in head_lists(n):
            found = lifted(heads)
            assert is_projective(heads) == (not crossing(heads)) == (found == heads)
            if found != heads:
                assert found == lowest(heads)
                changed += 1
    # 1 + 2 + 7 + 30 + 143 of the 1 + 2 + 9 + 64 + 625 trees are projective.
    assert changed == 2 + 34 + 482


@given(tree=dependency_trees(st.sampled_from("abc"), roots="several"))
def test_lifted_trees_are_projective_and_lifted_no_further(tree: DependencyTree) -> None:
    heads = tree.heads.tolist()
    found = lift_crossing_arcs(tree)
    assert not crossing(found.heads.tolist())
    assert head_fault(found.heads.tolist(), "several") is None
    assert all(
        dominated(word, head, heads) for word, head in enumerate(found.heads.tolist(), start=1)
    )
    assert (found.words, found.tags, found.relations) == (tree.words, tree.tags, tree.relations)
    assert (found is tree) == is_projective(heads) == (not crossing(heads))
    assert lift_crossing_arcs(found) is found


def test_a_hearing_is_scheduled() -> None:
    words = ["A", "hearing", "is", "scheduled", "on", "the", "issue", "today"]
    heads = [2, 3, 0, 3, 2, 7, 5, 4]
    relations = ["det", "nsubj", "root", "aux", "nmod", "det", "pobj", "tmp"]
    tree = lift_crossing_arcs(DependencyTree.build(words, ["T"] * 8, heads, relations))
    assert tree.heads.tolist() == [2, 3, 0, 3, 3, 7, 5, 3]
    assert tree.relations == tuple(relations)


def test_a_dependent_is_lifted_until_nothing_is_in_the_way() -> None:
    # Word 4 rises from 1 past 2 to 3, and 3 from 6 to the root.
    assert lifted([2, 3, 6, 1, 0, 5]) == [2, 3, 5, 3, 0, 5]
    # Word 3 rises to the root, where it is in the way of 4.
    assert lifted([0, 0, 1, 2]) == [0, 0, 0, 0]


def test_long_sentences_take_no_recursion() -> None:
    chain = list(range(20_000))
    assert lifted(chain) == chain


def test_heads_that_form_no_tree() -> None:
    with pytest.raises(TreeError, match="cycle"):
        lifted([2, 1, 0])
