"""Graphs for tests: written down in short form, and drawn at random."""

from __future__ import annotations

from hypothesis import strategies as st

from spmrl_bench.trees.escapes import write_brackets
from spmrl_bench.trees.graph import NO_PARENT, Graph, to_tree


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


def yields(g: Graph) -> list[list[int]]:
    """The tokens below each node, ascending."""
    below: list[list[int]] = [[] for _ in g.labels]
    for token, parent in enumerate(g.token_parents):
        for node in g.path_up(parent):
            below[node].append(token)
    return below


def brackets(g: Graph) -> str:
    """The tree without tags."""
    return write_brackets(to_tree(g)).replace("(T ", "(")


def gaps(g: Graph) -> int:
    """How many nodes have a gap with an attached token; loose tokens make no gap."""
    missing = [set(range(tokens[0], tokens[-1])) - {*tokens} for tokens in yields(g)]
    return sum(any(g.token_parents[token] != NO_PARENT for token in each) for each in missing)


CROSSING = graph(
    "das will er hören .",
    {"VP": ["das/OA", "hören/HD"], "S": ["will/HD", "er/SB"]},
    {"VP": "S/OC", "S": ""},
)


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
