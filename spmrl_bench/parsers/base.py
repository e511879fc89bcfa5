"""What a parser is to the rest of the program, whatever it computes.

It is built from settings and gold parses, gives a parse for each tokenised sentence, and is saved
and loaded as a folder. What training needs besides is
:class:`~spmrl_bench.parsers.neural.TrainedParser`.
"""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Protocol, Self

from spmrl_bench.errors import CheckpointError, SpmrlError, UnsupportedError
from spmrl_bench.nn.settings import Precision, Settings
from spmrl_bench.storage.files import read_regular
from spmrl_bench.storage.garbage import no_collection
from spmrl_bench.storage.json import parse_json
from spmrl_bench.trees.dependencies import DependencyTree
from spmrl_bench.trees.given import Given
from spmrl_bench.trees.parse import Parse, Probabilities
from spmrl_bench.trees.tree import NO_TAG, Tree

if TYPE_CHECKING:
    from spmrl_bench.nn.encoders import Part
    from spmrl_bench.nn.encoders.self_attention import AttentionMask
    from spmrl_bench.parsers.views import AttentionMaps, DerivationTrace, HeadOutputs

#: Bound on a batch of sentences that are parsed at once: their number times the longest.
MAX_TOKENS = 2000

Words = Sequence[str]


class EnsembleError(SpmrlError):
    """Parsers that cannot parse together."""


class ParserConfig(Settings):
    """Settings of every kind of parser; a kind adds its own."""

    precision: Precision = "float32"
    """Numbers that the large matrix products take, in training and in parsing."""

    @property
    def free(self) -> frozenset[str]:
        """Settings that may be changed in a trained parser: they decide how it parses."""
        return frozenset()

    def cost(self) -> float:
        """Return about how many weights the vectors of a word are multiplied with."""
        return 1.0

    def tables(self) -> dict[str, Settings]:
        """Return the settings of the parts by the name of their table in a recipe."""
        found: dict[str, Settings] = {}
        for name, value in self:
            tables = value if isinstance(value, Mapping) else {name: value}
            found |= {key: own for key, own in tables.items() if isinstance(own, Settings)}
        return found

    def files(self) -> dict[str, str]:
        parts = self.tables().items()
        return {f"{table}.{key}": path for table, own in parts for key, path in own.files().items()}

    def outside(self) -> dict[str, str]:
        parts = self.tables().items()
        return {f"{name}.{key}": path for name, own in parts for key, path in own.outside().items()}


class Description(NamedTuple):
    """What ``parser.json`` says of a parser, and the SHA-256 of the file, in hex."""

    content: dict[str, Any]
    sha256: str

    @classmethod
    def read(cls, folder: Path) -> Self:
        """Read it; CheckpointError if it is missing or broken."""
        path = folder / "parser.json"
        try:
            data = read_regular(path)
            with no_collection():
                content = parse_json(data)
            if not isinstance(content, dict):
                raise ValueError(f"no object but a {type(content).__name__}")
        except (OSError, ValueError) as error:
            raise not_a_parser(path, getattr(error, "strerror", None) or error) from None
        return cls(content, hashlib.sha256(data).hexdigest())


def not_a_parser(path: Path, reason: object) -> CheckpointError:
    """Return the error of a description from which no parser can be made."""
    return CheckpointError(
        f"{path}: not a parser description ({reason}). Train again, or copy the whole folder anew"
    )


class Prediction(NamedTuple):
    """The annotation of one sentence, of the layers that a parser predicts."""

    constituents: list[tuple[int, int, str]] | None = None
    """``(start, end, label)`` in pre-order."""
    heads: Sequence[int] | None = None
    """The head of each word, from 1; 0 for the root."""
    relations: Sequence[str] | None = None
    tags: Sequence[str] | None = None
    probabilities: Probabilities | None = None
    best: Sequence[tuple[float, Prediction]] = ()
    """The best ones with their scores, of a parser that is asked for several."""

    def parse(self, words: Words, given: Words | None) -> Parse:
        """Return the parse of a sentence with the given tags, or else the predicted ones."""
        tags, spans, arcs = given or self.tags or [NO_TAG] * len(words), self.constituents, None
        if self.heads is not None and self.relations is not None:
            arcs = DependencyTree.build(words, tags, self.heads, self.relations)
        tree = None if arcs is not None and spans is None else Tree.build(words, tags, spans or [])
        best = tuple((score, one.parse(words, tags)) for score, one in self.best)
        return replace(Parse.of(tree, arcs), probabilities=self.probabilities, best=best)


class Session(Protocol):
    """Parses while the weights stay as they are, and keeps what it computed of words."""

    def parse(
        self,
        sentences: Iterable[Words],
        tags: Iterable[Words] | None = None,
        given: Iterable[Given | None] | None = None,
    ) -> Iterator[Parse]: ...


