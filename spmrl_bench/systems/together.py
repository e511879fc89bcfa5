"""Several runs of systems of somebody else, side by side, and the end of all of them together."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path
from types import FrameType
from typing import TypeVar

from spmrl_bench.errors import RecipeError, SpmrlError
from spmrl_bench.leaderboard.record import Record, load_records, write_record
from spmrl_bench.process.pools import available_threads
from spmrl_bench.process.signals import Interrupted, on_signals
from spmrl_bench.systems.command import StoppedError
from spmrl_bench.systems.entry import with_tested
from spmrl_bench.systems.run import SystemRun, Trained, train_one
from spmrl_bench.systems.scoring import keep_answers, score_one

Say = Callable[[str], None]
Result = TypeVar("Result")

_GLANCE = 0.2


def train_systems(
    runs: Sequence[SystemRun], *, device: str, jobs: int, fresh: bool, say: Say
) -> None:
    """Train the runs that are not trained, so many at a time.

    A run that fails stops no other.

    Raises:
        SpmrlError: what failed, when the rest is done.
        Interrupted: Ctrl-C or SIGTERM, after all commands have ended.
    """
    threads = _threads(jobs, len(runs))

    def work(this: SystemRun, stop: threading.Event) -> Trained:
        say(f"{this.title}: {this.note}; {threads} thread{'s' * (threads > 1)}")
        done = train_one(this, threads=threads, device=device, fresh=fresh, stop=stop)
        ended = ", ended by the clock" if done.out_of_time else ""
        say(
            f"{this.title}: trained in {done.seconds:.0f} s{ended}, "
            f"{done.peak_memory_bytes / 2**20:,.0f} MiB"
        )
        return done

    _all(runs, work, jobs, say)


def score_systems(
    runs: Sequence[SystemRun],
    results_dir: Path,
    *,
    device: str,
    jobs: int,
    say: Say,
    save_parses: bool = False,
) -> list[Record]:
    """The records of trained runs; new ones are written.

    Args:
        save_parses: keep what is scored and the gold trees, of those too that have a record.

    Raises:
        SpmrlError: what failed, when the rest is done.
        Interrupted: Ctrl-C or SIGTERM, after all commands have ended.
    """
    earlier, _ = load_records(results_dir / "runs")
    threads = _threads(jobs, len(runs))
    writing = threading.Lock()

    def work(this: SystemRun, stop: threading.Event) -> Record:
        record = score_one(this, earlier, threads=threads, device=device, stop=stop)
        if save_parses:
            keep_answers(this, record, results_dir)
        if record in earlier:
            return record
        with writing:  # each says how many have been scored on test before it
            record = with_tested(record, earlier)
            say(f"wrote {write_record(record, results_dir / 'runs')}")
            earlier.append(record)
        return record

    return _all(runs, work, jobs, say)


def _threads(jobs: int, runs: int) -> int:
    if jobs < 1:
        raise RecipeError(f"{jobs} jobs: at least 1 is needed")
    return max(1, available_threads() // max(1, min(jobs, runs)))


def _all(
    runs: Sequence[SystemRun],
    work: Callable[[SystemRun, threading.Event], Result],
    jobs: int,
    say: Say,
) -> list[Result]:
    """What each run gave, in their order."""
    stop = threading.Event()
    asked: list[int] = []

    def ask(number: int, frame: FrameType | None) -> None:
        if not asked:
            say("ending what runs")
        asked.append(number)
        stop.set()

    def unless_stopped(this: SystemRun) -> Result:
        if stop.is_set():
            raise StoppedError
        return work(this, stop)

    with (
        on_signals(ask, signal.SIGINT, signal.SIGTERM),
        ThreadPoolExecutor(max_workers=max(1, jobs)) as pool,
    ):
        futures = [pool.submit(unless_stopped, this) for this in runs]
        while wait(futures, _GLANCE).not_done:
            pass
    if asked:
        raise Interrupted(asked[0])
    errors = [error for each in futures if (error := each.exception()) is not None]
    for error in errors:
        if not isinstance(error, SpmrlError):
            raise error
    if len(errors) == 1:
        raise errors[0]
    if errors:
        listed = "\n".join(map(str, errors))
        raise SpmrlError(f"{len(errors)} of {len(runs)} runs failed:\n{listed}")
    return [each.result() for each in futures]
