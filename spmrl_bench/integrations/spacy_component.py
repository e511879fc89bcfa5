"""A trained parser as a component of a spaCy pipeline.

spaCy finds it by an entry point, so that ``nlp.add_pipe("spmrl_bench", config={"model": FOLDER})``
is all there is to do; it is an extra (``pip install 'spmrl-bench[spacy]'``). Constituents become
spans, because they overlap and have labels; heads and relations become those of the tokens. All of
it, and the parser itself, is kept by what spaCy saves.

The pipeline is its parser's home once it is saved. The folder that the parser came from may be
gone by then, or be another machine's, so it is opened when the first text is parsed and not before.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, fields
from itertools import groupby, islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal

from spmrl_bench.errors import CheckpointError, SentenceTooLongError, SpmrlError
from spmrl_bench.integrations import MissingExtraError
from spmrl_bench.parsers.base import Parser, Session
from spmrl_bench.parsers.kinds import kind_named
from spmrl_bench.parsers.session import WINDOW_SENTENCES, windows
from spmrl_bench.parsing.bulk import OnLong
from spmrl_bench.parsing.models import load_parser
from spmrl_bench.storage.files import write_folder
from spmrl_bench.storage.paths import check_path
from spmrl_bench.trees.parse import Parse
from spmrl_bench.trees.tree import NO_TAG

try:
    import srsly
    from spacy.language import Language
    from spacy.pipeline import Pipe
    from spacy.pipeline.dep_parser import parser_score
    from spacy.scorer import Scorer
    from spacy.tokens import Doc
    from spacy.training import Example
except ImportError:
    raise MissingExtraError("spaCy") from None

from spmrl_bench.integrations import spacy_documents as documents
from spmrl_bench.integrations.spacy_documents import NAME, SPANS_KEY, Annotated, Sentence

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
        """The document, annotated in place. Unless the pipeline has an error handler, raise a
        SpmrlError if a sentence is too long, sentences are not told apart, or the parser reads tags
        and there are none."""
        return next(self.pipe([doc]), doc)

    def pipe(self, stream: Iterable[Doc], *, batch_size: int = WINDOW_SENTENCES) -> Iterator[Doc]:
        """Documents, annotated in place, in their order; faster than one by one.

        Args:
            stream: read no further than the documents that are parsed together.
            batch_size: documents that are parsed together at most.

        Raises:
            SpmrlError: as :meth:`__call__`. Documents around the one that is at fault are given
                where an error handler goes on.
        """
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
        found = list(self._parsed([sentence for sentences in asked for sentence in sentences]))
        layers, rest = kind_named(self.parser.kind).layers, iter(found)
        for doc, sentences in zip(docs, asked, strict=True):
            own = list(islice(rest, len(sentences)))
            documents.write_parses(
                doc, own, name=self.name, layers=layers, key=self.spans_key, tags=self.set_tags
            )

    def _sentences(self, doc: Doc) -> list[Sentence]:
        if self.unsplit == "error" and len(doc) > 1 and not doc.has_annotation("SENT_START"):
            raise SpmrlError(
                f"{self.name}: nobody has told the sentences of the text '{doc.text[:40]}' apart: "
                'put a component that does in front, such as nlp.add_pipe("sentencizer"), or set '
                'unsplit to "whole"'
            )
        return documents.sentences_of(doc)

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
        """Save the parser in a folder, beside what else is there.

        In it, the folder ``parser`` is one that :func:`~spmrl_bench.load` opens too.
        """
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
        """Take the parser of :meth:`to_bytes`; CheckpointError if it is none, or a file's name
        leads out of the folder."""
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
