"""Parse a folder of text into another one of the same layout: a file is a piece of work.

Several equal workers, here or on other machines that see the folders, take the next file that has
no parses yet and that nobody else has in work (``.NAME.lock`` beside its output), stream it, and
put the whole of its parses in their place at once. The same command again does what is left, so
outputs are what they would be without interruption, byte for byte. ``.NAME.failed`` says why a file
cannot be parsed, until the command that asked for the work has said it.
"""

from __future__ import annotations

import gzip
import json
import os
import sys
import time
import zlib
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from spmrl_bench.errors import CheckpointError, ReadError, SpmrlError, remedy
from spmrl_bench.parsing.answers import chosen_output
from spmrl_bench.parsing.bulk import Counts, ParseOptions, Worker, own_worker, parse_input
from spmrl_bench.parsing.models import identity, trained_on
from spmrl_bench.parsing.streams import Form, sentences_of
from spmrl_bench.process.console import say
from spmrl_bench.process.executors.backend import LOCAL, Backend
from spmrl_bench.process.executors.units import Unit, run_units
from spmrl_bench.process.pools import available_threads
from spmrl_bench.storage.files import (
    create,
    open_regular_file,
    remove_orphans,
    write_file,
    write_text,
)
from spmrl_bench.storage.json import read_json
from spmrl_bench.storage.locks import LockedError, lock_of, locked

#: In the folder of the outputs: which parser they are of, with which options.
SETTINGS = "parse.json"
#: Endings of names, in front of ``.gz``.
ENDINGS: Mapping[str, Form] = {
    **dict.fromkeys((".txt", ".text", ".tok", ".tokens"), "tokens"),
    **dict.fromkeys((".mrg", ".ptb", ".psd", ".brackets", ".trees"), "brackets"),
    ".conllu": "conllu",
}
#: Seconds between two looks whether what others have in work has come free.
PAUSE = 1.0

_AGAIN = "give the same command again: what is done is kept"


class Input(NamedTuple):
    """A file of a folder."""

    path: Path
    output: Path
    form: Form
    shown: str  # its path in the folder, for messages: names may hold bytes that are no text

    @property
    def failed(self) -> Path:
        return self.output.with_name(f".{self.output.name}.failed")

    @property
    def parsed(self) -> bool:
        """Whether its parses are there, and younger than it is."""
        with suppress(OSError):
            return self.output.stat().st_mtime_ns > self.path.stat().st_mtime_ns
        return False


class Job(NamedTuple):
    """What all workers do together: parse files with the parser of a folder."""

    model: Path
    sha256: str  # of the parser
    files: Sequence[Input]
    options: ParseOptions
    transforms: Sequence[str] | None


def parse_folder(
    model: Path,
    inputs: Path,
    outputs: Path,
    options: ParseOptions,
    *,
    form: Form | None,
    workers: int,
    device: str = "auto",
    on: Backend = LOCAL,
) -> str:
    """Parse what is not parsed yet of a folder, and return what was done, in words. The ``form`` is
    what the files hold, None what their names say. A SpmrlError says that the folders do not fit
    each other, or which files cannot be parsed; all others are then."""
    model, inputs, outputs = model.resolve(), inputs.resolve(), outputs.resolve()
    parser, trained = identity(model), trained_on(model)
    options = replace(options, escapes=trained.escapes)
    files = find_inputs(inputs, outputs, form)
    settings = {
        "inputs": os.fsencode(inputs).decode(errors="replace"),
        "kind": parser.name,
        "sha256": parser.sha256,
        "input": form,
        "output": chosen_output(options.output, parser.kind.layers),
        "tags": options.tag_column,
        "on_long": options.on_long,
        **({"scores": True} if options.scored else {}),
        **({"best": options.best} if options.best > 1 else {}),
        "transforms": trained.transforms,
    }
    _settle(outputs, settings)
    left = [file for file in files if not file.parsed]
    if not left:
        return f"all {len(files):,} files are parsed"
    began = time.monotonic()
    _tidy(left)
    job = Job(model, parser.sha256, left, options, trained.transforms)
    units = [
        Unit(f"worker {k + 1} of {workers}", parse_files, (job, k, workers)) for k in range(workers)
    ]
    executor = on.executor(workers, device=device, shared=outputs)
    try:
        ended = run_units(units, executor, advice=_AGAIN)
        errors = [file.failed.read_text("utf-8") for file in left if file.failed.exists()]
    finally:
        _tidy(left)
    if errors:
        number = f"{len(errors):,} of {len(files):,} files not parsed"
        errors.insert(0, f"{number}; the same command again tries these:")
    if errors := errors + [str(each.error) for each in ended if each.error is not None]:
        raise SpmrlError("\n".join(dict.fromkeys(errors)))
    return f"{len(left):,} of {len(files):,} files parsed in {time.monotonic() - began:,.1f} s"


