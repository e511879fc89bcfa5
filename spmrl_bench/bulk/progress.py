"""How far a job is, on standard error while it goes on.

On a terminal it is one line that changes; elsewhere a line every minute, which a log can take.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console
from rich.text import Text

from spmrl_bench.bulk.inputs import Input
from spmrl_bench.bulk.report import WorkerNote, worker_notes
from spmrl_bench.bulk.state import FileState

_ON_TERMINAL, _IN_LOG = 1.0, 60.0  # seconds between two looks


@contextmanager
def shown(outputs: Path, session: str, left: Sequence[Input], console: Console) -> Iterator[None]:
    """Within it, what is done of the inputs that are left is shown.

    Args:
        outputs: their folder.
        session: of the workers.
        left: the inputs that were not done at the beginning.
        console: where.
    """
    total = sum(file.size - FileState(outputs, file).consumed() for file in left)
    began = time.monotonic()

    def line() -> str:
        notes = worker_notes(outputs, session)
        return progress_line(notes, len(left), total, time.monotonic() - began)

    ended = threading.Event()
    if console.is_terminal:
        with console.status("", spinner="line") as status:
            yield from _showing(ended, _ON_TERMINAL, lambda: status.update(Text(line())))
    else:
        show = lambda: console.print(line(), markup=False, highlight=False, soft_wrap=True)  # noqa: E731
        yield from _showing(ended, _IN_LOG, show)


def progress_line(notes: Sequence[WorkerNote], files: int, total: int, seconds: float) -> str:
    """How far it is: files and bytes that are done of those that were not, and the time left."""
    done = sum(note.consumed for note in notes)
    sentences = sum(note.sentences for note in notes)
    share = min(1.0, done / total) if total else 1.0
    text = (
        f"{sentences:,} sentences in {sum(note.shards for note in notes):,} shards, "
        f"{sentences / max(seconds, 1e-9):,.0f}/s; {sum(note.files for note in notes):,} of "
        f"{files:,} files, {share:.0%}"
    )
    if done and share < 1:
        text += f"; about {_duration(seconds * (1 - share) / share)} left"
    return text


def _showing(ended: threading.Event, every: float, show: Callable[[], None]) -> Iterator[None]:
    def go_on() -> None:
        while not ended.wait(every):
            show()

    thread = threading.Thread(target=go_on, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def _duration(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes = seconds / 60
    return f"{minutes:.0f} min" if minutes < 90 else f"{minutes / 60:.1f} h"
