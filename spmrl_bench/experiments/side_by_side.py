"""Several runs trained at once, each in a process of its own.

A pool of workers, such as joblib's, gives no way to tell a task that it should stop: after Ctrl-C
every run has to finish its batch and save, and after the death of the process that started it no
run may go on for hours. So each run has a process with a pipe. Through it come the lines to be
shown and how the run ended; a word in the other direction asks the run to stop, and the end of
the pipe, which is the end of the process at the other side, ends it at once. Checkpoints are
written whole or not at all, so any end leaves a run that continues.

A process trains one run only. Its memory is given back when the run ends, and the run computes
with the same number of threads and in the same order as it would alone: the weights are the same
to the last bit.
"""

from __future__ import annotations

import _thread
import contextlib
import os
import signal
import sys
import threading
import traceback
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

from rich.console import Console

from spmrl_bench.errors import SpmrlError, TrainingError
from spmrl_bench.experiments.one_run import Run, train_run
from spmrl_bench.processes import available_threads, ending, environment, interrupts_blocked
from spmrl_bench.training.trainer import Interrupted

if TYPE_CHECKING:
    from multiprocessing.context import SpawnProcess

Failure = tuple[Run, Exception]

# What a process says: a line to be shown, and in the end one of the others.
_LINE, _DONE, _INTERRUPTED, _MISTAKE, _DEFECT = "line", "done", "interrupted", "mistake", "defect"
# Seconds in which a process that has said how it ended should have ended.
_PATIENCE = 10


class DefectError(RuntimeError):
    """A run met with a defect of the program; the message has its traceback."""


