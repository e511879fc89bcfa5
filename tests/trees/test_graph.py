"""Ways from a graph with crossing branches to a tree."""

from __future__ import annotations

from dataclasses import replace

import pytest

from spmrl_bench.errors import TreeError
from spmrl_bench.trees.graph import (
    NO_PARENT,
    Graph,
    add_vroot,
    attach_loose_tokens,
    drop_markup_tokens,
    loosen_punctuation,
    raise_crossing_branches,
    to_tree,
    vroot_for_top,
)
from tests.trees.graphs import CROSSING, brackets, graph


def test_the_three_transforms_make_a_tree() -> None:
    g = raise_crossing_branches(attach_loose_tokens(add_vroot(CROSSING)))
    assert brackets(g) == "(VROOT (S (das) (will) (er) (VP (hören))) (.))"


def test_vroot_joins_roots_and_leaves_loose_tokens() -> None:
    g = add_vroot(graph("a , b", {"A": ["a"], "B": ["b"]}, {"A": "", "B": ""}))
    assert g.roots() == [2]
    assert g.token_parents == (0, NO_PARENT, 1)
    assert brackets(attach_loose_tokens(g)) == "(VROOT (A (a)) (,) (B (b)))"


def test_loose_tokens_go_between_their_neighbours() -> None:
    g = graph(
        '" a , b : c ! "',
        {"A": ["a", "b"], "C": ["c"]},
        {"A": "S", "C": "S", "S": ""},
    )
    assert brackets(attach_loose_tokens(g)) == '(S (") (A (a) (,) (b)) (:) (C (c)) (!) ("))'


def test_loose_tokens_look_at_attached_neighbours_only() -> None:
    g = graph("a , - b", {"A": ["a", "b"]}, {"A": "S", "S": ""})
    assert brackets(attach_loose_tokens(g)) == "(S (A (a) (,) (-) (b)))"


def test_sentence_of_loose_tokens() -> None:
    g = graph("a .", {}, {})
    assert brackets(attach_loose_tokens(add_vroot(g))) == "(VROOT (a) (.))"


def test_loose_tokens_need_one_root() -> None:
    g = graph("a , b", {"A": ["a"], "B": ["b"]}, {"A": "", "B": ""})
    with pytest.raises(TreeError, match="2 roots, but loose tokens need one: use add-vroot"):
        attach_loose_tokens(g)
    single = graph("a b", {"A": ["a", "b"]}, {"A": ""})
    assert attach_loose_tokens(single) is single


def test_alpino_punctuation_comes_loose_and_finds_a_place_inside() -> None:
    g = graph(
        "de hond , blaft !",
        {"np": ["de/det", "hond/hd"], "du": ["blaft/nucl"], "top": [",/--", "!/--"]},
        {"np": "du/dp", "du": "top/--", "top": ""},
    )
    tags = ("det", "noun", "punct", "verb", "punct")
    g = replace(g, tags=tags)
    loose = loosen_punctuation(g)
    assert loose.token_parents == (0, 0, NO_PARENT, 1, NO_PARENT)
    assert loose.token_edges == ("det", "hd", "", "nucl", "")
    tree = to_tree(vroot_for_top(attach_loose_tokens(loose)))
    assert list(tree.constituents()) == [(0, 5, "VROOT"), (0, 4, "du"), (0, 2, "np")]


@pytest.mark.parametrize(
    ("tag", "edge", "holder"),
    [("verb", "--", "top"), ("punct", "mod", "top"), ("punct", "--", "du")],
)
def test_other_tokens_stay_where_they_are(tag: str, edge: str, holder: str) -> None:
    tokens = {"top": ["a"], "du": ["b"]}
    tokens[holder].append(f"c/{edge}")
    g = replace(graph("a b c", tokens, {"du": "top", "top": ""}), tags=("T", "T", tag))
    assert loosen_punctuation(g) == g


def test_only_a_root_called_top_is_called_vroot() -> None:
    g = graph("a", {"top": ["a"]}, {"top": "S", "S": ""})
    assert vroot_for_top(g) == g
    assert vroot_for_top(graph("a", {"top": ["a"]}, {"top": ""})).labels == ("VROOT",)


def test_markup_goes_with_the_nodes_that_held_nothing_else() -> None:
    g = graph(
        "<p> a <em> -- b </em> <c",
        {"A": ["a"], "E": ["<em>/NK"], "S": ["--/X", "b/HD", "<c/HD"]},
        {"E": "D", "A": "S/SB", "D": "S", "S": ""},
    )
    g = replace(g, tags=("--", "T", "--", "--", "T", "--", "--"))
    dropped = drop_markup_tokens(g)
    assert dropped == Graph(
        name="s",
        words=("a", "--", "b", "<c"),
        tags=("T", "--", "T", "--"),
        token_parents=(0, 1, 1, 1),
        token_edges=("", "X", "HD", "HD"),
        labels=("A", "S"),
        parents=(1, NO_PARENT),
        edges=("SB", ""),
    )
    assert drop_markup_tokens(dropped) is dropped
    words_like_markup = replace(g, tags=("T",) * 7)
    assert drop_markup_tokens(words_like_markup) is words_like_markup


def test_a_sentence_of_markup_stays() -> None:
    g = replace(graph("<p> </p>", {}, {}), tags=("--", "--"))
    assert drop_markup_tokens(g) is g


def test_extents() -> None:
    assert CROSSING.extents() == [(0, 4, 2), (0, 4, 4)]
    assert [extent.has_gap for extent in CROSSING.extents()] == [True, False]


def test_deep_graphs() -> None:
    depth = 5000
    g = Graph(
        name="s",
        words=("a", "b"),
        tags=("T", "T"),
        token_parents=(0, depth - 1),
        token_edges=("", ""),
        labels=("N",) * depth,
        parents=(*range(1, depth), NO_PARENT),
        edges=("",) * depth,
    )
    tree = to_tree(raise_crossing_branches(attach_loose_tokens(add_vroot(g))))
    assert tree.spans.tolist() == [[0, 2]] * 2 + [[0, 1]] * (depth - 1)


def test_unary_chains_keep_their_order() -> None:
    g = graph("a", {"C": ["a"]}, {"C": "B", "A": "", "B": "A"})
    assert brackets(g) == "(A (B (C (a))))"
    assert raise_crossing_branches(g) == g


def test_one_token_needs_no_node() -> None:
    assert brackets(graph("a", {}, {})) == "(a)"


@pytest.mark.parametrize(
    ("g", "message"),
    [
        (CROSSING, r"token 5 \('\.'\) is attached nowhere: use attach-loose-tokens"),
        (attach_loose_tokens(CROSSING), "'VP' over tokens 1 to 4 has a gap: use raise-crossing"),
        (graph("a b", {"A": ["a"], "B": ["b"]}, {"A": "", "B": ""}), "2 roots, expected one"),
        (graph("a", {"A": ["a"]}, {"A": "", "B": "A"}), "node 'B' has no token"),
    ],
)
def test_no_tree(g: Graph, message: str) -> None:
    with pytest.raises(TreeError, match=message):
        to_tree(g)
