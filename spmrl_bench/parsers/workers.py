"""Several processes that parse, each with its share of the threads.

Two processes with a thread each parse more than one with two, because only the matrix products
of a batch are shared out among threads. Each process has a pipe of its own: a lock that a killed
process held can then not stop the others. A process gets a window when it has answered the one
before, and answers wait until it is their turn, so that at most two windows for each process are
in memory. No process outlives this one, however this one ends.
"""

from __future__ import annotations

import os
import threading
import traceback
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager
from multiprocessing import get_context, parent_process
from multiprocessing.connection import Connection, wait
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from spmrl_bench.errors import SpmrlError
from spmrl_bench.parsers.bulk import Answer, Answerer, Answers, OnLong, Window, WorkerLostError
from spmrl_bench.processes import available_threads, ending, environment, interrupts_blocked

if TYPE_CHECKING:
    from multiprocessing.context import SpawnProcess

# Kinds of messages from a worker.
_READY, _ANSWER, _MISTAKE, _DEFECT = "ready", "answer", "mistake", "defect"
# Seconds in which a worker that was told to end should have ended.
_PATIENCE = 10


class _Worker:
    """One process and the pipe to it."""

    def __init__(self, process: SpawnProcess, pipe: Connection, number: int, of: int) -> None:
        self.process = process
        self.pipe = pipe
        # Number of the window whose answer is wanted of it; None while it gets ready.
        self.asked: int | None = None
        self._name = f"worker {number} of {of} (process {process.pid})"

    def ask(self, number: int, window: Window) -> None:
        self.asked = number
        try:
            self.pipe.send(window)
        except OSError:
            raise self._lost() from None

    def receive(self) -> Answer:
        """The answer to what it was asked; something else when it has got ready.

        Raises:
            WorkerLostError: it has ended without an answer.
            SpmrlError: it has ended before it was ready, or found no parser to load.
            RuntimeError: it met with a defect of the program.
        """
        try:
            kind, content = self.pipe.recv()
        except (EOFError, OSError):
            if self.asked is None:
                raise SpmrlError(f"{self._lost()} before it was ready") from None
            raise self._lost() from None
        if kind == _MISTAKE:
            raise SpmrlError(content)
        if kind == _DEFECT:
            raise RuntimeError(f"{self._name} failed:\n{content}")
        return content

    def _lost(self) -> WorkerLostError:
        return WorkerLostError(f"{self._name} {ending(self.process, _PATIENCE, '--workers')}")


class Crew(AbstractContextManager[Answers]):
    """Processes that answer windows as an :class:`Answerer` in each of them does.

    Args: as for :func:`spmrl_bench.parsers.bulk.answering`.
    """

    def __init__(
        self, folder: Path, device: str, on_long: OnLong, workers: int, max_tokens: int
    ) -> None:
        threads = max(1, available_threads() // workers)
        context = get_context("spawn")
        self._workers: list[_Worker] = []
        with interrupts_blocked(), environment("OMP_NUM_THREADS", str(threads)):
            for number in range(1, workers + 1):
                ours, theirs = context.Pipe()
                process = context.Process(
                    target=_work,
                    args=(theirs, folder, device, on_long, max_tokens, threads),
                    daemon=True,
                )
                process.start()
                theirs.close()  # so that ours ends when the process does
                self._workers.append(_Worker(process, ours, number, workers))
        self._idle: list[_Worker] = []
        self._busy = list(self._workers)  # getting ready

    def __enter__(self) -> Answers:
        return self.answers

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for worker in self._workers:
            worker.pipe.close()
            worker.process.terminate()  # it works on nothing that is still wanted
        for worker in self._workers:
            worker.process.join(_PATIENCE)
            if worker.process.is_alive():
                worker.process.kill()
                worker.process.join()

    def answers(self, windows: Iterable[Window]) -> Iterator[Answer]:
        """An answer for each window, in order.

        Raises:
            WorkerLostError: a process has ended.
            SpmrlError: the windows cannot be read on, or a process could not get ready.

            Except in the last case, the answers to all windows before the place have been
            yielded.
        """
        try:
            yield from self._answers(iter(windows))
        finally:
            for worker in self._busy:
                worker.asked = None  # nobody waits for the answer any more

    def _answers(self, source: Iterator[Window]) -> Iterator[Answer]:
        found: dict[int, Answer | Exception] = {}  # by number of the window, or of the failure
        turn = asked = 0
        end: int | None = None  # number of windows, when it is known
        while end is None or turn < end or isinstance(found.get(turn), Exception):
            if turn in found:
                answer = found.pop(turn)
                if isinstance(answer, Exception):
                    raise answer
                yield answer
                turn += 1
            elif self._idle and end is None and asked < turn + 2 * len(self._workers):
                try:
                    window = next(source)
                except StopIteration:
                    end = asked
                except SpmrlError as error:
                    end, found[asked] = asked, error
                else:
                    worker = self._idle.pop()
                    try:
                        worker.ask(asked, window)
                        self._busy.append(worker)
                    except WorkerLostError as error:
                        found[asked] = error
                    asked += 1
            else:
                speaking = wait([worker.pipe for worker in self._busy])
                for worker in [one for one in self._busy if one.pipe in speaking]:
                    number = worker.asked
                    self._busy.remove(worker)
                    try:
                        answer = worker.receive()
                    except (SpmrlError, RuntimeError) as error:
                        if number is None:
                            raise
                        found[number] = error
                    else:
                        self._idle.append(worker)
                        if number is not None:
                            found[number] = answer


def _work(
    pipe: Connection, folder: Path, device: str, on_long: OnLong, max_tokens: int, threads: int
) -> None:
    """What a worker does: get ready, then answer windows until the pipe ends."""
    threading.Thread(target=_end_with_parent, daemon=True).start()
    try:
        answerer = _load(folder, device, on_long, max_tokens, threads)
        pipe.send((_READY, None))
        while True:
            pipe.send((_ANSWER, answerer(pipe.recv())))
    except EOFError:
        return
    except SpmrlError as error:
        _send(pipe, _MISTAKE, str(error))
    except Exception:
        _send(pipe, _DEFECT, traceback.format_exc())


def _load(folder: Path, device: str, on_long: OnLong, max_tokens: int, threads: int) -> Answerer:
    from spmrl_bench.parsers.registry import load_parser

    parser = load_parser(folder, device)
    import torch

    torch.set_num_threads(threads)  # where another variable says otherwise
    return Answerer(parser, on_long, max_tokens)


def _send(pipe: Connection, kind: str, content: Any) -> None:
    try:
        pipe.send((kind, content))
    except OSError:
        return  # nobody listens any more


def _end_with_parent() -> None:
    """End this process at once when the one that started it has ended."""
    parent = parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
