"""A trained parser as a component of a spaCy pipeline.

spaCy finds it by an entry point, so that ``nlp.add_pipe("spmrl_bench", config={"model": FOLDER})``
is all there is to do; it is an extra (``pip install 'spmrl-bench[spacy]'``). Constituents become
spans, because they overlap and have labels; heads and relations become those of the tokens. All of
it, and the parser itself, is kept by what spaCy saves. What is kept beside spans and heads are
plain lists, by the component's name; all else that ``doc._`` and ``span._`` show is made of the
spans when it is asked for.

A parser numbers words; a document has tokens, some of which are white space and no words. A span
of words becomes the tokens from its first word to its last, which keeps spans nested. Where the
parser finds heads, white space hangs from the word in front of it with the relation ``dep``, as in
spaCy's own pipelines, and in front of all words from the first. spaCy reads the boundaries of
sentences off the heads: each root begins one. A sentence without a parse has to stay one, so its
tokens hang from its first, with the relation ``_``.

The pipeline is its parser's home once it is saved. The folder that the parser came from may be
gone by then, or be another machine's, so it is opened when the first text is parsed and not before.
"""

from __future__ import annotations

import os
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, fields
from functools import partial
from itertools import groupby, islice
from operator import attrgetter
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from spmrl_bench.errors import CheckpointError, SentenceTooLongError, SpmrlError
from spmrl_bench.integrations import MissingExtraError
from spmrl_bench.parsers.base import Parser, Session
from spmrl_bench.parsers.kinds import kind_named
from spmrl_bench.parsers.session import WINDOW_SENTENCES, windows
from spmrl_bench.parsing.answers import NO_PARSE
from spmrl_bench.parsing.bulk import OnLong
from spmrl_bench.parsing.models import load_parser
from spmrl_bench.storage.files import write_folder
from spmrl_bench.storage.paths import check_path
from spmrl_bench.trees.escapes import write_brackets
from spmrl_bench.trees.parse import Layer, Parse
from spmrl_bench.trees.tree import NO_TAG, Tree

try:
    import srsly
    from spacy.attrs import DEP, HEAD, SENT_START
    from spacy.language import Language
    from spacy.pipeline import Pipe
    from spacy.pipeline.dep_parser import parser_score
    from spacy.scorer import Scorer
    from spacy.tokens import Doc, Span, SpanGroup
    from spacy.training import Example
except ImportError:
    raise MissingExtraError("spaCy") from None

#: The component's name in a pipeline and of its factory.
NAME = "spmrl_bench"
#: Where ``doc.spans`` has the constituents unless the pipeline says otherwise.
SPANS_KEY = "constituents"

# In doc.user_data: of each component the key of the spans, empty if it finds no constituents, and
# start, end and status of sentences.
_KEPT = "spmrl_bench"
# Of a group of spans, which has one for each.
_CHANCES = "probabilities"
_SAVED = "parser"  # the folder of the parser in that of the component


