"""What workers know of each other: what lies in the folder of the outputs.

There are no messages. Beside the outputs, a hidden folder has of each input a note as soon as it is
done or has failed, and before that a folder of its shards: the parts that are parsed, the cuts
where shards begin that are not the first, and locks of what is in work. Every one of them is
written whole. An input that was changed has another folder of shards, and no note.

    parse.json                   with which model and options all was parsed
    report.json                  what was done in all
    a/text.txt.gz                the parses of a/text.txt.gz
    .parsing/KEY.json            the note of an input, KEY being a digest of its name
    .parsing/KEY-CHANGED/        its shards: 0.part, 1.cut, 1.lock ..., assembly.lock
    .parsing/workers/            what each worker has done, see report.py
"""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

from pydantic import BaseModel, ValidationError

from spmrl_bench.bulk.inputs import Input
from spmrl_bench.bulk.shards import Cut
from spmrl_bench.storage.files import (
    open_regular_file,
    read_regular,
    write_file,
    write_new,
    write_text,
)

#: Names in the folder of the outputs.
SETTINGS, REPORT, STATE = "parse.json", "report.json", ".parsing"
WORKERS = "workers"


class Counts(BaseModel):
    """Of sentences.

    Attributes:
        sentences: all.
        long: of these, those that were too long for the parser.
        first_long: place and problem of the first of them.
    """

    sentences: int = 0
    long: int = 0
    first_long: str = ""


class Part(Counts):
    """What is said of a part, in a line in front of its bytes.

    Attributes:
        size: of what follows, in bytes.
        consumed: bytes of the input that were read for it.
        next: where the next shard begins; None where there is none.
    """

    size: int
    consumed: int
    next: Cut | None


class Note(Counts):
    """What became of an input.

    Attributes:
        changed, input_size: of the input then.
        problem: why there are no parses; empty if there are.
        shard: where that was found.
    """

    changed: int
    input_size: int
    problem: str = ""
    shard: int = 0


class FileState:
    """What is known of an input."""

    def __init__(self, outputs: Path, file: Input) -> None:
        self._file = file
        self.key = hashlib.blake2b(os.fsencode(file.name), digest_size=12).hexdigest()
        self._note = outputs / STATE / f"{self.key}.json"
        self.folder = outputs / STATE / f"{self.key}-{file.size:x}-{file.changed:x}"

    def note(self) -> Note | None:
        """What became of it, if anything did; a note of another version of the input is none."""
        try:
            note = Note.model_validate_json(read_regular(self._note))
        except (OSError, ValidationError):
            return None
        same = (note.changed, note.input_size) == (self._file.changed, self._file.size)
        return note if same else None

    def finish(self, counts: Counts) -> None:
        """Note that its parses are there."""
        self._write(counts, "", 0)

    def fail(self, problem: str, shard: int) -> None:
        """Note why there are none; of several reasons, the one that stands first in the file."""
        earlier = self.note()
        if earlier is None or (earlier.problem and earlier.shard > shard):
            self._write(Counts(), problem, shard)

    def forget(self) -> None:
        """Have it parsed again."""
        self._note.unlink(missing_ok=True)

    def clear(self, shards: int) -> None:
        """Remove its shards, so many; one by one, for a list of all would take memory."""
        for shard in range(shards):
            for place in (self._part(shard), self._cut(shard)):
                with suppress(OSError):
                    os.unlink(place)
        shutil.rmtree(self.folder, ignore_errors=True)

    def lock(self, of: int | str) -> Path:
        """The lock of a shard, or of something else that is done once."""
        return self.folder / f"{of}.lock"

    def part(self, shard: int) -> Part | None:
        """What is said of a part, if it is there."""
        try:
            with open_regular_file(self._part(shard)) as file:
                return _header(file)
        except (FileNotFoundError, ValidationError):
            return None

    def write_part(self, shard: int, part: Part, data: bytes) -> None:
        header = part.model_dump_json().encode() + b"\n"
        write_file(self._part(shard), lambda new: write_new(new, [header, data]))

    def pieces(self, shard: int) -> Iterator[bytes]:
        """The bytes of a part, a block at a time."""
        with open_regular_file(self._part(shard)) as file:
            _header(file)
            while block := file.read(1 << 20):
                yield block

    def cut(self, shard: int) -> Cut | None:
        """Where a shard begins, if somebody has found out."""
        try:
            return Cut.model_validate_json(read_regular(self._cut(shard)))
        except (OSError, ValidationError):
            return None

    def write_cut(self, shard: int, cut: Cut) -> None:
        write_text(self._cut(shard), cut.model_dump_json())

    def consumed(self) -> int:
        """Bytes of the input whose parts are there."""
        stems = (
            name.removesuffix(".part")
            for name in (os.listdir(self.folder) if self.folder.is_dir() else ())
        )
        parts = (self.part(int(stem)) for stem in stems if stem.isdecimal())
        return sum(part.consumed for part in parts if part is not None)

    def _part(self, shard: int) -> Path:
        return self.folder / f"{shard}.part"

    def _cut(self, shard: int) -> Path:
        return self.folder / f"{shard}.cut"

    def _write(self, counts: Counts, problem: str, shard: int) -> None:
        note = Note(
            **counts.model_dump(include=set(Counts.model_fields)),
            changed=self._file.changed,
            input_size=self._file.size,
            problem=problem,
            shard=shard,
        )
        write_text(self._note, note.model_dump_json())


def _header(file: BinaryIO) -> Part:
    return Part.model_validate_json(file.readline())


def clear_done(outputs: Path, files: Sequence[Input]) -> None:
    """Remove what is left of the shards of inputs that are done, also of earlier versions."""
    folders: dict[str, list[Path]] = {}
    for entry in os.scandir(outputs / STATE):
        key, dash, _ = entry.name.partition("-")
        if dash and entry.is_dir():
            folders.setdefault(key, []).append(Path(entry.path))
    for file in files if folders else ():
        state = FileState(outputs, file)
        left = folders.get(state.key, [])
        note = state.note() if left else None
        if note is not None and not note.problem:
            for folder in left:
                shutil.rmtree(folder, ignore_errors=True)
