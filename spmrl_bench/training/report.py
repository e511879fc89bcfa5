"""What a training run says while it works.

On a terminal one line is kept up to date; elsewhere each dev evaluation prints a plain line. These
go into ``log.txt`` in the run folder too, and every event into ``events.jsonl``, for programs.
"""

from __future__ import annotations

import datetime
import json
from contextlib import suppress
from pathlib import Path
from typing import Any, Self

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from spmrl_bench.process.console import say
from spmrl_bench.storage.files import append
from spmrl_bench.training.schedule import Progress as State
from spmrl_bench.training.schedule import unwritten

LOG = "log.txt"


def write_log(path: Path, text: str, time: datetime.datetime | None = None) -> None:
    """Write what was said at this time, or now, to the end of a log, further lines indented, if
    that can be: no training ends for want of a copy."""
    when = time or datetime.datetime.now(datetime.UTC)
    lines = "\n  ".join(text.splitlines())
    with suppress(OSError):
        append(path, f"{when:%Y-%m-%dT%H:%M:%SZ} {lines}\n".encode(errors="backslashreplace"))


def last_line(path: Path) -> str:
    """Return what a log said last, without its time; empty where nothing was said."""
    try:
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return ""
    return lines[-1].partition(" ")[2] if lines else ""


class Report:
    """Event log and progress display of one run; use as a context manager."""

    def __init__(self, run_dir: Path, title: str, score: str, console: Console) -> None:
        """Report of a run with a ``title``, whose dev score is a ``score`` such as ``F1``."""
        self.path = run_dir / "events.jsonl"
        self.title, self.score, self.console = title, score, console
        self._live: Progress | None = None
        self._begun = False
        self._held: list[tuple[datetime.datetime, str]] = []  # not in the log yet

    def __enter__(self) -> Self:
        if self.console.is_terminal:
            self._live = Progress(
                TextColumn("{task.description}"),
                BarColumn(bar_width=20),
                TextColumn("epoch {task.fields[epoch]}"),
                TextColumn("loss {task.fields[loss]}"),
                TextColumn(f"dev {self.score}" + " {task.fields[dev]} (best {task.fields[best]})"),
                TextColumn("{task.fields[speed]} tokens/s"),
                TimeRemainingColumn(),
                TextColumn("at most left"),
                console=self.console,
            )
            self._task = self._live.add_task(
                self.title, total=None, epoch="-", loss="-", dev="-", best="-", speed="-"
            )
            self._live.start()
        return self

    def __exit__(self, *error: object) -> None:
        if self._live is not None:
            self._live.stop()

    def event(self, kind: str, **fields: Any) -> None:
        """Append one line to the event log; raise a CheckpointError where that cannot be."""
        now = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
        line = json.dumps({"event": kind, "time": now, **fields}, ensure_ascii=False)
        try:
            append(self.path, f"{line}\n".encode())
        except OSError as error:
            raise unwritten(self.path, error) from None
        self._begun = True
        self._log()

    def say(self, text: str) -> None:
        """Print a line, above the live line where there is one, and write it into the log."""
        say(text, self.console)
        self._log(text)

    def _log(self, *texts: str) -> None:
        """Until the first event the folder may be emptied, or stay what it is, so the log waits."""
        self._held += [(datetime.datetime.now(datetime.UTC), text) for text in texts]
        while self._begun and self._held:
            when, text = self._held.pop(0)
            write_log(self.path.with_name(LOG), text, when)

    def batch(self, state: State, batches: int, max_epochs: int) -> None:
        """Show that a batch is done."""
        if self._live is not None:
            self._live.update(
                self._task,
                completed=state.epoch * batches + state.next_batch,
                total=max_epochs * batches,
                epoch=f"{state.epoch + 1}/{max_epochs}",
                loss=f"{state.loss_sum / max(1, state.next_batch):.2f}",
                speed=f"{state.speed:,.0f}",
            )

    def evaluation(self, state: State, batches: int, score: float, best: bool) -> None:
        """Report a dev evaluation."""
        epoch, loss = state.epoch + state.next_batch / batches, state.loss_sum / state.next_batch
        self.event(
            "evaluation",
            epoch=round(epoch, 3),
            step=state.steps,
            loss=round(loss, 4),
            dev=round(score, 4),
            best=best,
            best_dev=round(state.best_score or 0.0, 4),
            rate_factor=state.rate_factor,
            tokens_per_second=round(state.speed, 1),
            train_seconds=round(state.train_seconds, 2),
            dev_seconds=round(state.dev_seconds, 2),
        )
        minutes = (state.train_seconds + state.dev_seconds) / 60
        line = (
            f"{self.title}  epoch {epoch:6.2f}  loss {loss:7.3f}  "
            f"dev {self.score} {score:6.2f}{' *' if best else '  '}  "
            f"{state.speed:,.0f} tokens/s  {minutes:.1f} min"
        )
        if self._live is not None:
            self._live.update(self._task, dev=f"{score:.2f}", best=f"{state.best_score:.2f}")
            self._log(line)
        else:
            self.say(line)
