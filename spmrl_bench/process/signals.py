"""Being asked to stop: Ctrl-C and SIGTERM as one exception, which knows its signal.

Nothing heavy is imported, so that the command line can have its handler in place before that.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

Handler = Callable[[int, FrameType | None], None]

#: Seconds that an import has to come to its end when a signal arrives in the middle of it.
PATIENCE = 5.0

#: What is said where nothing was in work.
INTERRUPTED = "\nspmrl-bench: interrupted"

_AGAIN = 0.05  # seconds between two looks whether it has
_since: dict[int, float] = {}  # when a signal came that waits for that


class Interrupted(KeyboardInterrupt):
    """A signal (its ``number``) has asked to stop, and what was in work is saved."""

    def __init__(self, number: int = signal.SIGINT) -> None:
        super().__init__()
        self.number = number


def exit_status(stopped: KeyboardInterrupt) -> int:
    """What a shell says of a program that a signal ended: 130 for Ctrl-C, 143 for SIGTERM."""
    return 128 + getattr(stopped, "number", signal.SIGINT)


def interrupt(number: int, frame: FrameType | None) -> None:
    """A signal's handler that ends what goes on, as Ctrl-C does where nothing else is said.

    What is being imported is waited for, because an exception in the middle of it may be swallowed,
    printed or turned into another; but not for longer than :data:`PATIENCE`.
    """
    if not _importing(frame):
        _since.pop(number, None)
        raise Interrupted(number)
    if time.monotonic() - _since.setdefault(number, time.monotonic()) > PATIENCE:
        os.write(2, f"{INTERRUPTED}\n".encode())
        os._exit(128 + number)
    later = threading.Timer(_AGAIN, os.kill, (os.getpid(), number))
    later.daemon = True
    later.start()


def _importing(frame: FrameType | None) -> bool:
    while frame is not None:
        if frame.f_code.co_filename.startswith("<frozen importlib"):
            return True
        frame = frame.f_back
    return False


@contextmanager
def on_signals(handler: Handler, *numbers: int) -> Iterator[None]:
    """Within it, these signals call the handler; in a thread, where none can, nothing changes."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.signal(number, handler) for number in numbers}
    try:
        yield
    finally:
        for number, earlier in before.items():
            signal.signal(number, earlier)
