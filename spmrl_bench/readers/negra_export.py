"""The NEGRA export format: one line for each token, then one for each node, with its parent.

A line of version 3 has word, tag, morphology, edge label and parent; version 4 has the lemma
after the word. Any number of secondary edges, each a label and a node, may follow, and a
comment after ``%%``. Nodes are called ``#500`` and up; parent 0 is none. So every sentence is
a graph that may have loose tokens, several roots and crossing branches. A line ``#FORMAT``
states the version; without it the number of columns tells, which is odd in version 3 and even
in version 4. Tables (``#BOT`` to ``#EOT``), lemmas, morphology and secondary edges are left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from os import PathLike

from spmrl_bench.errors import ReadError
from spmrl_bench.readers.graph_rows import GraphRows, SentenceError
from spmrl_bench.readers.text import OnError, fail, read_text
from spmrl_bench.trees.graph import NO_PARENT, Graph

_COLUMNS = {"3": 5, "4": 6}  # of a version, before the secondary edges
_NODE = re.compile(r"#([5-9][0-9]{2}|[1-9][0-9]{3,8})")
_PARENT = re.compile(r"0|[5-9][0-9]{2}|[1-9][0-9]{3,8}")
_MARKS = ("#FORMAT", "#BOT", "#EOT", "#BOS", "#EOS")
_FIRST = re.compile(r"#(?:FORMAT[\t ]+[34]|BOT|BOS)(?:[\t\r ]|\Z)")


@dataclass
class _Sentence:
    """The lines from #BOS on; each is its number and its fields."""

    name: str
    line: int
    rows: list[tuple[int, list[str]]] = field(default_factory=list)


def read_negra_export(
    path: str | PathLike[str], *, encoding: str = "utf-8", on_error: OnError = fail
) -> Iterator[Graph]:
    """The graphs of a file, in order.

    Raises:
        ReadError: the file cannot be read or decoded; or from ``on_error``, it is of another
            version, which ends it, or a sentence is malformed. Reading goes on at the next
            ``#BOS``.
    """
    version: str | None = None
    sentence: _Sentence | None = None
    number = 0  # of the sentence
    in_table = lost = False  # lost: outside a sentence, which has been reported

    def report(problem: str, line: int) -> None:
        name = sentence.name if sentence is not None else None
        on_error(ReadError(problem, path=path, line=line, sentence=name))

    for line, text in enumerate(read_text(path, encoding).split("\n"), start=1):
        fields = _fields(text)
        if not fields:
            continue
        mark = fields[0].partition(" ")[0]
        if in_table and mark not in ("#EOT", "#BOS"):
            continue
        if mark not in _MARKS:
            if sentence is not None:
                sentence.rows.append((line, fields))
            elif not lost:
                report(f"found '{fields[0]}' outside a sentence, expected #BOS", line)
                lost = True
            continue
        values = " ".join(fields).split(" ")[1:]
        if sentence is not None and mark != "#EOS":
            report(f"found {mark} before the sentence's #EOS", line)
            sentence = None
        if mark == "#FORMAT":
            version = " ".join(values[:1])
            if version not in _COLUMNS:
                found = f"#FORMAT {version}".rstrip()
                report(f"found {found}, expected #FORMAT 3 or #FORMAT 4", line)
                return
        elif mark == "#BOS":
            number += 1
            sentence = _Sentence(values[0] if values else str(number), line)
            lost = False
        elif mark == "#EOS":
            if sentence is None:
                if not lost:
                    report("found #EOS without #BOS", line)
            elif values and values[0] != sentence.name:
                report(f"found #EOS {values[0]}, expected #EOS {sentence.name}", line)
            else:
                try:
                    graph = _graph(sentence, version)
                except SentenceError as error:
                    report(error.problem, error.line)
                else:
                    yield graph
            sentence = None
        in_table = mark == "#BOT"
    if sentence is not None:
        report("the sentence has no #EOS", sentence.line)


def looks_like_negra_export(text: str) -> bool:
    """Whether a text, perhaps cut at its end, is of this format."""
    lines = (line.strip("\r\t ") for line in text.removeprefix("\ufeff").split("\n"))
    first = next((line for line in lines if line and not line.startswith("%%")), "")
    return _FIRST.match(first) is not None


def _fields(text: str) -> list[str]:
    """The columns of a line, which any number of tabs separates, up to a comment."""
    columns = text.rstrip("\r").split("\t" if "\t" in text else " ")
    fields = [column for column in (column.strip(" ") for column in columns) if column]
    comment = next((k for k, column in enumerate(fields) if column.startswith("%%")), None)
    return fields[:comment]


def _graph(sentence: _Sentence, version: str | None) -> Graph:
    if version is None and sentence.rows:
        version = "3" if len(sentence.rows[0][1]) % 2 else "4"
    columns = _COLUMNS[version or "4"]
    graph = GraphRows()
    nodes = {"0": NO_PARENT}  # index by number
    above: list[tuple[str, int]] = []  # the parent's number and the line, of each word
    above_node: list[tuple[str, int]] = []
    for line, fields in sentence.rows:
        if len(fields) < columns or (len(fields) - columns) % 2:
            raise SentenceError(
                f"found {len(fields)} columns, expected {columns} in version {version}, and two "
                "more for each secondary edge",
                line,
            )
        word, (tag, _, edge, parent) = fields[0], fields[columns - 4 : columns]
        if _PARENT.fullmatch(parent) is None:
            raise SentenceError(f"the parent is '{parent}', expected 0, or a number from 500", line)
        if (node := _NODE.fullmatch(word)) is not None:
            if node[1] in nodes:
                raise SentenceError(f"found the node {word} twice in the sentence", line)
            nodes[node[1]] = graph.add_node(tag, line, edge)
            above_node.append((parent, line))
        elif above_node:
            raise SentenceError(f"found the word '{word}' after the nodes", line)
        else:
            graph.add_token(word, tag, edge)
            above.append((parent, line))
    if not graph.words:
        raise SentenceError("found no word in the sentence", sentence.line)
    for parents, found in ((graph.token_parents, above), (graph.parents, above_node)):
        for index, (parent, line) in enumerate(found):
            if parent not in nodes:
                raise SentenceError(f"the parent {parent} is no node of the sentence", line)
            parents[index] = nodes[parent]
    return graph.graph(sentence.name)
