"""A piece of work, and whatever does such pieces somewhere.

A unit is a function with its arguments, which leaves what it does in files, so that it may be
done by any process on any machine that sees the same folders, broken off at any moment and begun
again with the same arguments. An executor does units somewhere and says how each has ended; what
is to be done about that is decided in one place for all of them
(:mod:`spmrl_bench.process.executors.driver`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple, Protocol

#: How a unit has ended: it is ``done``; it ``failed`` by an error of its own, which it would again;
#: somebody else has it in work (``owned``); it was asked to end and left all in order
#: (``stopped``); or what did it is gone (``lost``).
How = Literal["done", "failed", "owned", "stopped", "lost"]


@dataclass(frozen=True, eq=False)
class Unit:
    """A piece of work.

    Attributes:
        title: what it is called.
        function: of a module. It is called with the arguments and two more by name, ``device`` and
            ``console``, where it may speak.
        arguments: which another process can be given.
        cost: how long it takes, compared with others.
        folder: that it works in.
        at_once: the option of the command line that says how many units are in work at once.
        work: stands for what it does there. Where one of the same folder was handed to a batch
            system earlier, this says whether that was to do the same.
    """

    title: str
    function: Callable[..., None]
    arguments: tuple[Any, ...]
    cost: float = 1.0
    folder: Path | None = None
    at_once: str = "--jobs"
    work: str = ""


class Ended(NamedTuple):
    """A unit, and how it has ended.

    Attributes:
        error: of ``failed``, what it ended with; of ``owned``, ``stopped`` and ``lost``, what is
            known, in words for the user.
    """

    unit: Unit
    how: How
    error: Exception | None = None


class Executor(Protocol):
    """Does units somewhere.

    Attributes:
        makes_room: whether units are told to stop by others than people, as by a batch system that
            has more urgent work, so that they are to be started again.
    """

    @property
    def makes_room(self) -> bool: ...

    @property
    def capacity(self) -> int:
        """How many units it takes at once; this may change from one moment to the next."""

    def start(self, unit: Unit) -> str:
        """Take a unit into work.

        Returns:
            Where, for the user; empty where there is nothing to say.

        Raises:
            SpmrlError: it cannot be.
        """

    def ended(self, seconds: float) -> list[Ended]:
        """The units that have ended since this was last asked; waits so long for the first."""

    def ask_to_stop(self) -> None:
        """Ask all that is in work to save and end; each is then among those that have ended."""

    def close(self) -> None:
        """End at once what is still in work, and whatever was set up here."""
