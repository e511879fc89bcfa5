"""Parsing text of any size into lines of text, one per sentence and in the same order.

Text comes in windows. A window is answered as a whole, in this process or in one of several
(:mod:`spmrl_bench.parsers.workers`), and written before the next but few is read. Corpora hold
sentences that no model was made for, a table or a list of names in one line; what becomes of
those beyond the position table is declared beforehand, and they are counted.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple

from spmrl_bench.errors import SentenceTooLongError, SpmrlError
from spmrl_bench.parsers.streams import WINDOW_SENTENCES, Given, windows
from spmrl_bench.trees.brackets import write_brackets
from spmrl_bench.trees.tree import Tree

if TYPE_CHECKING:
    from spmrl_bench.parsers.chart_parser import ChartParser

OnLong = Literal["error", "skip", "flat"]

#: Answers a sentence that was given up, as EVALB expects it.
NO_PARSE = "(())"
#: Bound on a batch of sentences that are parsed at once.
MAX_TOKENS = 2000


class Window(NamedTuple):
    """Sentences that are parsed together, without what only the reader has to know."""

    words: list[Sequence[str]]
    tags: list[Sequence[str]] | None


class Answer(NamedTuple):
    """What became of a window."""

    lines: list[str]
    """One for each sentence, up to the first too long one under the policy ``error``."""
    long: list[int]
    """Numbers in the window, from 0, of the sentences that are too long."""
    problem: str
    """What is wrong with the first of them."""


class WorkerLostError(SpmrlError):
    """A process that parses has ended without an answer."""


#: Answers windows one by one and in order; several may be asked for before the first answer.
Answers = Callable[[Iterable[Window]], Iterator[Answer]]


@dataclass
class Tally:
    """Counts of a stream.

    Attributes:
        sentences: whose lines have been yielded, and used by who asked for more.
        long: of these, beyond the position table.
        first_long: place and problem of the first of them.
    """

    sentences: int = 0
    long: int = 0
    first_long: str = ""


class Answerer:
    """Answers windows with one parser.

    Args:
        parser: what parses.
        on_long: a sentence beyond the position table ends the answer (``error``), is answered
            by :data:`NO_PARSE` (``skip``), or by one bracket over all its words, named as the
            most frequent root of the training trees (``flat``).
        max_tokens: bound on a batch, see :meth:`ChartParser.parse`.
    """

    def __init__(self, parser: ChartParser, on_long: OnLong, max_tokens: int = MAX_TOKENS) -> None:
        self._parser = parser
        self._problem = parser.length_problem
        self._on_long = on_long
        self._max_tokens = max_tokens
        self._forms = parser.form_cache()
        self._root = parser.vocabulary.root

    def __call__(self, window: Window) -> Answer:
        """The lines of a window."""
        problems = [self._problem(words) for words in window.words]
        long = [k for k, problem in enumerate(problems) if problem]
        end = long[0] if long and self._on_long == "error" else len(window.words)
        fitting = [k for k in range(end) if not problems[k]]
        tags = window.tags
        trees = self._parser.parse(
            [window.words[k] for k in fitting],
            None if tags is None else [tags[k] for k in fitting],
            max_tokens=self._max_tokens,
            forms=self._forms,
        )
        lines = [self._given_up(window, k) if problems[k] else _line(trees) for k in range(end)]
        return Answer(lines, long, problems[long[0]] if long else "")

    def _given_up(self, window: Window, k: int) -> str:
        if self._on_long == "skip":
            return NO_PARSE
        from spmrl_bench.parsers.parsing import NO_TAG

        words = window.words[k]
        tags = [NO_TAG] * len(words) if window.tags is None else window.tags[k]
        return write_brackets(Tree.build(words, tags, [(0, len(words), self._root)]))


def _line(trees: Iterator[Tree]) -> str:
    """The next tree; an empty line answers an empty line."""
    tree = next(trees)
    return write_brackets(tree) if len(tree) else ""


def answering(
    folder: Path, device: str, on_long: OnLong, workers: int = 1, max_tokens: int = MAX_TOKENS
) -> AbstractContextManager[Answers]:
    """What answers windows with the parser of a folder, in this process or in others.

    Args:
        folder, device: as for :func:`spmrl_bench.parsers.load_parser`.
        on_long, max_tokens: as for :class:`Answerer`.
        workers: processes; 1 means this one.

    Raises:
        CheckpointError: the folder holds no parser.
    """
    if workers > 1:
        from spmrl_bench.parsers.workers import Crew

        return Crew(folder, device, on_long, workers, max_tokens)
    from spmrl_bench.parsers.registry import load_parser

    return nullcontext(partial(map, Answerer(load_parser(folder, device), on_long, max_tokens)))


def parse_given(
    sentences: Iterable[Given],
    answers: Answers,
    tally: Tally,
    *,
    on_long: OnLong,
    window: int = WINDOW_SENTENCES,
) -> Iterator[list[str]]:
    """Lines that answer the sentences, in order, as many at a time as are ready.

    Args:
        sentences: read no further than a few windows ahead.
        answers: see :func:`answering`.
        tally: counts as it goes.
        on_long: the policy that ``answers`` follow.
        window: sentences of a window at most.

    Raises:
        ReadError: see :func:`spmrl_bench.parsers.streams.read_given`.
        SentenceTooLongError: a sentence is, and the policy is ``error``.
        WorkerLostError: a process has ended.

        Whatever is raised, all lines before the place have been yielded.
    """
    asked: deque[list[str]] = deque()  # places of the windows without an answer

    def asking() -> Iterator[Window]:
        for given in windows(sentences, window):
            asked.append([sentence.place for sentence in given])
            tags = [sentence.tags for sentence in given if sentence.tags is not None]
            yield Window([sentence.words for sentence in given], tags or None)

    try:
        for answer in answers(asking()):
            places = asked.popleft()
            yield answer.lines
            tally.sentences += len(answer.lines)
            if not answer.long:
                continue
            problem = f"{places[answer.long[0]]}: {answer.problem}"
            if on_long == "error":
                raise SentenceTooLongError(
                    f"{problem}. '--on-long skip' and '--on-long flat' go on without its parse"
                )
            tally.long += len(answer.long)
            tally.first_long = tally.first_long or problem
    except WorkerLostError as error:
        first, last = asked[0][0], asked[0][-1]
        raise WorkerLostError(
            f"{error}. The sentences in front of {first} have been answered; what failed is "
            f"between there and {last}"
        ) from None
