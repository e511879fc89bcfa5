"""Treebanks of graphs: TIGER-XML, Alpino XML and the NEGRA export format.

Nothing in these formats keeps a sentence from having crossing branches, tokens that no node holds,
or several roots, and treebanks use all of that. So the readers yield :class:`Graph` and leave the
way to a tree to named transforms. They refuse only what is no graph of that kind: a parent that
is not there, a token or node with two parents, a cycle, a node without children.

XML is read a sentence at a time, with expat alone, which tells lines and fetches nothing from
outside. Where the text ceases to be well-formed XML, the file ends.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple
from xml.parsers import expat

from spmrl_bench.errors import ReadError
from spmrl_bench.readers.text import (
    LONGEST,
    FilePath,
    MistakeError,
    OnError,
    fail,
    fields,
    read_text,
)
from spmrl_bench.storage.files import open_unpacked
from spmrl_bench.trees.dependencies import head_fault
from spmrl_bench.trees.graph import NO_PARENT, Graph, without_tokens

_CHUNK = 1 << 16  # bytes of XML that are read at a time
_ROOT = re.compile(  # of XML, after its prologue
    r"(?:\s+|<\?.*?\?>|<!--.*?-->|<!DOCTYPE[^\[>]*(?:\[.*?\])?\s*>)*+<([A-Za-z_][\w.-]*)[\s/>]",
    re.DOTALL,
)
_TIGER = re.compile(r"<(?:annotation|feature|graph|terminals|subcorpus)[\s/>]")
_NUMBER = re.compile(r"[0-9]{1,9}")


class _Element(NamedTuple):
    """An element within a sentence of XML."""

    name: str
    attributes: dict[str, str]
    line: int  # where it begins, from 1
    above: _Element | None  # the one that holds it; None for the sentence itself

    def needed(self, attribute: str) -> str:
        if attribute not in self.attributes:
            raise MistakeError(f"<{self.name}> lacks the attribute '{attribute}'", self.line)
        return self.attributes[attribute]


@dataclass(slots=True)
class _Row:
    """A token, or a node without a tag, on its way to a graph."""

    id: str | int
    text: str  # word or label
    tag: str | None
    line: int
    parent: str | int | None = None
    edge: str = ""


def _graph(name: str, line: int, rows: Iterable[_Row], *, whole: bool = True) -> Graph:
    """The graph of a sentence; if it is whole, no node lacks children or is below itself."""
    rows = list(rows)
    tokens = [row for row in rows if row.tag is not None]
    nodes = [row for row in rows if row.tag is None]
    if not tokens:
        raise MistakeError("found no word in the sentence", line)
    index: dict[str | int | None, int] = {node.id: k for k, node in enumerate(nodes)}
    index[None] = NO_PARENT
    for row in (*tokens, *nodes):
        if row.parent not in index:
            raise MistakeError(f"the parent {row.parent} is no node of the sentence", row.line)
    parents = [index[node.parent] for node in nodes]
    token_parents = [index[token.parent] for token in tokens]
    if whole:
        for k in sorted(set(range(len(nodes))).difference(parents, token_parents)):
            raise MistakeError(f"found the node '{nodes[k].text}' without children", nodes[k].line)
        fault = head_fault([parent + 1 for parent in parents], roots="several")
        if fault is not None:
            node = nodes[fault.word - 1]
            raise MistakeError(f"found the node '{node.text}' below itself", node.line)
    return Graph(
        name,
        tuple(token.text for token in tokens),
        tuple(token.tag or "" for token in tokens),
        tuple(token_parents),
        tuple(token.edge for token in tokens),
        tuple(node.text for node in nodes),
        tuple(parents),
        tuple(node.edge for node in nodes),
    )


class _Sentences:
    """Takes sentences, and what is wrong between them, out of the events of expat."""

    def __init__(self, path: FilePath, name: str, inner: str) -> None:
        self.found: list[list[_Element] | ReadError] = []  # a sentence is its elements, in order
        self.ended = False
        self._path = path
        self._name, self._inner = name, inner
        self._open: list[_Element] = []
        self._elements: list[_Element] = []  # of the sentence
        self._fed = 0  # bytes
        self._begin = 0  # where the sentence begins, in bytes
        self._parser = expat.ParserCreate()
        self._parser.StartElementHandler = self._start
        self._parser.EndElementHandler = self._end

    def feed(self, data: bytes) -> None:
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
            what = f"<{self._name}>" if self._open else "a tag"
            line = self._open[0].line if self._open else self._parser.CurrentLineNumber
            self._end_file(f"{what} of more than {LONGEST >> 20} MiB begins here", line)

    def _end_file(self, problem: str, line: int, column: int | None = None) -> None:
        name = _name_of(self._elements) if self._open else None
        error = ReadError(problem, path=self._path, line=line, column=column, sentence=name)
        self.found.append(error)
        self.ended = True

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        above = self._open[-1] if self._open else None
        element = _Element(name, attributes, self._parser.CurrentLineNumber, above)
        if above is None and name != self._name:
            if name == self._inner:
                problem = f"found <{name}> outside <{self._name}>"
                self.found.append(ReadError(problem, path=self._path, line=element.line))
            return
        if above is None:
            self._elements, self._begin = [], self._parser.CurrentByteIndex
        self._open.append(element)
        self._elements.append(element)

    def _end(self, name: str) -> None:
        if self._open:
            self._open.pop()
            if not self._open:
                self.found.append(self._elements)


def _name_of(sentence: list[_Element]) -> str | None:
    """The identifier of a sentence; of Alpino's, an element in it may have it."""
    names = [element.attributes.get("sentid") for element in sentence[1:]]
    return next(filter(None, reversed(names)), sentence[0].attributes.get("id"))


