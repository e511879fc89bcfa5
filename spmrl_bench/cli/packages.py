"""The command that packages a model to share it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from spmrl_bench.cli.app import model as group
from spmrl_bench.cli.options import ResultsFolder


@group.command()
def package(
    run: Annotated[
        Path, typer.Argument(metavar="RUN", help="The folder of a run that was scored.")
    ],
    to: Annotated[
        Path, typer.Option(help="The folder that gets the package, as a folder of its name.")
    ],
    name: Annotated[
        str | None,
        typer.Option(
            help="Name of the package: letters, digits, '_', '-'. Default: "
            "'spmrl_bench_' and the treebank.",
            show_default=False,
        ),
    ] = None,
    licence: Annotated[
        str | None,
        typer.Option(
            "--license",
            help="Under which the model is shared: an identifier such as 'cc-by-4.0', or a "
            "sentence. Default: that of the treebank, if it is open and its licence well known.",
            show_default=False,
        ),
    ] = None,
    results: ResultsFolder = Path("results"),
) -> None:
    """Package the best parser of a run, to share it.

    The package is a folder in the layout of a repository of the Hugging Face hub: the parser, a
    card (README.md) with what it was trained on and how it was scored, and a list of the files with
    their hashes. Its version is the day on which the run was scored. Whatever takes a model takes
    its folder, or its name on the hub ('hf upload OWNER/NAME FOLDER' puts it there).

    Examples:

        spmrl-bench model package runs/german-mini/small-charlstm-seed1 --to packages

        spmrl-bench model package runs/NAME --to packages --name my_parser
    """
    from spmrl_bench.experiments.packaging import package_run

    folder, warnings = package_run(run, to, results=results, name=name, licence=licence)
    for warning in warnings:
        typer.echo(f"spmrl-bench: {warning}", err=True)
    typer.echo(folder)
