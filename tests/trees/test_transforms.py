"""Named transforms of trees and of their text."""

from __future__ import annotations

import pytest
from hypothesis import given

from spmrl_bench.errors import SpmrlError
from spmrl_bench.readers.brackets import parse_brackets
from spmrl_bench.trees import Tree
from spmrl_bench.trees.brackets import write_brackets
from spmrl_bench.trees.transforms import TRANSFORMS, transform_named
from tests.trees.strategies import trees


def applied(name: str, text: str) -> str:
    result = transform_named(name).apply(parse_brackets(text))
    assert isinstance(result, Tree)
    return write_brackets(result)


@pytest.mark.parametrize(
    ("label", "category"),
    [
        ("NP-SBJ-1", "NP"),
        ("NP=2", "NP"),
        ("S-TPC=1", "S"),
        ("ADVP|PRT", "ADVP"),
        ("ADVP|PRT-CLR", "ADVP"),
        ("PP-DE_OBJ", "PP"),
        ("-LRB-", "-LRB-"),
        ("-NONE-", "-NONE-"),
        ("-X", "-X"),
        ("-", "-"),
        ("=", "="),
        ("", ""),
    ],
)
def test_strip_functions(label: str, category: str) -> None:
    tree = Tree.build(["a"], ["A-B"], [(0, 1, label)])
    assert transform_named("strip-functions").apply(tree) == Tree.build(
        ["a"], ["A-B"], [(0, 1, category)]
    )


def test_strip_tag_functions() -> None:
    text = "(VN-X (CLS-SUJ il) (CLR-AFF.DEMSUJ s') (P+D du) (-LRB- -LRB-) (PRP$ my) (: --))"
    expected = "(VN-X (CLS il) (CLR s') (P+D du) (-LRB- -LRB-) (PRP$ my) (: --))"
    assert applied("strip-tag-functions", text) == expected


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
    assert applied("drop-traces", text) == expected


def test_drop_traces_may_leave_nothing() -> None:
    tree = parse_brackets("(S (NP (-NONE- *)))")
    assert transform_named("drop-traces").apply(tree) is None


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("( (S (N a)))", "(S (N a))"),
        ("(TOP (S (N a) (V b)))", "(S (N a) (V b))"),
        ("(ROOT ( (S1 (NP (N a)))))", "(NP (N a))"),
        ("(TOP (S (N a)) (. .))", "(TOP (S (N a)) (. .))"),
        ("( (S (N a)) (. .))", "(TOP (S (N a)) (. .))"),
        ("( (N a))", "(TOP (N a))"),
        ("(ROOT (N a))", "(ROOT (N a))"),
        ("(N a)", "(TOP (N a))"),
        ("(S (S (N a)))", "(S (S (N a)))"),
        ("(VROOT (S (N a)))", "(VROOT (S (N a)))"),
    ],
)
def test_strip_root(text: str, expected: str) -> None:
    assert applied("strip-root", text) == expected


def test_strip_features_works_on_text_with_spaces() -> None:
    text = "(NP##n=sg x|l=a b## (NN##lem=( ## Wort) (CARD 1#2))\n(X##a## b)"
    assert transform_named("strip-features").apply(text) == "(NP (NN Wort) (CARD 1#2))\n(X b)"
    open_pair = "(NN a##)\n(NN b##)"
    assert transform_named("strip-features").apply(open_pair) == open_pair


@pytest.mark.parametrize(
    "name", [transform.name for transform in TRANSFORMS.values() if transform.stage == "tree"]
)
@given(tree=trees())
def test_tree_transforms_give_valid_trees_and_settle(name: str, tree: Tree) -> None:
    apply = transform_named(name).apply
    once = apply(tree)
    if once is None:
        assert set(tree.tags) == {"-NONE-"}
        return
    assert isinstance(once, Tree)
    assert Tree.build(once.words, once.tags, once.constituents()) == once
    assert apply(once) == once


def test_every_transform_explains_itself() -> None:
    for transform in TRANSFORMS.values():
        assert len(transform.description) > 60


def test_unknown_name() -> None:
    with pytest.raises(SpmrlError, match=r"unknown transform 'drop-trace'\. Did you mean drop-tr"):
        transform_named("drop-trace")
