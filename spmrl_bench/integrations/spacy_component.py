"""A trained parser as a component of a spaCy pipeline.

spaCy finds it by an entry point, so that ``nlp.add_pipe("spmrl_bench", config={"model": FOLDER})``
is all there is to do; it is an extra (``pip install 'spmrl-bench[spacy]'``). Constituents become
spans, because they overlap and have labels; heads and relations become those of the tokens. All of
it, and the parser itself, is kept by what spaCy saves.

spaCy makes tokens of white space that is more than one blank between words. The parser never sees
them: what it finds of the words of a sentence is carried over to the tokens at their places, which
keeps brackets nested.

The pipeline is its parser's home once it is saved. The folder that the parser came from may be
gone by then, or be another machine's, so it is opened when the first text is parsed and not before.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal

from spmrl_bench.errors import CheckpointError, SentenceTooLongError, SpmrlError
from spmrl_bench.integrations import MissingExtraError
from spmrl_bench.parsers.base import Parser, Session
from spmrl_bench.parsers.registry import kind_named
from spmrl_bench.parsers.session import WINDOW_SENTENCES, windows
from spmrl_bench.parsing.models import load_parser
from spmrl_bench.storage.files import write_folder
from spmrl_bench.storage.paths import path_fault
from spmrl_bench.trees.parse import Layer, Parse
from spmrl_bench.trees.tree import NO_TAG

try:
    import srsly
    from spacy.language import Language
    from spacy.pipeline import Pipe
    from spacy.tokens import Doc
except ImportError:
    raise MissingExtraError.of("spaCy", "spacy") from None

from spmrl_bench.integrations.spacy_documents import (
    SPANS_KEY,
    Annotated,
    Sentence,
    sentences_of,
    write_parses,
)

#: The component's name in a pipeline and of its factory.
NAME = "spmrl_bench"

# The folder of the parser in that of the component.
_SAVED = "parser"

OnLong = Literal["error", "skip", "flat"]
Unsplit = Literal["whole", "error"]


@Language.factory(
    NAME,
    assigns=["doc.spans", "doc._.parse_trees", "doc._.parse_status", "token.head", "token.dep"],
)
def make_component(
    nlp: Language,
    name: str,
    model: str | None = None,
    device: str = "auto",
    on_long: OnLong = "error",
    unsplit: Unsplit = "whole",
    set_tags: bool = False,
    spans_key: str = SPANS_KEY,
) -> ParserComponent:
    """The component, for ``nlp.add_pipe("spmrl_bench", config={...})``.

    Args:
        nlp: the pipeline.
        name: of the component in it.
        model: as :func:`~spmrl_bench.load` takes it. None in a pipeline that brings
            its own.
        device: ``auto`` (CUDA when present), ``cpu``, ``cuda`` or ``cuda:N``.
        on_long: a sentence that the parser has no room for is an ``error``; has no parse
            (``skip``); or the flattest one (``flat``).
        unsplit: a text whose sentences nobody has told apart is parsed as one (``whole``), or is
            an ``error``.
        set_tags: whether ``token.tag_`` becomes the tag that the parser predicts.
        spans_key: under which ``doc.spans`` has the constituents.
    """
    return ParserComponent(
        name,
        model,
        device=device,
        on_long=on_long,
        unsplit=unsplit,
        set_tags=set_tags,
        spans_key=spans_key,
    )


class ParserComponent(Pipe):
    """Parses documents; see :func:`make_component` for its settings.

    Attributes:
        name: in the pipeline.
    """

    def __init__(
        self,
        name: str = NAME,
        model: str | Path | None = None,
        *,
        device: str = "auto",
        on_long: OnLong = "error",
        unsplit: Unsplit = "whole",
        set_tags: bool = False,
        spans_key: str = SPANS_KEY,
    ) -> None:
        self.name = name
        self.model = model
        self.device = device
        self.on_long = on_long
        self.unsplit = unsplit
        self.set_tags = set_tags
        self.spans_key = spans_key
        self._parser: Parser | None = None
        self._layers: tuple[Layer, ...] = ()
        self._session: Session | None = None
        self._process = os.getpid()

    @property
    def parser(self) -> Parser:
        """What parses, loaded when it is first asked for.

        Raises:
            SpmrlError: there is no parser where ``model`` says, or it lacks what is asked of it.
        """
        if self._parser is not None:
            return self._parser
        if self.model is None:
            raise SpmrlError(
                f"the component {self.name} has no parser: name the folder of one, "
                f'nlp.add_pipe("{NAME}", config={{"model": "runs/NAME"}}), or load a pipeline '
                "that was saved with one"
            )
        return self._take(load_parser(self.model, self.device))

    def initialize(
        self, get_examples: Callable[[], Iterable[Any]], *, nlp: Language | None = None
    ) -> None:
        """Load the parser, which is trained already; spaCy has nothing to train here.

        Raises:
            SpmrlError: as :attr:`parser`.
        """
        _ = self.parser

    # Parsing --------------------------------------------------------------------------------

    def __call__(self, doc: Doc) -> Doc:
        """The document, annotated in place.

        Raises:
            SpmrlError: a sentence is too long, sentences are not told apart, or the parser reads
                tags and there are none; unless the pipeline has an error handler.
        """
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
        handler = self.get_error_handler()
        _ = self.parser  # an error of it is no document's
        for docs in windows(stream, len, most=batch_size):
            try:
                self._annotate(docs)
            except Exception:
                # Which of them is at fault is found by taking each by itself.
                for doc in docs:
                    try:
                        self._annotate([doc])
                    except Exception as error:
                        handler(self.name, self, [doc], error)
                    else:
                        yield doc
            else:
                yield from docs

    def _annotate(self, docs: Sequence[Doc]) -> None:
        """Parse all sentences of some documents together, and write what was found."""
        asked = [self._sentences(doc) for doc in docs]
        found = self._parsed([sentence for sentences in asked for sentence in sentences])
        start = 0
        for doc, sentences in zip(docs, asked, strict=True):
            own = found[start : start + len(sentences)]
            start += len(sentences)
            write_parses(doc, own, layers=self._layers, key=self.spans_key, tags=self.set_tags)

    def _sentences(self, doc: Doc) -> list[Sentence]:
        sentences = sentences_of(doc)
        if self.unsplit == "error" and len(doc) > 1 and not doc.has_annotation("SENT_START"):
            raise SpmrlError(
                f"{self.name}: nobody has told the sentences of the text '{doc.text[:40]}' apart: "
                'put a component that does in front, such as nlp.add_pipe("sentencizer"), or set '
                'unsplit to "whole"'
            )
        return sentences

    def _parsed(self, sentences: Sequence[Sentence]) -> list[Annotated]:
        """What becomes of each sentence."""
        problems = [self.parser.problem(each.words) for each in sentences]
        problem = next(filter(None, problems), None)
        if problem and self.on_long == "error":
            hint = 'the settings "skip" and "flat" of on_long go on without its parse'
            raise SentenceTooLongError(f"{self.name}: {problem}. {hint}")
        fitting = [
            each for each, long in zip(sentences, problems, strict=True) if each.words and not long
        ]
        parses = self._parses(fitting)
        found = []
        for each, long in zip(sentences, problems, strict=True):
            if long:
                found.append(Annotated(each, self._given_up(each), "too long"))
            elif each.words:
                found.append(Annotated(each, next(parses), "parsed"))
            else:
                found.append(Annotated(each, None, "empty"))
        return found

    def _parses(self, sentences: Sequence[Sentence]) -> Iterator[Parse]:
        """Parses of sentences; those with tags together, where the parser reads them."""
        session = self._current_session()
        reads = self.parser.reads_tags
        for tagged, alike in groupby(sentences, lambda each: reads and each.tags is not None):
            rows = list(alike)
            tags = [each.tags or [] for each in rows] if tagged else None
            yield from session.parse([each.words for each in rows], tags)

    def _given_up(self, sentence: Sentence) -> Parse | None:
        if self.on_long != "flat":
            return None
        return self.parser.flat(sentence.words, sentence.tags or [NO_TAG] * len(sentence.words))

    def _take(self, parser: Parser) -> Parser:
        """Have a parser from now on.

        Raises:
            SpmrlError: it lacks what the settings ask of it.
        """
        if self.set_tags and not parser.predicts_tags:
            raise SpmrlError(
                f"{self.name}: set_tags asks for tags, but this parser predicts none: leave the "
                "setting out, or train a parser with a tagger"
            )
        self._parser, self._session = parser, None
        self._layers = kind_named(parser.kind).layers
        return parser

    def _current_session(self) -> Session:
        if self._process != os.getpid():
            # One of the processes of nlp.pipe(n_process=...), forked from the one that loaded the
            # parser. The threads of that one are gone, and GNU OpenMP would wait for them.
            import torch

            torch.set_num_threads(1)
            self._process, self._session = os.getpid(), None
        if self._session is None:
            self._session = self.parser.session()
        return self._session

    # Saving ---------------------------------------------------------------------------------

    def to_disk(self, path: str | Path, *, exclude: Iterable[str] = ()) -> None:
        """Save the parser in a folder, beside what else is there.

        In it, the folder ``parser`` is one that :func:`~spmrl_bench.load` opens too.
        """
        write_folder(Path(path) / _SAVED, self.parser.save)

    def from_disk(self, path: str | Path, *, exclude: Iterable[str] = ()) -> ParserComponent:
        """Take the parser that :meth:`to_disk` saved in a folder.

        Raises:
            CheckpointError: there is none.
        """
        self._take(load_parser(Path(path) / _SAVED, self.device))
        return self

    def to_bytes(self, *, exclude: Iterable[str] = ()) -> bytes:
        """The parser as one value: the files of its folder."""
        with TemporaryDirectory() as place:
            folder = Path(place)
            self.parser.save(folder)
            files = {
                path.relative_to(folder).as_posix(): path.read_bytes()
                for path in sorted(folder.rglob("*"))
                if path.is_file()
            }
        return bytes(srsly.msgpack_dumps(files))

    def from_bytes(self, data: bytes, *, exclude: Iterable[str] = ()) -> ParserComponent:
        """Take the parser of :meth:`to_bytes`.

        Raises:
            CheckpointError: it is no parser.
        """
        files = _files(data)
        with TemporaryDirectory() as place:
            for name, content in files.items():
                path = Path(place) / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(content)
            self._take(load_parser(place, self.device))
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        """To another process: the settings, and the parser if it is loaded."""
        settings = {
            name: getattr(self, name)
            for name in ("device", "on_long", "unsplit", "set_tags", "spans_key")
        }
        data = None if self._parser is None else self.to_bytes()
        return _restored, (self.name, self.model, settings, data)


def _restored(
    name: str, model: str | Path | None, settings: dict[str, Any], data: bytes | None
) -> ParserComponent:
    component = ParserComponent(name, model, **settings)
    return component if data is None else component.from_bytes(data)


def _files(data: bytes) -> dict[str, bytes]:
    """The files of a parser's folder, by their names in it.

    Raises:
        CheckpointError: it is something else, or a name leads out of the folder.
    """
    try:
        files = srsly.msgpack_loads(data)
    except Exception as error:  # the library has many
        raise CheckpointError(f"the bytes are no parser of a pipeline ({error})") from None
    if not isinstance(files, dict):
        raise CheckpointError(
            f"the bytes are no parser of a pipeline, but a {type(files).__name__}"
        )
    for name, content in files.items():
        fault = path_fault(name) if isinstance(name, str) else "is no text"
        if fault or not isinstance(content, bytes):
            raise CheckpointError(
                f"the bytes are no parser of a pipeline: the file name {name!r} "
                f"{fault or 'has no bytes'}"
            )
    return files
