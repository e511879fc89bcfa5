"""How far a job is, and what was done in all, by whoever and however often it was begun.

The counts of sentences are those of the outputs, so that they are exact whatever was killed. The
times are of the workers, each of which has a small file of its own where it notes what it has done.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from pydantic import BaseModel, ValidationError

from spmrl_bench.bulk.inputs import Input
from spmrl_bench.bulk.state import REPORT, STATE, WORKERS, FileState, Part
from spmrl_bench.storage.files import read_regular, write_text
from spmrl_bench.storage.living import this_machine

# Seconds between two notes of a worker, at least.
_OFTEN = 1.0


class WorkerNote(BaseModel):
    """What a worker has done so far.

    Attributes:
        session: of the command that started it.
        worker: its number, from 1.
        machine: where it is.
        began, last: the time, in seconds since 1970, when it had its first shard and when it wrote
            its last part.
        shards, sentences, files: that it has parsed, and outputs that it put together.
        consumed: bytes of inputs.
    """

    session: str
    worker: int
    machine: str
    began: float = 0.0
    last: float = 0.0
    shards: int = 0
    sentences: int = 0
    files: int = 0
    consumed: int = 0

    @property
    def seconds(self) -> float:
        return self.last - self.began


@dataclass
class WorkerTally:
    """The note of a worker, and where it is written."""

    path: Path
    note: WorkerNote
    written: float = 0.0

    @classmethod
    def of(cls, outputs: Path, session: str, number: int) -> WorkerTally:
        path = outputs / STATE / WORKERS / f"{session}-{number + 1}-{secrets.token_hex(4)}.json"
        machine = this_machine().partition(" ")[0]
        return cls(path, WorkerNote(session=session, worker=number + 1, machine=machine))

    @property
    def shards(self) -> int:
        return self.note.shards

    def begin(self) -> None:
        """A shard has been taken."""
        self.note.began = self.note.began or time.time()

    def add(self, part: Part) -> None:
        """A part has been written."""
        self.note.last = time.time()
        self.note.shards += 1
        self.note.sentences += part.sentences
        self.note.consumed += part.consumed
        self.write()

    def finish(self) -> None:
        """An output has been put together."""
        self.note.files += 1
        self.write()

    def write(self, *, at_once: bool = False) -> None:
        if self.note.shards + self.note.files and (
            at_once or time.monotonic() - self.written > _OFTEN
        ):
            write_text(self.path, self.note.model_dump_json())
            self.written = time.monotonic()


def worker_notes(outputs: Path, session: str = "") -> list[WorkerNote]:
    """What the workers of a session have noted, or of all."""
    notes = []
    for path in sorted((outputs / STATE / WORKERS).glob(f"{session}*.json")):
        try:
            notes.append(WorkerNote.model_validate_json(read_regular(path)))
        except (OSError, ValidationError):  # a machine that was lost
            continue
    return notes


class Failure(NamedTuple):
    """An input without parses."""

    file: str
    problem: str


@dataclass
class Report:
    """What was done of a folder, by all commands together.

    Attributes:
        files: inputs.
        done: of these, those with an output.
        failures: of these, those that could not be parsed.
        left_out: what else is in the folder, with the reasons.
        sentences: of the outputs.
        long: of these, those that were too long for the parser; ``first_long`` is the first.
        seconds: in which at least one worker was at it.
        workers: what each did.
    """

    files: int
    left_out: Sequence[str]
    done: int = 0
    failures: list[Failure] = field(default_factory=list)
    sentences: int = 0
    long: int = 0
    first_long: str = ""
    seconds: float = 0.0
    workers: Sequence[WorkerNote] = ()

    @classmethod
    def of(cls, outputs: Path, files: Sequence[Input], left_out: Sequence[str]) -> Report:
        """What the folder of the outputs says."""
        workers = worker_notes(outputs)
        report = cls(len(files), left_out, workers=workers, seconds=_together(workers))
        for file in files:
            note = FileState(outputs, file).note()
            if note is None:
                continue
            if note.problem:
                report.failures.append(Failure(file.shown, note.problem))
                continue
            report.done += 1
            report.sentences += note.sentences
            report.long += note.long
            report.first_long = report.first_long or note.first_long
        return report

    @property
    def rate(self) -> float:
        """Sentences a second."""
        parsed = sum(worker.sentences for worker in self.workers)
        return parsed / self.seconds if self.seconds else 0.0

    def write(self, outputs: Path) -> None:
        """Leave it in the folder of the outputs."""
        import json

        content = {
            "files": self.files,
            "done": self.done,
            "failed": [failure._asdict() for failure in self.failures],
            "left_out": [*self.left_out],
            "sentences": self.sentences,
            "not_parsed_because_of_their_length": self.long,
            "first_not_parsed": self.first_long,
            "seconds": round(self.seconds, 3),
            "sentences_per_second": round(self.rate, 1),
            "workers": [
                worker.model_dump()
                | {"sentences_per_second": round(worker.sentences / (worker.seconds or 1), 1)}
                for worker in self.workers
            ],
        }
        text = json.dumps(content, indent=1, ensure_ascii=False) + "\n"
        write_text(outputs / REPORT, text)


def _together(workers: Sequence[WorkerNote]) -> float:
    """Seconds in which at least one of them was at it."""
    seconds = end = 0.0
    for worker in sorted(workers, key=lambda worker: worker.began):
        seconds += max(0.0, worker.last - max(worker.began, end))
        end = max(end, worker.last)
    return seconds
