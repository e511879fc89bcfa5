"""Alpino XML: nested nodes whose words say where in the sentence they stand.

The trees of Alpino order the children of a node by their function, so that the order of the
words is not that of the file and constituents may have gaps: the reader sorts the words by
``begin``, which must number them without holes, and yields :class:`Graph`. A node that only
has an ``index`` repeats another one in a second function (the subject of an infinitive, an
extracted phrase). It has no words of its own and is left out, as are nodes that hold nothing
else. Punctuation stands below ``top``, and stays there. The edge label is ``rel``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from os import PathLike
from typing import TypeVar

from spmrl_bench.readers.graph_rows import GraphRows, SentenceError
from spmrl_bench.readers.text import OnError, fail
from spmrl_bench.readers.xml_stream import Attributes, needed, read_xml_sentences, root_element
from spmrl_bench.trees.graph import NO_PARENT, Graph, without_tokens

_NUMBER = re.compile(r"[0-9]{1,9}")
_SENTENCE = re.compile(r"<alpino_ds[\s/>]")
_Item = TypeVar("_Item")
_LEAF = -2  # on the stack of open elements, where no node may follow


def read_alpino_xml(path: str | PathLike[str], *, on_error: OnError = fail) -> Iterator[Graph]:
    """The graphs of a file that holds one sentence or many, in order.

    Raises:
        ReadError: the file cannot be read; or from ``on_error``, it is not well-formed XML,
            which ends it, or a sentence is not Alpino's. The graphs before the place have
            been yielded.
    """
    return read_xml_sentences(
        path, _Sentence, element="alpino_ds", parts=frozenset({"node"}), on_error=on_error
    )


def looks_like_alpino_xml(text: str) -> bool:
    """Whether a text, perhaps cut at its end, is of this format."""
    return root_element(text) != "" and _SENTENCE.search(text) is not None


class _Sentence:
    """One <alpino_ds> element while it is being read."""

    def __init__(self, attributes: Attributes, number: int, line: int) -> None:
        self.name = attributes.get("id", str(number))
        self._line = line
        self._rows = GraphRows()  # words in the order of the file; nodes before their children
        self._begins: list[tuple[int, int]] = []  # of each word, and its line
        self._open: list[int] = []
        self._children: list[int] = []  # elements in each node

    def start(self, element: str, attributes: Attributes, line: int) -> None:
        if element == "sentence":
            self.name = attributes.get("sentid", self.name)
        if element != "node":
            return
        parent = self._open[-1] if self._open else NO_PARENT
        if parent == _LEAF:
            raise SentenceError("found a <node> inside one with a word or without 'cat'", line)
        if parent != NO_PARENT:
            self._children[parent] += 1
        elif self._rows.words or self._rows.labels:
            raise SentenceError("found a second outermost <node>, expected one", line)
        edge = needed(element, attributes, "rel", line)
        if "word" in attributes:
            begin = needed(element, attributes, "begin", line)
            if _NUMBER.fullmatch(begin) is None:
                raise SentenceError(f'found begin="{begin}", expected a number from 0', line)
            tag = needed(element, attributes, "pos", line)
            self._rows.add_token(attributes["word"], tag, edge, parent)
            self._begins.append((int(begin), line))
            self._open.append(_LEAF)
        elif "cat" in attributes:
            self._open.append(self._rows.add_node(attributes["cat"], line, edge, parent))
            self._children.append(0)
        elif "index" in attributes:
            self._open.append(_LEAF)
        else:
            raise SentenceError("<node> has none of the attributes 'word', 'cat' and 'index'", line)

    def end(self, element: str) -> None:
        if element == "node":
            self._open.pop()

    def graph(self) -> Graph:
        rows = self._rows
        if not rows.words:
            raise SentenceError("found no <node> with a word in the sentence", self._line)
        if 0 in self._children:
            rows.fail(self._children.index(0), "without children")
        order = sorted(range(len(rows.words)), key=self._begins.__getitem__)
        for place, word in enumerate(order):
            begin, line = self._begins[word]
            if begin < place:
                raise SentenceError(f'found a second word with begin="{begin}"', line)
            if begin > place:
                problem = f'found begin="{begin}", expected begin="{place}" for the next word'
                raise SentenceError(problem, line)

        def ordered(column: list[_Item]) -> tuple[_Item, ...]:
            return tuple(column[word] for word in order)

        whole = Graph(
            self.name,
            ordered(rows.words),
            ordered(rows.tags),
            ordered(rows.token_parents),
            ordered(rows.token_edges),
            tuple(rows.labels),
            tuple(rows.parents),
            tuple(rows.edges),
        )
        return without_tokens(whole, [True] * len(order))  # and without nodes that have none
