"""Several processes that parse, each with its share of the threads.

Two processes with a thread each parse more than one with two, because only the matrix products
of a batch are shared out among threads. The processes are those of joblib, which notices when
one of them is gone. ``joblib.Parallel`` itself would read and parse on while nobody takes the
answers, so the windows are handed to its executor one by one, at most two for each process ahead
of the answers. No process outlives this one, however this one ends.
"""

from __future__ import annotations

import os
import re
import signal
import threading
import warnings
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from functools import lru_cache, partial
from pathlib import Path

from joblib.externals.loky.process_executor import ProcessPoolExecutor, TerminatedWorkerError

from spmrl_bench.errors import SpmrlError
from spmrl_bench.parsers.bulk import Answer, Answerer, Answers, Manner, Window, WorkerLostError
from spmrl_bench.parsers.registry import load_parser
from spmrl_bench.processes import (
    available_threads,
    end_with_parent,
    interrupt,
    interrupts_blocked,
    on_signals,
)


@contextmanager
def crew(folder: Path, device: str, manner: Manner, workers: int) -> Iterator[Answers]:
    """Processes that answer windows as an :class:`Answerer` in each of them does.

    Args: as for :func:`spmrl_bench.parsers.bulk.answering`, whose errors come with the first
        answer.

    Raises:
        Interrupted: SIGTERM came; the processes are ended.
    """
    threads = max(1, available_threads() // workers)
    executor = ProcessPoolExecutor(
        workers,
        env={"OMP_NUM_THREADS": str(threads)},
        initializer=end_with_parent,
        initargs=(os.getpid(),),
    )

    def submit(window: Window) -> Future[Answer]:
        with interrupts_blocked():  # the first starts all processes
            return executor.submit(_answer, folder, device, threads, manner, window)

    try:
        with on_signals(interrupt, signal.SIGTERM):
            yield partial(_answers, submit, 2 * workers)
    finally:
        report = threading.excepthook
        # A thread of joblib's may still look for the work that is dropped here.
        threading.excepthook = lambda _: None
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # joblib looks for children of the processes
            executor.shutdown(kill_workers=True)  # what they work on is no longer wanted
        threading.excepthook = report


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
