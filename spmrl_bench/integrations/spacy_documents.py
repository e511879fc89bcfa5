"""Sentences out of spaCy's documents, and parses into them.

A parser numbers words; a document has tokens, some of which are white space and no words. A span
of words becomes the tokens from its first word to its last, which keeps spans nested. Where the
parser finds heads, white space hangs from the word in front of it with the relation ``dep``, as in
spaCy's own pipelines, and in front of all words from the first.

spaCy reads the boundaries of sentences off the heads: each root begins one. A sentence without a
parse has to stay one, so its tokens hang from its first, with the relation ``_``.

What is kept beside spans and heads are plain lists, by the component's name; all else that
``doc._`` and ``span._`` show is made of the spans when it is asked for.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence
from functools import partial
from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from spacy.attrs import DEP, HEAD, SENT_START
from spacy.tokens import Doc, Span, SpanGroup

from spmrl_bench.parsing.answers import NO_PARSE
from spmrl_bench.trees.escapes import write_brackets
from spmrl_bench.trees.parse import Layer, Parse
from spmrl_bench.trees.tree import NO_TAG, Tree

#: The component's name in a pipeline and of its factory.
NAME = "spmrl_bench"
#: Where ``doc.spans`` has the constituents unless the pipeline says otherwise.
SPANS_KEY = "constituents"

# In doc.user_data: of each component the key of the spans, empty if it finds no constituents, and
# start, end and status of sentences.
_KEPT = "spmrl_bench"
# Of a group of spans, which has one for each.
_CHANCES = "probabilities"


class Sentence(NamedTuple):
    """A sentence of a document: the tokens ``[start, end)``, and which of them are words."""

    start: int
    end: int
    places: NDArray[np.int64]  # the token of each word
    words: list[str]
    tags: list[str] | None  # ``token.tag_`` of each word; None unless all have one


class Annotated(NamedTuple):
    """A sentence, its parse if it has one, and what became of it."""

    sentence: Sentence
    parse: Parse | None
    status: str  # ``parsed``, ``too long``, or ``empty`` for one without words


def sentences_of(doc: Doc) -> list[Sentence]:
    """The sentences of a document, where it has boundaries; else one, of all tokens."""
    whole = [doc[:]] if len(doc) else []
    sentences = []
    for span in doc.sents if doc.has_annotation("SENT_START") else whole:
        words = [token for token in span if not token.is_space]
        places = np.array([token.i for token in words], dtype=np.int64)
        tags = [token.tag_ for token in words]
        texts = [token.text for token in words]
        sentences.append(Sentence(span.start, span.end, places, texts, tags if all(tags) else None))
    return sentences


def write_parses(
    doc: Doc,
    found: Sequence[Annotated],
    *,
    name: str,
    layers: Sequence[Layer],
    key: str,
    tags: bool,
) -> None:
    """Annotate a document in place with what a component, by its name, found of its sentences.

    Constituents become ``doc.spans[key]``; with ``tags``, words get the tags of their parses.
    """
    number = partial(doc.vocab.strings.add, allow_transient=False)  # outlives a memory zone
    spans, chances = [], list[float | None]()
    for sentence, parse, status in found:
        places = sentence.places.tolist()
        if parse is not None and parse.tree is not None:
            for start, end, label in parse.tree.constituents():
                spans.append(Span(doc, places[start], places[end - 1] + 1, label=number(label)))
                known = parse.probabilities is not None
                chances.append(parse.probability(start, end, label) if known else None)
        if tags and parse is not None and status == "parsed":
            for place, tag in zip(places, parse.tags, strict=True):
                doc[place].tag = number(tag)
    if "constituents" in layers:
        attrs = {_CHANCES: chances} if {*chances} - {None} else {}
        doc.spans[key] = SpanGroup(doc, name=key, spans=spans, attrs=attrs)
    if "dependencies" in layers and found:
        _write_heads(doc, found, number)
    rows = [[each.sentence.start, each.sentence.end, each.status] for each in found]
    doc.user_data[_KEPT] = {**_kept(doc), name: [key if "constituents" in layers else "", rows]}


def _write_heads(doc: Doc, found: Sequence[Annotated], number: Callable[[str], int]) -> None:
    n = len(doc)
    heads = np.zeros(n, dtype=np.int64)  # the token itself, for a root
    relations = np.zeros(n, dtype=np.uint64)
    starts = np.full(n, -1, dtype=np.int64)
    for (start, end, places, _, _), parse, _ in found:
        starts[start] = 1
        tree = None if parse is None else parse.dependencies
        if tree is None:
            heads[start:end] = start
            relations[start:end] = number("_")  # as CoNLL-U writes it
            continue
        # The word at or in front of each token; in front of all words, the first.
        before = np.searchsorted(places, np.arange(start, end), side="right") - 1
        heads[start:end] = places[np.maximum(before, 0)]
        relations[start:end] = number("dep")
        of_words = tree.heads.astype(np.int64)
        heads[places] = np.where(of_words == 0, places, places[of_words - 1])
        relations[places] = list(map(number, tree.relations))
    relative = (heads - np.arange(n)).view(np.uint64)
    doc.from_array([HEAD, DEP], np.stack([relative, relations], axis=1))
    # Heads that cross each other much may leave spaCy with other boundaries.
    doc.from_array([SENT_START], starts.view(np.uint64))


def _kept(doc: Doc) -> dict[str, tuple[str, list[list[Any]]]]:
    """What is kept of each component, in the order of the pipeline."""
    kept = doc.user_data.get(_KEPT, {})
    return kept if isinstance(kept, dict) else {NAME: kept}  # as earlier versions saved it


class DocParses:
    """What one component found in a document, sentence by sentence, as lists; ``status`` has start,
    end and status of each sentence that was parsed."""

    def __init__(self, doc: Doc, key: str, rows: Sequence[Sequence[Any]]) -> None:
        self._doc, self._spans = doc, doc.spans.get(key, []) if key else []
        # Lists that were saved come back as tuples; those of `span.as_doc` are of another document.
        own = sum(end - start for start, end, _ in rows) == len(doc)
        self.status = [list(row) for row in rows] if own else []
        # A document that was saved without its user data has sentences all the same.
        self._rows = self.status or [[each.start, each.end, ""] for each in sentences_of(doc)]

    @property
    def constituents(self) -> list[list[list[Any]]]:
        """``[start, end, label]`` of each constituent, in pre-order and in tokens."""
        return [self._inside(start, end) for start, end, _ in self._rows]

    @property
    def trees(self) -> list[str]:
        """Trees in brackets."""
        return [self._tree(*row) for row in self._rows]

    def tree(self, span: Span) -> str:
        """The tree of a sentence, or of what is found inside some tokens."""
        whole = (row[2] for row in self.status if row[:2] == [span.start, span.end])
        return self._tree(span.start, span.end, next(whole, ""))

    def _inside(self, start: int, end: int) -> list[list[Any]]:
        first, last = (bisect_left(self._spans, at, key=attrgetter("start")) for at in (start, end))
        spans = (self._spans[k] for k in range(first, last))
        return [[span.start, span.end, span.label_] for span in spans if span.end <= end]

    def _tree(self, start: int, end: int, status: str) -> str:
        words = [token for token in self._doc[start:end] if not token.is_space]
        if not words:
            return ""
        places = [token.i for token in words]
        rows = [
            (bisect_left(places, first), bisect_left(places, last), label)
            for first, last, label in self._inside(start, end)
        ]
        # Tokens of two sentences are in no constituent, nor are those that nobody parsed.
        whole = any(row[:2] == (0, len(words)) for row in rows)
        if not whole and (len(words) > 1 or status != "parsed"):
            return NO_PARSE
        tags = [token.tag_ or NO_TAG for token in words]
        return write_brackets(Tree.build([token.text for token in words], tags, rows))


def _parses(doc: Doc) -> dict[str, DocParses]:
    return {name: DocParses(doc, *kept) for name, kept in _kept(doc).items()}


def _last(doc: Doc) -> DocParses:
    """What the last component of the pipeline found that finds constituents, if there is one."""
    kept = list(_kept(doc).values()) or [(SPANS_KEY, [])]
    return DocParses(doc, *([one for one in kept if one[0]] or kept)[-1])


def _probability(span: Span) -> float | None:
    """How likely a constituent is; None where it is none, or nobody asked."""
    for group in span.doc.spans.values():
        for one, chance in zip(group, group.attrs.get(_CHANCES, ()), strict=False):
            if (one.start, one.end, one.label) == (span.start, span.end, span.label):
                return chance
    return None


Doc.set_extension("parses", getter=_parses, force=True)
Doc.set_extension("parse_status", getter=lambda doc: _last(doc).status, force=True)
Doc.set_extension("parse_constituents", getter=lambda doc: _last(doc).constituents, force=True)
Doc.set_extension("parse_trees", getter=lambda doc: _last(doc).trees, force=True)
Span.set_extension("parse_tree", getter=lambda span: _last(span.doc).tree(span), force=True)
Span.set_extension("probability", getter=_probability, force=True)
