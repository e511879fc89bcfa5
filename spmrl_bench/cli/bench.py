"""The command that says how fast the program is here, beside what the machine allows."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from spmrl_bench.cli.app import app
from spmrl_bench.cli.options import Device, check_choice, print_rows
from spmrl_bench.errors import SpmrlError


@app.command()
def bench(
    size: Annotated[
        str, typer.Option(help="Of the parser: `published`, `small`, or `both`.")
    ] = "both",
    treebank: Annotated[
        str, typer.Option(help="Whose sentences to train on and parse.")
    ] = "english-mini",
    variant: Annotated[
        str, typer.Option(help="Of the recipe, whose training and parsing to measure.")
    ] = "charlstm",
    threads: Annotated[int, typer.Option(min=1, help="Threads to use.")] = 2,
    seconds: Annotated[
        float, typer.Option(min=0.1, help="How long each measurement takes, at least.")
    ] = 2.0,
    device: Device = "auto",
    epoch: Annotated[
        bool,
        typer.Option(
            "--epoch",
            help="Measure only what the Penn Treebank takes: an epoch of 40,000 sentences (from "
            "some batches of generated ones) and the parsing of 1,700.",
        ),
    ] = False,
    report: Annotated[
        Path | None, typer.Option(help="Write the figures to this file as well, as JSON.")
    ] = None,
) -> None:
    """Measure reading, scoring, decoding, training and parsing, and the machine's own limits.

    The last columns say of chart decoding what share it reaches of the speed of reading as many
    bytes. Other programs should be idle.

    Example:

        spmrl-bench bench --size published --threads 2 --report speed.json

        spmrl-bench bench --variant stack-attention --size small
    """
    import torch

    from spmrl_bench.nn.device import prepare_process
    from spmrl_bench.speed.report import all_speeds, epoch_report, to_json
    from spmrl_bench.storage.files import write_text

    check_choice("size", size, ("published", "small", "both"))
    sizes = ("published", "small") if size == "both" else (size,)
    torch.set_num_threads(threads)
    where = prepare_process(device, training=True)
    measure = epoch_report if epoch else all_speeds
    machine, speeds = measure(treebank, variant, sizes, where, seconds)
    typer.echo(
        f"{where.type}, {threads} threads: matrix products "
        + ", ".join(f"{gflops:,.0f} GFLOP/s in {name}" for name, gflops in machine.gflops.items())
        + f"; memory {machine.gigabytes:,.1f} GB/s\n"
    )
    rows = [
        (
            speed.work,
            f"{speed.amount:,.{1 if speed.amount < 100 else 0}f} {speed.unit}",
            f"{100 * speed.share:.0f} %" if speed.share is not None else "",
            speed.limit,
        )
        for speed in speeds
    ]
    print_rows(("work", "speed", "share", "of the limit of"), rows)
    if report is not None:
        try:
            write_text(report, to_json(machine, speeds, threads))
        except OSError as error:
            raise SpmrlError(f"{report}: cannot be written: {error.strerror}") from error
