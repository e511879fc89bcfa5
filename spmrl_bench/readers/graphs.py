"""Treebanks of graphs: TIGER-XML, Alpino XML and the NEGRA export format.

Nothing in these formats keeps a sentence from having crossing branches, tokens that no node holds,
or several roots, and treebanks use all of that. So the readers yield :class:`Graph` and leave the
way to a tree to named transforms. They refuse only what is no graph of that kind: a parent that
is not there, a token or node with two parents, a cycle, a node without children.

XML is read a sentence at a time, as an :class:`Element`, with expat alone, which tells lines and
fetches nothing from outside. A mistake in the meaning of a sentence concerns that sentence, and
reading goes on after it; where the text ceases to be well-formed XML, nothing after can be
trusted, and the file ends there.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field
from os import PathLike
from xml.parsers import expat

from spmrl_bench.errors import ReadError
from spmrl_bench.readers.text import LONGEST, Mistake, OnError, fail, read_text
from spmrl_bench.trees.dependencies import head_fault
from spmrl_bench.trees.graph import NO_PARENT, Graph, without_tokens

Path = str | PathLike[str]

_CHUNK = 1 << 16  # bytes of XML that are read at a time
_LARGEST_CHUNK = LONGEST >> 2  # at most, inside an element
_PROLOGUE = re.compile(r"(?:\s+|<\?.*?\?>|<!--.*?-->|<!DOCTYPE[^\[>]*(?:\[.*?\])?\s*>)*", re.DOTALL)
_ROOT = re.compile(r"<([A-Za-z_][\w.-]*)[\s/>]")
_TIGER = re.compile(r"<(?:annotation|feature|graph|terminals|subcorpus)[\s/>]")
_ALPINO = re.compile(r"<alpino_ds[\s/>]")
_NUMBER = re.compile(r"[0-9]{1,9}")


@dataclass(slots=True)
class Element:
    """An element of XML with all in it but text.

    Attributes:
        name: of the element.
        attributes: their values by name.
        line: where it begins, from 1.
        children: the elements in it.
    """

    name: str
    attributes: dict[str, str]
    line: int
    children: list[Element] = field(default_factory=list)

    def __getitem__(self, attribute: str) -> str:
        """The value of an attribute.

        Raises:
            Mistake: the element lacks it.
        """
        if attribute not in self.attributes:
            raise Mistake(f"<{self.name}> lacks the attribute '{attribute}'", self.line)
        return self.attributes[attribute]

    def get(self, attribute: str, default: str) -> str:
        return self.attributes.get(attribute, default)

    def descendants(self) -> Iterator[tuple[Element, Element]]:
        """Yield every element below, in the order of the file, and the one that holds it."""
        stack = [(self, child) for child in reversed(self.children)]
        while stack:
            above, element = stack.pop()
            yield element, above
            stack += [(element, child) for child in reversed(element.children)]


@dataclass(slots=True)
class _Row:
    """A token or node: its word or label, its tag ("" of a node), parent and edge label."""

    id: str | int
    text: str
    tag: str
    line: int
    parent: str | int | None = None
    edge: str = ""


def _graph(
    name: str, line: int, tokens: Sequence[_Row], nodes: Sequence[_Row], *, whole: bool = True
) -> Graph:
    """The graph of a sentence; if it is whole, no node lacks children or is below itself."""
    if not tokens:
        raise Mistake("found no word in the sentence", line)
    index: dict[str | int | None, int] = {node.id: k for k, node in enumerate(nodes)}
    index[None] = NO_PARENT
    for row in (*tokens, *nodes):
        if row.parent not in index:
            raise Mistake(f"the parent {row.parent} is no node of the sentence", row.line)
    parents = [index[node.parent] for node in nodes]
    token_parents = [index[token.parent] for token in tokens]
    if whole:
        childless = set(range(len(nodes))).difference(parents, token_parents)
        fault = head_fault([parent + 1 for parent in parents], roots="several")
        if childless or fault is not None:
            node = nodes[min(childless) if childless or fault is None else fault.word - 1]
            what = "without children" if childless else "below itself"
            raise Mistake(f"found the node '{node.text}' {what}", node.line)
    return Graph(
        name,
        tuple(token.text for token in tokens),
        tuple(token.tag for token in tokens),
        tuple(token_parents),
        tuple(token.edge for token in tokens),
        tuple(node.text for node in nodes),
        tuple(parents),
        tuple(node.edge for node in nodes),
    )


class _Sentences:
    """Takes the sentences out of the events of expat, and what is wrong between them."""

    def __init__(self, path: Path, name: str, parts: Collection[str]) -> None:
        self.found: list[Element | ReadError] = []
        self.ended = False
        self.number = 0
        self._path = path
        self._name = name
        self._parts = parts
        self._open: list[Element] = []  # of the sentence
        self._fed = 0  # bytes
        self._begin = 0  # where the sentence begins, in bytes
        self._parser = expat.ParserCreate()
        self._parser.StartElementHandler = self._start
        self._parser.EndElementHandler = self._end

    def feed(self, data: bytes) -> None:
        """Parse a piece of the file; an empty one is its end."""
        self.ended = not data
        self._fed += len(data)
        try:
            self._parser.Parse(data, not data)
        except expat.ExpatError as error:
            problem = f"not well-formed XML: {expat.ErrorString(error.code)}"
            self._end_file(problem, error.lineno, error.offset + 1)
        except (LookupError, ValueError) as error:  # how pyexpat refuses a declared encoding
            self._end_file(f"declares an encoding: {error}", 1)
        begin = self._begin if self._open else self._parser.CurrentByteIndex
        if self._fed - begin > LONGEST and not self.ended:
            what = f"a <{self._name}>" if self._open else "a tag or comment"
            line = self._open[0].line if self._open else self._parser.CurrentLineNumber
            self._end_file(f"{what} of more than {LONGEST >> 20} MiB begins here", line)

    def _end_file(self, problem: str, line: int, column: int | None = None) -> None:
        name = sentence_name(self._open[0], self.number + 1) if self._open else None
        self._report(problem, line, column, name)
        self.ended = True

    def _report(
        self, problem: str, line: int, column: int | None = None, name: str | None = None
    ) -> None:
        error = ReadError(problem, path=self._path, line=line, column=column, sentence=name)
        self.found.append(error)

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        element = Element(name, attributes, self._parser.CurrentLineNumber)
        if self._open:
            self._open[-1].children.append(element)
        elif name == self._name:
            self._begin = self._parser.CurrentByteIndex
        else:
            if name in self._parts:
                self._report(f"found <{name}> outside <{self._name}>", element.line)
            return
        self._open.append(element)

    def _end(self, name: str) -> None:
        if self._open:
            element = self._open.pop()
            if not self._open:
                self.found.append(element)


def sentence_name(sentence: Element, number: int) -> str:
    """Return the identifier of a sentence, or its number in the file."""
    name = sentence.get("id", str(number))
    for child in sentence.children:
        name = child.get("sentid", name)  # of Alpino
    return name


def _read_xml(
    path: Path,
    name: str,
    parts: Collection[str],
    graph_of: Callable[[Element, str], Graph],
    on_error: OnError,
) -> Iterator[Graph]:
    """Yield the graph of each element of a name; the parts occur inside it only."""
    sentences = _Sentences(path, name, parts)
    size = _CHUNK
    try:
        with open(path, "rb") as file:
            while not sentences.ended:
                sentences.feed(file.read(size))
                # expat scans an unfinished element again with every piece of it: the pieces grow,
                # so that the time stays linear.
                size = _CHUNK if sentences.found else min(2 * size, _LARGEST_CHUNK)
                for found in sentences.found:
                    if isinstance(found, ReadError):
                        on_error(found)
                        continue
                    sentences.number += 1
                    called = sentence_name(found, sentences.number)
                    try:
                        for element, _ in found.descendants():
                            if element.name == name:
                                raise Mistake(
                                    f"found <{name}> inside another <{name}>", element.line
                                )
                        yield graph_of(found, called)
                    except Mistake as mistake:
                        on_error(
                            ReadError(
                                mistake.problem, path=path, line=mistake.place, sentence=called
                            )
                        )
                sentences.found.clear()
    except OSError as error:
        raise ReadError(f"cannot be read: {error.strerror}", path=path) from error


def _root(text: str) -> str:
    """The name of the outermost element of XML, perhaps cut at its end; else empty."""
    text = text.removeprefix("\ufeff")
    prologue = _PROLOGUE.match(text)
    root = _ROOT.match(text, prologue.end() if prologue is not None else 0)
    return root[1] if root is not None else ""


def read_tiger_xml(path: Path, *, on_error: OnError = fail) -> Iterator[Graph]:
    """Yield the graphs of a file of TIGER-XML, in order.

    Edges may stand in any order; secondary edges are no part of the graph.

    Raises:
        ReadError: the file cannot be read; or from ``on_error``, it is not well-formed XML,
            which ends it, or a sentence is not TIGER-XML. The graphs before the place have
            been yielded.
    """
    return _read_xml(path, "s", {"graph"}, _tiger_graph, on_error)


def looks_like_tiger_xml(text: str) -> bool:
    """Return whether a text, perhaps cut at its end, is of this format."""
    return _root(text) in ("corpus", "subcorpus") and _TIGER.search(text) is not None


def _tiger_graph(sentence: Element, name: str) -> Graph:
    rows: dict[str, _Row] = {}
    tokens: list[_Row] = []
    nodes: list[_Row] = []
    edges: list[tuple[str, Element]] = []  # identifier of the node, edge
    root: Element | None = None
    for element, above in sentence.descendants():
        if element.name == "edge":
            if above.name != "nt":
                raise Mistake("found an <edge> outside <nt>", element.line)
            edges.append((above["id"], element))
        elif element.name in ("t", "nt"):
            is_token = element.name == "t"
            key = element["id"]
            if key in rows:
                raise Mistake(f"found the id '{key}' twice in the sentence", element.line)
            text = element["word" if is_token else "cat"]
            rows[key] = _Row(key, text, element["pos"] if is_token else "", element.line)
            (tokens if is_token else nodes).append(rows[key])
        elif element.name == "graph" and "root" in element.attributes:
            root = element
    if not tokens:
        raise Mistake("found no <t> in the sentence", sentence.line)
    for node, edge in edges:
        child = edge["idref"]
        if child not in rows:
            raise Mistake(f"found an edge to '{child}', which is no id of the sentence", edge.line)
        if rows[child].parent is not None:
            raise Mistake(f"found a second edge to '{child}', expected one parent", edge.line)
        rows[child].parent, rows[child].edge = node, edge.get("label", "")
    graph = _graph(name, sentence.line, tokens, nodes)
    if root is not None:
        key = root["root"]
        if key not in rows:
            raise Mistake(f"the graph's root '{key}' is no id of the sentence", root.line)
        if rows[key].parent is not None:
            raise Mistake(f"the graph's root '{key}' has a parent", root.line)
    return graph


def read_alpino_xml(path: Path, *, on_error: OnError = fail) -> Iterator[Graph]:
    """Yield the graphs of a file of Alpino XML with one sentence or many, in order.

    The children of a node are ordered by their function, so that constituents may have gaps: the
    words are sorted by ``begin``, which must number them without holes. A node that only has an
    ``index`` repeats another one in a second function (the subject of an infinitive, an extracted
    phrase). It has no words of its own and is left out, as are nodes that hold nothing else.
    Punctuation stands below ``top``, and stays there. The edge label is ``rel``.

    Raises:
        ReadError: the file cannot be read; or from ``on_error``, it is not well-formed XML,
            which ends it, or a sentence is not Alpino's. The graphs before the place have
            been yielded.
    """
    return _read_xml(path, "alpino_ds", {"node"}, _alpino_graph, on_error)


def looks_like_alpino_xml(text: str) -> bool:
    """Return whether a text, perhaps cut at its end, is of this format."""
    return _root(text) != "" and _ALPINO.search(text) is not None


def _alpino_graph(sentence: Element, name: str) -> Graph:
    tokens: list[tuple[int, _Row]] = []  # place in the sentence, token
    nodes: list[_Row] = []
    outermost = 0
    for element, above in sentence.descendants():
        if element.name != "node":
            continue
        line, has = element.line, element.attributes
        parent = id(above) if above.name == "node" else None
        if parent is not None and ("word" in above.attributes or "cat" not in above.attributes):
            raise Mistake("found a <node> inside one with a word or without 'cat'", line)
        outermost += parent is None
        if outermost > 1:
            raise Mistake("found a second outermost <node>, expected one", line)
        edge = element["rel"]
        if "word" in has:
            begin = element["begin"]
            if _NUMBER.fullmatch(begin) is None:
                raise Mistake(f'found begin="{begin}", expected a number from 0', line)
            token = _Row(id(element), has["word"], element["pos"], line, parent, edge)
            tokens.append((int(begin), token))
        elif "cat" in has:
            if not any(child.name == "node" for child in element.children):
                raise Mistake(f"found the node '{has['cat']}' without children", line)
            nodes.append(_Row(id(element), has["cat"], "", line, parent, edge))
        elif "index" not in has:
            raise Mistake("<node> has none of the attributes 'word', 'cat' and 'index'", line)
    tokens.sort(key=lambda token: (token[0], token[1].line))
    for place, (begin, token) in enumerate(tokens):
        if begin < place:
            raise Mistake(f'found a second word with begin="{begin}"', token.line)
        if begin > place:
            problem = f'found begin="{begin}", expected begin="{place}" for the next word'
            raise Mistake(problem, token.line)
    graph = _graph(name, sentence.line, [token for _, token in tokens], nodes, whole=False)
    return without_tokens(graph, [True] * len(tokens))  # and without nodes that have none


_COLUMNS = {"3": 5, "4": 6}  # of a version, before the secondary edges
_NODE = re.compile(r"#([5-9][0-9]{2}|[1-9][0-9]{3,8})")
_PARENT = re.compile(r"0|[5-9][0-9]{2}|[1-9][0-9]{3,8}")
_MARKS = ("#FORMAT", "#BOT", "#EOT", "#BOS", "#EOS")
_FIRST = re.compile(r"#(?:FORMAT[\t ]+[34]|BOT|BOS)(?:[\t\r ]|\Z)")


@dataclass(slots=True)
class _Lines:
    """The lines of a sentence of the export format: each has its number and its columns."""

    name: str
    line: int
    rows: list[tuple[int, list[str]]] = field(default_factory=list)


def read_negra_export(
    path: Path, *, encoding: str = "utf-8", on_error: OnError = fail
) -> Iterator[Graph]:
    """Yield the graphs of a file of the NEGRA export format, in order.

    Each token has a line, then each node: word, tag, morphology, edge label and parent in version
    3; in version 4 the lemma comes after the word. Any number of secondary edges, each a label and
    a node, may follow, and a comment after ``%%``. Nodes are called ``#500`` and up; parent 0 is
    none. A line ``#FORMAT`` states the version; without it the number of columns tells, which is
    odd in version 3 and even in version 4. Tables (``#BOT`` to ``#EOT``), lemmas, morphology and
    secondary edges are left out.

    Raises:
        ReadError: the file cannot be read or decoded; or from ``on_error``, it is of another
            version, which ends it, or a sentence is malformed. Reading goes on at the next
            ``#BOS``.
    """
    version: str | None = None
    sentence: _Lines | None = None
    number = 0  # of the sentence
    in_table = lost = False  # lost: outside a sentence, which has been reported

    def report(problem: str, line: int) -> None:
        name = sentence.name if sentence is not None else None
        on_error(ReadError(problem, path=path, line=line, sentence=name))

    for line, text in enumerate(read_text(path, encoding).split("\n"), start=1):
        columns = _columns(text)
        mark, *values = " ".join(columns).split(" ")
        if not columns or (in_table and mark not in ("#EOT", "#BOS")):
            continue
        if mark not in _MARKS:
            if sentence is not None:
                sentence.rows.append((line, columns))
            elif not lost:
                report(f"found '{columns[0]}' outside a sentence, expected #BOS", line)
                lost = True
            continue
        if sentence is not None and mark != "#EOS":
            report(f"found {mark} before the sentence's #EOS", line)
            sentence = None
        if mark == "#FORMAT":
            version = values[0] if values else ""
            if version not in _COLUMNS:
                found = f"#FORMAT {version}".rstrip()
                report(f"found {found}, expected #FORMAT 3 or #FORMAT 4", line)
                return
        elif mark == "#BOS":
            number += 1
            sentence = _Lines(values[0] if values else str(number), line)
            lost = False
        elif mark == "#EOS":
            if sentence is None:
                if not lost:
                    report("found #EOS without #BOS", line)
            elif values and values[0] != sentence.name:
                report(f"found #EOS {values[0]}, expected #EOS {sentence.name}", line)
            else:
                try:
                    yield _negra_graph(sentence, version)
                except Mistake as mistake:
                    report(mistake.problem, mistake.place)
            sentence = None
        in_table = mark == "#BOT"
    if sentence is not None:
        report("the sentence has no #EOS", sentence.line)


def looks_like_negra_export(text: str) -> bool:
    """Return whether a text, perhaps cut at its end, is of this format."""
    lines = (line.strip("\r\t ") for line in text.removeprefix("\ufeff").split("\n"))
    first = next((line for line in lines if line and not line.startswith("%%")), "")
    return _FIRST.match(first) is not None


def _columns(text: str) -> list[str]:
    """The columns of a line, which any number of tabs separates, up to a comment."""
    columns = text.rstrip("\r").split("\t" if "\t" in text else " ")
    filled = [column for column in (column.strip(" ") for column in columns) if column]
    comment = next((k for k, column in enumerate(filled) if column.startswith("%%")), None)
    return filled[:comment]


def _negra_graph(sentence: _Lines, version: str | None) -> Graph:
    if version is None and sentence.rows:
        version = "3" if len(sentence.rows[0][1]) % 2 else "4"
    count = _COLUMNS[version or "4"]
    tokens: list[_Row] = []
    nodes: dict[str, _Row] = {}
    for line, columns in sentence.rows:
        if len(columns) < count or (len(columns) - count) % 2:
            problem = f"found {len(columns)} columns, expected {count} in version {version}"
            raise Mistake(f"{problem}, and two more for each secondary edge", line)
        word, (tag, _, edge, above) = columns[0], columns[count - 4 : count]
        if _PARENT.fullmatch(above) is None:
            raise Mistake(f"the parent is '{above}', expected 0, or a number from 500", line)
        parent = None if above == "0" else above
        if (node := _NODE.fullmatch(word)) is not None:
            if node[1] in nodes:
                raise Mistake(f"found the node {word} twice in the sentence", line)
            nodes[node[1]] = _Row(node[1], tag, "", line, parent, edge)
        elif nodes:
            raise Mistake(f"found the word '{word}' after the nodes", line)
        else:
            tokens.append(_Row("", word, tag, line, parent, edge))
    return _graph(sentence.name, sentence.line, tokens, list(nodes.values()))
