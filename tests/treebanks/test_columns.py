"""Sentences come back from their columns as they were."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spmrl_bench.treebanks.cache import from_bytes, to_bytes
from spmrl_bench.trees.parse import Parse
from spmrl_bench.trees.tree import Tree
from tests.trees.dependency_strategies import dependency_trees
from tests.trees.strategies import trees


@st.composite
def both(draw: st.DrawFn) -> Parse:
    """A sentence with two layers, whose tags may differ."""
    dependencies = draw(dependency_trees())
    words, n = dependencies.words, len(dependencies)
    tags = draw(st.just(dependencies.tags) | st.lists(st.text(), min_size=n, max_size=n))
    return Parse.of(Tree.build(words, tags, [(0, n, draw(st.text()))]), dependencies)


KINDS = [
    trees().map(Parse.of),
    dependency_trees().map(lambda tree: Parse.of(dependencies=tree)),
    both(),
]


@pytest.mark.parametrize("sentences", KINDS)
@given(data=st.data())
def test_sentences(sentences: st.SearchStrategy[Parse], data: st.DataObject) -> None:
    parses = data.draw(st.lists(sentences, max_size=6))
    found, notes = from_bytes(to_bytes(parses, {"dropped": 2, "skipped": ["ä"]}))
    assert found == parses
    assert notes == {"dropped": 2, "skipped": ["ä"]}


ONE = Parse.of(Tree.build(["a"], ["N"], [(0, 1, "S")]))


def test_nothing_read_back_can_be_changed() -> None:
    tree = from_bytes(to_bytes([ONE], {}))[0][0].tree
    assert tree is not None
    with pytest.raises(ValueError, match="read-only"):
        tree.spans[0, 0] = 1


@pytest.mark.parametrize("length", [0, 1, 7, 8, 100, -1])
def test_a_part_is_refused(length: int) -> None:
    data = to_bytes([ONE], {})
    with pytest.raises(ValueError, match="no stored sentences"):
        from_bytes(data[:length])
