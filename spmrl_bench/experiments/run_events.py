"""How far a training run is, from the end of its event log.

The log of a long run is long, and a folder of runs has many. The last lines say what there is to
know: the last event, and the last dev evaluation, which counts all epochs and seconds so far.
"""

from __future__ import annotations

import datetime
import os
from pathlib import Path
from typing import Annotated, NamedTuple

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from spmrl_bench.errors import CheckpointError
from spmrl_bench.storage.files import open_regular_file

Amount = Annotated[float, Field(ge=0)]

#: Name of the log in a run folder.
EVENTS = "events.jsonl"

_TAIL = 1 << 14  # bytes of its end that are read, of which two evaluations take a thirtieth


class Event(BaseModel):
    """What is looked at of a line of the log."""

    model_config = ConfigDict(allow_inf_nan=False)

    event: str
    time: datetime.datetime
    epoch: Amount | None = None
    """Epochs done, with the part of the last one."""
    best_dev: float | None = None
    """The best dev score so far, in percent; the logs of earlier versions lack it."""
    tokens_per_second: Amount | None = None
    train_seconds: Amount = 0.0
    dev_seconds: Amount = 0.0


class End(NamedTuple):
    """The last event of a log and its last dev evaluation, as far as there are such."""

    last: Event | None = None
    evaluation: Event | None = None


def end_of_events(path: Path) -> End:
    """The end of an event log; a line that is being written does not count.

    Raises:
        CheckpointError: it cannot be read, or one of its last lines is no event.
    """
    last: Event | None = None
    try:
        for line in reversed(_last_lines(path)):
            event = Event.model_validate_json(line)
            last = last or event
            if event.event == "evaluation":
                return End(last, event)
    except OSError as error:
        raise CheckpointError(f"{path}: cannot be read: {error.strerror}") from None
    except ValidationError as error:
        mistake = error.errors()[0]["msg"]
        raise CheckpointError(f"{path}: a line near its end is no event: {mistake}") from None
    return End(last)


def _last_lines(path: Path) -> list[bytes]:
    with open_regular_file(path) as file:
        size = file.seek(0, os.SEEK_END)
        begin = max(0, size - _TAIL)
        file.seek(begin)
        lines = file.read(_TAIL).split(b"\n")
    # The first is the end of a line, and behind the last line break there is nothing yet.
    return lines[bool(begin) : -1]


def minutes_left(
    evaluation: Event | None,
    begun: datetime.datetime,
    now: datetime.datetime,
    max_epochs: int | None,
    max_minutes: float | None,
) -> float | None:
    """Minutes that a run takes at most from now on; None where nothing bounds them.

    Each further epoch is taken to last as long as the epochs so far did on average, dev
    evaluations included. What the run has done since the last evaluation counts by the clock.

    Args:
        evaluation: the last one; None if there was none.
        begun: when its process began.
        now: the time.
        max_epochs: after which training ends.
        max_minutes: of training and evaluating, after which it ends.
    """
    used = 0.0 if evaluation is None else evaluation.train_seconds + evaluation.dev_seconds
    bounds = []
    if evaluation is not None and evaluation.epoch and max_epochs is not None:
        bounds.append(used / evaluation.epoch * (max_epochs - evaluation.epoch))
    if max_minutes is not None:
        bounds.append(60 * max_minutes - used)
    if not bounds:
        return None
    known = begun if evaluation is None else max(begun, evaluation.time)
    return max(0.0, min(bounds) - (now - known).total_seconds()) / 60
