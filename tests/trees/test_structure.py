"""Empty elements, roots and chains."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given

from spmrl_bench.readers.brackets import parse_brackets
from spmrl_bench.trees import Tree
from spmrl_bench.trees.escapes import write_brackets
from spmrl_bench.trees.transforms import (
    drop_traces,
    ensure_top,
    merge_x_over_x,
    strip_root,
    vroot_over_words,
)
from tests.trees.strategies import trees


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("(S (NP (-NONE- *)) (VP (V a) (NP (NP (-NONE- 0)))))", "(S (VP (V a)))"),
        ("(S (V a) (SBAR (-NONE- 0) (S (-NONE- *T*-1))) (. .))", "(S (V a) (. .))"),
        ("(S (-NONE- *) (NP (N a)) (-NONE- *) (VP (V b) (-NONE- *)))", "(S (NP (N a)) (VP (V b)))"),
        ("(S (N a))", "(S (N a))"),
    ],
)
def test_drop_traces(text: str, expected: str) -> None:
    tree = drop_traces(parse_brackets(text))
    assert tree is not None
    assert write_brackets(tree) == expected


def test_drop_traces_may_leave_nothing() -> None:
    assert drop_traces(parse_brackets("(S (NP (-NONE- *)))")) is None


@given(tree=trees())
def test_drop_traces_keeps_all_other_words_and_what_covers_them(tree: Tree) -> None:
    tags = tuple("-NONE-" if len(tag) % 2 else tag for tag in tree.tags)
    overt = [i for i, tag in enumerate(tags) if tag != "-NONE-"]
    left = drop_traces(Tree(tree.words, tags, tree.labels, tree.spans))
    if left is None:
        assert not overt
        return
    assert left.words == tuple(tree.words[i] for i in overt)
    assert left.tags == tuple(tags[i] for i in overt)
    covers = [(label, [i for i in overt if a <= i < b]) for a, b, label in tree.constituents()]
    found = [(label, overt[a:b]) for a, b, label in left.constituents()]
    assert found == [(label, words) for label, words in covers if words]


@pytest.mark.parametrize(
    ("text", "stripped", "with_top"),
    [
        ("( (S (N a)))", "(S (N a))", "(TOP (S (N a)))"),
        ("(TOP (S (N a) (V b)))", "(S (N a) (V b))", "(TOP (S (N a) (V b)))"),
        ("(ROOT ( (S1 (NP (N a)))))", "(NP (N a))", "(TOP (NP (N a)))"),
        ("(TOP (S (N a)) (. .))", "(TOP (S (N a)) (. .))", "(TOP (S (N a)) (. .))"),
        ("( (S (N a)) (. .))", "(TOP (S (N a)) (. .))", "(TOP (S (N a)) (. .))"),
        ("( (N a))", "(TOP (N a))", "(TOP (N a))"),
        ("(ROOT (N a))", "(ROOT (N a))", "(TOP (N a))"),
        ("(N a)", "(TOP (N a))", "(TOP (N a))"),
        ("(S (S (N a)))", "(S (S (N a)))", "(TOP (S (S (N a))))"),
        ("(VROOT (S (N a)))", "(VROOT (S (N a)))", "(TOP (S (N a)))"),
        ("(TOP (TOP (S (N a))))", "(S (N a))", "(TOP (S (N a)))"),
        ("(S (TOP (N a)) (TOP (N b)))",) * 2 + ("(TOP (S (TOP (N a)) (TOP (N b))))",),
        ("(TOP (TOP (N a)) (TOP (N b)))",) * 3,
    ],
)
def test_roots(text: str, stripped: str, with_top: str) -> None:
    tree = parse_brackets(text)
    assert write_brackets(strip_root(tree)) == stripped
    assert write_brackets(ensure_top(tree)) == with_top


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("(NN a)", "(VROOT (NN a))"),
        ("( (NN a))", "(VROOT (NN a))"),
        ("( ( (NN a)))", "(VROOT (NN a))"),
        ("(NP (NN a))", "(NP (NN a))"),
        ("(TOP (NN a))", "(TOP (NN a))"),
        ("( (NN a) (NN b))", "( (NN a) (NN b))"),
        ("( (NP (NN a)))", "( (NP (NN a)))"),
    ],
)
def test_vroot_over_words(text: str, expected: str) -> None:
    assert write_brackets(vroot_over_words(parse_brackets(text))) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("(NP (NP (N a)))", "(NP (N a))"),
        ("(NP (NP (NP (N a) (N b))))", "(NP (N a) (N b))"),
        ("(S (NP (NP (N a))) (NP (NP (N b))))", "(S (NP (N a)) (NP (N b)))"),
        ("(NP (NP (N a)) (N b))", "(NP (NP (N a)) (N b))"),
        ("(NP (S (NP (N a))))", "(NP (S (NP (N a))))"),
        ("(NP-A (NP-B (N a)))", "(NP-A (NP-B (N a)))"),
        ("(A (A (B (B (A (N a))))))", "(A (B (A (N a))))"),
        ("(N (N a))", "(N (N a))"),
        ("(N a)", "(N a)"),
    ],
)
def test_merge_x_over_x(text: str, expected: str) -> None:
    assert write_brackets(merge_x_over_x(parse_brackets(text))) == expected


@given(tree=trees())
def test_no_unary_of_one_label_is_left(tree: Tree) -> None:
    rows = list(merge_x_over_x(tree).constituents())
    assert all(above != below for above, below in pairwise(rows))
    assert set(rows) == set(tree.constituents())


@given(tree=trees())
def test_roots_have_names_whatever_the_tree(tree: Tree) -> None:
    assert next(strip_root(tree).constituents())[2] != ""
    start, end, label = next(ensure_top(tree).constituents())
    assert (start, end, label) == (0, len(tree), "TOP")
