"""Commands about scores of files."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from spmrl_bench.cli.app import app


@app.command()
def score(
    gold: Annotated[Path, typer.Argument(help="Bracketed gold trees.")],
    test: Annotated[Path, typer.Argument(help="Bracketed parses of the same sentences.")],
    prm: Annotated[
        str,
        typer.Option(help="Parameter set (`spmrl`, `COLLINS`), or an evalb parameter file."),
    ] = "spmrl",
    program: Annotated[
        str | None,
        typer.Option(
            help="`EVALB` or `EVALB_SPMRL`: whose conventions a parameter file follows that "
            "does not say so itself."
        ),
    ] = None,
    encoding: Annotated[str, typer.Option(help="Encoding of both files.")] = "utf-8",
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")] = False,
) -> None:
    """Score a file of parses against gold trees, with the conventions of EVALB.

    Both files hold the same sentences in the same order. A sentence whose words differ is
    left out of every figure, and the report says so.

    Examples:

        spmrl-bench score gold.mrg parses.mrg

        spmrl-bench score gold.mrg parses.mrg --prm COLLINS --json
    """
    import json

    from spmrl_bench.scoring import load_prm, score_files
    from spmrl_bench.scoring.report import as_dict, as_text
    from spmrl_bench.scoring.signature import sign

    parameters = load_prm(prm, program)
    counts = score_files(gold, test, parameters, encoding=encoding)
    signature = sign(counts, parameters)
    if as_json:
        report = as_dict(counts, parameters) | {"signature": signature.as_dict()}
        typer.echo(json.dumps(report, indent=2))
    else:
        typer.echo(f"{as_text(counts, parameters)}\n{signature.long()}")
