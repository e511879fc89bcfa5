"""One of several equal workers, which parse what nobody else has in work until all is done.

A worker goes through the inputs from a place of its own, so that several begin in different files,
and takes the first shard that is neither parsed nor claimed by a living worker. Its claim is a
lock, which holds until the part is written; a worker that dies leaves
a claim that the others recognise. When nothing is left but what others have in work, it waits,
because what they have may come free. So when a worker ends, all is done.
"""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any

from spmrl_bench.bulk.assembling import assemble, check_unchanged
from spmrl_bench.bulk.compression import Source, compressed
from spmrl_bench.bulk.inputs import Compression, Input
from spmrl_bench.bulk.report import WorkerTally
from spmrl_bench.bulk.shards import BEGINNING, Cut, Shard, shard_at
from spmrl_bench.bulk.state import FileState, Part
from spmrl_bench.errors import (
    CheckpointError,
    ReadError,
    SentenceTooLongError,
    SpmrlError,
    TokensError,
    TreeError,
    remedy,
)
from spmrl_bench.parsing.bulk import Counts, ParseOptions, Worker, own_worker, parse_input
from spmrl_bench.parsing.models import identity
from spmrl_bench.process.pools import available_threads
from spmrl_bench.process.signals import on_signals
from spmrl_bench.storage.locks import LockedError, locked

#: Seconds between two looks whether what others have in work has come free.
PAUSE = 1.0

_STOPPING = (signal.SIGINT, signal.SIGTERM)

# What an input can be wrong with; all else is not the input's fault.
_OF_INPUT = (ReadError, SentenceTooLongError, TokensError, TreeError)


@dataclass(frozen=True)
class Job:
    """What all workers do together.

    Attributes:
        model: the folder of the parser.
        sha256: of the parser, see :func:`spmrl_bench.parsing.models.identity`.
        inputs, outputs: the folders.
        files: of the inputs.
        options: how sentences are answered.
        transforms: of trees that are read.
        compression: of the outputs; None for that of their inputs.
        session: what tells the workers of one command from those of another.
    """

    model: Path
    sha256: str
    inputs: Path
    outputs: Path
    files: Sequence[Input]
    options: ParseOptions
    transforms: Sequence[str] | None
    compression: Compression | None
    session: str


