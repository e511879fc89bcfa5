"""A unit as a job of SLURM does it: how it ended is its result, and signals let it save.

submitit starts the function here with handlers of its own, which ignore SIGTERM and have the job
queued again when its time is almost over. Both are to mean the same as on one's own machine:
finish the batch, save, end. So handlers are replaced before anything else is done, and what is
heavy to import comes after that, with the unit, which is bytes until then.

SLURM starts a job again whose node failed or that made room for another. What the first try had
to say is forgotten then.
"""

from __future__ import annotations

import pickle
import signal
import traceback
from contextlib import suppress
from dataclasses import dataclass
from types import FrameType
from typing import NamedTuple

from spmrl_bench.errors import RunOwnedError, SpmrlError, TrainingError
from spmrl_bench.process.executors.base import Status, Unit
from spmrl_bench.process.executors.local import perform
from spmrl_bench.process.signals import interrupt


@dataclass(frozen=True)
class Order:
    """What a job is to do.

    Attributes:
        unit: pickled.
        device: for it.
        threads: that it computes with.
    """

    unit: bytes
    device: str
    threads: int


class Answer(NamedTuple):
    """How the unit of a job has ended."""

    status: Status
    error: Exception | None = None


def do_unit(order: Order) -> Answer:
    """Do a unit; this is what a job does."""
    near_the_end = False

    def make_way(number: int, frame: FrameType | None) -> None:
        nonlocal near_the_end
        near_the_end = True
        signal.raise_signal(signal.SIGTERM)

    signal.signal(signal.SIGTERM, interrupt)
    signal.signal(_time_signal(), make_way)
    signal.signal(signal.SIGCONT, signal.SIG_DFL)
    try:
        _forget_first_try()
        unit: Unit = pickle.loads(order.unit)
        perform(unit, order.device, order.threads)
    except RunOwnedError as error:
        return Answer("locked", error)
    except SpmrlError as error:
        return Answer("failed", error)
    except Exception as error:
        error.add_note("".join(traceback.format_exception(error)))  # it is not sent otherwise
        return Answer("failed", error)
    except (KeyboardInterrupt, SystemExit):
        why = "came near its time limit" if near_the_end else "was told to stop"
        return Answer("stopped", TrainingError(f"its job {why}"))
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)  # how it ended has still to be written
    return Answer("done")


def _time_signal() -> signal.Signals:
    """What submitit has sent when the time of a job is almost over."""
    from submitit import JobEnvironment

    return signal.Signals[f"SIG{JobEnvironment.USR_SIG}"]


def _forget_first_try() -> None:
    """Remove the answer of an earlier try of this job, whole or not."""
    from submitit import JobEnvironment

    result = JobEnvironment().paths.result_pickle
    for path in (result, result.with_name(f"{result.name}.save_tmp")):
        with suppress(FileNotFoundError):
            path.unlink()
