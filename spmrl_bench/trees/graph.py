"""Syntax graphs whose constituents may be discontinuous, and how they become trees.

Treebanks of the NEGRA and TIGER schools let a constituent have gaps, leave punctuation
unattached and give a sentence several roots. A :class:`Graph` holds all of that. What makes it a
:class:`Tree` are separate decisions about roots, loose tokens and crossing branches, each a
function that :mod:`spmrl_bench.trees.transforms` gives a name.

A parser of context-free brackets cannot give ``das ... hören`` in ``das will er hören`` to one
VP. A treebank with such constituents is therefore trained on and scored after one of two
changes, and scores after one say nothing about scores after the other:

    as annotated               raise-crossing-branches      split-crossing-branches

    S                          S                            S
    |------.----.              |------.----.----.           |------.----.----.
    VP     |    |              |      |    |    VP          VP*    |    |    VP*
    |------|----|----.         |      |    |    |           |      |    |    |
    das   will  er  hören      das   will  er  hören        das   will  er  hören

Raising keeps the number of constituents and loses what belonged together. Splitting keeps every
token below a node of the right label, with a mark that tells the parts from whole constituents.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import accumulate, compress
from typing import NamedTuple

from spmrl_bench.errors import TreeError
from spmrl_bench.trees import dependencies
from spmrl_bench.trees.tree import Tree, readonly_int32

#: The parent of a root and of a token that is attached nowhere.
NO_PARENT = -1


@dataclass(frozen=True, slots=True)
class Graph:
    """Tokens and nodes of one sentence by their parents."""

    name: str  # the sentence's identifier in its treebank
    words: tuple[str, ...]  # the `n` words
    tags: tuple[str, ...]  # the `n` part-of-speech tags
    token_parents: tuple[int, ...]  # node index or `NO_PARENT`, one per token
    token_edges: tuple[str, ...]  # the label of the edge to that parent (`"SB"`), one per token
    labels: tuple[str, ...]  # one label per node, in no particular order
    parents: tuple[int, ...]  # node index or `NO_PARENT`, one per node; no cycles
    edges: tuple[str, ...]  # the label of the edge to that parent, one per node

    def roots(self) -> list[int]:
        """Return the nodes without a parent."""
        return [node for node, parent in enumerate(self.parents) if parent == NO_PARENT]

    def path_up(self, node: int) -> Iterator[int]:
        """Yield the node, its parent and so on up to a root."""
        while node != NO_PARENT:
            yield node
            node = self.parents[node]

    def depths(self) -> list[int]:
        """Return how many nodes are above each node, itself included."""
        return dependencies.depths([parent + 1 for parent in self.parents])

    def bottom_up(self) -> list[int]:
        """Return node indices, children before parents."""
        return sorted(range(len(self.labels)), key=self.depths().__getitem__, reverse=True)

    def extents(self) -> list[Extent]:
        """Return from where to where the tokens below each node are, and how many there are."""
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
    tops = {root for root in graph.roots() if graph.labels[root] == "top"}
    labels = ("VROOT" if node in tops else label for node, label in enumerate(graph.labels))
    return replace(graph, labels=tuple(labels))


def attach_loose_tokens(graph: Graph) -> Graph:
    """Attach each unattached token (punctuation, mostly) where it disturbs least.

    It goes to the lowest node above both the nearest attached token on its left and the nearest
    one on its right; before the first and after the last, to the root. Needs a single root.
    """
    if NO_PARENT not in graph.token_parents:
        return graph
    roots = graph.roots()
    if len(roots) != 1:
        raise TreeError(f"{len(roots)} roots, but loose tokens need one: use add-vroot before")
    parents = list(graph.token_parents)
    attached = [parent for parent in parents if parent != NO_PARENT]
    right = 0  # how many of them are on the left
    for token, parent in enumerate(graph.token_parents):
        if parent != NO_PARENT:
            right += 1
        elif 0 < right < len(attached):
            above = set(graph.path_up(attached[right - 1]))
            parents[token] = next(n for n in graph.path_up(attached[right]) if n in above)
        else:
            parents[token] = roots[0]
    return replace(graph, token_parents=tuple(parents))


def loosen_punctuation(graph: Graph) -> Graph:
    """Take punctuation off the root (tag punct, edge label --), for attach-loose-tokens.

    Alpino hangs all of it there, so that a comma interrupts every constituent around it although
    nothing else crosses.
    """
    roots = graph.roots()
    parents, edges = list(graph.token_parents), list(graph.token_edges)
    for token, tag in enumerate(graph.tags):
        if tag == "punct" and edges[token] == "--" and parents[token] in roots:
            parents[token], edges[token] = NO_PARENT, ""
    return replace(graph, token_parents=tuple(parents), token_edges=tuple(edges))


def drop_markup_tokens(graph: Graph) -> Graph:
    """Remove mark-up that stands as tokens (tag --, such as <h2> and </h2>).

    Constituents that have no other token go with it. A sentence of nothing but mark-up stays.
    """
    rows = zip(graph.words, graph.tags, strict=True)
    keep = [tag != "--" or _MARKUP.fullmatch(word) is None for word, tag in rows]
    return without_tokens(graph, keep) if any(keep) and not all(keep) else graph


_MARKUP = re.compile(r"<[^<>]+>")


def without_tokens(graph: Graph, keep: list[bool]) -> Graph:
    """Return the graph with those tokens only, and without the nodes that this leaves empty."""
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
    """Return the graph as a tree; edge labels are left out. Raise a TreeError if a constituent has
    a gap or no token, a token is attached nowhere, or there is not exactly one root (a single token
    needs none)."""
    if graph.labels or len(graph.words) != 1:
        if NO_PARENT in graph.token_parents:
            loose = graph.token_parents.index(NO_PARENT)
            place = f"token {loose + 1} ('{graph.words[loose]}')"
            raise TreeError(f"{place} is attached nowhere: use attach-loose-tokens")
        if len(graph.roots()) != 1:
            raise TreeError(f"found {len(graph.roots())} roots, expected one: use add-vroot")
    rows = []
    depth = graph.depths()
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
    spans = readonly_int32([(first, -end) for first, end, _, _ in rows], -1, 2)
    return Tree(graph.words, graph.tags, tuple(label for _, _, _, label in rows), spans)


# How much an edge label speaks for its child being the head, best first; all others are last.
# The two schemes have no label in common, and each rank compares within one scheme only.
_TIGER_HEADS = ("HD", "DH", "NK", "PNC", "NMC", "ADC", "AVC", "UC", "CJ", "AC")
_ALPINO_HEADS = ("hd", "cmp", "crd", "rhd", "whd", "dlink", "nucl", "cnj", "mwp", "dp")
_NO_HEAD = len(_TIGER_HEADS)
_HEAD_RANKS = {
    edge: rank for scheme in (_TIGER_HEADS, _ALPINO_HEADS) for rank, edge in enumerate(scheme)
}


def raise_crossing_branches(graph: Graph) -> Graph:
    """Make every constituent continuous by moving the parts that are cut off from its head.

    Bottom-up, the children of a discontinuous node are grouped into uninterrupted parts. The
    part with the head stays; the children of the other parts move to the node's parent, and
    further up as long as they interrupt that one too. The head is the child with the edge
    label HD, or else the first that occurs of DH, NK, PNC, NMC, ADC, AVC, UC, CJ, AC; in
    Alpino the first that occurs of hd, cmp, crd, rhd, whd, dlink, nucl, cnj, mwp, dp. If
    several parts have such a child, or none, the longest of them stays, the leftmost of equals.
    """
    if not _is_crossing(graph):
        return graph
    n = len(graph.words)
    above = [*graph.token_parents, *graph.parents]
    for node, parts, beside in _bottom_up(graph):
        # The best head, then most tokens, then leftmost.
        kept = min(
            parts, key=lambda p: (min(c.rank for c in p), p[0].first - p[-1].last, p[0].first)
        )
        rank = _HEAD_RANKS.get(graph.edges[node], _NO_HEAD)
        beside.append(_Child(kept[0].first, kept[-1].last, rank, n + node))
        for child in (child for part in parts if part is not kept for child in part):
            # Whatever it was to its own parent, it is not the head of the next.
            beside.append(child._replace(rank=_NO_HEAD))
            above[child.place] = graph.parents[node]
    return replace(graph, token_parents=tuple(above[:n]), parents=tuple(above[n:]))


def split_crossing_branches(graph: Graph) -> Graph:
    """Make every constituent continuous by turning one with gaps into one for each part.

    VP over two parts becomes VP* and VP*. The conversion of Boyd (2007), Discontinuity Revisited:
    An Improved Conversion to Context-Free Representations (Linguistic Annotation Workshop).
    """
    if not _is_crossing(graph):
        return graph
    n = len(graph.words)
    above = [*graph.token_parents, *graph.parents]
    labels, edges = list(graph.labels), list(graph.edges)
    for node, parts, beside in _bottom_up(graph):
        if len(parts) > 1:
            labels[node] += "*"
        for part in parts:
            target = node if part is parts[0] else len(labels)
            if target != node:
                labels.append(labels[node])
                edges.append(edges[node])
                above.append(graph.parents[node])
            for child in part:
                above[child.place] = target
            beside.append(_Child(part[0].first, part[-1].last, _NO_HEAD, n + target))
    return replace(
        graph,
        token_parents=tuple(above[:n]),
        labels=tuple(labels),
        parents=tuple(above[n:]),
        edges=tuple(edges),
    )


class _Child(NamedTuple):
    """A continuous child: first and last token, head rank, place among all tokens, then nodes."""

    first: int
    last: int
    rank: int
    place: int


def _is_crossing(graph: Graph) -> bool:
    """Whether there is something to do; a TreeError if nothing can be done."""
    extents = graph.extents()
    for node, extent in enumerate(extents):
        label = graph.labels[node]
        if not extent.tokens:
            raise TreeError(f"node '{label}' has no token")
        if extent.has_gap and graph.parents[node] == NO_PARENT:
            tokens = range(extent.first, extent.end)
            gap = next(t for t in tokens if node not in graph.path_up(graph.token_parents[t]))
            raise TreeError(
                f"the root '{label}' lacks token {gap + 1} ('{graph.words[gap]}'): "
                "use add-vroot and attach-loose-tokens before"
            )
    return any(extent.has_gap for extent in extents)


def _bottom_up(graph: Graph) -> Iterator[tuple[int, list[list[_Child]], list[_Child]]]:
    """Each node with a parent, children first: the parts that its children make, grouped where
    nothing stands between them, and the children of its parent, for the caller to add to."""
    children: list[list[_Child]] = [[] for _ in graph.labels]
    for token, parent in enumerate(graph.token_parents):
        if parent != NO_PARENT:
            rank = _HEAD_RANKS.get(graph.token_edges[token], _NO_HEAD)
            children[parent].append(_Child(token, token, rank, token))
    for node in graph.bottom_up():
        if graph.parents[node] == NO_PARENT:  # has no gap
            continue
        parts: list[list[_Child]] = []
        for child in sorted(children[node]):
            if parts and parts[-1][-1].last + 1 == child.first:
                parts[-1].append(child)
            else:
                parts.append([child])
        yield node, parts, children[graph.parents[node]]
