"""Treebanks in XML as a stream of sentences, whatever the elements inside mean.

Such files are large, so they are never held as a whole; and a mistake is of use with its line
only, which of the parsers at hand expat alone tells. A mistake in the meaning of a sentence
concerns that sentence, and reading goes on after it; where the text ceases to be well-formed
XML, nothing after can be trusted, and the file ends there.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from os import PathLike
from typing import Protocol
from xml.parsers import expat

from spmrl_bench.errors import ReadError
from spmrl_bench.readers.graph_rows import SentenceError
from spmrl_bench.readers.text import OnError
from spmrl_bench.trees.graph import Graph

_CHUNK = 1 << 16
_PROLOGUE = re.compile(r"(?:\s+|<\?.*?\?>|<!--.*?-->|<!DOCTYPE[^\[>]*(?:\[.*?\])?\s*>)*", re.DOTALL)
_ELEMENT = re.compile(r"<([A-Za-z_][\w.-]*)[\s/>]")

Attributes = Mapping[str, str]


class XmlSentence(Protocol):
    """One sentence while its elements come in; every method may raise ``SentenceError``."""

    @property
    def name(self) -> str:
        """Its identifier, for messages."""

    def start(self, element: str, attributes: Attributes, line: int) -> None:
        """An element begins."""

    def end(self, element: str) -> None:
        """An element ends."""

    def graph(self) -> Graph:
        """The sentence, which has ended."""


def read_xml_sentences(
    path: str | PathLike[str],
    begin: Callable[[Attributes, int, int], XmlSentence],
    *,
    element: str,
    parts: frozenset[str],
    on_error: OnError,
) -> Iterator[Graph]:
    """The graphs of a file, in order.

    Args:
        path: the file.
        begin: makes a sentence of the attributes of its element, its number from 1 and its line.
        element: the element that holds a sentence.
        parts: elements that occur inside it only.
        on_error: takes the error of a sentence, or of what is not well-formed.

    Raises:
        ReadError: the file cannot be read; or from ``on_error``.
    """
    stream = _Stream(path, begin, element, parts)
    size = _CHUNK
    try:
        with open(path, "rb") as file:
            while not stream.ended:
                stream.feed(file.read(size))
                # expat scans an unfinished element again with every piece of it: the pieces grow,
                # so that the time stays linear.
                size = _CHUNK if stream.results else 2 * size
                for result in stream.results:
                    if isinstance(result, ReadError):
                        on_error(result)
                    else:
                        yield result
                stream.results.clear()
    except OSError as error:
        raise ReadError(f"cannot be read: {error.strerror}", path=path) from error


def root_element(text: str) -> str:
    """The name of the outermost element of XML, perhaps cut at its end; else empty."""
    text = text.removeprefix("\ufeff")
    prologue = _PROLOGUE.match(text)
    root = _ELEMENT.match(text, prologue.end() if prologue is not None else 0)
    return root[1] if root is not None else ""


def needed(element: str, attributes: Attributes, name: str, line: int) -> str:
    """The value of an attribute.

    Raises:
        SentenceError: the element lacks it.
    """
    if name not in attributes:
        raise SentenceError(f"<{element}> lacks the attribute '{name}'", line)
    return attributes[name]


class _Stream:
    """Collects graphs and errors from the events of the XML parser."""

    def __init__(
        self,
        path: str | PathLike[str],
        begin: Callable[[Attributes, int, int], XmlSentence],
        element: str,
        parts: frozenset[str],
    ) -> None:
        self.results: list[Graph | ReadError] = []
        self.ended = False
        self._path = path
        self._begin = begin
        self._element = element
        self._parts = parts
        self._parser = expat.ParserCreate()
        self._parser.StartElementHandler = self._start
        self._parser.EndElementHandler = self._end
        self._sentence: XmlSentence | None = None
        self._depth = 0  # of sentences, one in another
        self._number = 0
        self._broken = False  # whether the sentence's mistake has been reported

    def feed(self, data: bytes) -> None:
        """Parse a piece of the file; an empty one is its end."""
        self.ended = not data
        try:
            self._parser.Parse(data, not data)
        except expat.ExpatError as error:
            self.ended = True
            problem = f"not well-formed XML: {expat.ErrorString(error.code)}"
            name = self._sentence.name if self._sentence else None
            self._report(problem, error.lineno, error.offset + 1, name)
        except (LookupError, ValueError) as error:  # how pyexpat refuses a declared encoding
            self.ended = True
            self._report(f"declares an encoding: {error}", 1)

    def _start(self, element: str, attributes: dict[str, str]) -> None:
        line = self._parser.CurrentLineNumber
        if element == self._element:
            self._depth += 1
            if self._sentence is not None:
                self._mistake(SentenceError(f"found <{element}> inside another <{element}>", line))
                return
            self._number += 1
            self._sentence = self._begin(attributes, self._number, line)
            self._broken = False
        elif self._sentence is None:
            if element in self._parts:
                self._report(f"found <{element}> outside <{self._element}>", line)
        elif not self._broken:
            try:
                self._sentence.start(element, attributes, line)
            except SentenceError as mistake:
                self._mistake(mistake)

    def _end(self, element: str) -> None:
        if self._sentence is None:
            return
        if element == self._element:
            self._depth -= 1
        try:
            if not self._broken and element != self._element:
                self._sentence.end(element)
            elif not self._broken and self._depth == 0:
                self.results.append(self._sentence.graph())
        except SentenceError as mistake:
            self._mistake(mistake)
        if self._depth == 0:
            self._sentence = None

    def _mistake(self, mistake: SentenceError) -> None:
        """Report the first mistake of the sentence."""
        if not self._broken and self._sentence is not None:
            self._report(mistake.problem, mistake.line, name=self._sentence.name)
        self._broken = True

    def _report(
        self, problem: str, line: int, column: int | None = None, name: str | None = None
    ) -> None:
        error = ReadError(problem, path=self._path, line=line, column=column, sentence=name)
        self.results.append(error)
