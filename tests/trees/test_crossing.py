"""Two ways to make constituents continuous, on graphs where the outcome is known."""

from __future__ import annotations

import pytest
from hypothesis import given

from spmrl_bench.errors import TreeError
from spmrl_bench.readers.graphs import read_tiger_xml
from spmrl_bench.trees.crossing import (
    raise_crossing_branches,
    split_crossing_branches,
)
from spmrl_bench.trees.graph import (
    NO_PARENT,
    Graph,
    add_vroot,
    attach_loose_tokens,
    to_tree,
)
from tests.conftest import shared_data
from tests.trees.graphs import CROSSING, brackets, gaps, graph, graphs, yields


@pytest.mark.parametrize(
    ("tokens", "nodes", "expected"),
    [
        # The head stays, however short its part.
        ({"X": ["a/HD", "c", "d"], "S": ["b"]}, {"X": "S", "S": ""}, "(S (X (a)) (b) (c) (d))"),
        # No head: the longest part stays,
        ({"X": ["a", "c", "d"], "S": ["b"]}, {"X": "S", "S": ""}, "(S (a) (b) (X (c) (d)))"),
        # and the leftmost of equals.
        ({"X": ["a", "d"], "S": ["b", "c"]}, {"X": "S", "S": ""}, "(S (X (a)) (b) (c) (d))"),
        # A noun kernel is the head where HD is not used.
        ({"X": ["a/NK", "c/RC", "d"], "S": ["b"]}, {"X": "S", "S": ""}, "(S (X (a)) (b) (c) (d))"),
        # Alpino's heads,
        ({"X": ["a/hd", "c", "d"], "S": ["b"]}, {"X": "S", "S": ""}, "(S (X (a)) (b) (c) (d))"),
        # the better of two,
        (
            {"X": ["a/crd", "c/cnj", "d"], "S": ["b"]},
            {"X": "S", "S": ""},
            "(S (X (a)) (b) (c) (d))",
        ),
        # and none that is not.
        ({"X": ["a/su", "c/mod", "d"], "S": ["b"]}, {"X": "S", "S": ""}, "(S (a) (b) (X (c) (d)))"),
        # What still interrupts the next node moves on.
        (
            {"X": ["b/HD", "d"], "Y": [], "S": ["a", "c/HD"]},
            {"X": "Y/HD", "Y": "S", "S": ""},
            "(S (a) (Y (X (b))) (c) (d))",
        ),
        # A part that leaves its node is not the head of the next, whatever its label was.
        (
            {"X": ["a/HD", "c/HD", "d/HD"], "Y": [], "S": ["b"]},
            {"X": "Y/OA", "Y": "S", "S": ""},
            "(S (a) (b) (Y (X (c) (d))))",
        ),
        # Not from the whole of the tree, only from what it interrupts.
        (
            {"X": ["a/HD", "c"], "Y": ["b"], "S": ["d"]},
            {"X": "Y", "Y": "S", "S": ""},
            "(S (Y (X (a)) (b) (c)) (d))",
        ),
    ],
)
def test_raising(tokens: dict[str, list[str]], nodes: dict[str, str], expected: str) -> None:
    assert brackets(raise_crossing_branches(graph("a b c d", tokens, nodes))) == expected


def test_a_whole_node_is_raised() -> None:
    g = graph(
        "der Mann kam , welcher sang",
        {"R": ["welcher/SB", "sang/HD"], "N": ["der/NK", "Mann/NK"], "S": ["kam/HD", ","]},
        {"R": "N/RC", "N": "S/SB", "S": ""},
    )
    raised = raise_crossing_branches(g)
    assert brackets(raised) == "(S (N (der) (Mann)) (kam) (,) (R (welcher) (sang)))"
    assert raised.edges == g.edges


def test_raising_changes_nothing_else() -> None:
    g = graph("a b", {"A": ["a"], "S": ["b"]}, {"A": "S", "S": ""})
    assert raise_crossing_branches(g) is g
    assert split_crossing_branches(g) is g


def test_raising_needs_all_tokens_attached() -> None:
    g = graph("a b c", {"A": ["a", "c"]}, {"A": ""})
    with pytest.raises(TreeError, match=r"root 'A' lacks token 2 \('b'\): use add-vroot and att"):
        raise_crossing_branches(g)


def test_a_node_without_tokens_cannot_be_raised() -> None:
    with pytest.raises(TreeError, match="node 'B' has no token"):
        raise_crossing_branches(graph("a", {"A": ["a"]}, {"A": "", "B": "A"}))


@given(g=graphs())
def test_every_graph_becomes_a_tree_with_its_nodes(g: Graph) -> None:
    attached = attach_loose_tokens(add_vroot(g))
    tree = to_tree(raise_crossing_branches(attached))
    assert tree.words == g.words
    assert tree.labels[0] == "VROOT"
    assert sorted(tree.labels) == sorted((*g.labels, "VROOT"))


@given(g=graphs())
def test_raising_only_moves_upwards(g: Graph) -> None:
    before = attach_loose_tokens(add_vroot(g))
    after = raise_crossing_branches(before)
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


def test_splitting_needs_all_tokens_attached() -> None:
    g = graph("a b c", {"A": ["a", "c"]}, {"A": ""})
    with pytest.raises(TreeError, match=r"root 'A' lacks token 2 \('b'\): use add-vroot and att"):
        split_crossing_branches(g)


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


@pytest.mark.parametrize(
    ("pattern", "nodes", "sentences"),
    [
        ("squoia_de/*.xml", 701, 480),
        ("smultron_sv_de_en/smultron_sv_banana.xml", 2, 2),
        ("smultron_sv_de_en/smultron_de_banana.xml", 39, 22),
        ("smultron_sv_de_en/smultron_en_banana.xml", 0, 0),
    ],
)
def test_real_treebanks_have_as_many_gaps_as_they_say(
    pattern: str, nodes: int, sentences: int
) -> None:
    folder = shared_data("treebanks")
    read = [g for path in folder.glob(pattern) for g in read_tiger_xml(path)]
    found = [gaps(g) for g in read]
    assert (sum(found), sum(map(bool, found))) == (nodes, sentences)
    for g in read:
        attached = attach_loose_tokens(add_vroot(g))
        split = split_crossing_branches(attached)
        assert (split is attached) == (not gaps(attached))
        assert len(to_tree(raise_crossing_branches(attached)).labels) == len(g.labels) + 1
