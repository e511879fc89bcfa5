"""Standard streams that may be closed, a broken pipe, a full disk, or in an encoding like ASCII.

Results that cannot be written are an error, told in one line and by the exit status; messages that
nobody can read never end a program that trains for days.
"""

from __future__ import annotations

import io
import os
import re
import select
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from spmrl_bench.errors import SpmrlError

if TYPE_CHECKING:
    from rich.console import Console

#: Set in a process that does a unit of work beside others, which says whole lines only.
beside_others = threading.Event()

# But for tabs and ends of lines.
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def echo(text: object = "", *, err: bool = False, nl: bool = True) -> None:
    """Print a text, to standard error if asked to, as :func:`plain` has it."""
    stream = sys.stderr if err else sys.stdout
    stream.write(plain(text) + ("\n" if nl else ""))
    stream.flush()


def plain(text: object) -> str:
    """The text with control characters, by which a file could steer the terminal, written out."""
    return _CONTROL.sub(lambda match: f"\\x{ord(match[0]):02x}", str(text))


def messages() -> Console:
    """Return standard error. Where it is no terminal it is none here either, though colours are
    forced on it (FORCE_COLOR), as notebooks and build servers do: a live line fills their logs."""
    from rich.console import Console

    live = sys.stderr.isatty() and not beside_others.is_set()
    return Console(stderr=True, force_terminal=None if live else False)


def say(text: str, console: Console | None = None) -> None:
    """Print a line, to standard error where no console is given."""
    as_it_is: dict[str, Any] = {"markup": False, "highlight": False, "emoji": False}
    (console or messages()).print(plain(text), **as_it_is, soft_wrap=True)


class _Stream(io.FileIO):
    """Tells once that it cannot be written, or never; what is left in buffers is taken then."""

    def __init__(self, descriptor: int, *, tells: bool) -> None:
        super().__init__(descriptor, "w", closefd=False)
        self._tells = tells

    def write(self, data: Any, /) -> int:
        left = memoryview(data)
        size = left.nbytes
        try:
            while left:
                written: int | None = super().write(left)
                if written is None:  # it does not wait itself
                    select.select([], [self.fileno()], [])
                left = left[written or 0 :]
        except OSError as error:
            if self._tells:
                self._tells = False
                if isinstance(error, BrokenPipeError):
                    raise
                raise SpmrlError(f"standard output: cannot be written: {error.strerror}") from None
        return size


@contextmanager
def standard_streams() -> Iterator[None]:
    """Have the three streams in UTF-8; end with status 1 where results cannot be written."""
    # A closed stream becomes one that fails as it would; no file may get its number.
    if sys.stdin is None:
        sys.stdin = open(os.open(os.devnull, os.O_WRONLY), closefd=False)  # noqa: SIM115
    output = os.open(os.devnull, os.O_RDONLY) if sys.stdout is None else sys.stdout.fileno()
    errors = os.open(os.devnull, os.O_WRONLY) if sys.stderr is None else sys.stderr.fileno()
    results = _Stream(output, tells=True)
    sys.stdout = io.TextIOWrapper(
        io.BufferedWriter(results),
        encoding="utf-8",
        errors="surrogateescape",
        line_buffering=results.isatty(),
    )
    # Without a buffer above it: a handler of signals may speak while something else is being said.
    messages: Any = _Stream(errors, tells=False)
    sys.stderr = io.TextIOWrapper(
        messages, encoding="utf-8", errors="backslashreplace", write_through=True
    )
    try:
        try:
            yield
        finally:
            sys.stdout.flush()
    except BrokenPipeError:
        sys.exit(1)
    except SpmrlError as error:
        echo(f"spmrl-bench: {error}", err=True)
        sys.exit(1)
