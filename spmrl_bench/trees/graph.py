"""Syntax graphs whose constituents may be discontinuous, and how they become trees.

Treebanks of the NEGRA and TIGER schools let a constituent have gaps, leave punctuation
unattached and give a sentence several roots. A :class:`Graph` holds all of that: it only
knows the parent of each token and node. What has to happen before it is a :class:`Tree` are
separate decisions about roots, loose tokens and crossing branches, each a transform with a
name that goes into a treebank's manifest and into the signature of a score. Those about
crossing branches are in :mod:`spmrl_bench.trees.crossing`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, compress
from typing import NamedTuple

from spmrl_bench.errors import TreeError
from spmrl_bench.trees.tree import Tree, frozen

#: The parent of a root and of a token that is attached nowhere.
NO_PARENT = -1


@dataclass(frozen=True, slots=True)
class Graph:
    """Tokens and nodes of one sentence by their parents.

    Attributes:
        name: the sentence's identifier in its treebank.
        words: the ``n`` words.
        tags: the ``n`` part-of-speech tags.
        token_parents: node index or :data:`NO_PARENT`, one per token.
        token_edges: the label of the edge to that parent (``"SB"``), one per token.
        labels: one label per node, in no particular order.
        parents: node index or :data:`NO_PARENT`, one per node; no cycles.
        edges: the label of the edge to that parent, one per node.
    """

    name: str
    words: tuple[str, ...]
    tags: tuple[str, ...]
    token_parents: tuple[int, ...]
    token_edges: tuple[str, ...]
    labels: tuple[str, ...]
    parents: tuple[int, ...]
    edges: tuple[str, ...]

    def roots(self) -> list[int]:
        """Nodes without a parent."""
        return [node for node, parent in enumerate(self.parents) if parent == NO_PARENT]

    def path_up(self, node: int) -> Iterator[int]:
        """The node, its parent and so on up to a root."""
        while node != NO_PARENT:
            yield node
            node = self.parents[node]

    def bottom_up(self) -> list[int]:
        """Node indices, children before parents."""
        depth = depths(self.parents)
        return sorted(range(len(depth)), key=lambda node: -depth[node])

    def extents(self) -> list[Extent]:
        """From the first to the last token below each node, and how many there are."""
        n = len(self.words)
        first, end, tokens = [n] * len(self.labels), [0] * len(self.labels), [0] * len(self.labels)
        for token, parent in enumerate(self.token_parents):
            if parent != NO_PARENT:
                first[parent] = min(first[parent], token)
                end[parent] = token + 1
                tokens[parent] += 1
        for node in self.bottom_up():
            parent = self.parents[node]
            if parent != NO_PARENT:
                first[parent] = min(first[parent], first[node])
                end[parent] = max(end[parent], end[node])
                tokens[parent] += tokens[node]
        return [Extent(*extent) for extent in zip(first, end, tokens, strict=True)]


def depths(parents: Sequence[int]) -> list[int]:
    """How many nodes are above each node, by the parents of all."""
    depth = [-1] * len(parents) + [0]  # with the node itself; the last is where NO_PARENT leads
    for node in range(len(parents)):
        path: list[int] = []
        while depth[node] < 0:
            path.append(node)
            node = parents[node]
        for below in reversed(path):
            depth[below] = depth[parents[below]] + 1
    return [count - 1 for count in depth[:-1]]


class Extent(NamedTuple):
    """The tokens of a node: half-open bounds, and how many of those inside are below it."""

    first: int
    end: int
    tokens: int

    @property
    def has_gap(self) -> bool:
        """Whether a token between the first and the last is not below the node."""
        return 0 < self.tokens < self.end - self.first


def add_vroot(graph: Graph) -> Graph:
    """Put a node VROOT above every root, so that a sentence has a single one.

    Every sentence gets one, as in the NEGRA export format, also where it has one root already.
    Tokens that are attached nowhere stay so.
    """
    vroot = len(graph.labels)
    parents = tuple(vroot if parent == NO_PARENT else parent for parent in graph.parents)
    return replace(
        graph,
        labels=(*graph.labels, "VROOT"),
        parents=(*parents, NO_PARENT),
        edges=(*graph.edges, ""),
    )


def vroot_for_top(graph: Graph) -> Graph:
    """Call the root VROOT where it is called top, as in Alpino: scores do not count VROOT."""
    labels = list(graph.labels)
    for root in graph.roots():
        labels[root] = "VROOT" if labels[root] == "top" else labels[root]
    return replace(graph, labels=tuple(labels))


def attach_loose_tokens(graph: Graph) -> Graph:
    """Attach each unattached token (punctuation, mostly) where it disturbs least.

    A loose token goes to the lowest node above both the nearest attached token on its left
    and the nearest one on its right; before the first and after the last attached token it
    goes to the root. Needs a single root.
    """
    if NO_PARENT not in graph.token_parents:
        return graph
    roots = graph.roots()
    if len(roots) != 1:
        raise TreeError(f"{len(roots)} roots, but loose tokens need one: use add-vroot before")
    n = len(graph.words)
    attached = [token for token in range(n) if graph.token_parents[token] != NO_PARENT]
    parents = list(graph.token_parents)
    right = 0
    for token in range(n):
        if graph.token_parents[token] != NO_PARENT:
            right += 1
        elif 0 < right < len(attached):
            before, after = attached[right - 1], attached[right]
            above = set(graph.path_up(graph.token_parents[before]))
            parents[token] = next(
                node for node in graph.path_up(graph.token_parents[after]) if node in above
            )
        else:
            parents[token] = roots[0]
    return replace(graph, token_parents=tuple(parents))


def loosen_punctuation(graph: Graph) -> Graph:
    """Take punctuation off the root (tag punct, edge label --), for attach-loose-tokens.

    Alpino hangs all of it there, so that a comma interrupts every constituent around it
    although nothing else crosses. Done before attach-loose-tokens, which finds it a place
    inside.
    """
    roots = set(graph.roots())
    parents, edges = list(graph.token_parents), list(graph.token_edges)
    for token, tag in enumerate(graph.tags):
        if tag == "punct" and edges[token] == "--" and parents[token] in roots:
            parents[token], edges[token] = NO_PARENT, ""
    return replace(graph, token_parents=tuple(parents), token_edges=tuple(edges))


def drop_markup_tokens(graph: Graph) -> Graph:
    """Remove mark-up that stands as tokens (tag --, such as <h2> and </h2>).

    Constituents that have no other token are removed with it. A sentence of nothing but
    mark-up stays as it is.
    """
    keep = [
        tag != "--" or _MARKUP.fullmatch(word) is None
        for word, tag in zip(graph.words, graph.tags, strict=True)
    ]
    if all(keep) or not any(keep):
        return graph
    return without_tokens(graph, keep)


_MARKUP = re.compile(r"<[^<>]+>")


def without_tokens(graph: Graph, keep: list[bool]) -> Graph:
    """The graph with those tokens only, and without the nodes that this leaves empty."""
    parents = [parent for parent, kept in zip(graph.token_parents, keep, strict=True) if kept]
    filled = [False] * len(graph.labels)
    for parent in parents:
        while parent != NO_PARENT and not filled[parent]:
            filled[parent] = True
            parent = graph.parents[parent]
    renumbered = [count - 1 for count in accumulate(filled)]
    renumbered.append(NO_PARENT)  # where NO_PARENT leads
    return Graph(
        graph.name,
        tuple(compress(graph.words, keep)),
        tuple(compress(graph.tags, keep)),
        tuple(renumbered[parent] for parent in parents),
        tuple(compress(graph.token_edges, keep)),
        tuple(compress(graph.labels, filled)),
        tuple(renumbered[parent] for parent in compress(graph.parents, filled)),
        tuple(compress(graph.edges, filled)),
    )


def to_tree(graph: Graph) -> Tree:
    """The graph as a tree; edge labels are left out.

    Raises:
        TreeError: a constituent has a gap or no token, a token is attached nowhere, or there
            is not exactly one root (a single token needs none).
    """
    n = len(graph.words)
    if graph.labels or n != 1:
        if NO_PARENT in graph.token_parents:
            loose = graph.token_parents.index(NO_PARENT)
            raise TreeError(
                f"token {loose + 1} ('{graph.words[loose]}') is attached nowhere: "
                "use attach-loose-tokens"
            )
        if len(graph.roots()) != 1:
            raise TreeError(f"found {len(graph.roots())} roots, expected one: use add-vroot")
    rows = []
    depth = depths(graph.parents)
    for node, extent in enumerate(graph.extents()):
        label = graph.labels[node]
        if not extent.tokens:
            raise TreeError(f"node '{label}' has no token")
        if extent.has_gap:
            raise TreeError(
                f"constituent '{label}' over tokens {extent.first + 1} to {extent.end} has a gap:"
                " use raise-crossing-branches or split-crossing-branches"
            )
        rows.append((extent.first, -extent.end, depth[node], label))
    rows.sort()
    # Continuous nodes of one tree nest, so nothing is left to check.
    spans = frozen([(first, -end) for first, end, _, _ in rows], -1, 2)
    return Tree(graph.words, graph.tags, tuple(label for _, _, _, label in rows), spans)


#: Every transform of graphs but those in :mod:`spmrl_bench.trees.crossing`; the name is the
#: function's, with hyphens.
GRAPH_TRANSFORMS = (
    add_vroot,
    attach_loose_tokens,
    drop_markup_tokens,
    loosen_punctuation,
    vroot_for_top,
)
