"""Dependency trees: what is a tree, against an enumeration of all lists of heads."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from spmrl_bench.errors import TreeError
from spmrl_bench.trees.dependencies import DependencyTree, head_fault


def is_tree(heads: tuple[int, ...]) -> bool:
    """Whether every word reaches the root in at most as many steps as there are words."""
    for word in range(1, len(heads) + 1):
        for _ in heads:
            word = heads[word - 1] if word else 0
        if word:
            return False
    return True


def test_every_list_of_heads_of_up_to_five_words() -> None:
    rooted = {"one": 0, "several": 0}
    for n in range(1, 6):
        for heads in product(range(n + 1), repeat=n):
            tree = is_tree(heads)
            assert (head_fault(heads, "several") is None) == tree
            assert (head_fault(heads) is None) == (tree and heads.count(0) == 1)
            rooted["several"] += tree
            rooted["one"] += tree and heads.count(0) == 1
    # Cayley: (n+1)^(n-1) trees over the words and the root, n^(n-1) with one child of the root.
    assert rooted["several"] == sum((n + 1) ** (n - 1) for n in range(1, 6))
    assert rooted["one"] == sum(n ** (n - 1) for n in range(1, 6))


@pytest.mark.parametrize(
    ("heads", "problem"),
    [
        ([2, 3], "word 2: head 3 is not one of 0..2"),
        ([0, -1], "word 2: head -1 is not one of 0..2"),
        ([1], "word 1: the heads form a cycle: 1 -> 1"),
        ([0, 4, 2, 3], "word 2: the heads form a cycle: 2 -> 4 -> 3 -> 2"),
        ([0, 1, 0], "word 3: a second root; 2 words have head 0, expected one"),
        ([*range(2, 13), 1], "1 -> 2 -> 3 -> 4 -> 5 -> 6 -> 7 -> 8 -> 9 -> ... -> 1"),
    ],
)
def test_heads_that_form_no_tree(heads: list[int], problem: str) -> None:
    n = len(heads)
    with pytest.raises(TreeError, match=problem):
        DependencyTree.build(["w"] * n, ["T"] * n, heads, ["r"] * n)


@pytest.mark.parametrize("lengths", [(0, 0, 0, 0), (2, 1, 1, 1), (1, 1, 1, 2), (1, 0, 1, 1)])
def test_lengths_that_differ_or_no_words(lengths: tuple[int, int, int, int]) -> None:
    words, tags, heads, relations = lengths
    with pytest.raises(TreeError, match=", ".join(map(str, lengths))):
        DependencyTree.build(["w"] * words, ["T"] * tags, [0] * heads, ["r"] * relations)


def test_several_roots_where_allowed() -> None:
    tree = DependencyTree.build(["a", "b"], ["T", "T"], [0, 0], ["root", "root"], roots="several")
    assert tree.heads.tolist() == [0, 0]


def test_a_tree_is_a_frozen_value() -> None:
    def build(last: str) -> DependencyTree:
        return DependencyTree.build(["a", "b"], ["T", "U"], [2, 0], ["x", last])

    tree = build("root")
    assert tree == build("root")
    assert hash(tree) == hash(build("root"))
    assert tree != build("other")
    assert tree != "a b"
    assert len(tree) == 2
    assert tree.heads.dtype == np.int32
    with pytest.raises(ValueError, match="read-only"):
        tree.heads[0] = 0


def test_a_chain_of_100000_words_and_a_cycle_at_its_end() -> None:
    n = 100_000
    heads = list(range(n))
    assert head_fault(heads) is None
    heads[0] = n
    fault = head_fault(heads)
    assert fault is not None
    assert "cycle" in fault.problem
    assert len(fault.problem) < 200