def work(job: Job, number: int, workers: int, *, device: str, console: Any = None) -> None:
    """Do what is to be done of a job, beside others.

    Args:
        job: see there.
        number: of this worker, from 0.
        workers: how many there are; it does not matter whether that is so.
        device: as for :func:`spmrl_bench.load_parser`.
        console: of a unit of work; there is nothing to say.

    Raises:
        SpmrlError: the parser cannot be loaded, or a file cannot be written.
    """
    try:
        _Worker(job, number, device).run(len(job.files) * number // workers)
    except OSError as error:
        raise SpmrlError(
            f"{error.filename or job.outputs}: cannot be written: {error.strerror or error}. "
            f"{remedy(error)}, and give the same command again: what is done is kept"
        ) from None


class _Worker:
    def __init__(self, job: Job, number: int, device: str) -> None:
        self._job = job
        self._device = device
        self._tally = WorkerTally.of(job.outputs, job.session, number)
        # Of inputs that are come back to: the first shard that is not parsed, and where it begins.
        self._reached: dict[str, tuple[int, Cut]] = {}

    @cached_property
    def _parse_window(self) -> Worker:
        """Loaded with the first shard, and with its caches kept to the last."""
        model = self._job.model
        worker = own_worker(model, self._device, available_threads(), self._job.options)
        if identity(model).sha256 != self._job.sha256:
            raise CheckpointError(f"{model}: another parser has come into its place meanwhile")
        return worker

    def run(self, first: int) -> None:
        """Go through all inputs, again and again until all are done or have failed."""
        left = [*self._job.files[first:], *self._job.files[:first]]
        try:
            while True:
                before = self._tally.shards
                left = [file for file in left if not self._visit(file)]
                if not left:
                    return
                if self._tally.shards == before:
                    time.sleep(PAUSE)
        finally:
            with signals_wait(*_STOPPING):
                self._tally.write(at_once=True)

    def _visit(self, file: Input) -> bool:
        """Do what is free of an input; returns whether it is finished."""
        state = FileState(self._job.outputs, file)
        if state.note() is not None:
            return True
        source = Source(self._job.inputs / file.name, file.compression, file.shown)
        try:
            return self._go_through(file, state, source)
        except FileNotFoundError:
            if state.note() is None:
                raise
            return True  # another has finished it, and removed its shards
        finally:
            source.close()

    def _go_through(self, file: Input, state: FileState, source: Source) -> bool:
        state.folder.mkdir(parents=True, exist_ok=True)
        is_whole = True
        number, cut = self._reached.get(file.name, (0, BEGINNING))
        place: Cut | None = cut
        while place is not None:
            try:
                part = state.part(number) or self._claim(file, state, source, number, place)
                if part is None:
                    is_whole = False
                    place = state.cut(number + 1) or _next(shard_at(source, file.form, place))
                else:
                    place = part.next
            except _OF_INPUT as error:
                state.fail(str(error), number)
            if state.note() is not None:
                self._reached.pop(file.name, None)
                return True
            number += 1
            if is_whole and place is not None:
                self._reached[file.name] = number, place
        return is_whole and self._finish(file, state)

    def _claim(
        self, file: Input, state: FileState, source: Source, number: int, cut: Cut
    ) -> Part | None:
        """Parse a shard, unless somebody else does, which gives None."""
        try:
            with locked(state.lock(number)):
                # It may have been parsed, or all be done, since it was looked for.
                if state.note() is not None or (part := state.part(number)) is not None:
                    return part if state.note() is None else None
                return self._parse(file, state, source, number, cut)
        except LockedError:
            return None

    def _parse(self, file: Input, state: FileState, source: Source, number: int, cut: Cut) -> Part:
        check_unchanged(self._job.inputs / file.name, file)
        shard = shard_at(source, file.form, cut)
        if (end := _next(shard)) is not None:
            state.write_cut(number + 1, end)
        self._tally.begin()
        counts = Counts()
        sentences = shard.given(self._job.options.tag_column, self._job.transforms)
        parse_windows = partial(map, self._parse_window)
        texts = ["".join(some) for some in parse_input(sentences, parse_windows, counts)]
        compression = self._job.compression or file.compression
        data = compressed("".join(texts).encode(), compression)
        part = Part(
            sentences=counts.sentences,
            long=counts.long,
            first_long=counts.first_long,
            size=len(data),
            consumed=shard.consumed,
            next=end,
        )
        with signals_wait(*_STOPPING):  # a part that is there has been counted
            state.write_part(number, part, data)
            self._tally.add(part)
        return part

    def _finish(self, file: Input, state: FileState) -> bool:
        """Put the parts together, unless somebody else does."""
        try:
            with locked(state.lock("assembly")):
                if state.note() is None:
                    output = self._job.outputs / file.output(self._job.compression)
                    assemble(state, self._job.inputs / file.name, file, output)
                    self._tally.finish()
        except LockedError:
            return False
        except ReadError as error:
            state.fail(str(error), 0)
        return True


def _next(shard: Shard) -> Cut | None:
    """Where the next shard begins; None where there is none."""
    return None if shard.is_last else shard.end()


@contextmanager
def signals_wait(*numbers: int) -> Iterator[None]:
    """Within it, which should be short, these signals wait: what is done there is done whole.

    In a thread, where no handler is called, nothing changes.
    """
    came: dict[int, None] = {}
    try:
        with on_signals(lambda number, _: came.update({number: None}), *numbers):
            yield
    finally:
        for number in came:
            signal.raise_signal(number)
