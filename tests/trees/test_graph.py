"""Ways from a graph with crossing branches to a tree, on graphs where the outcome is known."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given

from spmrl_bench.errors import TreeError
from spmrl_bench.trees.graph import (
    NO_PARENT,
    Graph,
    add_vroot,
    attach_loose_tokens,
    drop_markup_tokens,
    loosen_punctuation,
    raise_crossing_branches,
    split_crossing_branches,
    to_tree,
    vroot_for_top,
)
from tests.trees.graphs import CROSSING, brackets, graph, graphs, yields


def test_vroot_joins_roots_and_leaves_loose_tokens() -> None:
    g = add_vroot(graph("a , b", {"A": ["a"], "B": ["b"]}, {"A": "", "B": ""}))
    assert g.roots() == [2]
    assert g.token_parents == (0, NO_PARENT, 1)


def test_loose_tokens_go_between_their_attached_neighbours() -> None:
    sister = {"A": "S", "C": "S", "S": ""}
    for g, expected in [
        (
            graph('" a , b : c ! "', {"A": ["a", "b"], "C": ["c"]}, sister),
            '(S (") (A (a) (,) (b)) (:) (C (c)) (!) ("))',
        ),
        (graph("a , - b", {"A": ["a", "b"]}, {"A": "S", "S": ""}), "(S (A (a) (,) (-) (b)))"),
        (add_vroot(graph("a .", {}, {})), "(VROOT (a) (.))"),
        (
            raise_crossing_branches(attach_loose_tokens(add_vroot(CROSSING))),
            "(VROOT (S (das) (will) (er) (VP (hören))) (.))",
        ),
    ]:
        assert brackets(attach_loose_tokens(g)) == expected


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


def test_other_tokens_stay_where_they_are() -> None:
    for tag, edge, place in [("verb", "--", "top"), ("punct", "mod", "top"), ("punct", "--", "du")]:
        tokens = {"top": ["a"], "du": ["b"]}
        tokens[place].append(f"c/{edge}")
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


def test_no_tree() -> None:
    lacking = graph("a b c", {"A": ["a", "c"]}, {"A": ""})
    empty = graph("a", {"A": ["a"]}, {"A": "", "B": "A"})
    roots = graph("a b", {"A": ["a"], "B": ["b"]}, {"A": "", "B": ""})
    for change, g, message in [
        (to_tree, CROSSING, r"token 5 \('\.'\) is attached nowhere: use attach-loose-tokens"),
        (to_tree, attach_loose_tokens(CROSSING), "'VP' over tokens 1 to 4 has a gap: use raise-cr"),
        (to_tree, roots, "2 roots, expected one"),
        (attach_loose_tokens, replace(roots, token_parents=(0, NO_PARENT)), "2 roots.*add-vroot"),
        (to_tree, empty, "node 'B' has no token"),
        (raise_crossing_branches, empty, "node 'B' has no token"),
        (raise_crossing_branches, lacking, r"root 'A' lacks token 2 \('b'\): use add-vroot"),
        (split_crossing_branches, lacking, r"root 'A' lacks token 2 \('b'\): use add-vroot"),
    ]:
        with pytest.raises(TreeError, match=message):
            change(g)


ONE, TWO = {"X": "S", "S": ""}, {"X": "Y", "Y": "S", "S": ""}


def test_raising() -> None:
    for tokens, nodes, expected in [
        # The head stays, however short its part.
        ({"X": ["a/HD", "c", "d"], "S": ["b"]}, ONE, "(S (X (a)) (b) (c) (d))"),
        # No head: the longest part stays, and the leftmost of equals.
        ({"X": ["a", "c", "d"], "S": ["b"]}, ONE, "(S (a) (b) (X (c) (d)))"),
        ({"X": ["a", "d"], "S": ["b", "c"]}, ONE, "(S (X (a)) (b) (c) (d))"),
        # A noun kernel is the head where HD is not used.
        ({"X": ["a/NK", "c/RC", "d"], "S": ["b"]}, ONE, "(S (X (a)) (b) (c) (d))"),
        # Alpino's heads, the better of two, and none that is not.
        ({"X": ["a/hd", "c", "d"], "S": ["b"]}, ONE, "(S (X (a)) (b) (c) (d))"),
        ({"X": ["a/crd", "c/cnj", "d"], "S": ["b"]}, ONE, "(S (X (a)) (b) (c) (d))"),
        ({"X": ["a/su", "c/mod", "d"], "S": ["b"]}, ONE, "(S (a) (b) (X (c) (d)))"),
        # What still interrupts the next node moves on.
        (
            {"X": ["b/HD", "d"], "Y": [], "S": ["a", "c/HD"]},
            TWO | {"X": "Y/HD"},
            "(S (a) (Y (X (b))) (c) (d))",
        ),
        # A part that leaves its node is not the head of the next, whatever its label was.
        (
            {"X": ["a/HD", "c/HD", "d/HD"], "Y": [], "S": ["b"]},
            TWO | {"X": "Y/OA"},
            "(S (a) (b) (Y (X (c) (d))))",
        ),
        # Not from the whole of the tree, only from what it interrupts.
        ({"X": ["a/HD", "c"], "Y": ["b"], "S": ["d"]}, TWO, "(S (Y (X (a)) (b) (c)) (d))"),
    ]:
        found = brackets(raise_crossing_branches(graph("a b c d", tokens, nodes)))
        assert found == expected, (tokens, nodes)


def test_a_whole_node_is_raised() -> None:
    g = graph(
        "der Mann kam , welcher sang",
        {"R": ["welcher/SB", "sang/HD"], "N": ["der/NK", "Mann/NK"], "S": ["kam/HD", ","]},
        {"R": "N/RC", "N": "S/SB", "S": ""},
    )
    raised = raise_crossing_branches(g)
    assert brackets(raised) == "(S (N (der) (Mann)) (kam) (,) (R (welcher) (sang)))"
    assert raised.edges == g.edges


def test_a_graph_without_gaps_stays() -> None:
    g = graph("a b", {"A": ["a"], "S": ["b"]}, {"A": "S", "S": ""})
    assert attach_loose_tokens(g) is g
    assert raise_crossing_branches(g) is g
    assert split_crossing_branches(g) is g


@given(g=graphs())
def test_raising_gives_a_tree_of_all_nodes_and_only_moves_upwards(g: Graph) -> None:
    before = attach_loose_tokens(add_vroot(g))
    after = raise_crossing_branches(before)
    tree = to_tree(after)
    assert tree.words == g.words
    assert tree.labels[0] == "VROOT"
    assert sorted(tree.labels) == sorted((*g.labels, "VROOT"))
    for old, new in zip(before.token_parents, after.token_parents, strict=True):
        assert new in set(before.path_up(old))
    for old, new in zip(before.parents, after.parents, strict=True):
        assert new in {NO_PARENT, *before.path_up(old)}


def test_splitting_marks_each_part() -> None:
    g = split_crossing_branches(attach_loose_tokens(add_vroot(CROSSING)))
    assert brackets(g) == "(VROOT (S (VP* (das)) (will) (er) (VP* (hören))) (.))"
    assert g.edges == ("OC", "", "", "OC")


def test_a_part_of_a_part() -> None:
    """Y is cut by c, and X in it is cut by b and c: the part of Y over a and b holds one of X."""
    g = graph(
        "a b c d e",
        {"X": ["a", "d"], "Y": ["b", "e"], "S": ["c"]},
        {"X": "Y/OC", "Y": "S/OC", "S": ""},
    )
    expected = "(S (Y* (X* (a)) (b)) (c) (Y* (X* (d)) (e)))"
    assert brackets(split_crossing_branches(g)) == expected


@given(g=graphs())
def test_splitting_gives_each_uninterrupted_part(g: Graph) -> None:
    g = attach_loose_tokens(add_vroot(g))
    expected = []
    for label, tokens in zip(g.labels, yields(g), strict=True):
        starts = [token for token in tokens if token - 1 not in tokens]
        ends = [token + 1 for token in tokens if token + 1 not in tokens]
        mark = "*" if len(starts) > 1 else ""
        expected += [(s, e, label + mark) for s, e in zip(starts, ends, strict=True)]
    split = split_crossing_branches(g)
    assert sorted(to_tree(split).constituents()) == sorted(expected)
    # What is above a token is the same as before, marks aside.
    for old, new in zip(g.token_parents, split.token_parents, strict=True):
        below, above = (
            [h.labels[k].rstrip("*") for k in h.path_up(p)] for h, p in ((g, old), (split, new))
        )
        assert below == above
