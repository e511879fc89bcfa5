"""Having many units done, whatever happens to those that do them.

The longest begin first. A unit whose process, worker or node is gone is started again, and goes on
from what it has saved; one that somebody else has in work is looked at again until that has come
to an end; one that fails by itself stops no other. Ctrl-C and SIGTERM ask all that is in work to
save. The driver keeps nothing but what it can learn again from the folders of the units, so it
may be killed at any moment and started anew.
"""

from __future__ import annotations

import signal
import time
from collections import Counter, deque
from collections.abc import Callable, Sequence
from pathlib import Path
from types import FrameType

from spmrl_bench.errors import RunCancelledError, TrainingError
from spmrl_bench.process.executors.unit import Ended, Executor, How, Unit
from spmrl_bench.process.signals import Interrupted, on_signals

#: How often a unit is started again whose process, worker or node was lost.
RESTARTS = 3
#: How often one is that was told to stop, where others than people do that.
STOPS = 100
#: What can be done about a training that was lost too often.
ADVICE = "give the same command again (without --fresh) to continue from the last checkpoint"

#: Seconds between two looks whether somebody else's work has ended.
AGAIN = 2.0
# Likewise whether a signal has come.
_GLANCE = 0.2


def carry_out(
    units: Sequence[Unit],
    executor: Executor,
    *,
    say: Callable[[str], None],
    more: Callable[[], Unit | None] = lambda: None,
    over: Callable[[Ended], None] = lambda _: None,
    advice: str = ADVICE,
) -> list[Ended]:
    """Have all units done; returns those that failed, each with its error.

    Args:
        units: of which no two have the same folder.
        executor: does them; it is closed at the end.
        say: shows a line.
        more: asked for another unit when all of these have begun and there is room, or nothing is
            left in work; None while there is none.
        over: told of each unit that is done or has failed, as soon as it is.
        advice: what can be done about a unit that was lost too often.

    Raises:
        Interrupted: Ctrl-C or SIGTERM, after every unit has saved where it is.
        KeyboardInterrupt: Ctrl-C again; every unit continues from its last checkpoint.
        SpmrlError: the executor cannot do anything more.
    """
    return _Driver(units, executor, say, more, over, advice).run()


class _Driver:
    """What has happened so far."""

    def __init__(
        self,
        units: Sequence[Unit],
        executor: Executor,
        say: Callable[[str], None],
        more: Callable[[], Unit | None],
        over: Callable[[Ended], None],
        advice: str,
    ) -> None:
        self.executor, self.say, self.more, self.over = executor, say, more, over
        self.advice = advice
        self.waiting = deque(sorted(units, key=lambda unit: unit.cost, reverse=True))
        self.later: deque[tuple[float, Unit]] = deque()  # in the order of their times
        self.in_work = 0
        self.number, self.number_over = len(units), 0
        self.cost, self.cost_over = sum(unit.cost for unit in units), 0.0
        self.since = time.monotonic()
        self.begun: set[str | Path] = set()
        self.told: set[str | Path] = set()  # of whose other owner the user was told
        self.broken_off: Counter[tuple[How, str | Path]] = Counter()
        self.failures: list[Ended] = []
        self.asked: list[int] = []
        self.interrupted = False

    def run(self) -> list[Ended]:
        stopping = False
        with on_signals(self._ask, signal.SIGINT, signal.SIGTERM):
            try:
                while True:
                    self._start()
                    if not self.in_work and (self.asked or not (self.waiting or self.later)):
                        break
                    if not self.in_work:
                        time.sleep(_GLANCE)
                    if self.asked and not stopping:
                        stopping = True
                        self.executor.ask_to_stop()
                    for ended in self.executor.ended(_GLANCE):
                        self.in_work -= 1
                        self._judge(ended, stopping)
            finally:
                self.executor.close()
        left = self.interrupted or self.waiting or self.later
        if self.asked and (left or self.more() is not None):
            raise Interrupted(self.asked[0])
        return self.failures

    def _ask(self, number: int, frame: FrameType | None) -> None:
        if self.asked and number == signal.SIGINT:
            raise KeyboardInterrupt
        if not self.asked:
            self.say("letting all that is in work save and end; press Ctrl-C again to stop at once")
        self.asked.append(number)

    def _start(self) -> None:
        """Give the executor as many units as it takes."""
        while self.later and self.later[0][0] <= time.monotonic():
            self.waiting.append(self.later.popleft()[1])
        while not self.asked:
            room = self.in_work < self.executor.capacity
            if not self.waiting and (room or not self.in_work) and (unit := self.more()):
                self.number = 0
                self.waiting.append(unit)
            if not (self.waiting and room):
                return
            unit = self.waiting.popleft()
            where = self.executor.start(unit)
            self.in_work += 1
            if _key(unit) in self.begun:
                continue
            self.begun.add(_key(unit))
            where = f" {where}" if where else ""
            # How many there will be is not known of those that come later.
            count = f" ({len(self.begun)} of {self.number})" if self.number else ""
            self.say(f"{unit.title}: started{where}{count}")

    def _judge(self, ended: Ended, stopping: bool) -> None:
        """Decide what becomes of a unit that has ended."""
        unit, how, error = ended
        if how == "done":
            self._over(ended)
            return
        if stopping and how in ("stopped", "lost", "owned"):
            self.interrupted = True
        elif how == "owned":
            if _key(unit) not in self.told:
                self.told.add(_key(unit))
                self.say(f"{unit.title}: waiting, {error}")
            self.later.append((time.monotonic() + AGAIN, unit))
        elif how == "failed":
            self._fail(ended)
        else:
            self.broken_off[how, _key(unit)] += 1
            limit = RESTARTS if how == "lost" else STOPS if self.executor.makes_room else 0
            if self.broken_off[how, _key(unit)] > limit:
                problem = f"{unit.title}: {error}; {self.advice}"
                self._fail(Ended(unit, "failed", TrainingError(problem)))
                return
            self.say(f"{unit.title}: {error}; it is started again")
            self.waiting.appendleft(unit)

    def _fail(self, ended: Ended) -> None:
        self.failures.append(ended)
        beginning = str(ended.error).partition("\n")[0]
        cancelled = isinstance(ended.error, RunCancelledError)
        self.say(beginning if cancelled else f"{ended.unit.title}: FAILED, {beginning}")
        self._over(ended)

    def _over(self, ended: Ended) -> None:
        """Tell of a unit that has come to its end, and of how much is left."""
        self.over(ended)
        self.number_over += 1
        self.cost_over += ended.unit.cost
        if self.number_over >= self.number:  # also where it is not known how many there will be
            return
        left = (self.cost - self.cost_over) / self.cost_over if self.cost_over else 0.0
        seconds = left * (time.monotonic() - self.since)
        about = f", about {_duration(seconds)} left" if seconds >= 1 else ""
        self.say(f"{self.number_over} of {self.number} done{about}")


def _duration(seconds: float) -> str:
    """A time that is not known well, in words."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    if seconds < 90 * 60:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.0f} h" if seconds < 36 * 3600 else f"{seconds / 86400:.0f} days"


def _key(unit: Unit) -> str | Path:
    """By which a unit is known, however often it is started."""
    return unit.folder or unit.title
