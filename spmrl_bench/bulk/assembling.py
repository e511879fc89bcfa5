"""From the parts of an input to its output: one file, which appears whole or not at all.

Whoever finds all parts there puts them together. The output is there before the note that says so,
and the note before the parts are removed: wherever that is broken off, it is done again from what
is left, and gives the same.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from spmrl_bench.bulk.inputs import Input
from spmrl_bench.bulk.state import Counts, FileState
from spmrl_bench.errors import ReadError, SpmrlError
from spmrl_bench.storage.files import write_file, write_new


def assemble(state: FileState, source: Path, file: Input, output: Path) -> None:
    """Write the output of an input all of whose parts are there, and remove these.

    Args:
        state: of the input, of which nobody else writes the output now.
        source: where the input is.
        file: what it was when its parts were made.
        output: where its parses go.

    Raises:
        ReadError: the input has changed in between.
        OSError: the output cannot be written; all parts are there.
    """
    check_unchanged(source, file)
    counts = Counts()
    shard = 0

    def pieces() -> Iterator[bytes]:
        nonlocal shard
        while (part := state.part(shard)) is not None:
            size = 0
            for piece in state.pieces(shard):
                size += len(piece)
                yield piece
            if size != part.size:
                problem = f"part {shard} has {size} bytes instead of {part.size}"
                raise SpmrlError(f"{state.folder}: {problem}; delete this folder, and start again")
            counts.sentences += part.sentences
            counts.long += part.long
            counts.first_long = counts.first_long or part.first_long
            if part.next is None:
                return
            shard += 1
        raise SpmrlError(f"{state.folder}: part {shard} is gone; start again")

    write_file(output, lambda new: write_new(new, pieces()))
    state.finish(counts)
    state.clear(shard + 1)


def check_unchanged(source: Path, file: Input) -> None:
    """Make sure that an input is what it was when the work began.

    Raises:
        ReadError: it is not, or is gone.
    """
    try:
        status = source.stat()
    except OSError as error:
        raise ReadError(f"cannot be read: {error.strerror}", path=file.shown) from None
    if (status.st_size, status.st_mtime_ns) != (file.size, file.changed):
        problem = "has changed since parsing began; give the command again when it is complete"
        raise ReadError(problem, path=file.shown)
