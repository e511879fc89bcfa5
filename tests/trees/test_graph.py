"""Ways from a graph with crossing branches to a tree."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spmrl_bench.errors import TreeError
from spmrl_bench.trees.brackets import write_brackets
from spmrl_bench.trees.crossing import raise_crossing_branches
from spmrl_bench.trees.graph import (
    NO_PARENT,
    Graph,
    add_vroot,
    attach_loose_tokens,
    to_tree,
)


def graph(words: str, tokens: dict[str, list[str]], nodes: dict[str, str]) -> Graph:
    """A graph from its words, ``{node: [word, or word/edge]}`` and ``{node: parent[/edge]}``.

    Words of the sentence that no node has are loose; node names are their labels.
    """
    forms = words.split()
    names = list(nodes)
    parents, edges = [NO_PARENT] * len(forms), [""] * len(forms)
    for node, children in tokens.items():
        for child in children:
            word, _, edge = child.partition("/")
            parents[forms.index(word)] = names.index(node)
            edges[forms.index(word)] = edge
    above = [value.partition("/") for value in nodes.values()]
    return Graph(
        name="s",
        words=tuple(forms),
        tags=tuple("T" for _ in forms),
        token_parents=tuple(parents),
        token_edges=tuple(edges),
        labels=tuple(names),
        parents=tuple(names.index(name) if name else NO_PARENT for name, _, _ in above),
        edges=tuple(edge for _, _, edge in above),
    )


def brackets(g: Graph) -> str:
    """The tree without tags."""
    return write_brackets(to_tree(g)).replace("(T ", "(")


CROSSING = graph(
    "das will er hören .",
    {"VP": ["das/OA", "hören/HD"], "S": ["will/HD", "er/SB"]},
    {"VP": "S/OC", "S": ""},
)


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
    assert raise_crossing_branches(g) == g


def test_raising_needs_all_tokens_attached() -> None:
    g = graph("a b c", {"A": ["a", "c"]}, {"A": ""})
    with pytest.raises(TreeError, match=r"root 'A' lacks token 2 \('b'\): use add-vroot and att"):
        raise_crossing_branches(g)


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


def test_a_node_without_tokens_cannot_be_raised() -> None:
    with pytest.raises(TreeError, match="node 'B' has no token"):
        raise_crossing_branches(graph("a", {"A": ["a"]}, {"A": "", "B": "A"}))


@st.composite
def graphs(draw: st.DrawFn) -> Graph:
    """Any graph: every node has a token below it, some tokens are loose, some nodes are roots."""
    nodes = draw(st.integers(0, 5))
    parents = [draw(st.integers(NO_PARENT, node - 1)) for node in range(nodes)]
    n = draw(st.integers(1, 6)) + nodes
    holders = list(range(nodes))  # each node holds at least one token of its own
    holders += [draw(st.integers(NO_PARENT, nodes - 1)) for _ in range(n - nodes)]
    edge = st.sampled_from(["HD", "NK", "MO", ""])
    return Graph(
        name="s",
        words=tuple(f"w{i}" for i in range(n)),
        tags=("T",) * n,
        token_parents=tuple(draw(st.permutations(holders))),
        token_edges=tuple(draw(edge) for _ in range(n)),
        labels=tuple(f"N{k}" for k in range(nodes)),
        parents=tuple(parents),
        edges=tuple(draw(edge) for _ in range(nodes)),
    )


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
