"""Sentences come back from their columns as they were."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spmrl_bench.treebanks.columns import from_bytes, to_bytes
from spmrl_bench.trees.dependencies import DependencyTree
from spmrl_bench.trees.tree import Tree
from tests.trees.dependency_strategies import dependency_trees
from tests.trees.strategies import trees


@given(st.lists(trees(), max_size=6))
def test_trees(sentences: list[Tree]) -> None:
    found, notes = from_bytes(to_bytes(sentences, {"dropped": 2, "skipped": ["ä"]}))
    assert found == sentences
    assert notes == {"dropped": 2, "skipped": ["ä"]}


@given(st.lists(dependency_trees(), max_size=6))
def test_dependencies(sentences: list[DependencyTree]) -> None:
    found, _ = from_bytes(to_bytes(sentences, {}))
    assert found == sentences


def test_nothing_read_back_can_be_changed() -> None:
    (tree,), _ = from_bytes(to_bytes([Tree.build(["a"], ["N"], [(0, 1, "S")])], {}))
    assert isinstance(tree, Tree)
    with pytest.raises(ValueError, match="read-only"):
        tree.spans[0, 0] = 1


@pytest.mark.parametrize("length", [0, 1, 7, 8, 100, -1])
def test_a_part_is_refused(length: int) -> None:
    data = to_bytes([Tree.build(["a"], ["N"], [(0, 1, "S")])], {})
    with pytest.raises(ValueError, match="no stored sentences"):
        from_bytes(data[:length])
