"""What a parser is to the rest of the program, whatever it computes.

A kind of parser is built from its configuration and gold parses, answers tokenised sentences with
a :class:`~spmrl_bench.trees.parse.Parse` each, and is saved and loaded as a folder. Streams of
text, processes, evaluation and ensembles know no more of it than stands here; what training needs
besides is :class:`~spmrl_bench.parsers.trained.TrainedParser`.
"""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any, ClassVar, Protocol, Self

from spmrl_bench.bounded_files import read_regular
from spmrl_bench.errors import CheckpointError, SpmrlError
from spmrl_bench.garbage import no_collection
from spmrl_bench.json_files import parsed_json
from spmrl_bench.trees.parse import Parse

#: Bound on a batch of sentences that are parsed at once: their number times the longest.
MAX_TOKENS = 2000

Words = Sequence[str]


class EnsembleError(SpmrlError):
    """Parsers that cannot parse together."""


_kept: ContextVar[tuple[dict[str, Any], str] | None] = ContextVar("_kept", default=None)


def read_description(folder: Path) -> dict[str, Any]:
    """What ``parser.json`` says of the parser of a folder.

    Raises:
        CheckpointError: it is missing or broken.
    """
    return read_whole_description(folder)[0]


def read_whole_description(folder: Path) -> tuple[dict[str, Any], str]:
    """As :func:`read_description`, and the SHA-256 of the file, in hex."""
    path = folder / "parser.json"
    try:
        data = read_regular(path)
        digest = hashlib.sha256(data).hexdigest()
        kept = _kept.get()
        if kept is not None and kept[1] == digest:  # of the same bytes, as load_parser has read
            return kept
        with no_collection():
            found = parsed_json(data)
        if not isinstance(found, dict):
            raise ValueError(f"no object but a {type(found).__name__}")
    except (OSError, ValueError) as error:
        raise not_a_parser(path, getattr(error, "strerror", None) or error) from None
    return found, digest


@contextmanager
def described(folder: Path) -> Iterator[dict[str, Any]]:
    """As :func:`read_description`, which within it is quick for whoever reads it again."""
    kept = read_whole_description(folder)
    token = _kept.set(kept)
    try:
        yield kept[0]
    finally:
        _kept.reset(token)


def not_a_parser(path: Path, reason: object) -> CheckpointError:
    """The error of a description from which no parser can be made."""
    return CheckpointError(
        f"{path}: not a parser description ({reason}). Train again, or copy the whole folder anew"
    )


class Session(Protocol):
    """Parses with one parser whose weights do not change meanwhile, keeping what it may reuse."""

    def parse(
        self, sentences: Iterable[Words], tags: Iterable[Words] | None = None
    ) -> Iterator[Parse]:
        """As :meth:`Parser.parse`."""


class Parser(ABC):
    """A parser that can parse.

    Attributes:
        kind: its name in the registry.
    """

    kind: ClassVar[str]

    @classmethod
    @abstractmethod
    def build(cls, config: Any, examples: Sequence[Parse]) -> Self:
        """A parser, untrained if its kind is trained.

        Args:
            config: of the kind's configuration class.
            examples: the training sentences, with the layers that the kind learns from.

        Raises:
            TreeError: nothing can be learnt from the examples.
            PretrainedError: a file that the configuration names is missing or does not fit.
        """

    @property
    def reads_tags(self) -> bool:
        """Whether tags that are given change the parse of a sentence."""
        return False

    @property
    def predicts_tags(self) -> bool:
        """Whether the parses of sentences without tags have tags that the parser found."""
        return False

    def length_problem(self, words: Words) -> str:
        """What is wrong with the length of a sentence; empty if nothing is."""
        return ""

    @abstractmethod
    def session(self, max_tokens: int = MAX_TOKENS) -> Session:
        """What parses, and keeps what it computed of a word over several calls.

        Args:
            max_tokens: bound on a batch.
        """

    def parse(
        self,
        sentences: Iterable[Words],
        tags: Iterable[Words] | None = None,
        *,
        max_tokens: int = MAX_TOKENS,
    ) -> Iterator[Parse]:
        """Best parses of tokenised sentences, lazily and in input order.

        Args:
            sentences: words of each sentence; one without words gives a tree without words.
            tags: tags to carry into the parses, which the parser reads if it was trained with
                them; without them every word has the tag that the parser predicts, or ``XX``.
            max_tokens: bound on a batch, see :func:`~spmrl_bench.parsers.batches.sub_batches`.

        Raises:
            SentenceTooLongError: the parser has no room for a sentence; the parses of all
                sentences before it have been given by then.
            TreeError: ``tags`` ends before ``sentences``, or a row does not fit its words, or
                the parser reads tags and none are given.
        """
        return self.session(max_tokens).parse(sentences, tags)

    @abstractmethod
    def flat(self, words: Words, tags: Words) -> Parse:
        """What stands for the parse of a sentence, with one word at least, that is given up."""

    @classmethod
    def combined(cls, members: Sequence[Any]) -> Parser:
        """Several parsers of this kind as one.

        Raises:
            EnsembleError: they cannot be combined.
        """
        raise EnsembleError(f"parsers of kind {cls.kind} cannot parse together as an ensemble")

    @abstractmethod
    def save(self, folder: Path) -> None:
        """Write the parser into an existing folder; ``parser.json`` has its ``kind``."""

    @classmethod
    @abstractmethod
    def load(cls, folder: Path) -> Self:
        """The inverse of :meth:`save`.

        Raises:
            CheckpointError: the files are missing, broken, or do not fit each other.
            PretrainedError: a file that the parser was trained with is missing or has changed.
        """
