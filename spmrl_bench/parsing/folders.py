"""Parse a folder of text into another one of the same layout: a file is a piece of work.

Several equal workers, here or on other machines that see the folders, take the next file that has
no parses yet and that nobody else has in work, stream it, and put the whole of its parses in their
place at once. A worker that dies loses the file it was at, which another takes; the same command
again does what is left. So outputs are what they would be without interruption, byte for byte.

Of a file in work, ``.NAME.lock`` beside its output names the owner; ``.NAME.done`` keeps what is
said of it, until the command that asked for the work has said it. A file of 10 GB is parsed by one
worker: split it beforehand.
"""

from __future__ import annotations

import gzip
import os
import time
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from threading import Event, Thread
from typing import Any, BinaryIO, NamedTuple, cast

from pydantic import BaseModel, ValidationError
from rich.console import Console

from spmrl_bench.errors import (
    CheckpointError,
    ReadError,
    SentenceTooLongError,
    SpmrlError,
    TokensError,
    TreeError,
    remedy,
)
from spmrl_bench.parsing.answers import Output, chosen_output
from spmrl_bench.parsing.bulk import (
    Counts,
    OnLong,
    ParseOptions,
    Worker,
    own_worker,
    parse_input,
)
from spmrl_bench.parsing.models import identity
from spmrl_bench.parsing.streams import LOOKED_AT, Form, sentences_of, text_problem
from spmrl_bench.process.executors.base import Executor, Unit, run_units
from spmrl_bench.process.pools import available_threads
from spmrl_bench.readers.conll import TagColumn
from spmrl_bench.storage.files import (
    create,
    open_regular_file,
    read_regular,
    remove_orphans,
    write_file,
    write_text,
)
from spmrl_bench.storage.locks import LockedError, locked

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
# What an input can be wrong with; all else is not the input's fault.
_OF_INPUT = (ReadError, SentenceTooLongError, TokensError, TreeError)


class Settings(BaseModel):
    """What all outputs of a folder have in common; ``kind`` and ``sha256`` are of the parser."""

    inputs: str
    kind: str
    sha256: str
    input: Form | None
    output: Output
    tags: TagColumn
    on_long: OnLong
    transforms: tuple[str, ...] | None


class FileResult(BaseModel):
    """What became of a file: counts of :class:`Counts`, or why it has no parses."""

    sentences: int = 0
    long: int = 0
    first_long: str = ""
    problem: str = ""


class Input(NamedTuple):
    """A file of a folder."""

    path: Path
    output: Path
    form: Form
    shown: str  # its path in the folder, for messages: names may hold bytes that are no text

    def beside(self, ending: str) -> Path:
        return self.output.with_name(f".{self.output.name}.{ending}")

    @property
    def parsed(self) -> bool:
        """Whether its parses are there, and younger than it is."""
        with suppress(OSError):
            return self.output.stat().st_mtime_ns > self.path.stat().st_mtime_ns
        return False

    @property
    def result(self) -> FileResult | None:
        with suppress(OSError, ValidationError):
            return FileResult.model_validate_json(read_regular(self.beside("done")))
        return None


@dataclass(frozen=True)
class Job:
    """What all workers do together: parse ``files`` with the parser in the folder ``model``."""

    model: Path
    sha256: str
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
    transforms: Sequence[str] | None,
    workers: int,
    executor: Callable[[], Executor],
    console: Console,
) -> str:
    """Parse what is not parsed yet of a folder, and return what was done, in words.

    Args:
        model: the folder of a parser.
        outputs: need not exist; holds nothing but outputs.
        form: what the files hold; None leaves it to their names.
        transforms: of trees, see :class:`spmrl_bench.parsing.given_trees.TreeReader`.
        executor: makes what starts the workers, where there is anything to do.
        console: for progress.

    Raises:
        SpmrlError: there is nothing to parse, the folders do not fit each other, or files cannot
            be parsed; then all others are, as far as the workers came.
        Interrupted: what is done is kept.
    """
    inputs, outputs = inputs.resolve(), outputs.resolve()
    found = identity(model)
    files, left_out = find_inputs(inputs, outputs, form)
    settings = Settings(
        inputs=str(inputs),
        kind=found.name,
        sha256=found.sha256,
        input=form,
        output=chosen_output(options.output, found.kind.layers),
        tags=options.tag_column,
        on_long=options.on_long,
        transforms=None if transforms is None else tuple(transforms),
    )
    _settle(outputs, settings)
    say = partial(console.print, markup=False, highlight=False, soft_wrap=True)
    if left_out:
        more = f" and {len(left_out) - 5} more" if len(left_out) > 5 else ""
        say(f"left out: {'; '.join(left_out[:5])}{more}")
    _warn(files, say)
    began = time.monotonic()
    left = [file for file in files if not file.parsed]
    _tidy(left)
    job = Job(model.resolve(), found.sha256, left, options, settings.transforms)
    units = [
        Unit(f"worker {k + 1} of {workers}", parse_files, (job, k, workers))
        for k in range(workers if left else 0)
    ]
    try:
        with _progress(left, console):
            ended = run_units(units, executor(), log=say, advice=_AGAIN) if units else []
        results = [result for file in left if (result := file.result) is not None]
    finally:
        _tidy(left)
    errors = [str(each.error) for each in ended if each.error is not None]
    failed = [result.problem for result in results if result.problem]
    if failed:
        number = f"{len(failed):,} of {len(files):,} files not parsed"
        errors.insert(0, "\n".join([f"{number}; the same command again tries these:", *failed]))
    if errors:
        raise SpmrlError("\n".join(dict.fromkeys(errors)))
    return _summary(files, results, time.monotonic() - began)


