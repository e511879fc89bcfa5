"""Parsing text of any size, one answer per sentence and in the same order.

Text comes in windows. A window is answered as a whole, in this process or in one of several, and
written before the next but few is read. Corpora hold sentences that no model was made for, a
table or a list of names in one line; what becomes of those that a parser cannot take is declared
beforehand, and they are counted.

Two processes with a thread each parse more than one with two, because only the matrix products
of a batch are shared out among threads. The processes are those of joblib, which notices when
one of them is gone. ``joblib.Parallel`` itself would read and parse on while nobody takes the
answers, so the windows are handed to its executor one by one, at most two for each process ahead
of the answers. No process outlives this one, however this one ends.
"""

from __future__ import annotations

import re
import signal
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import groupby
from multiprocessing import active_children
from pathlib import Path
from typing import Literal, NamedTuple

from joblib.externals.loky.process_executor import TerminatedWorkerError

from spmrl_bench.errors import SentenceTooLongError, SpmrlError, TreeError
from spmrl_bench.interrupts import interrupt, on_signals
from spmrl_bench.parsers.base import MAX_TOKENS, Parser
from spmrl_bench.parsers.output import Output, chosen_output, write_parse
from spmrl_bench.parsers.registry import kind_named, load_parser
from spmrl_bench.parsers.streams import WINDOW_SENTENCES, Given, weight, windows
from spmrl_bench.processes import available_threads, end_pool, interrupts_blocked, worker_pool
from spmrl_bench.readers.conll import TagColumn
from spmrl_bench.trees.parse import Parse
from spmrl_bench.trees.tree import NO_TAG

OnLong = Literal["error", "skip", "flat"]

#: Sentences that are parsed together, all with tags or all without.
Window = Sequence[Given]


@dataclass(frozen=True)
class Manner:
    """How sentences are answered.

    Attributes:
        on_long: a sentence that the parser cannot take ends the answers (``error``), is written
            without a parse (``skip``), or with the flattest one (``flat``).
        output: what is written; None leaves it to what the parser finds.
        tag_column: of tags in CoNLL-U.
        max_tokens: bound on a batch.
    """

    on_long: OnLong = "error"
    output: Output | None = None
    tag_column: TagColumn = "xpos"
    max_tokens: int = MAX_TOKENS


class Answer(NamedTuple):
    """What became of a window."""

    texts: list[str]
    """What is written of each sentence in front of the error, or of all."""
    long: list[str]
    """Place and problem of those that were too long."""
    error: SpmrlError | None
    """Why there is no more."""


class WorkerLostError(SpmrlError):
    """A process that parses has ended without an answer."""


#: Answers windows one by one and in order; several may be asked for before the first answer.
Answers = Callable[[Iterable[Window]], Iterator[Answer]]


@dataclass
class Tally:
    """Counts of a stream.

    Attributes:
        sentences: whose texts have been yielded, and used by who asked for more.
        long: of these, too long for the parser.
        first_long: place and problem of the first of them.
    """

    sentences: int = 0
    long: int = 0
    first_long: str = ""


class Answerer:
    """Answers windows with one parser, whose caches are kept from one to the next.

    Raises:
        SpmrlError: the parser does not find what is to be written.
    """

    def __init__(self, parser: Parser, manner: Manner) -> None:
        self._parser = parser
        self._manner = manner
        self._output = chosen_output(manner.output, kind_named(parser.kind).layers)
        self._session = parser.session(manner.max_tokens)

    def __call__(self, window: Window) -> Answer:
        """What is written of a window."""
        problems = [self._parser.length_problem(given.words) for given in window]
        stop = self._manner.on_long == "error"
        end = next((k for k, problem in enumerate(problems) if problem and stop), len(window))
        fitting = [window[k] for k in range(end) if not problems[k]]
        tags = [given.tags for given in fitting if given.tags is not None]
        parses = self._session.parse([given.words for given in fitting], tags or None)
        texts: list[str] = []
        long: list[str] = []
        for given, problem in zip(window[:end], problems, strict=False):
            parse = self._given_up(given) if problem else next(parses)
            try:
                text = write_parse(
                    given, parse, self._output, self._manner.tag_column, too_long=bool(problem)
                )
            except TreeError as error:
                return Answer(texts, long, TreeError(f"{given.place}: {error}"))
            texts.append(text)
            if problem:
                long.append(f"{given.place}: {problem}")
        if end == len(window):
            return Answer(texts, long, None)
        problem = f"{window[end].place}: {problems[end]}"
        hint = "'--on-long skip' and '--on-long flat' go on without its parse"
        return Answer(texts, long, SentenceTooLongError(f"{problem}. {hint}"))

    def _given_up(self, given: Given) -> Parse | None:
        if self._manner.on_long != "flat":
            return None
        return self._parser.flat(given.words, given.tags or [NO_TAG] * len(given.words))


