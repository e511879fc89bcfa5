"""Dependency trees, against enumerations: what is one, and what words merged and split make."""

from __future__ import annotations

from itertools import pairwise, product

import numpy as np
import pytest

from spmrl_bench.errors import TreeError
from spmrl_bench.trees.dependencies import (
    DependencyTree,
    depths,
    head_fault,
    merge_words,
    split_words,
)
from tests.trees.head_driven_oracle import head_lists


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
            if tree:
                above = [0, *depths(heads)]
                assert all(above[w] == above[head] + 1 for w, head in enumerate(heads, start=1))
    # Cayley: (n+1)^(n-1) trees over the words and the root, n^(n-1) with one child of the root.
    assert rooted["several"] == sum((n + 1) ** (n - 1) for n in range(1, 6))
    assert rooted["one"] == sum(n ** (n - 1) for n in range(1, 6))


def test_heads_that_form_no_tree() -> None:
    for heads, problem in [
        ([2, 3], "word 2: head 3 is not one of 0..2"),
        ([0, -1], "word 2: head -1 is not one of 0..2"),
        ([1], "word 1: the heads form a cycle: 1 -> 1"),
        ([0, 4, 2, 3], "word 2: the heads form a cycle: 2 -> 4 -> 3 -> 2"),
        ([0, 1, 0], "word 3: a second root; 2 words have head 0, expected one"),
        ([*range(2, 13), 1], "1 -> 2 -> 3 -> 4 -> 5 -> 6 -> 7 -> 8 -> 9 -> ... -> 1"),
    ]:
        n = len(heads)
        with pytest.raises(TreeError, match=problem):
            DependencyTree.build(["w"] * n, ["T"] * n, heads, ["r"] * n)


def test_lengths_that_differ_or_no_words() -> None:
    for lengths in [(0, 0, 0, 0), (2, 1, 1, 1), (1, 1, 1, 2), (1, 0, 1, 1)]:
        words, tags, heads, relations = lengths
        with pytest.raises(TreeError, match=", ".join(map(str, lengths))):
            DependencyTree.build(["w"] * words, ["T"] * tags, [0] * heads, ["r"] * relations)


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
    assert depths(heads)[-1] == n
    heads[0] = n
    fault = head_fault(heads)
    assert "cycle" in fault.problem
    assert len(fault.problem) < 200


def tree(*heads: int) -> DependencyTree:
    n = len(heads)
    words = [f"w{k}" for k in range(1, n + 1)]
    tags = [f"T{k}" for k in range(1, n + 1)]
    return DependencyTree.build(words, tags, heads, [f"r{k}" for k in range(1, n + 1)])


def sizes_of(n: int) -> list[list[int]]:
    """All ways to cut ``n`` words into runs."""
    found = []
    for cuts in product((False, True), repeat=n - 1):
        ends = [0, *(k for k, cut in enumerate(cuts, 1) if cut), n]
        found.append([b - a for a, b in pairwise(ends)])
    return found


def test_an_amalgam_gets_the_head_of_its_first_part_where_both_are_as_near() -> None:
    # la pose de + le panneau
    found = merge_words(tree(2, 0, 5, 5, 2), [1, 1, 2, 1], ["la", "pose", "du", "panneau"])
    assert found.words == ("la", "pose", "du", "panneau")
    assert found.heads.tolist() == [2, 0, 4, 2]
    assert found.relations == ("r1", "r2", "r3", "r5")
    assert found.tags == ("T1", "T2", "T3", "T5")


def test_a_compound_gets_the_head_of_the_part_nearest_to_the_root() -> None:
    # 2 hangs from 3, 1 from 2, 4 (outside) from 1: it then hangs from the compound.
    found = merge_words(tree(2, 3, 5, 1, 0), [3, 1, 1], ["abc", "d", "e"])
    assert found.heads.tolist() == [3, 1, 0]
    assert found.relations == ("r3", "r4", "r5")


def test_every_merging_of_every_tree_is_a_tree() -> None:
    checked = 0
    for n in range(1, 6):
        for heads in head_lists(n):
            for sizes in sizes_of(n):
                found = merge_words(tree(*heads), sizes, ["w"] * len(sizes))
                assert head_fault(found.heads.tolist()) is None
                checked += 1
    assert checked == sum(n ** (n - 1) * 2 ** (n - 1) for n in range(1, 6))


def test_words_of_one_part_stay_as_they_are() -> None:
    before = tree(2, 0, 2)
    assert merge_words(before, [1, 1, 1], before.words) == before
    assert split_words(before, [1, 1, 1], before.words, "x") == before


def test_the_last_part_of_a_divided_word_stands_for_it() -> None:
    found = split_words(tree(2, 0, 2), [1, 3, 2], ["a", "b", "c", "d", "e", "f"], "part")
    assert found.heads.tolist() == [4, 4, 4, 0, 6, 4]
    assert found.relations == ("r1", "part", "part", "r2", "part", "r3")
    assert found.tags == ("T1", "T2", "T2", "T2", "T3", "T3")


def test_merging_undoes_dividing() -> None:
    for heads in head_lists(3):
        for sizes in product((1, 2, 3), repeat=3):
            whole = tree(*heads)
            words = [f"p{k}" for k in range(sum(sizes))]
            divided = split_words(whole, sizes, words, "part")
            assert head_fault(divided.heads.tolist()) is None
            assert merge_words(divided, sizes, whole.words) == whole