def find_inputs(folder: Path, outputs: Path, form: Form | None) -> tuple[list[Input], list[str]]:
    """Return the files of a folder, in the order of their names, and what is left out, and why.

    Hidden files are not looked at, folders that are links not followed. What has another name than
    :data:`ENDINGS` is left out, so that a README between the texts is no mistake.

    Raises:
        ReadError: no such folder, or one cannot be read.
        SpmrlError: there is nothing to parse, or one folder lies in the other.
    """

    def unreadable(error: OSError) -> None:
        raise ReadError(f"cannot be read: {error.strerror}", path=error.filename or folder)

    if not folder.is_dir():
        raise ReadError("no such folder; with --to, a folder is parsed", path=folder)
    if folder.is_relative_to(outputs) or outputs.is_relative_to(folder):
        raise SpmrlError(f"{outputs}: one of the two folders would be in the other, {folder}")
    inputs, left_out = [], []
    for place, folders, names in os.walk(folder, onerror=unreadable):
        folders[:] = sorted(name for name in folders if name[0] != ".")
        links = [name for name in folders if os.path.islink(os.path.join(place, name))]
        for name in sorted(name for name in names + links if name[0] != "."):
            path = Path(place, name)
            inside = path.relative_to(folder)
            shown = os.fsencode(inside).decode(errors="replace")
            said = form or ENDINGS.get(Path(name.lower().removesuffix(".gz")).suffix)
            if not path.is_file():
                left_out.append(f"{shown}: no file that can be read again")
            elif said is None:
                left_out.append(f"{shown}: its name does not say what it holds")
            else:
                inputs.append(Input(path, outputs / inside, said, shown))
    if not inputs:
        raise SpmrlError(
            f"{folder}: nothing to parse; expected files that end in {', '.join(ENDINGS)}, and .gz "
            "behind it if they are compressed, or --input for others"
        )
    return inputs, left_out


def parse_files(job: Job, number: int, workers: int, *, device: str, console: Any = None) -> None:
    """Parse what nobody else has in work of a job until all of it is done.

    Args:
        number: of this worker, from 0. Workers begin in different places.
        workers: how many there are; it does not matter whether that is so.
        device: as for :func:`spmrl_bench.load_parser`.

    Raises:
        SpmrlError: the parser cannot be loaded, or a file cannot be written.
    """
    first = len(job.files) * number // workers
    left = [*job.files[first:], *job.files[:first]]
    worker = _FileWorker(job, device)
    try:
        while left:
            before = len(left)
            left = [file for file in left if not worker.visit(file)]
            if len(left) == before:
                time.sleep(PAUSE)
    except OSError as error:
        raise SpmrlError(
            f"{error.filename or job.files[0].output.parent}: cannot be written: "
            f"{error.strerror or error}. {remedy(error)}, and {_AGAIN}"
        ) from None


class _FileWorker:
    def __init__(self, job: Job, device: str) -> None:
        self._job = job
        self._device = device

    @cached_property
    def _parse_window(self) -> Worker:
        """Loaded with the first file, and with its caches kept to the last."""
        job = self._job
        worker = own_worker(job.model, self._device, available_threads(), job.options)
        if identity(job.model).sha256 != job.sha256:
            raise CheckpointError(f"{job.model}: another parser has come into its place meanwhile")
        return worker

    def visit(self, file: Input) -> bool:
        """Return whether a file is finished, after parsing it if it is free."""
        if not (file.parsed or file.result):
            file.output.parent.mkdir(parents=True, exist_ok=True)
            try:
                with locked(file.beside("lock")):
                    if not (file.parsed or file.result):  # by another, since we looked
                        write_text(file.beside("done"), self._parse(file).model_dump_json())
            except LockedError:
                return False
        return True

    def _parse(self, file: Input) -> FileResult:
        job, counts, parse_windows = self._job, Counts(), partial(map, self._parse_window)

        def fill(new: Path) -> None:
            before = file.path.stat()
            with _opened(file) as stream, open(new, "wb") as raw, _packed(raw, file) as out:
                sentences = sentences_of(
                    stream, file.shown, file.form, job.options.tag_column, job.transforms
                )
                for texts in parse_input(sentences, parse_windows, counts):
                    out.write("".join(texts).encode())
            after = file.path.stat()
            if (before.st_size, before.st_mtime_ns) != (after.st_size, after.st_mtime_ns):
                raise ReadError("has changed while it was parsed", path=file.shown)

        try:
            write_file(file.output, fill)
        except _OF_INPUT as error:
            return FileResult(problem=str(error))
        return FileResult(**vars(counts))