def _read_xml(
    path: FilePath,
    name: str,
    inner: str,
    graph_of: Callable[[list[_Element], str], Graph],
    on_error: OnError,
) -> Iterator[Graph]:
    """Yield the graph of each element of a name, which alone has elements of an inner name."""
    sentences = _Sentences(path, name, inner)
    number = 0
    size = _CHUNK
    try:
        with open_unpacked(Path(path)) as file:
            while not sentences.ended:
                sentences.feed(file.read(size))
                # expat scans an unfinished element again with every piece, so that these must grow.
                size = _CHUNK if sentences.found else min(2 * size, LONGEST >> 2)
                for found in sentences.found:
                    if isinstance(found, ReadError):
                        on_error(found)
                        continue
                    number += 1
                    called = _name_of(found) or str(number)
                    try:
                        yield graph_of(found, called)
                    except MistakeError as error:
                        problem, line = error.args
                        on_error(ReadError(problem, path=path, line=line, sentence=called))
                sentences.found.clear()
    except OSError as error:
        raise ReadError(f"cannot be read: {error.strerror}", path=path) from error


def read_tiger_xml(path: FilePath, *, on_error: OnError = fail) -> Iterator[Graph]:
    """Yield the graphs of a file of TIGER-XML, in order; secondary edges are no part of them. Raise
    a ReadError if the file cannot be read; ``on_error`` gets one if it is not well-formed XML,
    which ends it, or a sentence is not TIGER-XML."""
    return _read_xml(path, "s", "graph", _tiger_graph, on_error)


def looks_like_tiger_xml(text: str) -> bool:
    """Return whether a text, perhaps cut at its end, is of this format."""
    root = _ROOT.match(text)
    return root is not None and root[1] in ("corpus", "subcorpus") and bool(_TIGER.search(text))


