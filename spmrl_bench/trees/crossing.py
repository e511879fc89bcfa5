"""Crossing branches: two ways to make all constituents continuous.

A parser of context-free brackets cannot give ``das ... hören`` in ``das will er hören`` to one
VP. A treebank with such constituents is therefore trained on and scored after one of two
changes, and scores after one say nothing about scores after the other:

    as annotated               raise-crossing-branches      split-crossing-branches

    S                          S                            S
    |------.----.              |------.----.----.           |------.----.----.
    VP     |    |              |      |    |    VP          VP*    |    |    VP*
    |------|----|----.         |      |    |    |           |      |    |    |
    das   will  er  hören      das   will  er  hören        das   will  er  hören

Raising keeps the number of constituents and loses what belonged together. Splitting keeps
every token below a node of the right label, and marks the label so that the parts can be told
from whole constituents.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from spmrl_bench.errors import TreeError
from spmrl_bench.trees.graph import NO_PARENT, Graph

#: How much an edge label speaks for its child being the head, best first; all others are last.
#: The two schemes have no label in common, and each rank compares within one scheme only.
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
    token_parents, parents = list(graph.token_parents), list(graph.parents)
    children = _children(graph)
    for node in graph.bottom_up():
        parts = _parts(children[node])
        kept = min(parts, key=_part_rank)
        parent = graph.parents[node]
        if parent == NO_PARENT:
            continue
        rank = _HEAD_RANKS.get(graph.edges[node], _NO_HEAD)
        children[parent].append(_Child(kept[0].first, kept[-1].last, rank, node))
        for child in (child for part in parts if part is not kept for child in part):
            # Whatever it was to its own parent, it is not the head of the next.
            children[parent].append(child._replace(rank=_NO_HEAD))
            _set_parent(child, parent, token_parents, parents)
    return replace(graph, token_parents=tuple(token_parents), parents=tuple(parents))


def split_crossing_branches(graph: Graph) -> Graph:
    """Make every constituent continuous by turning one with gaps into one for each part.

    Each uninterrupted part becomes a constituent of its own, whose label has a * at its end:
    VP over two parts becomes VP* and VP*. The conversion of Boyd (2007), Discontinuity
    Revisited: An Improved Conversion to Context-Free Representations, Proceedings of the
    Linguistic Annotation Workshop, pages 41-44.
    """
    if not _is_crossing(graph):
        return graph
    token_parents, parents = list(graph.token_parents), list(graph.parents)
    labels, edges = list(graph.labels), list(graph.edges)
    children = _children(graph)
    for node in graph.bottom_up():
        parts = _parts(children[node])
        nodes = [node, *range(len(labels), len(labels) + len(parts) - 1)]
        if len(parts) > 1:
            labels[node] += "*"
            labels += [labels[node]] * (len(parts) - 1)
            edges += [edges[node]] * (len(parts) - 1)
            parents += [parents[node]] * (len(parts) - 1)
        for part, target in zip(parts, nodes, strict=True):
            for child in part:
                _set_parent(child, target, token_parents, parents)
            if graph.parents[node] != NO_PARENT:
                whole = _Child(part[0].first, part[-1].last, _NO_HEAD, target)
                children[graph.parents[node]].append(whole)
    return replace(
        graph,
        token_parents=tuple(token_parents),
        labels=tuple(labels),
        parents=tuple(parents),
        edges=tuple(edges),
    )


class _Child(NamedTuple):
    """A continuous child: its first and last token, its head rank, its node or -1 for a token."""

    first: int
    last: int
    rank: int
    node: int


def _is_crossing(graph: Graph) -> bool:
    """Whether there is something to do; a TreeError if nothing can be done."""
    extents = graph.extents()
    for node, extent in enumerate(extents):
        label = graph.labels[node]
        if not extent.tokens:
            raise TreeError(f"node '{label}' has no token")
        if extent.has_gap and graph.parents[node] == NO_PARENT:
            tokens = range(extent.first, extent.end)
            above = [graph.path_up(graph.token_parents[token]) for token in tokens]
            gap = next(token for token, path in zip(tokens, above, strict=True) if node not in path)
            raise TreeError(
                f"the root '{label}' lacks token {gap + 1} ('{graph.words[gap]}'): "
                "use add-vroot and attach-loose-tokens before"
            )
    return any(extent.has_gap for extent in extents)


def _children(graph: Graph) -> list[list[_Child]]:
    """The tokens of each node; its nodes are for the caller to add."""
    children: list[list[_Child]] = [[] for _ in graph.labels]
    for token, parent in enumerate(graph.token_parents):
        if parent != NO_PARENT:
            rank = _HEAD_RANKS.get(graph.token_edges[token], _NO_HEAD)
            children[parent].append(_Child(token, token, rank, -1))
    return children


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


def _set_parent(child: _Child, parent: int, token_parents: list[int], parents: list[int]) -> None:
    if child.node == -1:
        token_parents[child.first] = parent
    else:
        parents[child.node] = parent


#: Every transform of crossing branches; the name is the function's, with hyphens.
CROSSING_TRANSFORMS = (raise_crossing_branches, split_crossing_branches)
