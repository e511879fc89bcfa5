"""What asks a program to stop, as one exception; commands answer it before heavy imports."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

#: Ctrl-C, what asks a program to end, and a terminal that is closed.
STOPPING = signal.SIGINT, signal.SIGTERM, signal.SIGHUP
INTERRUPTED = "\nspmrl-bench: interrupted"  # is said where nothing was in work


class Interrupted(KeyboardInterrupt):
    """A signal (its ``number``) has asked to stop, and what was in work is saved."""

    def __init__(self, number: int = signal.SIGINT) -> None:
        super().__init__()
        self.number = number


def exit_status(stopped: KeyboardInterrupt) -> int:
    """What a shell says of a program that a signal ended, such as 130 for Ctrl-C."""
    return 128 + getattr(stopped, "number", signal.SIGINT)


def interrupt(number: int, frame: FrameType | None) -> None:
    """A signal's handler that ends what goes on, as Ctrl-C does where nothing else is said. What is
    being imported is waited for: an exception in it may be swallowed, or become another."""
    while frame is not None:
        if frame.f_code.co_filename.startswith("<frozen importlib"):
            again = threading.Timer(0.05, os.kill, (os.getpid(), number))
            again.daemon = True
            again.start()
            return
        frame = frame.f_back
    raise Interrupted(number)


@contextmanager
def on_signals(handler: Callable[[int, FrameType | None], None], *numbers: int) -> Iterator[None]:
    """Within it, these signals call the handler; in a thread, where none can, nothing changes."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    # signal.signal calls repr() on what it is given, and for a method on its object: seconds, if
    # that has a treebank.
    def answer(number: int, frame: FrameType | None) -> None:
        handler(number, frame)

    # What nohup has ignored stays ignored.
    answered = [each for each in numbers if signal.getsignal(each) != signal.SIG_IGN]
    before = {number: signal.signal(number, answer) for number in answered}
    try:
        yield
    finally:
        for number, earlier in before.items():
            signal.signal(number, earlier)