def _tiger_graph(sentence: list[_Element], name: str) -> Graph:
    rows: dict[str, _Row] = {}
    edges: list[tuple[str, _Element]] = []  # identifier of the node, edge
    root: _Element | None = None
    for element in sentence[1:]:
        kind, above = element.name, element.above
        if kind == "edge":
            if above is None or above.name != "nt":
                raise MistakeError("found an <edge> outside <nt>", element.line)
            edges.append((above.attributes["id"], element))
        elif kind in ("t", "nt"):
            key = element.needed("id")
            if key in rows:
                raise MistakeError(f"found the id '{key}' twice in the sentence", element.line)
            text = element.needed("word" if kind == "t" else "cat")
            tag = element.needed("pos") if kind == "t" else None
            rows[key] = _Row(key, text, tag, element.line)
        elif kind == "graph" and "root" in element.attributes:
            root = element
        elif kind == "s":
            raise MistakeError("found <s> inside another <s>", element.line)
    if all(row.tag is None for row in rows.values()):
        raise MistakeError("found no <t> in the sentence", sentence[0].line)
    for node, edge in edges:
        child = rows.get(to := edge.needed("idref"))
        if child is None:
            raise MistakeError(f"found an edge to '{to}', no id of the sentence", edge.line)
        if child.parent is not None:
            raise MistakeError(f"found a second edge to '{child.id}', expected one", edge.line)
        child.parent, child.edge = node, edge.attributes.get("label", "")
    graph = _graph(name, sentence[0].line, rows.values())
    if root is not None:
        key = root.attributes["root"]
        if key not in rows or rows[key].parent is not None:
            problem = "has a parent" if key in rows else "is no id of the sentence"
            raise MistakeError(f"the root '{key}' {problem}", root.line)
    return graph


def read_alpino_xml(path: FilePath, *, on_error: OnError = fail) -> Iterator[Graph]:
    """Yield the graphs of a file of Alpino XML with one sentence or many, in order.

    The children of a node are ordered by their function: the words are sorted by ``begin``, which
    must number them without holes. A node that only has an ``index`` repeats another one in a
    second function (the subject of an infinitive, an extracted phrase). It is left out, as are
    nodes that hold nothing else. Punctuation stays below ``top``. The edge label is ``rel``.
    """
    return _read_xml(path, "alpino_ds", "node", _alpino_graph, on_error)


def looks_like_alpino_xml(text: str) -> bool:
    """Return whether a text, perhaps cut at its end, is of this format."""
    return _ROOT.match(text) is not None and re.search(r"<alpino_ds[\s/>]", text) is not None


def _alpino_graph(sentence: list[_Element], name: str) -> Graph:
    tokens: list[tuple[int, _Row]] = []  # place in the sentence, token
    nodes: list[_Row] = []
    children: dict[int, int] = {}  # elements in each node
    for element in sentence[1:]:
        if element.name == "alpino_ds":
            raise MistakeError("found <alpino_ds> inside another <alpino_ds>", element.line)
        if element.name != "node":
            continue
        line, has, above = element.line, element.attributes, element.above
        parent = id(above) if above is not None and above.name == "node" else None
        if parent is None and (tokens or nodes):
            raise MistakeError("found a second outermost <node>, expected one", line)
        if parent is not None:
            if parent not in children:
                raise MistakeError("found a <node> inside one with a word or without 'cat'", line)
            children[parent] += 1
        edge = element.needed("rel")
        if "word" in has:
            begin = element.needed("begin")
            if _NUMBER.fullmatch(begin) is None:
                raise MistakeError(f'found begin="{begin}", expected a number from 0', line)
            row = _Row(id(element), has["word"], element.needed("pos"), line, parent, edge)
            tokens.append((int(begin), row))
        elif "cat" in has:
            children[id(element)] = 0
            nodes.append(_Row(id(element), has["cat"], None, line, parent, edge))
        elif "index" not in has:
            raise MistakeError("<node> has none of the attributes 'word', 'cat', 'index'", line)
    for node, count in zip(nodes, children.values(), strict=True):
        if tokens and not count:
            raise MistakeError(f"found the node '{node.text}' without children", node.line)
    tokens.sort(key=lambda token: (token[0], token[1].line))
    for place, (number, token) in enumerate(tokens):
        if number != place:
            problem = f'found begin="{number}", expected begin="{place}" for the next word'
            raise MistakeError(problem, token.line)
    rows = [*(token for _, token in tokens), *nodes]
    graph = _graph(name, sentence[0].line, rows, whole=False)
    return without_tokens(graph, [True] * len(tokens))  # and without nodes that have none


