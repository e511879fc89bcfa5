"""Syntax graphs whose constituents may be discontinuous, and the named ways to make them trees.

Treebanks of the NEGRA and TIGER schools let a constituent have gaps, leave punctuation
unattached and give a sentence several roots. A :class:`Graph` holds all of that: it only
knows the parent of each token and node. What has to happen before it is a :class:`Tree` are
three separate decisions, each a transform with a name that goes into a treebank's manifest
and into the signature of a score.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

from spmrl_bench.errors import TreeError
from spmrl_bench.trees.tree import Tree

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

    def depths(self) -> list[int]:
        """Number of nodes above each node."""
        depth = [-1] * len(self.parents)
        for node in range(len(depth)):
            path: list[int] = []
            for above in self.path_up(node):
                if depth[above] >= 0:
                    break
                path.append(above)
            for below in reversed(path):
                parent = self.parents[below]
                depth[below] = depth[parent] + 1 if parent != NO_PARENT else 0
        return depth

    def bottom_up(self) -> list[int]:
        """Node indices, children before parents."""
        depth = self.depths()
        return sorted(range(len(depth)), key=lambda node: -depth[node])

    def yields(self) -> list[list[int]]:
        """The token indices below each node, ascending."""
        below: list[list[int]] = [[] for _ in self.labels]
        for token, parent in enumerate(self.token_parents):
            if parent != NO_PARENT:
                below[parent].append(token)
        for node in self.bottom_up():
            below[node].sort()
            parent = self.parents[node]
            if parent != NO_PARENT:
                below[parent] += below[node]
        return below


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


#: How much an edge label speaks for its child being the head, best first; all others are last.
_HEAD_EDGES = ("HD", "DH", "NK", "PNC", "NMC", "ADC", "AVC", "UC", "CJ", "AC")


def raise_crossing_branches(graph: Graph) -> Graph:
    """Make every constituent continuous by moving the parts that are cut off from its head.

    Bottom-up, the children of a discontinuous node are grouped into uninterrupted parts. The
    part with the head stays; the children of the other parts move to the node's parent, and
    further up as long as they interrupt that one too. The head is the child with the edge
    label HD, or else the first that occurs of DH, NK, PNC, NMC, ADC, AVC, UC, CJ, AC. If
    several parts have such a child, or none, the longest of them stays, the leftmost of equals.
    """
    token_parents, parents = list(graph.token_parents), list(graph.parents)
    children: list[list[_Child]] = [[] for _ in graph.labels]
    for token, parent in enumerate(graph.token_parents):
        if parent != NO_PARENT:
            children[parent].append(_Child(token, token, _head_rank(graph.token_edges[token]), -1))
    for node in graph.bottom_up():
        parts = _parts(children[node])
        if not parts:
            raise TreeError(f"node '{graph.labels[node]}' has no token")
        kept = min(parts, key=_part_rank)
        parent = graph.parents[node]
        if parent != NO_PARENT:
            rank = _head_rank(graph.edges[node])
            children[parent].append(_Child(kept[0].first, kept[-1].last, rank, node))
        elif len(parts) > 1:
            gap = parts[0][-1].last + 1
            raise TreeError(
                f"the root '{graph.labels[node]}' lacks token {gap + 1} "
                f"('{graph.words[gap]}'): use add-vroot and attach-loose-tokens before"
            )
        for child in (child for part in parts if part is not kept for child in part):
            # Whatever it was to its own parent, it is not the head of the next.
            children[parent].append(child._replace(rank=len(_HEAD_EDGES)))
            if child.node == -1:
                token_parents[child.first] = parent
            else:
                parents[child.node] = parent
    return replace(graph, token_parents=tuple(token_parents), parents=tuple(parents))


class _Child(NamedTuple):
    """A continuous child: its first and last token, its head rank, its node or -1 for a token."""

    first: int
    last: int
    rank: int
    node: int


def _parts(children: list[_Child]) -> list[list[_Child]]:
    """Children in surface order, grouped where nothing stands between them."""
    parts: list[list[_Child]] = []
    for child in sorted(children):
        if parts and parts[-1][-1].last + 1 == child.first:
            parts[-1].append(child)
        else:
            parts.append([child])
    return parts


def _part_rank(part: list[_Child]) -> tuple[int, int, int]:
    """Least for the part that stays: best head, then most tokens, then leftmost."""
    return min(child.rank for child in part), part[0].first - part[-1].last, part[0].first


def _head_rank(edge: str) -> int:
    return _HEAD_EDGES.index(edge) if edge in _HEAD_EDGES else len(_HEAD_EDGES)


def to_tree(graph: Graph) -> Tree:
    """The graph as a tree; edge labels are left out.

    Raises:
        TreeError: a constituent has a gap or no token, a token is attached nowhere, or there
            is not exactly one root (a single token needs none).
    """
    n = len(graph.words)
    if graph.labels or n != 1:
        loose = [token for token in range(n) if graph.token_parents[token] == NO_PARENT]
        if loose:
            raise TreeError(
                f"token {loose[0] + 1} ('{graph.words[loose[0]]}') is attached nowhere: "
                "use attach-loose-tokens"
            )
        if len(graph.roots()) != 1:
            raise TreeError(f"found {len(graph.roots())} roots, expected one: use add-vroot")
    rows = []
    depth = graph.depths()
    for node, tokens in enumerate(graph.yields()):
        label = graph.labels[node]
        if not tokens:
            raise TreeError(f"node '{label}' has no token")
        start, end = tokens[0], tokens[-1] + 1
        if end - start != len(tokens):
            raise TreeError(
                f"constituent '{label}' over tokens {start + 1} to {end} has a gap: "
                "use raise-crossing-branches"
            )
        rows.append((start, -end, depth[node], label))
    rows.sort()
    return Tree.build(graph.words, graph.tags, [(s, -e, label) for s, e, _, label in rows])


#: The transforms of graphs by name.
GRAPH_TRANSFORMS: Mapping[str, Callable[[Graph], Graph]] = {
    "add-vroot": add_vroot,
    "attach-loose-tokens": attach_loose_tokens,
    "raise-crossing-branches": raise_crossing_branches,
}
