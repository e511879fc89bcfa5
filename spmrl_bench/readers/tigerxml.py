"""TIGER-XML: sentences as tokens, nodes and labelled edges between them.

Nothing in the format keeps a sentence from having crossing branches, tokens that no node
holds, or several roots, and treebanks use all of that, so the reader yields :class:`Graph` and
leaves the way to a tree to named transforms. It refuses only what is no graph of that kind:
edges to nowhere, a token or node with two parents, a cycle, a node without edges, a declared
root that is not one. Secondary edges are no part of the graph and are ignored, and edges may
stand in any order. The file is parsed as a stream, so that its size does not matter, with
expat itself, because only that tells the lines for the messages.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from os import PathLike
from typing import NoReturn
from xml.parsers import expat

from spmrl_bench.errors import ReadError
from spmrl_bench.trees.graph import NO_PARENT, Graph

_CHUNK = 1 << 16


def read_tiger_xml(path: str | PathLike[str]) -> Iterator[Graph]:
    """The graphs of a file, in order.

    Raises:
        ReadError: the file cannot be read, is not well-formed XML or not TIGER-XML; the graphs
            before the place have been yielded.
    """
    reader = _Reader(path)
    try:
        with open(path, "rb") as file:
            while chunk := file.read(_CHUNK):
                reader.feed(chunk, final=False)
                yield from reader.take()
    except OSError as error:
        raise ReadError(f"cannot be read: {error.strerror}", path=path) from error
    reader.feed(b"", final=True)
    yield from reader.take()


@dataclass
class _Sentence:
    """One <s> element while it is being read; lines for messages."""

    name: str
    line: int
    declared_root: tuple[str, int] | None = None
    words: list[str] = field(default_factory=list)
    tags: list[str] = field(default_factory=list)
    labels: list[str] = field(default_factory=list)
    lines: list[int] = field(default_factory=list)  # of the nodes
    tokens: dict[str, int] = field(default_factory=dict)  # index by id
    nodes: dict[str, int] = field(default_factory=dict)
    edges: list[tuple[int, str, str, int]] = field(default_factory=list)  # node, label, id, line


class _Reader:
    """Collects finished graphs from the events of the XML parser."""

    def __init__(self, path: str | PathLike[str]) -> None:
        self._path = path
        self._parser = expat.ParserCreate()
        self._parser.StartElementHandler = self._start
        self._parser.EndElementHandler = self._end
        self._sentence: _Sentence | None = None
        self._in_node = False
        self._finished: list[Graph] = []
        self._failure: ReadError | None = None

    def feed(self, data: bytes, *, final: bool) -> None:
        """Parse a piece of the file; a failure waits until the graphs before it are taken."""
        try:
            self._parser.Parse(data, final)
        except ReadError as error:
            self._failure = error
        except expat.ExpatError as error:
            self._failure = ReadError(
                f"not well-formed XML: {expat.ErrorString(error.code)}",
                path=self._path,
                line=error.lineno,
                column=error.offset + 1,
                sentence=self._sentence.name if self._sentence else None,
            )
        except (LookupError, ValueError) as error:  # how pyexpat refuses a declared encoding
            self._failure = ReadError(f"declares an encoding: {error}", path=self._path, line=1)

    def take(self) -> Iterator[Graph]:
        """The graphs finished since the last call; raises the failure that came after them."""
        yield from self._finished
        self._finished.clear()
        if self._failure is not None:
            raise self._failure

    def _start(self, element: str, attributes: dict[str, str]) -> None:
        line = self._parser.CurrentLineNumber
        if element == "s":
            if self._sentence is not None:
                self._fail("found <s> inside another <s>", line)
            self._sentence = _Sentence(attributes.get("id", f"at line {line}"), line)
        elif element in ("graph", "t", "nt") or (element == "edge" and self._in_node):
            sentence = self._sentence
            if sentence is None:
                if element == "graph":
                    self._fail("found <graph> outside <s>", line)
                return  # the head of the corpus may describe edges
            if element == "graph":
                if "root" in attributes:
                    sentence.declared_root = (attributes["root"], line)
            elif element == "edge":
                target = self._needed(element, attributes, "idref", line)
                node = len(sentence.labels) - 1
                sentence.edges.append((node, attributes.get("label", ""), target, line))
            else:
                self._token_or_node(sentence, element, attributes, line)

    def _token_or_node(
        self, sentence: _Sentence, element: str, attributes: dict[str, str], line: int
    ) -> None:
        name = self._needed(element, attributes, "id", line)
        if name in sentence.tokens or name in sentence.nodes:
            self._fail(f"found the id '{name}' twice in the sentence", line)
        if element == "t":
            sentence.tokens[name] = len(sentence.words)
            sentence.words.append(self._needed(element, attributes, "word", line))
            sentence.tags.append(self._needed(element, attributes, "pos", line))
        else:
            sentence.nodes[name] = len(sentence.labels)
            sentence.labels.append(self._needed(element, attributes, "cat", line))
            sentence.lines.append(line)
            self._in_node = True

    def _end(self, element: str) -> None:
        if element == "nt":
            self._in_node = False
        elif element == "s" and self._sentence is not None:
            self._finished.append(self._graph(self._sentence))
            self._sentence = None

    def _graph(self, sentence: _Sentence) -> Graph:
        """The checked graph of a finished sentence."""
        if not sentence.words:
            self._fail("found no <t> in the sentence", sentence.line)
        token_parents = [NO_PARENT] * len(sentence.words)
        token_edges = [""] * len(sentence.words)
        parents = [NO_PARENT] * len(sentence.labels)
        edges = [""] * len(sentence.labels)
        childless = set(range(len(parents)))
        for node, label, target, line in sentence.edges:
            if target in sentence.tokens:
                index, above, names = sentence.tokens[target], token_parents, token_edges
            elif target in sentence.nodes:
                index, above, names = sentence.nodes[target], parents, edges
            else:
                self._fail(f"found an edge to '{target}', which is no id of the sentence", line)
            if above[index] != NO_PARENT:
                self._fail(f"found a second edge to '{target}', expected one parent", line)
            above[index], names[index] = node, label
            childless.discard(node)
        if childless:
            line = sentence.lines[min(childless)]
            self._fail(f"found the node '{sentence.labels[min(childless)]}' without edges", line)
        self._check_cycles(sentence, parents)
        self._check_root(sentence, token_parents, parents)
        return Graph(
            sentence.name,
            tuple(sentence.words),
            tuple(sentence.tags),
            tuple(token_parents),
            tuple(token_edges),
            tuple(sentence.labels),
            tuple(parents),
            tuple(edges),
        )

    def _check_cycles(self, sentence: _Sentence, parents: list[int]) -> None:
        ends_at_root = [False] * len(parents)
        for start in range(len(parents)):
            path: set[int] = set()
            node = start
            while node != NO_PARENT and not ends_at_root[node]:
                if node in path:
                    label, line = sentence.labels[node], sentence.lines[node]
                    self._fail(f"found the node '{label}' below itself", line)
                path.add(node)
                node = parents[node]
            for node in path:
                ends_at_root[node] = True

    def _check_root(
        self, sentence: _Sentence, token_parents: list[int], parents: list[int]
    ) -> None:
        if sentence.declared_root is None:
            return
        name, line = sentence.declared_root
        if name in sentence.nodes:
            parent = parents[sentence.nodes[name]]
        elif name in sentence.tokens:
            parent = token_parents[sentence.tokens[name]]
        else:
            self._fail(f"the graph's root '{name}' is no id of the sentence", line)
        if parent != NO_PARENT:
            self._fail(f"the graph's root '{name}' has a parent", line)

    def _needed(self, element: str, attributes: dict[str, str], name: str, line: int) -> str:
        if name not in attributes:
            self._fail(f"<{element}> lacks the attribute '{name}'", line)
        return attributes[name]

    def _fail(self, problem: str, line: int) -> NoReturn:
        name = self._sentence.name if self._sentence else None
        raise ReadError(problem, path=self._path, line=line, sentence=name)