_COLUMNS = {"3": 5, "4": 6}  # of a version, before the secondary edges
_COMMENT = re.compile(r"(?:^|(?<=[\t ]))%%.*")
_NODE = re.compile(r"#([5-9][0-9]{2}|[1-9][0-9]{3,8})")
_PARENT = re.compile(r"0|[5-9][0-9]{2}|[1-9][0-9]{3,8}")
_MARKS = ("#FORMAT", "#BOT", "#EOT", "#BOS", "#EOS")
_FIRST = re.compile(r"#(?:FORMAT[\t ]+[34]|BOT|BOS)(?:[\t\r ]|\Z)")


class _Lines(NamedTuple):
    name: str
    line: int
    rows: list[tuple[int, list[str]]]  # the number of each line, and its columns


def read_negra_export(
    path: FilePath, *, encoding: str = "utf-8", on_error: OnError = fail
) -> Iterator[Graph]:
    """Yield the graphs of a file of the NEGRA export format, in order.

    Each token has a line, then each node: word, tag, morphology, edge label and parent in version
    3; in version 4 the lemma comes after the word. Any number of secondary edges, each a label and
    a node, may follow, and a comment after ``%%``. Nodes are called ``#500`` and up; parent 0 is
    none. Without a line ``#FORMAT`` the number of columns tells the version: odd in 3, even in 4.
    Tables (``#BOT`` to ``#EOT``), lemmas, morphology and secondary edges are left out. Another
    version ends the file; behind a malformed sentence ``#BOS`` begins the next.
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
                report("found text outside a sentence, expected #BOS", line)
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
            sentence = _Lines(values[0] if values else str(number), line, [])
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
                except MistakeError as mistake:
                    report(*mistake.args)
            sentence = None
        in_table = mark == "#BOT"
    if sentence is not None:
        report("the sentence has no #EOS", sentence.line)


def looks_like_negra_export(text: str) -> bool:
    """Return whether a text, perhaps cut at its end, is of this format."""
    lines = (line.strip("\r\t ") for line in text.split("\n"))
    first = next((line for line in lines if line and not line.startswith("%%")), "")
    return _FIRST.match(first) is not None


def _columns(text: str) -> list[str]:
    """The columns of a line up to a comment: between tabs, or blanks too where there are some
    behind the word, which alone may have them."""
    text = _COMMENT.sub("", text.rstrip("\r"))
    columns = [column for part in text.split("\t") if (column := part.strip(" "))]
    return fields(text) if len(columns) < 2 or any(" " in one for one in columns[1:]) else columns


def _negra_graph(sentence: _Lines, version: str | None) -> Graph:
    if version is None and sentence.rows:
        version = "3" if len(sentence.rows[0][1]) % 2 else "4"
    count = _COLUMNS[version or "4"]
    rows: list[_Row] = []
    nodes: set[str] = set()
    for line, columns in sentence.rows:
        if len(columns) < count or (len(columns) - count) % 2:
            problem = f"found {len(columns)} columns, expected {count} in version {version}"
            raise MistakeError(f"{problem}, and two more for each secondary edge", line)
        word, (tag, _, edge, above) = columns[0], columns[count - 4 : count]
        if _PARENT.fullmatch(above) is None:
            raise MistakeError(f"the parent is '{above}', expected 0, or a number from 500", line)
        parent = None if above == "0" else above
        if (node := _NODE.fullmatch(word)) is not None:
            if node[1] in nodes:
                raise MistakeError(f"found the node {word} twice in the sentence", line)
            nodes.add(node[1])
            rows.append(_Row(node[1], tag, None, line, parent, edge))
        elif nodes:
            raise MistakeError(f"found the word '{word}' after the nodes", line)
        else:
            rows.append(_Row("", word, tag, line, parent, edge))
    return _graph(sentence.name, sentence.line, rows)
