"""Units of work, executors, which do them somewhere, and the loop that has many of them done.

A unit leaves what it does in files, so that any process that sees the same folders may do it, be
killed at any moment, and begin it again; so may :func:`run_units`.
"""

from __future__ import annotations

import signal
import time
from collections import Counter, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any, Literal, NamedTuple, Protocol, TypeAlias

from spmrl_bench.errors import RunOwnedError, TrainingError
from spmrl_bench.process.console import say
from spmrl_bench.process.signals import STOPPING, Interrupted, on_signals

#: How often a unit is started again that was lost, or was stopped by a preemptible executor.
RESTARTS = {"lost": 3, "stopped": 100}
ADVICE = "give the same command again (without --fresh) to continue from the last checkpoint"
#: Seconds between two looks whether somebody else's work has ended, and whether a signal has come.
AGAIN, _GLANCE = 2.0, 0.2

#: How a unit has ended: ``done``; ``failed`` by an error of its own, which it would again;
#: ``locked`` by another process; ``stopped`` when asked to; or ``lost``, as what did it is gone.
Status = Literal["done", "failed", "locked", "stopped", "lost"]
Answer: TypeAlias = tuple[Status, Exception | None]


@dataclass(frozen=True, eq=False)
class Unit:
    """A piece of work: a module's function, called with arguments that can be pickled, and the
    ``device``."""

    title: str
    function: Callable[..., None]
    arguments: tuple[Any, ...]
    folder: Path | None = None  # that it works in
    cost: float = 1.0  # how long it takes, compared with others


class Outcome(NamedTuple):
    """A unit, how it has ended, and why."""

    unit: Unit
    status: Status
    error: Exception | None = None


def status_of(error: Exception | None) -> Status:
    """How a function has ended that has returned, or has raised an error."""
    if error is None:
        return "done"
    return "locked" if isinstance(error, RunOwnedError) else "failed"


class Executor(Protocol):
    """Does units somewhere, each with its share of the threads of its machine."""

    #: Whether others than people stop units, as a batch system that has more urgent work.
    preemptible: bool

    @property
    def capacity(self) -> int:
        """How many units it takes at once; this may change from one moment to the next."""

    def start(self, unit: Unit) -> str | None:
        """Take a unit into work; returns where, for the user, or None if it says so itself."""

    def outcomes(self, seconds: float) -> list[Outcome]:
        """The units that have ended since this was last asked; waits so long for the first."""

    def ask_to_stop(self) -> None:
        """Ask all that is in work to save and end; it is still among the outcomes."""

    def close(self) -> None:
        """End at once what is still in work, and whatever was set up here."""


def run_units(
    units: Sequence[Unit],
    executor: Executor,
    *,
    next_unit: Callable[[], Unit | None] | None = None,
    on_end: Callable[[Outcome], None] = lambda _: None,
    advice: str = ADVICE,
) -> list[Outcome]:
    """Have all units done, the longest first, and close the executor; returns those that failed.

    One that is lost is started again and goes on from what it has saved; one that another process
    has in work is tried again until that has ended; one that fails by itself stops no other. When
    all have begun and there is room, or nothing is left in work, ``next_unit`` is asked for one
    more. A SpmrlError says that the executor cannot do anything more.

    Ctrl-C and SIGTERM raise Interrupted when all have saved where they are, a second Ctrl-C
    KeyboardInterrupt at once.
    """
    waiting = deque(sorted(units, key=lambda unit: unit.cost, reverse=True))
    later: deque[tuple[float, Unit]] = deque()  # in the order of their times
    in_work: set[Unit] = set()
    begun: set[Unit] = set()
    ends: Counter[tuple[Status, Unit]] = Counter()
    over: list[Outcome] = []
    signals: list[int] = []
    stopping = False

    def on_signal(number: int, frame: FrameType | None) -> None:
        if signals and number == signal.SIGINT:
            raise KeyboardInterrupt
        if not signals:
            say("letting all that is in work save and end; press Ctrl-C again to stop at once")
        signals.append(number)

    def start_units() -> None:
        while later and later[0][0] <= time.monotonic():
            waiting.append(later.popleft()[1])
        while not signals:
            room = len(in_work) < executor.capacity
            if not waiting and next_unit and (room or not in_work) and (unit := next_unit()):
                waiting.append(unit)
            if not (waiting and room):
                return
            unit = waiting.popleft()
            place = executor.start(unit)
            in_work.add(unit)
            if place is not None and unit not in begun:
                # How many there will be is not known of those that come later.
                count = "" if next_unit else f" ({len(begun) + 1} of {len(units)})"
                say(f"{unit.title}: started {place}".rstrip() + count)
            begun.add(unit)

    def end(outcome: Outcome) -> None:
        over.append(outcome)
        left = len(over) < len(units)
        if outcome.error and (left or next_unit):  # else it is told by whoever asked for it alone
            line = str(outcome.error).partition("\n")[0]
            say(f"{outcome.unit.title}: FAILED, {line}")
        on_end(outcome)
        if left:
            say(f"{len(over)} of {len(units)} done")

    with on_signals(on_signal, *STOPPING):
        try:
            while True:
                start_units()
                if not in_work:
                    if signals or not (waiting or later):
                        break
                    time.sleep(_GLANCE)
                if signals and not stopping:
                    stopping = True
                    executor.ask_to_stop()
                for outcome in executor.outcomes(_GLANCE):
                    unit, status, error = outcome
                    in_work.remove(unit)
                    ends[status, unit] += 1
                    again = status == "lost" or executor.preemptible
                    if status in ("done", "failed"):
                        end(outcome)
                    elif signals:
                        continue
                    elif status == "locked":
                        if ends[status, unit] == 1:
                            say(f"{unit.title}: waiting, {error}")
                        later.append((time.monotonic() + AGAIN, unit))
                    elif again and ends[status, unit] <= RESTARTS[status]:
                        say(f"{unit.title}: {error}; it is started again")
                        waiting.appendleft(unit)
                    else:
                        problem = TrainingError(f"{unit.title}: {error}; {advice}")
                        end(Outcome(unit, "failed", problem))
        finally:
            executor.close()
    if signals and (len(begun) > len(over) or waiting or (next_unit and next_unit())):
        raise Interrupted(signals[0])
    return [outcome for outcome in over if outcome.error is not None]