def find_inputs(folder: Path, outputs: Path, form: Form | None) -> list[Input]:
    """The files of a folder, in the order of their names; what is left out is said. Hidden files
    are not looked at, folders that are links not followed."""

    def unreadable(error: OSError) -> None:
        raise ReadError(f"cannot be read: {error.strerror}", path=error.filename or folder)

    if folder.is_relative_to(outputs) or outputs.is_relative_to(folder):
        raise SpmrlError(f"{outputs}: one of the two folders would be in the other, {folder}")
    inputs, left_out = [], []
    for place, folders, names in os.walk(folder, onerror=unreadable):
        folders[:] = sorted(name for name in folders if name[0] != ".")
        for path in (Path(place, name) for name in sorted(names) if name[0] != "."):
            inside = path.relative_to(folder)
            shown = os.fsencode(inside).decode(errors="replace")
            said = form or ENDINGS.get(Path(path.name.lower().removesuffix(".gz")).suffix)
            if said is not None and path.is_file():
                inputs.append(Input(path, outputs / inside, said, shown))
            else:
                left_out.append(shown)
    if not inputs:
        endings = f"{', '.join(ENDINGS)}, and .gz behind it if they are compressed"
        problem = f"nothing to parse; expected files that end in {endings}, or --input for others"
        raise SpmrlError(f"{folder}: {problem}")
    if left_out:
        more = f" and {len(left_out) - 5} more" if len(left_out) > 5 else ""
        say(f"left out, since nothing says what they hold: {', '.join(left_out[:5])}{more}")
    return inputs


def _settle(outputs: Path, settings: Mapping[str, object]) -> None:
    """Note the settings in the folder of the outputs, or find the same there."""
    path = outputs / SETTINGS
    try:
        outputs.mkdir(parents=True, exist_ok=True)
        held = [at.name for at in outputs.iterdir() if at.name[0] != "."]
        if not path.exists():  # looked for later than all else, since another may have begun
            if held:
                problem = f"holds other files ({min(held)}), but no {SETTINGS} of an earlier parse"
                raise SpmrlError(f"{outputs}: {problem}. Give a new folder, or an empty one")
            with suppress(FileExistsError):
                create(path, (json.dumps(settings, indent=1) + "\n").encode())
    except OSError as error:
        problem = f"cannot hold parses: {error.strerror}. {remedy(error)}, or give another folder"
        raise SpmrlError(f"{outputs}: {problem}") from None
    then = read_json(path, SpmrlError)
    if not isinstance(then, dict) or then.keys() != settings.keys():
        raise SpmrlError(f"{path}: no account of what was parsed. Give another folder")
    if others := [
        f"{key} {then[key]} there, {settings[key]} now"
        for key in settings
        if then[key] != settings[key]
    ]:
        problem = f"was begun with other settings: {'; '.join(others)}"
        raise SpmrlError(f"{outputs}: {problem}. Give another folder, or the same settings")


def _tidy(files: Sequence[Input]) -> None:
    """Remove what is said of files, and what workers that were killed have left beside them."""
    for file in files:
        file.failed.unlink(missing_ok=True)
        if file.parsed:
            lock_of(file.output).unlink(missing_ok=True)
    for folder in {file.output.parent for file in files}:
        if folder.is_dir():
            remove_orphans(folder)


def parse_files(job: Job, number: int, workers: int, *, device: str) -> None:
    """Parse what nobody else has in work of a job until all of it is done; of so many workers this
    has a number, from 0, and they begin in different places."""
    worker = own_worker(job.model, device, available_threads(), job.options)
    if identity(job.model).sha256 != job.sha256:
        raise CheckpointError(f"{job.model}: another parser has come into its place meanwhile")
    first = len(job.files) * number // workers
    left = [*job.files[first:], *job.files[:first]]
    try:
        while left:
            before = len(left)
            left = [file for file in left if not _visit(file, job, worker)]
            if len(left) == before:
                time.sleep(PAUSE)
    except OSError as error:
        problem = f"cannot be written: {error.strerror or error}. {remedy(error)}, and {_AGAIN}"
        raise SpmrlError(f"{error.filename or job.files[0].output}: {problem}") from None


def _visit(file: Input, job: Job, worker: Worker) -> bool:
    """Whether a file is finished, after parsing it if it is free."""

    def finished() -> bool:
        return file.parsed or file.failed.exists()

    file.output.parent.mkdir(parents=True, exist_ok=True)
    with suppress(LockedError):
        if not finished():
            with locked(lock_of(file.output)):
                if not finished():  # by another, since we looked
                    _parse_file(file, job, worker)
        return True
    return False


def _parse_file(file: Input, job: Job, worker: Worker) -> None:
    counts = Counts()

    def fill(new: Path) -> None:
        before = file.path.stat()
        with ExitStack() as opened:
            source: Any = opened.enter_context(open_regular_file(file.path))
            target: Any = opened.enter_context(open(new, "wb"))
            if file.path.name.lower().endswith(".gz"):
                source = opened.enter_context(gzip.GzipFile(fileobj=source))
                # The same bytes for the same text: no name, no time.
                target = opened.enter_context(gzip.GzipFile("", "wb", 6, target, mtime=0))
            tags, transforms = job.options.tag_column, job.transforms
            sentences = sentences_of(source, file.shown, file.form, tags, transforms)
            for texts in parse_input(sentences, partial(map, worker), counts):
                target.write("".join(texts).encode())
        after = file.path.stat()
        if (before.st_size, before.st_mtime_ns) != (after.st_size, after.st_mtime_ns):
            raise ReadError("has changed while it was parsed", path=file.shown)

    try:
        write_file(file.output, fill)
    except (EOFError, zlib.error) as error:
        write_text(file.failed, f"{file.shown}: cannot be decompressed: {error}")
    except SpmrlError as error:
        write_text(file.failed, str(error))
    else:
        long = f", {counts.long:,} too long to be parsed, the first {counts.first_long}"
        text = f"{file.shown}: {counts.sentences:,} sentences{long * bool(counts.long)}"
        print(text, file=sys.stderr, flush=True)
