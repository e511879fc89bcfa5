"""Sentences out of spaCy's documents, and parses into them.

A parser numbers words; a document has tokens, some of which are white space and no words. A span
of words becomes the tokens from its first word to its last, whatever white space stands between
them: the places of words rise with their numbers, so spans that were nested stay so, and spans that
were apart too. Where the parser finds heads, white space hangs from the word in front of it with
the relation ``dep``, as in spaCy's own pipelines, and in front of all words from the first.

spaCy reads the boundaries of sentences off the heads: each root begins one. A sentence without a
parse has to stay one, so its tokens hang from its first, with the relation ``_``.

What is kept of a parse beside spans and heads are plain lists; all else that
``doc._`` and ``span._`` show is made of the spans when it is asked for.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from spacy.attrs import DEP, HEAD, IS_SPACE, SENT_START, TAG
from spacy.tokens import Doc, Span, SpanGroup

from spmrl_bench.parsing.answers import NO_PARSE
from spmrl_bench.trees.escapes import write_brackets
from spmrl_bench.trees.parse import Layer, Parse
from spmrl_bench.trees.tree import NO_TAG, Tree

#: Where ``doc.spans`` has the constituents unless the pipeline says otherwise.
SPANS_KEY = "constituents"
#: Relation of tokens in a sentence without a parse, as CoNLL-U writes it.
NO_RELATION = "_"
#: Relation of white space.
OF_SPACE = "dep"

_KEPT = "spmrl_bench"  # in doc.user_data: the key of the spans, and a row for each sentence


class Sentence(NamedTuple):
    """A sentence of a document: the tokens ``[start, end)``, and which of them are words."""

    start: int
    end: int
    places: NDArray[np.int64]
    """The token of each word."""
    words: list[str]
    tags: list[str] | None
    """``token.tag_`` of each word; None unless all have one."""


class Annotated(NamedTuple):
    """A sentence, its parse if it has one, and what became of it."""

    sentence: Sentence
    parse: Parse | None
    status: str
    """``parsed``, ``too long``, or ``empty`` for one without words."""


def sentences_of(doc: Doc) -> list[Sentence]:
    """The sentences of a document, where it has boundaries; else one, of all tokens."""
    if not len(doc):
        return []
    table = doc.to_array([SENT_START, IS_SPACE, TAG])
    starts = [0, *(np.flatnonzero(table[1:, 0] == 1) + 1).tolist()]
    tokens = [token.text for token in doc]
    strings = doc.vocab.strings
    sentences = []
    for start, end in zip(starts, [*starts[1:], len(doc)], strict=True):
        places = np.flatnonzero(table[start:end, 1] == 0) + start
        tags = table[places, 2]
        sentences.append(
            Sentence(
                start,
                end,
                places,
                [tokens[place] for place in places.tolist()],
                [strings[tag] for tag in tags] if tags.all() else None,
            )
        )
    return sentences


def write_parses(
    doc: Doc, found: Sequence[Annotated], *, layers: Sequence[Layer], key: str, tags: bool
) -> None:
    """Annotate a document in place.

    Args:
        doc: the document.
        found: what became of its sentences, in their order.
        layers: that the parser finds.
        key: under which ``doc.spans`` gets the constituents.
        tags: whether words get the tags of their parses.
    """
    if "constituents" in layers:
        doc.spans[key] = SpanGroup(doc, name=key, spans=list(_spans(doc, found)))
    if tags:
        _write_tags(doc, found)
    if "dependencies" in layers and found:
        _write_heads(doc, found)
    rows = [[each.sentence.start, each.sentence.end, each.status] for each in found]
    doc.user_data[_KEPT] = [key, rows]


def _spans(doc: Doc, found: Sequence[Annotated]) -> list[Span]:
    """Constituents in pre-order, sentence after sentence."""
    numbers: dict[str, int] = {"": 0}
    spans = []
    for each in found:
        if each.parse is None or (tree := each.parse.tree) is None:
            continue
        bounds = tree.spans.astype(np.int64)
        bounds[:, 0] = each.sentence.places[bounds[:, 0]]
        bounds[:, 1] = each.sentence.places[bounds[:, 1] - 1] + 1
        for (start, end), label in zip(bounds.tolist(), tree.labels, strict=True):
            if (number := numbers.get(label)) is None:
                number = numbers[label] = _number(doc, label)
            spans.append(Span(doc, start, end, label=number))
    return spans


def _write_tags(doc: Doc, found: Sequence[Annotated]) -> None:
    column = doc.to_array(TAG)
    for each in found:
        if each.parse is not None and each.status == "parsed":
            column[each.sentence.places] = [_number(doc, tag) for tag in each.parse.tags]
    doc.from_array([TAG], column)


def _write_heads(doc: Doc, found: Sequence[Annotated]) -> None:
    n = len(doc)
    heads = np.zeros(n, dtype=np.int64)  # the token itself, for a root
    relations = np.zeros(n, dtype=np.uint64)
    starts = np.full(n, -1, dtype=np.int64)
    numbers: dict[str, int] = {}

    def number(relation: str) -> int:
        if relation not in numbers:
            numbers[relation] = _number(doc, relation)
        return numbers[relation]

    for (start, end, places, _, _), parse, _ in found:
        starts[start] = 1
        tree = None if parse is None else parse.dependencies
        if tree is None:
            heads[start:end] = start
            relations[start:end] = number(NO_RELATION)
            continue
        # The word at or in front of each token; in front of all words, the first.
        before = np.searchsorted(places, np.arange(start, end), side="right") - 1
        heads[start:end] = places[np.maximum(before, 0)]
        relations[start:end] = number(OF_SPACE)
        of_words = tree.heads.astype(np.int64)
        heads[places] = np.where(of_words == 0, places, places[of_words - 1])
        relations[places] = [number(relation) for relation in tree.relations]
    relative = (heads - np.arange(n)).view(np.uint64)
    doc.from_array([HEAD, DEP], np.stack([relative, relations], axis=1))
    # Heads that cross each other much may leave spaCy with other boundaries.
    doc.from_array([SENT_START], starts.view(np.uint64))


def _number(doc: Doc, text: str) -> int:
    """What spaCy knows a label by; kept when a memory zone ends."""
    return int(doc.vocab.strings.add(text, allow_transient=False))


# What doc._ and span._ show ---------------------------------------------------------------------


def _kept(doc: Doc) -> tuple[str, list[list[Any]]]:
    """The key of the spans, and start, end and status of each sentence that was parsed."""
    if _KEPT not in doc.user_data:
        return SPANS_KEY, []
    key, rows = doc.user_data[_KEPT]
    return key, [list(row) for row in rows]  # lists that were saved come back as tuples


def _rows(doc: Doc) -> tuple[str, list[list[Any]]]:
    """The same; of a document that was saved without its user data, by its sentences."""
    key, rows = _kept(doc)
    return key, rows or [[each.start, each.end, ""] for each in sentences_of(doc)]


def _status(doc: Doc) -> list[list[Any]]:
    return _kept(doc)[1]


def _constituents(doc: Doc) -> list[list[list[Any]]]:
    key, rows = _rows(doc)
    return [_inside(doc, key, start, end) for start, end, _ in rows]


def _inside(doc: Doc, key: str, start: int, end: int) -> list[list[Any]]:
    """Start, end and label of the constituents inside some tokens, in pre-order."""
    group = doc.spans.get(key)
    if group is None:
        return []
    first = bisect_left(range(len(group)), start, key=lambda k: group[k].start)
    rows: list[list[Any]] = []
    for k in range(first, len(group)):
        span = group[k]
        if span.start >= end:
            break
        if span.end <= end:
            rows.append([span.start, span.end, span.label_])
    return rows


def _trees(doc: Doc) -> list[str]:
    key, rows = _rows(doc)
    return [_tree(doc, key, start, end, status) for start, end, status in rows]


def _tree_of_span(span: Span) -> str:
    key, rows = _kept(span.doc)
    whole = (row[2] for row in rows if row[:2] == [span.start, span.end])
    return _tree(span.doc, key, span.start, span.end, next(whole, ""))


def _tree(doc: Doc, key: str, start: int, end: int, status: str) -> str:
    words = [token for token in doc[start:end] if not token.is_space]
    if not words:
        return ""
    inside = _inside(doc, key, start, end)
    if not inside and status != "parsed":
        return NO_PARSE
    places = [token.i for token in words]
    rows = [
        (bisect_left(places, first), bisect_left(places, last), label)
        for first, last, label in inside
    ]
    texts = [token.text for token in words]
    return write_brackets(Tree.build(texts, [token.tag_ or NO_TAG for token in words], rows))


for _name, _getter in (
    ("parse_status", _status),
    ("parse_constituents", _constituents),
    ("parse_trees", _trees),
):
    Doc.set_extension(_name, getter=_getter, force=True)
Span.set_extension("parse_tree", getter=_tree_of_span, force=True)
