"""TIGER-XML: sentences as tokens, nodes and labelled edges between them.

Nothing in the format keeps a sentence from having crossing branches, tokens that no node
holds, or several roots, and treebanks use all of that, so the reader yields :class:`Graph` and
leaves the way to a tree to named transforms. It refuses only what is no graph of that kind:
edges to nowhere, a token or node with two parents, a cycle, a node without edges, a declared
root that is not one. Secondary edges are no part of the graph and are ignored, and edges may
stand in any order.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from os import PathLike

from spmrl_bench.readers.graph_rows import GraphRows, SentenceError
from spmrl_bench.readers.text import OnError, fail
from spmrl_bench.readers.xml_stream import Attributes, needed, read_xml_sentences, root_element
from spmrl_bench.trees.graph import NO_PARENT, Graph

_CONTENT = re.compile(r"<(?:annotation|feature|graph|terminals|subcorpus)[\s/>]")


def read_tiger_xml(path: str | PathLike[str], *, on_error: OnError = fail) -> Iterator[Graph]:
    """The graphs of a file, in order.

    Raises:
        ReadError: the file cannot be read; or from ``on_error``, it is not well-formed XML,
            which ends it, or a sentence is not TIGER-XML. The graphs before the place have
            been yielded.
    """
    return read_xml_sentences(
        path, _Sentence, element="s", parts=frozenset({"graph"}), on_error=on_error
    )


def looks_like_tiger_xml(text: str) -> bool:
    """Whether a text, perhaps cut at its end, is of this format."""
    return root_element(text) in ("corpus", "subcorpus") and _CONTENT.search(text) is not None


class _Sentence:
    """One <s> element while it is being read."""

    def __init__(self, attributes: Attributes, number: int, line: int) -> None:
        self.name = attributes.get("id", str(number))
        self._line = line
        self._rows = GraphRows()
        self._declared_root: tuple[str, int] | None = None
        self._places: dict[str, tuple[list[int], list[str], int]] = {}  # by id
        self._edges: list[tuple[int, str, str, int]] = []  # node, label, id of child, line
        self._node = NO_PARENT  # the one whose element is open

    def start(self, element: str, attributes: Attributes, line: int) -> None:
        rows = self._rows
        if element == "edge" and self._node != NO_PARENT:
            child = needed(element, attributes, "idref", line)
            self._edges.append((self._node, attributes.get("label", ""), child, line))
        elif element in ("t", "nt"):
            name = needed(element, attributes, "id", line)
            if name in self._places:
                raise SentenceError(f"found the id '{name}' twice in the sentence", line)
            if element == "t":
                word = needed(element, attributes, "word", line)
                tag = needed(element, attributes, "pos", line)
                index = rows.add_token(word, tag)
                self._places[name] = rows.token_parents, rows.token_edges, index
            else:
                label = needed(element, attributes, "cat", line)
                self._node = rows.add_node(label, line)
                self._places[name] = rows.parents, rows.edges, self._node
        elif element == "graph" and "root" in attributes:
            self._declared_root = (attributes["root"], line)

    def end(self, element: str) -> None:
        if element == "nt":
            self._node = NO_PARENT

    def graph(self) -> Graph:
        rows = self._rows
        if not rows.words:
            raise SentenceError("found no <t> in the sentence", self._line)
        for node, label, child, line in self._edges:
            if child not in self._places:
                problem = f"found an edge to '{child}', which is no id of the sentence"
                raise SentenceError(problem, line)
            parents, edges, index = self._places[child]
            if parents[index] != NO_PARENT:
                raise SentenceError(f"found a second edge to '{child}', expected one parent", line)
            parents[index], edges[index] = node, label
        graph = rows.graph(self.name)
        if self._declared_root is not None:
            self._check_root(*self._declared_root)
        return graph

    def _check_root(self, name: str, line: int) -> None:
        if name not in self._places:
            raise SentenceError(f"the graph's root '{name}' is no id of the sentence", line)
        parents, _, index = self._places[name]
        if parents[index] != NO_PARENT:
            raise SentenceError(f"the graph's root '{name}' has a parent", line)