class Parser(ABC):
    """A parser that can parse."""

    kind: ClassVar[str]
    """Its name in the registry."""
    exact: ClassVar[bool] = False
    """Whether a chart finds the best of all parses: then parts of one may be given, and a
    temperature makes of the scores of all what agrees with how often the best is right."""
    Config: ClassVar[type[ParserConfig]] = ParserConfig
    citations: ClassVar[tuple[str, ...]] = ()
    """Of the papers that it follows."""

    @classmethod
    @abstractmethod
    def build(cls, config: Any, examples: Sequence[Parse]) -> Self:
        """Return a parser for training sentences, untrained if its kind is trained. Raise a
        TreeError if nothing can be learnt, a PretrainedError if a file of others does not fit."""

    @abstractmethod
    def save(self, folder: Path) -> None:
        """Write the parser into an existing folder; ``parser.json`` has its ``kind``."""

    @classmethod
    @abstractmethod
    def load(cls, folder: Path, description: Description | None = None) -> Self:
        """Return the parser of a folder, whose description may have been read before. Raise a
        CheckpointError if its files are missing, broken or do not fit each other, a PretrainedError
        if one that it was trained with is missing or has changed."""

    @property
    def reads_tags(self) -> bool:
        """Whether tags that are given change the parse of a sentence."""
        return False

    @property
    def predicts_tags(self) -> bool:
        """Whether it finds tags for sentences without any."""
        return False

    def problem(self, words: Words) -> str:
        """Return why a sentence is too long to be parsed, or ''."""
        return ""

    @abstractmethod
    def session(self, max_tokens: int = MAX_TOKENS) -> Session:
        """Return what parses, with a bound on a batch: sentences times the longest."""

    def parse(
        self,
        sentences: Iterable[Words],
        tags: Iterable[Words] | None = None,
        *,
        max_tokens: int = MAX_TOKENS,
        scored: bool = False,
        best: int = 1,
        given: Iterable[Given | None] | None = None,
    ) -> Iterator[Parse]:
        """Yield the best parses of tokenised sentences, lazily and in input order.

        One without words gives a tree without words. ``tags`` are those of the parses, which the
        parser reads if it was trained with them; else words have those that it predicts, or ``XX``.
        With ``scored`` each parse has its probabilities, with ``best`` so many of the best ones,
        and with ``given``, of each sentence something or None, it is the best that holds it.

        Raises:
            UnsupportedError: the kind of parser tells no probabilities, finds one parse only, or
                holds nothing given.
            SentenceTooLongError: the parser has no room for a sentence; all before it are parsed.
            TreeError: rows of ``tags`` do not fit the sentences, or are needed and not given; or no
                parse of this parser holds what is given.
        """
        session = self.session_for(scored, best, max_tokens)
        if given is None:
            return session.parse(sentences, tags)
        self.check_exact()
        return session.parse(sentences, tags, given)

    @abstractmethod
    def flat(self, words: Words, tags: Words) -> Parse:
        """Return what stands for the parse of a sentence, not empty, that is given up."""

    def prepare_for_sharing(self) -> None:  # noqa: B027  # there may be nothing
        """Take out what tells of the training sentences or the machine; parses stay the same."""

    # What some kinds can do -----------------------------------------------------------

    def check_exact(self) -> None:
        """Raise an UnsupportedError if its kind holds nothing that is given."""
        if self.kind not in (able := _kinds_that(lambda kind: kind.exact)):
            raise UnsupportedError(
                f"a parser of kind {self.kind} holds nothing that is given: choose one of kind "
                f"{' or '.join(able)}"
            )

    def session_for(self, scored: bool, best: int, max_tokens: int = MAX_TOKENS) -> Session:
        """Return what parses with the :class:`~spmrl_bench.trees.parse.Probabilities` of each
        parse, or finds so many of the best, or both; raise an UnsupportedError if the kind cannot
        do it."""
        if scored or best > 1:
            raise self._refuse("session_for", "probabilities or other parses")
        return self.session(max_tokens)

    def attention(
        self, words: Words, tags: Words | None = None, part: Part = "combined"
    ) -> AttentionMaps:
        """Return the attention weights of every head of the encoder for one sentence: those that
        the parser uses, or of one product of queries and keys alone. Raise an UnsupportedError if
        there are none, else errors as of :meth:`parse`, and a TreeError if there are no words."""
        raise self._refuse("attention")

    def head_outputs(
        self, sentences: Iterable[tuple[Words, Words | None]], *, max_tokens: int = MAX_TOKENS
    ) -> Iterator[HeadOutputs]:
        """Yield what the parser predicts, and what each head of its label attention gives to it.

        Sentences are words and tags. They are read lazily and handed on as their batches are done;
        those without words are left out. Raise an UnsupportedError, before any is read, if no head
        has features of its own in span vectors.
        """
        raise self._refuse("head_outputs")

    def limited(self, masks: Mapping[int, AttentionMask]) -> AbstractContextManager[None]:
        """Within it the attention of these layers is masked, that of the others not; raise an
        UnsupportedError if there is no such layer, or no attention."""
        if masks:
            raise self._refuse("limited")
        return nullcontext()

    def derivation(self, words: Words, tags: Words | None = None) -> DerivationTrace:
        """Return the actions that parse a sentence, and what was looked at before each; raise an
        UnsupportedError if the kind writes no actions, a SpmrlError if there are no words."""
        raise self._refuse("derivation")

    def _refuse(self, method: str, what: str = "") -> UnsupportedError:
        """Return the error of a method that parsers of other kinds have."""
        default = getattr(Parser, method)
        able = _kinds_that(lambda kind: getattr(kind, method) is not default)
        return UnsupportedError(
            f"a parser of kind {self.kind} has no {what or method.replace('_', ' ')}: choose one "
            f"of kind {' or '.join(able)}"
        )


def _kinds_that(can: Callable[[type[Parser]], bool]) -> list[str]:
    from spmrl_bench.parsers.kinds import KINDS

    return [name for name in KINDS.names() if can(KINDS.get(name).parser_class)]
