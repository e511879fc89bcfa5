"""The command ``parse`` for folders: from its options to the work, and what is said at the end."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, cast

import typer

from spmrl_bench.cli.options import check_choice
from spmrl_bench.errors import SpmrlError

if TYPE_CHECKING:
    from spmrl_bench.bulk.inputs import Compression
    from spmrl_bench.bulk.report import Report
    from spmrl_bench.parsing.bulk import ParseOptions
    from spmrl_bench.parsing.streams import Form


def parse_into(
    to: Path,
    names: list[str],
    model: Path,
    options: ParseOptions,
    form: str | None,
    compression: str | None,
    workers: int,
    device: str,
    on: str | None,
) -> None:
    """Parse a folder into another one, as the options of ``parse`` say.

    Raises:
        SpmrlError: an input could not be parsed; what else goes wrong, see
            :func:`spmrl_bench.bulk.folder.parse_folder`.
    """
    from spmrl_bench.bulk.folder import parse_folder
    from spmrl_bench.bulk.inputs import COMPRESSIONS
    from spmrl_bench.bulk.state import STATE
    from spmrl_bench.packages.located import located
    from spmrl_bench.parsing.models import trained_transforms
    from spmrl_bench.process.executors.backend import executor_for, parse_backend
    from spmrl_bench.process.executors.local import LocalExecutor
    from spmrl_bench.training.report import messages

    if compression is not None:
        check_choice("compression", compression, COMPRESSIONS)
    if len(names) != 1 or not os.path.isdir(names[0]):
        given = " ".join(names) or "nothing"
        raise SpmrlError(f"--to {to}: expected one folder of files to parse, found {given}")
    where = parse_backend(on)
    folder = located(model)  # once for all workers
    console = messages()
    say = partial(console.print, markup=False, highlight=False, soft_wrap=True)
    try:
        report = parse_folder(
            folder,
            Path(names[0]),
            to,
            options,
            form=cast("Form | None", form),
            compression=cast("Compression | None", compression),
            transforms=trained_transforms(folder),
            workers=workers,
            executor=lambda: (
                LocalExecutor(workers, device)
                if where.is_local
                else executor_for(
                    where, workers, device=device, shared=to.absolute() / STATE, log=say
                )
            ),
            console=console,
        )
    except KeyboardInterrupt as interrupt:
        kept = "what is done is kept: give the same command again to go on"
        interrupt.args = (f"interrupted; {kept}",)
        raise
    for line in told(report):
        typer.echo(line, err=True)
    if report.failures:
        failed = "\n".join(failure.problem for failure in report.failures)
        number = f"{len(report.failures):,} of {report.files:,} files not parsed"
        raise SpmrlError(f"{number}; the same command again tries these:\n{failed}")


def told(report: Report) -> list[str]:
    """A report in lines for people."""
    lines = [
        f"{report.done:,} of {report.files:,} files, {report.sentences:,} sentences, "
        f"{report.seconds:,.1f} s, {report.rate:,.1f} sentences/s"
    ]
    if report.long:
        lines.append(
            f"{report.long:,} sentences not parsed because of their length. The first is "
            f"{report.first_long}"
        )
    lines += [
        f"worker {worker.worker} on {worker.machine}: {worker.sentences:,} sentences, "
        f"{worker.sentences / (worker.seconds or 1):,.1f}/s"
        for worker in report.workers
    ]
    return lines