@Language.factory(
    NAME, assigns=["doc.spans", "doc._.parses", "doc._.parse_trees", "token.head", "token.dep"]
)
@dataclass(eq=False)
class ParserComponent(Pipe):
    """Parses documents; it comes of ``nlp.add_pipe("spmrl_bench", config={...})``.

    Args:
        nlp: the pipeline, which is not kept.
        name: of the component in it.
        model: as :func:`~spmrl_bench.load` takes it. None in a pipeline that brings its own.
        device: ``auto`` (CUDA when present), ``cpu``, ``cuda`` or ``cuda:N``.
        on_long: a sentence that the parser has no room for is an ``error``; has no parse
            (``skip``); or the flattest one (``flat``).
        unsplit: a text whose sentences nobody has told apart is parsed as one (``whole``), or is
            an ``error``.
        set_tags: whether ``token.tag_`` becomes the tag that the parser predicts.
        spans_key: under which ``doc.spans`` has the constituents.
        scores: whether ``span._.probability`` says how likely each is.
    """

    nlp: Language | None = None
    name: str = NAME
    model: str | Path | None = None
    device: str = "auto"
    on_long: OnLong = "error"
    unsplit: Literal["whole", "error"] = "whole"
    set_tags: bool = False
    spans_key: str = SPANS_KEY
    scores: bool = False

    def __post_init__(self) -> None:
        self.nlp = None  # no cycle of references keeps weights
        self._parser: Parser | None = None
        self._session: Session | None = None
        self._process = os.getpid()

    @property
    def parser(self) -> Parser:
        """What parses, loaded when it is first asked for. Raise a SpmrlError if there is no parser
        where ``model`` says, or it lacks what is asked of it."""
        if self._parser is not None:
            return self._parser
        if self.model is None:
            raise SpmrlError(
                f"the component {self.name} has no parser: name the folder of one, "
                f'nlp.add_pipe("{NAME}", config={{"model": "runs/NAME"}}), or load a pipeline '
                "that was saved with one"
            )
        return self._load(self.model)

    def _load(self, model: str | Path) -> Parser:
        """Have the parser of a folder from now on; SpmrlError if it lacks what is asked of it."""
        parser = load_parser(model, self.device)
        if self.set_tags and not parser.predicts_tags:
            raise SpmrlError(
                f"{self.name}: set_tags asks for tags, but this parser predicts none: leave the "
                "setting out, or train a parser with a tagger"
            )
        self._parser, self._session = parser, None
        return parser

    def initialize(
        self, get_examples: Callable[[], Iterable[Any]], *, nlp: Language | None = None
    ) -> None:
        """Load the parser, which is trained already; errors are those of :attr:`parser`."""
        _ = self.parser

    def __call__(self, doc: Doc) -> Doc:
        """The document, annotated in place. Without an error handler in the pipeline, a SpmrlError
        if a sentence is too long or lacks tags that are read, or sentences are not told apart."""
        return next(self.pipe([doc]), doc)

    def pipe(self, stream: Iterable[Doc], *, batch_size: int = WINDOW_SENTENCES) -> Iterator[Doc]:
        """Documents, annotated in place, in their order; faster than one by one. So many as
        ``batch_size`` at most are parsed together, and read no further ahead. Errors are those of
        :meth:`__call__`; where a handler goes on, the documents around are given."""
        _ = self.parser  # an error of it is no document's
        for docs in windows(stream, len, most=batch_size):
            try:
                self._annotate(docs)
            except Exception as error:
                if len(docs) > 1:  # which is at fault is found by taking each by itself
                    yield from self.pipe(docs, batch_size=1)
                else:
                    self.get_error_handler()(self.name, self, docs, error)
            else:
                yield from docs

    def _annotate(self, docs: Sequence[Doc]) -> None:
        """Parse all sentences of some documents together, and write what was found."""
        asked = [self._sentences(doc) for doc in docs]
        rest = iter([*self._parsed([sentence for sentences in asked for sentence in sentences])])
        layers = kind_named(self.parser.kind).layers
        for doc, sentences in zip(docs, asked, strict=True):
            own = list(islice(rest, len(sentences)))
            write_parses(
                doc, own, name=self.name, layers=layers, key=self.spans_key, tags=self.set_tags
            )

    def _sentences(self, doc: Doc) -> list[Sentence]:
        if self.unsplit == "error" and len(doc) > 1 and not doc.has_annotation("SENT_START"):
            raise SpmrlError(
                f"{self.name}: nobody has told the sentences of the text '{doc.text[:40]}' apart: "
                'put a component that does in front, such as nlp.add_pipe("sentencizer"), or set '
                'unsplit to "whole"'
            )
        return sentences_of(doc)

    def _parsed(self, sentences: Sequence[Sentence]) -> Iterator[Annotated]:
        problems = [self.parser.problem(each.words) for each in sentences]
        if self.on_long == "error" and any(problems):
            problem = next(filter(None, problems))
            hint = 'the settings "skip" and "flat" of on_long go on without its parse'
            raise SentenceTooLongError(f"{self.name}: {problem}. {hint}")
        pairs = list(zip(sentences, problems, strict=True))
        parses = self._parses(each for each, problem in pairs if each.words and not problem)
        for each, problem in pairs:
            parse = next(parses) if each.words and not problem else None
            if problem and self.on_long == "flat":
                parse = self.parser.flat(each.words, each.tags or [NO_TAG] * len(each.words))
            status = "too long" if problem else "parsed" if each.words else "empty"
            yield Annotated(each, parse, status)

    def _parses(self, sentences: Iterable[Sentence]) -> Iterator[Parse]:
        """Parses of sentences; those with tags together, where the parser reads them."""
        session, reads = self._current_session(), self.parser.reads_tags
        for tagged, alike in groupby(sentences, lambda each: reads and each.tags is not None):
            rows = list(alike)
            tags = [each.tags or [] for each in rows] if tagged else None
            yield from session.parse([each.words for each in rows], tags)

    def _current_session(self) -> Session:
        if self._process != os.getpid():
            # One of the processes of nlp.pipe(n_process=...), forked from the one that loaded the
            # parser. The threads of that one are gone, and GNU OpenMP would wait for them.
            import torch

            torch.set_num_threads(1)
            self._process, self._session = os.getpid(), None
        if self._session is None:
            self._session = self.parser.session_for(self.scores, 1)
        return self._session

    def score(self, examples: Iterable[Example], **_: Any) -> dict[str, Any]:
        """UAS and LAS as of spaCy's own parsers, for ``nlp.evaluate``; and precision, recall and F
        of the constituents, where the references have such spans."""
        examples, key = list(examples), self.spans_key
        found: dict[str, Any] = {}
        layers = kind_named(self.parser.kind).layers
        if "dependencies" in layers:
            found |= parser_score(examples)
        if "constituents" in layers:
            found |= Scorer.score_spans(
                examples, f"spans_{key}", allow_overlap=True, labeled=True,
                getter=lambda doc, _: doc.spans.get(key, []),
                has_annotation=lambda doc: key in doc.spans,
            )  # fmt: skip
        return found

    def to_disk(self, path: str | Path, *, exclude: Iterable[str] = ()) -> None:
        """Save the parser in the folder ``parser`` below, which ``spmrl_bench.load`` opens too."""
        write_folder(Path(path) / _SAVED, self.parser.save)

    def from_disk(self, path: str | Path, *, exclude: Iterable[str] = ()) -> ParserComponent:
        """Take the parser that :meth:`to_disk` saved; CheckpointError if there is none."""
        self._load(Path(path) / _SAVED)
        return self

    def to_bytes(self, *, exclude: Iterable[str] = ()) -> bytes:
        """The parser as one value: the files of its folder."""
        with TemporaryDirectory() as place:
            folder = Path(place)
            self.parser.save(folder)
            paths = (path for path in sorted(folder.rglob("*")) if path.is_file())
            files = {path.relative_to(folder).as_posix(): path.read_bytes() for path in paths}
        return bytes(srsly.msgpack_dumps(files))

    def from_bytes(self, data: bytes, *, exclude: Iterable[str] = ()) -> ParserComponent:
        """Take the parser of :meth:`to_bytes`; CheckpointError if none, or it leads elsewhere."""
        with TemporaryDirectory() as place:
            try:
                for name, content in srsly.msgpack_loads(data).items():
                    path = Path(place) / check_path(name)
                    path.parent.mkdir(parents=True, exist_ok=True)
                    path.write_bytes(content)
            except Exception as error:  # the library has many
                raise CheckpointError(f"the bytes are no parser of a pipeline ({error})") from None
            self._load(place)
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        """To another process: the settings, and the parser if it is loaded."""
        settings = tuple(getattr(self, each.name) for each in fields(self))
        return ParserComponent, settings, self._parser and self.to_bytes()

    def __setstate__(self, data: bytes) -> None:
        self.from_bytes(data)


# Sentences out of documents, and parses into them ----------------------------------------------


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
    Constituents become ``doc.spans[key]``; with ``tags``, words get the tags of their parses."""
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