@contextmanager
def answering(folder: Path, device: str, manner: Manner, workers: int = 1) -> Iterator[Answers]:
    """What answers windows with the parser of a folder, in this process or in others.

    Args:
        folder, device: as for :func:`spmrl_bench.parsers.load_parser`.
        manner: how.
        workers: processes; 1 means this one. The errors of others come with the first answer.

    Raises:
        CheckpointError: the folder holds no parser.
        SpmrlError: the parser does not find what is to be written.
        Interrupted: SIGTERM came while others parse; they are ended.
    """
    if workers == 1:
        yield partial(map, Answerer(load_parser(folder, device), manner))
        return
    threads = max(1, available_threads() // workers)
    before = active_children()
    executor = worker_pool(workers, threads)

    def submit(window: Window) -> Future[Answer]:
        with interrupts_blocked():  # the first starts all processes
            return executor.submit(_answer, folder, device, threads, manner, window)

    try:
        with on_signals(interrupt, signal.SIGTERM):
            yield partial(_answers, submit, 2 * workers)
    finally:
        end_pool(executor, before)


def parse_given(
    sentences: Iterable[Given],
    answers: Answers,
    tally: Tally,
    *,
    window: int = WINDOW_SENTENCES,
) -> Iterator[list[str]]:
    """Texts that answer the sentences, in order, as many at a time as are ready.

    Whatever is raised, all texts before the place have been yielded.

    Args:
        sentences: read no further than a few windows ahead.
        answers: see :func:`answering`.
        tally: counts as it goes.
        window: sentences of a window at most.

    Raises:
        ReadError: see :func:`spmrl_bench.parsers.streams.read_given`.
        SentenceTooLongError: a sentence is, and the policy is ``error``.
        TreeError: a parse cannot be written in this form, or the parser reads tags and there are
            none.
        WorkerLostError: a process has ended.
    """
    asked: deque[Window] = deque()  # the windows without an answer

    def asking() -> Iterator[Window]:
        for _, alike in groupby(sentences, key=lambda given: given.tags is None):
            for some in windows(alike, lambda given: weight(given.words), window):
                asked.append(some)
                yield some

    try:
        for answer in answers(asking()):
            asked.popleft()
            yield answer.texts
            tally.sentences += len(answer.texts)
            tally.long += len(answer.long)
            tally.first_long = tally.first_long or "".join(answer.long[:1])
            if answer.error is not None:
                raise answer.error
    except WorkerLostError as error:
        first, last = asked[0][0].place, asked[0][-1].place
        raise WorkerLostError(
            f"{error}. The sentences in front of {first} have been answered; what failed is "
            f"between there and {last}"
        ) from None


def _answers(
    submit: Callable[[Window], Future[Answer]], most: int, source: Iterable[Window]
) -> Iterator[Answer]:
    """An answer for each window, in order, with at most so many windows ahead of the answers.

    Raises:
        WorkerLostError: a process has ended.
        SpmrlError: the windows cannot be read on, or a process found no parser to load.
    """
    waiting: deque[Future[Answer]] = deque()
    end: Exception | None = None  # why no more windows are asked for
    windows = iter(source)
    try:
        while True:
            try:
                while end is None and len(waiting) < most and not (waiting and waiting[0].done()):
                    waiting.append(submit(next(windows)))
            except (StopIteration, SpmrlError, TerminatedWorkerError) as error:
                end = error
            if waiting:
                yield waiting.popleft().result()
            elif isinstance(end, StopIteration):
                return
            elif end is not None:
                raise end
    except TerminatedWorkerError as error:
        codes = re.search(r"exit codes of the workers are \{(.+)\}", str(error))
        raise WorkerLostError(
            f"a process that parses has ended ({codes[1] if codes else 'nobody knows why'}; is "
            "there enough memory? Fewer --workers need less)"
        ) from None
    finally:
        for future in waiting:
            future.cancel()


def _answer(folder: Path, device: str, threads: int, manner: Manner, window: Window) -> Answer:
    """What a worker does with a window."""
    return _answerer(folder, device, threads, manner)(window)


@lru_cache(maxsize=1)
def _answerer(folder: Path, device: str, threads: int, manner: Manner) -> Answerer:
    """The parser of this process, loaded with the first window that it gets."""
    parser = load_parser(folder, device)
    import torch

    torch.set_num_threads(threads)  # where another variable says otherwise
    return Answerer(parser, manner)