@contextmanager
def _opened(file: Input) -> Iterator[BinaryIO]:
    try:
        with open_regular_file(file.path) as raw:
            compressed = file.path.name.lower().endswith(".gz")
            yield cast("BinaryIO", gzip.GzipFile(fileobj=raw) if compressed else raw)
    except (EOFError, zlib.error) as error:
        raise ReadError(f"cannot be decompressed: {error}", path=file.shown) from None


def _packed(raw: BinaryIO, file: Input) -> Any:
    """Return what writes to a file; compressed, it has the same bytes for the same text."""
    if file.output.name.lower().endswith(".gz"):
        return gzip.GzipFile("", "wb", 6, raw, mtime=0)
    return nullcontext(raw)


def _settle(outputs: Path, settings: Settings) -> None:
    """Note the settings in the folder of the outputs, or find the same there."""
    path = outputs / SETTINGS
    try:
        outputs.mkdir(parents=True, exist_ok=True)
        if not path.exists():
            held = sorted(place.name for place in outputs.iterdir() if place.name[0] != ".")
            if held and not path.exists():  # another may have begun meanwhile
                raise SpmrlError(
                    f"{outputs}: holds other files ({held[0]}), but no {SETTINGS} of an earlier "
                    "parse. Give a new folder, or an empty one"
                )
            create(path, (settings.model_dump_json(indent=1) + "\n").encode())
    except FileExistsError:
        if not outputs.is_dir():
            raise SpmrlError(f"{outputs}: is a file; expected a folder") from None
    except OSError as error:
        problem = f"cannot be written: {error.strerror}. {remedy(error)}"
        raise SpmrlError(f"{outputs}: {problem}") from None
    try:
        then = Settings.model_validate_json(read_regular(path)).model_dump()
    except (OSError, ValidationError):
        problem = "cannot be read as an account of what was parsed. Give another folder"
        raise SpmrlError(f"{path}: {problem}") from None
    now = settings.model_dump()
    if others := [key for key in then if then[key] != now[key]]:
        said = [
            ", ".join(
                f"{key} {'as the names say' if all_[key] is None else all_[key]}" for key in others
            )
            for all_ in (then, now)
        ]
        raise SpmrlError(
            f"{outputs}: was begun with other settings: {said[0]} there; asked for now: {said[1]}. "
            "Give another folder for these, or the same settings to go on"
        )


def _warn(files: Sequence[Input], say: Callable[[str], None]) -> None:
    """Say what seems to be wrong with the words of the first file of tokens."""
    file = next((file for file in files if file.form == "tokens"), None)
    if file is None:
        return
    with suppress(SpmrlError), _opened(file) as stream:  # it will fail
        given = sentences_of(stream, file.shown, "tokens")
        first = [sentence.words for _, sentence in zip(range(LOOKED_AT), given, strict=False)]
        if problem := text_problem([words for words in first if words]):
            say(f"{file.shown}: {problem}")


def _tidy(files: Sequence[Input]) -> None:
    """Remove what is said of files, and what workers that were killed have left beside them."""
    for file in files:
        file.beside("done").unlink(missing_ok=True)
        if file.parsed:
            file.beside("lock").unlink(missing_ok=True)
    for folder in {file.output.parent for file in files}:
        if folder.is_dir():
            remove_orphans(folder)


@contextmanager
def _progress(files: Sequence[Input], console: Console) -> Iterator[None]:
    """Show how many of the files are finished: a changing line on a terminal, or one a minute."""
    ended = Event()

    def show(say: Callable[[str], object], seconds: float) -> None:
        while not ended.wait(seconds):
            done = sum(file.beside("done").exists() for file in files)
            say(f"{done:,} of {len(files):,} files")

    status = console.status("") if console.is_terminal else None
    with status or nullcontext():
        say = status.update if status else partial(console.print, highlight=False)
        thread = Thread(target=show, args=(say, 1.0 if status else 60.0), daemon=True)
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join()


def _summary(files: Sequence[Input], results: Sequence[FileResult], seconds: float) -> str:
    if not results:
        return f"all {len(files):,} files are parsed"
    sentences = sum(result.sentences for result in results)
    text = (
        f"{len(results):,} of {len(files):,} files, {sentences:,} sentences, {seconds:,.1f} s, "
        f"{sentences / max(seconds, 1e-9):,.1f} sentences/s"
    )
    if long := sum(result.long for result in results):
        first = next(result.first_long for result in results if result.first_long)
        text += f"\n{long:,} sentences not parsed because of their length. The first is {first}"
    return text