def train_side_by_side(
    runs: Sequence[Run],
    notes: dict[Path, str],
    device: str,
    *,
    fresh: bool,
    jobs: int,
    say: Callable[[str], None],
) -> list[Failure]:
    """Train runs, ``jobs`` at a time, the longest first; returns what failed.

    Args:
        notes: by folder of a run, what to say of its treebank before it begins.
        say: shows a line.

    Raises:
        Interrupted: Ctrl-C, after every run has saved where it is.
        KeyboardInterrupt: Ctrl-C again; every run continues from its last checkpoint.
    """
    threads = max(1, available_threads() // jobs)
    waiting = deque(sorted(runs, key=_length, reverse=True))
    busy: list[_Job] = []
    failures: list[Failure] = []
    started, interrupted = 0, False
    with _interrupts(say) as interrupts:
        try:
            while busy or (waiting and not interrupts.asked):
                while waiting and len(busy) < jobs and not interrupts.asked:
                    run = waiting.popleft()
                    started += 1
                    say(f"{run.title}: started ({started} of {len(runs)})")
                    busy.append(_start(run, device, fresh, notes.get(run.folder), threads))
                pipes = [job.pipe for job in busy]
                ready = wait([*pipes, interrupts.pipe])
                if interrupts.pipe in ready and interrupts.asked:
                    interrupts.pipe.recv()
                    for job in busy:
                        job.ask_to_stop()
                for job in [job for job in busy if job.pipe in ready]:
                    kind, content = job.receive()
                    if kind == _LINE:
                        # While runs save, each says what this process has said already.
                        if not interrupts.asked:
                            say(content)
                        continue
                    busy.remove(job)
                    job.end()
                    if kind == _INTERRUPTED:
                        interrupted = True
                    elif kind != _DONE:
                        failures.append((job.run, content))
                        message = str(content).partition("\n")[0]
                        say(f"{job.run.title}: FAILED, {message}")
        finally:
            for job in busy:
                job.process.kill()
            for job in busy:
                job.end()
    if interrupted or waiting:
        raise Interrupted
    return failures


def _length(run: Run) -> float:
    """How long a run may take, compared with others: sentences to learn times weights, roughly."""
    declared = run.treebank.manifest.splits.train.sentences
    sentences = max(declared) if isinstance(declared, tuple) else declared
    return float(sentences) * run.config.train.max_epochs * run.config.model.cost


@dataclass
class _Job:
    """A process that trains a run, and the pipe to it."""

    run: Run
    process: SpawnProcess
    pipe: Connection

    def ask_to_stop(self) -> None:
        with contextlib.suppress(OSError):  # it has ended already
            self.pipe.send(None)

    def receive(self) -> tuple[str, Any]:
        """The next message; where the process has died without a last one, what killed it."""
        try:
            kind, content = self.pipe.recv()
        except (EOFError, OSError):
            return _MISTAKE, TrainingError(self._loss())
        if kind == _MISTAKE:
            error_class, message = content
            # Past the constructor, which may want more than the message.
            return kind, error_class.__new__(error_class, message)
        if kind == _DEFECT:
            return kind, DefectError(f"{self.run.title} failed:\n{content}")
        return kind, content

    def _loss(self) -> str:
        how = ending(self.process, _PATIENCE, "--jobs")
        return (
            f"{self.run.title}: its process {how}; give the same command again (without --fresh) "
            "to continue from the last checkpoint"
        )

    def end(self) -> None:
        self.pipe.close()
        self.process.join(_PATIENCE)
        if self.process.is_alive():
            self.process.kill()
            self.process.join()


def _start(run: Run, device: str, fresh: bool, note: str | None, threads: int) -> _Job:
    context = get_context("spawn")
    ours, theirs = context.Pipe()
    # The terminal sends Ctrl-C to all processes, but a run should hear of it once, and from here.
    with interrupts_blocked(), environment("OMP_NUM_THREADS", str(threads)):
        process = context.Process(
            target=_work, args=(theirs, run, device, fresh, note, threads), daemon=True
        )
        process.start()
    theirs.close()  # so that ours ends when the process does
    return _Job(run, process, ours)


class _Interrupts:
    """Whether Ctrl-C was pressed, and a pipe that wakes up who waits when it is."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self.asked = False
        self.pipe, self._bell = get_context("spawn").Pipe(duplex=False)
        self._say = say

    def __call__(self, number: int, frame: FrameType | None) -> None:
        """The handler of the signal."""
        if self.asked:
            raise KeyboardInterrupt
        self.asked = True
        self._bell.send(None)
        self._say("finishing the batches and saving; press Ctrl-C again to stop at once")


@contextlib.contextmanager
def _interrupts(say: Callable[[str], None]) -> Iterator[_Interrupts]:
    """Notices Ctrl-C; where signals cannot be caught (a thread), it stops everything at once."""
    interrupts = _Interrupts(say)
    try:
        previous = signal.signal(signal.SIGINT, interrupts)
    except ValueError:
        yield interrupts
        return
    try:
        yield interrupts
    finally:
        signal.signal(signal.SIGINT, previous)


# In the process of a run -------------------------------------------------------------------


def _work(
    pipe: Connection, run: Run, device: str, fresh: bool, note: str | None, threads: int
) -> None:
    """Train a run, say how it ended, and end."""
    threading.Thread(target=_obey, args=(pipe,), daemon=True).start()
    try:
        last = _outcome(pipe, run, device, fresh, note, threads)
    except KeyboardInterrupt:  # between two lines of what follows training
        last = (_INTERRUPTED, None)
    for _ in range(2):  # the first may meet with an interrupt that came before it
        with contextlib.suppress(KeyboardInterrupt):
            signal.signal(signal.SIGINT, signal.SIG_IGN)
    with contextlib.suppress(OSError):  # nobody listens any more
        pipe.send(last)


def _outcome(
    pipe: Connection, run: Run, device: str, fresh: bool, note: str | None, threads: int
) -> tuple[str, Any]:
    try:
        import torch

        torch.set_num_threads(threads)  # where another variable says otherwise
        # Lines only, even where a variable of the environment asks for a terminal's display.
        console = Console(file=_Lines(pipe), force_terminal=False)  # type: ignore[arg-type]
        train_run(run, device, fresh=fresh, note=note, console=console)
    except KeyboardInterrupt:
        return _INTERRUPTED, None
    except SpmrlError as error:
        return _MISTAKE, (type(error), str(error))
    except Exception:
        return _DEFECT, traceback.format_exc()
    return _DONE, None


class _Lines:
    """A text stream that sends whole lines through a pipe."""

    encoding = "utf-8"

    def __init__(self, pipe: Connection) -> None:
        self._pipe = pipe
        self._rest = ""

    def write(self, text: str) -> int:
        *lines, self._rest = (self._rest + text).split("\n")
        for line in lines:
            self._pipe.send((_LINE, line))
        return len(text)

    def flush(self) -> None:
        """A line is sent when it is whole."""


def _obey(pipe: Connection) -> None:
    """Interrupt training when it is asked for, end this process when nobody is left to ask."""
    try:
        while True:
            pipe.recv()
            _thread.interrupt_main()
    except (EOFError, OSError):
        sys.stderr.flush()
        os._exit(1)
