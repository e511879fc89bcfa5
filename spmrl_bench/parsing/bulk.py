"""Parsing text of any size, one answer per sentence and in the same order.

Text comes in windows, each of which is answered as a whole, in this process or in one of several.
What becomes of sentences that a parser cannot take, such as a table in one line, is declared
beforehand, and they are counted.

Several processes are those of joblib, which notices when one of them is gone. ``joblib.Parallel``
would read and parse on while nobody takes the answers, so its executor gets the windows one by one,
at most two for each process ahead of the answers. No process outlives this one.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import groupby
from multiprocessing import active_children
from pathlib import Path
from typing import Any, Literal, NamedTuple

import torch
from joblib.externals.loky.process_executor import TerminatedWorkerError

from spmrl_bench.errors import SentenceTooLongError, SpmrlError, TreeError
from spmrl_bench.nn.device import prepare_process
from spmrl_bench.parsers.base import MAX_TOKENS, Parser
from spmrl_bench.parsers.kinds import kind_named
from spmrl_bench.parsers.session import WINDOW_SENTENCES, weight, windows
from spmrl_bench.parsing.answers import Output, chosen_output, write_answer
from spmrl_bench.parsing.models import load_parser
from spmrl_bench.parsing.streams import InputSentence
from spmrl_bench.process import pools
from spmrl_bench.process.signals import STOPPING, interrupt, on_signals
from spmrl_bench.readers.conll import TagColumn
from spmrl_bench.trees.tree import NO_TAG

OnLong = Literal["error", "skip", "flat"]

#: Sentences of a window where several processes get one each at a time: 3 % more work in batches
#: that are less alike, but the processes come to their ends together.
SHARED_WINDOW_SENTENCES = 250

#: Sentences that are parsed together, all with tags or all without.
Window = Sequence[InputSentence]


@dataclass(frozen=True)
class ParseOptions:
    """How sentences are answered: one that the parser cannot take ends the answers (``error``), is
    written without a parse (``skip``), or with the flattest one (``flat``)."""

    on_long: OnLong = "error"
    output: Output | None = None  # None: what the parser finds
    tag_column: TagColumn = "xpos"
    max_tokens: int = MAX_TOKENS
    escapes: str = "ptb"  # of words in brackets, where no spelling was given
    scored: bool = False  # with probabilities
    best: int = 1  # how many parses of each sentence


class WindowResult(NamedTuple):
    """What became of a window."""

    texts: list[str]  # what is written of each sentence in front of the error, or of all
    long: list[str]  # place and problem of those that were too long
    error: SpmrlError | None  # why there are no more


class WorkerLostError(SpmrlError):
    """A process that parses has ended without an answer."""


#: Answers windows one by one and in order; several may be taken before the first result.
ParseWindows = Callable[[Iterable[Window]], Iterator[WindowResult]]


@dataclass
class Counts:
    """Counts of a stream."""

    sentences: int = 0  # whose texts have been taken
    long: int = 0  # of these, too long for the parser
    first_long: str = ""  # place and problem of the first of them


class Worker:
    """Answers windows with one parser, whose caches are kept from one to the next."""

    def __init__(self, parser: Parser, options: ParseOptions) -> None:
        """Raise a SpmrlError if the parser does not find what is to be written."""
        self._parser, self._options = parser, options
        self._output = chosen_output(options.output, kind_named(parser.kind).layers)
        if options.scored and self._output == "brackets":
            raise SpmrlError(
                "--scores: trees in brackets have no room for probabilities: use '--output json'"
            )
        if options.best > 1 and self._output != "json":
            raise SpmrlError("--best: several parses of a sentence need '--output json'")
        self._session = parser.session_for(options.scored, options.best, options.max_tokens)

    def __call__(self, window: Window) -> WindowResult:
        options, result = self._options, WindowResult([], [], None)
        problems = [self._parser.problem(sentence.words) for sentence in window]
        ends = options.on_long == "error"
        refused = [k for k, problem in enumerate(problems) if ends and problem]
        answered = [*zip(window, problems, strict=True)][: min(refused, default=None)]
        fitting = [sentence for sentence, problem in answered if not problem]
        known = [sentence.tags for sentence in fitting if sentence.tags is not None]
        given = [sentence.given for sentence in fitting]
        if any(given):
            self._parser.check_exact()
        words = [sentence.words for sentence in fitting]
        parses = self._session.parse(words, known or None, *([given] if any(given) else []))
        for sentence, problem in answered:
            try:
                parse = None if problem else next(parses)
                if problem and options.on_long == "flat":
                    tags = sentence.tags or [NO_TAG] * len(sentence.words)
                    parse = self._parser.flat(sentence.words, tags)
                text = write_answer(
                    sentence, parse, self._output, options.tag_column,
                    escapes=options.escapes, too_long=bool(problem),
                )  # fmt: skip
            except TreeError as error:
                return result._replace(error=TreeError(f"{sentence.place}: {error}"))
            result.texts.append(text)
            if problem:
                result.long.append(f"{sentence.place}: {problem}")
        if not refused:
            return result
        problem = f"{window[refused[0]].place}: {problems[refused[0]]}"
        hint = "'--on-long skip' and '--on-long flat' go on without its parse"
        return result._replace(error=SentenceTooLongError(f"{problem}. {hint}"))


@contextmanager
def open_workers(
    folder: Path, device: str, options: ParseOptions, workers: int = 1
) -> Iterator[ParseWindows]:
    """Give what answers windows with the parser of a folder, in this process or in several others,
    whose errors come with the first answer, and which SIGTERM ends. Raise a CheckpointError if the
    folder holds no parser, a SpmrlError if it does not find what is to be written.
    """
    if workers == 1:
        prepare_process(device)
        yield partial(map, Worker(load_parser(folder, device), options))
        return
    threads = max(1, pools.available_threads() // workers)
    before = active_children()
    executor = pools.worker_pool(workers, threads)

    def submit(window: Window) -> Future[WindowResult]:
        with pools.interrupts_blocked():  # the first starts all processes
            return executor.submit(_parse_window, window, folder, device, threads, options)

    try:
        with on_signals(interrupt, *STOPPING):
            yield partial(_results, submit, 2 * workers)
    finally:
        pools.end_pool(executor, before)


def parse_input(
    sentences: Iterable[InputSentence],
    parse_windows: ParseWindows,
    counts: Counts,
    *,
    window: int = WINDOW_SENTENCES,
) -> Iterator[list[str]]:
    """Yield texts that answer the sentences, in order, as many at a time as are ready.

    The sentences are read a few windows ahead, of at most ``window`` sentences each; ``counts``
    count as it goes. Raise a SentenceTooLongError if a sentence is, by the policy ``error``, a
    TreeError if a parse cannot be written in this form, or the parser lacks tags, a WorkerLostError
    if a process has ended, errors as the sentences; all texts before it have been yielded.
    """
    waiting: deque[Window] = deque()  # the windows without an answer

    def taken() -> Iterator[Window]:
        for _, alike in groupby(sentences, key=lambda sentence: sentence.tags is None):
            for some in windows(alike, lambda sentence: weight(sentence.words), window):
                waiting.append(some)
                yield some

    try:
        for result in parse_windows(taken()):
            waiting.popleft()
            yield result.texts
            counts.sentences += len(result.texts)
            counts.long += len(result.long)
            counts.first_long = counts.first_long or "".join(result.long[:1])
            if result.error is not None:
                raise result.error
    except TerminatedWorkerError as error:
        first, last = waiting[0][0].place, waiting[0][-1].place
        raise WorkerLostError(
            f"a process that parses {pools.how_ended(error)}. The sentences in front of {first} "
            f"have been answered; what failed is between there and {last}"
        ) from None


def _results(
    submit: Callable[[Window], Future[WindowResult]], most: int, source: Iterable[Window]
) -> Iterator[WindowResult]:
    """Yield a result for each window, in order, with at most so many windows ahead of them."""
    waiting: deque[Future[WindowResult]] = deque()
    end: Exception | None = None  # why no more windows are taken
    source = iter(source)
    try:
        while True:
            try:
                while end is None and len(waiting) < most and not (waiting and waiting[0].done()):
                    waiting.append(submit(next(source)))
            except (StopIteration, SpmrlError, TerminatedWorkerError) as error:
                end = error
            if waiting:
                yield waiting.popleft().result()
            elif isinstance(end, StopIteration):
                return
            elif end is not None:
                raise end
    finally:
        for future in waiting:
            future.cancel()


def _parse_window(window: Window, *worker: Any) -> WindowResult:
    return _kept_worker(*worker)(window)


def own_worker(folder: Path, device: str, threads: int, options: ParseOptions) -> Worker:
    """Return the worker of a process that does nothing but parse."""
    prepare_process(device)
    parser = load_parser(folder, device)
    torch.set_num_threads(threads)  # where another variable says otherwise
    return Worker(parser, options)


_kept_worker = lru_cache(maxsize=1)(own_worker)
