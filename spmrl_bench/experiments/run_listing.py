"""Runs as rows of a table: where each is, how far, how good so far, and for how long still."""

from __future__ import annotations

import dataclasses
import datetime
import json
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from spmrl_bench.experiments.run_search import shown
from spmrl_bench.experiments.run_state import STATES, RunState

#: What the columns are called.
HEADINGS = (
    "run", "state", "where", "epoch", "dev", "tokens/s", "at most left", "since (UTC)", ""
)  # fmt: skip

_LONGEST = 60  # characters of what is said of a state; `runs log` has it all


def row(run: RunState, runs_dir: Path) -> tuple[str, ...]:
    """A run as a row of the columns :data:`HEADINGS`."""
    return (
        shown(run.folder, runs_dir),
        run.state,
        run.where,
        _epoch(run),
        "" if run.dev is None else f"{run.dev:.2f}",
        "" if run.tokens_per_second is None else f"{run.tokens_per_second:,.0f}",
        "" if run.minutes_left is None else _duration(run.minutes_left),
        "" if run.since is None else f"{run.since.astimezone(datetime.UTC):%Y-%m-%d %H:%M}",
        _remark(run),
    )


def json_line(run: RunState, runs_dir: Path) -> str:
    """A run as a JSON object: what :class:`RunState` has, and what the run is called."""
    values = {"run": shown(run.folder, runs_dir), **dataclasses.asdict(run)}
    return json.dumps(values, default=_plain)


def counts(runs: Iterable[RunState]) -> str:
    """How many runs there are in each state, in words."""
    found = Counter(run.state for run in runs)
    total = found.total()
    parts = [f"{found[state]:,} {state}" for state in STATES if found[state]]
    listed = f": {', '.join(parts)}" if parts else ""
    return f"{total:,} run{'' if total == 1 else 's'}{listed}"


def _epoch(run: RunState) -> str:
    if run.epoch is None:
        return ""
    return f"{run.epoch:.4g}" + ("" if run.max_epochs is None else f"/{run.max_epochs}")


def _duration(minutes: float) -> str:
    if minutes < 1:
        return f"{60 * minutes:.0f} s"
    hours, rest = divmod(round(minutes), 60)
    return f"{hours} h {rest:02} min" if hours else f"{rest} min"


def _remark(run: RunState) -> str:
    """What is broken, or else what is to be known of the state, in few words."""
    text = " ".join((f"BROKEN: {run.broken}" if run.broken else run.message).split())
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}..."


def _plain(value: object) -> str:
    """A time or a path for JSON."""
    return value.isoformat() if isinstance(value, datetime.datetime) else str(value)
