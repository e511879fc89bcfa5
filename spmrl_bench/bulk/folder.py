"""Parsing a folder: what is to be done, by how many workers, and what became of it."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Sequence
from pathlib import Path

from rich.console import Console

from spmrl_bench.bulk import shards
from spmrl_bench.bulk.compression import Source, check_installed
from spmrl_bench.bulk.inputs import ENDINGS, Compression, Input, check_outputs, inputs_of
from spmrl_bench.bulk.progress import shown
from spmrl_bench.bulk.report import Report
from spmrl_bench.bulk.settings import Settings, settle
from spmrl_bench.bulk.state import REPORT, SETTINGS, STATE, WORKERS, FileState, clear_done
from spmrl_bench.bulk.worker import Job, work
from spmrl_bench.errors import ReadError, SpmrlError
from spmrl_bench.parsing.answers import chosen_output
from spmrl_bench.parsing.bulk import ParseOptions
from spmrl_bench.parsing.models import identity
from spmrl_bench.parsing.streams import LOOKED_AT, Form, text_problem
from spmrl_bench.process.executors.base import Executor, Unit, run_units
from spmrl_bench.storage.files import remove_orphans

#: Files that are named where something is to be said of many.
NAMED = 5
_ADVICE = "give the same command again to go on; what is done is kept"


def parse_folder(
    model: Path,
    inputs: Path,
    outputs: Path,
    options: ParseOptions,
    *,
    form: Form | None,
    compression: Compression | None,
    transforms: list[str] | None,
    workers: int,
    executor: Callable[[], Executor],
    console: Console,
) -> Report:
    """Parse what is not parsed yet of a folder.

    Args:
        model: the folder of a parser.
        inputs, outputs: the folders; that of the outputs need not exist.
        options: how sentences are answered.
        form: what the files hold; None leaves it to their names.
        compression: of the outputs; None is that of their inputs.
        transforms: of trees, see :class:`spmrl_bench.parsing.given_trees.TreeReader`.
        workers: how many work beside each other.
        executor: makes what starts them, where there is anything to do.
        console: where progress is shown.

    Returns:
        What was done by this and all earlier commands; it is in the folder of the outputs too.

    Raises:
        SpmrlError: there is nothing to parse, the folders do not fit each other, or a worker has
            failed; then all else is done, as far as the other workers came.
        Interrupted: what is done is kept.
    """
    found = identity(model)
    inputs, outputs = inputs.resolve(), outputs.resolve()
    files, left_out = _to_parse(inputs, outputs, form)
    check_outputs(files, compression, (SETTINGS, REPORT))
    for each in {compression or "none", *(file.compression for file in files)}:
        check_installed(each)
    output = chosen_output(options.output, found.kind.layers)
    settings = Settings(
        inputs=str(inputs),
        model=str(model),
        kind=found.name,
        sha256=found.sha256,
        input=form,
        output=output,
        tags=options.tag_column,
        on_long=options.on_long,
        compression=compression,
        transforms=None if transforms is None else tuple(transforms),
        shard_sentences=shards.SHARD_SENTENCES,
        shard_bytes=shards.SHARD_BYTES,
    )
    settle(outputs, settings)
    job = Job(
        model=model.resolve(),
        sha256=found.sha256,
        inputs=inputs,
        outputs=outputs,
        files=tuple(files),
        options=options,
        transforms=settings.transforms,
        compression=compression,
        session=secrets.token_hex(4),
    )

    def say(text: str) -> None:
        console.print(text, markup=False, highlight=False, soft_wrap=True)

    if left_out:
        more = f" and {len(left_out) - NAMED} more" if len(left_out) > NAMED else ""
        say(f"left out: {'; '.join(left_out[:NAMED])}{more}")
    _warn(inputs, files, say)
    try:
        failures = _carry_out(job, workers, executor, console, say)
    finally:
        report = Report.of(outputs, files, left_out)
        report.write(outputs)
    if failures:
        raise SpmrlError("\n".join(dict.fromkeys(map(str, failures))))
    return report


def tidy(outputs: Path, files: Sequence[Input]) -> None:
    """Remove what processes that were killed have left beside the outputs of some inputs."""
    clear_done(outputs, files)
    state = outputs / STATE
    for folder in {state, state / WORKERS, *((outputs / file.name).parent for file in files)}:
        remove_orphans(folder)


def _to_parse(inputs: Path, outputs: Path, form: Form | None) -> tuple[list[Input], list[str]]:
    """The inputs and what is left out, see :func:`inputs_of`; it has to be something."""
    if not inputs.is_dir():
        raise ReadError("no such folder; with --to, a folder is parsed", path=inputs)
    if inputs.is_relative_to(outputs) or outputs.is_relative_to(inputs):
        raise SpmrlError(f"{outputs}: one of the two folders would be in the other, {inputs}")
    files, left_out = inputs_of(inputs, form)
    if not files:
        raise SpmrlError(
            f"{inputs}: nothing to parse; expected files that end in {', '.join(ENDINGS)}, and "
            ".gz or .zst behind it if they are compressed, or --input for others"
        )
    return files, left_out


def _warn(inputs: Path, files: list[Input], say: Callable[[str], None]) -> None:
    """Say what seems to be wrong with the words of the first file of tokens."""
    for file in files:
        if file.form == "tokens":
            source = Source(inputs / file.name, file.compression, file.shown)
            try:
                given = shards.shard_at(source, file.form, shards.BEGINNING).given()
                words = [each.words for each, _ in zip(given, range(LOOKED_AT), strict=False)]
            except SpmrlError:
                return  # it will fail
            finally:
                source.close()
            if problem := text_problem([row for row in words if row]):
                say(f"{file.shown}: {problem}")
            return


def _carry_out(
    job: Job,
    workers: int,
    executor: Callable[[], Executor],
    console: Console,
    say: Callable[[str], None],
) -> list[Exception]:
    """Have the workers do what is left; what was tried and failed before is tried again."""
    left = []
    for file in job.files:
        state = FileState(job.outputs, file)
        note = state.note()
        output = job.outputs / file.output(job.compression)
        if note is not None and (note.problem or not output.exists()):
            state.forget()
            note = None
        if note is None:
            left.append(file)
    if not left:
        say(f"all {len(job.files):,} files are parsed")
        return []
    units = [
        Unit(
            title=f"worker {number + 1} of {workers}",
            function=work,
            arguments=(job, number, workers),
        )
        for number in range(workers)
    ]
    try:
        with shown(job.outputs, job.session, left, console):
            ended = run_units(units, executor(), log=say, advice=_ADVICE)
    finally:
        tidy(job.outputs, left)
    return [each.error for each in ended if each.error is not None]
