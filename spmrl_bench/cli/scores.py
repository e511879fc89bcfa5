"""Commands about scores of files."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from spmrl_bench.cli.app import app
from spmrl_bench.errors import SpmrlError


@app.command()
def score(
    gold: Annotated[Path, typer.Argument(help="Bracketed gold trees.")],
    test: Annotated[Path, typer.Argument(help="Bracketed parses of the same sentences.")],
    prm: Annotated[
        str,
        typer.Option(
            help="Parameter set (`COLLINS`, `new`, `nk`, `spmrl`, `spmrl_hebrew`), or an evalb "
            "parameter file."
        ),
    ] = "spmrl",
    program: Annotated[
        str | None,
        typer.Option(
            help="`EVALB` or `EVALB_SPMRL`: whose conventions a parameter file follows that "
            "does not say so itself."
        ),
    ] = None,
    missing_parse: Annotated[
        Literal["skip", "count"],
        typer.Option(
            help="A sentence without a parse: `skip` leaves it out, `count` counts all its gold "
            "brackets as missed (the option -X of EVALB_SPMRL)."
        ),
    ] = "skip",
    punctuation: Annotated[
        Literal["by-tag", "by-gold"],
        typer.Option(
            help="Where the parameter set removes punctuation: `by-tag` on each side by its own "
            "tags, as EVALB does; `by-gold` at the positions of gold's, so that a mistagged full "
            "stop loses no sentence."
        ),
    ] = "by-tag",
    strict: Annotated[
        bool, typer.Option("--strict", help="Fail if any sentence cannot be scored.")
    ] = False,
    encoding: Annotated[str, typer.Option(help="Encoding of both files.")] = "utf-8",
    format: Annotated[
        Literal["table", "json", "evalb"],
        typer.Option(
            help="How to print the scores; `evalb` is what EVALB or EVALB_SPMRL prints, byte for "
            "byte."
        ),
    ] = "table",
    official: Annotated[
        Path | None,
        typer.Option(
            metavar="PATH",
            help="Let this EVALB or EVALB_SPMRL binary count. Nothing is printed unless its whole "
            "output is sound.",
        ),
    ] = None,
    cross_check: Annotated[
        bool,
        typer.Option(
            "--cross-check",
            help="With --official: let our own scorer count too; fail at the first difference.",
        ),
    ] = False,
    allow_skipped: Annotated[
        bool,
        typer.Option(
            "--allow-skipped",
            help="With --official: accept a score without the sentences that the program leaves "
            "out.",
        ),
    ] = False,
) -> None:
    """Score a file of parses against gold trees, with the conventions of EVALB.

    Both files hold the same sentences in the same order. A sentence whose words differ is
    left out of every figure, and the report says so (in the format `evalb`, on standard error).

    Examples:

        spmrl-bench score gold.mrg parses.mrg

        spmrl-bench score gold.mrg parses.mrg --prm COLLINS --strict --format json

        spmrl-bench score gold.mrg parses.mrg --official ./evalb_spmrl --cross-check
    """
    import json

    from spmrl_bench.scoring import (
        PUBLISHED,
        MissingParse,
        Policy,
        Punctuation,
        load_prm,
        score_trees,
    )
    from spmrl_bench.scoring.evalb_format import as_evalb
    from spmrl_bench.scoring.files import read_sides
    from spmrl_bench.scoring.official import check_agreement, score_with_program
    from spmrl_bench.scoring.report import as_dict, as_text, left_out_text, require_all
    from spmrl_bench.scoring.signature import sign

    parameters = load_prm(prm, program)
    policy = Policy(MissingParse(missing_parse), Punctuation(punctuation))
    _check_official(official is not None, policy == PUBLISHED, cross_check, allow_skipped)
    gold_trees, test_trees = read_sides(gold, test, encoding=encoding)
    if official is None:
        counts, scorer = score_trees(gold_trees, test_trees, parameters, policy), "own"
    else:
        by_program = score_with_program(
            official, gold, test, parameters, allow_skipped=allow_skipped, encoding=encoding
        )
        if cross_check:
            check_agreement(by_program, score_trees(gold_trees, test_trees, parameters))
            typer.echo(
                f"{by_program.scorer} and our own scorer agree in every count of"
                f" {len(by_program.counts)} sentences",
                err=True,
            )
        counts, scorer = by_program.counts, by_program.scorer
    if strict:
        require_all(counts)
    signature = sign(counts, parameters, policy, scorer=scorer)
    if format == "evalb":
        typer.echo(as_evalb(gold_trees, test_trees, counts, parameters, policy), nl=False)
        typer.echo(f"{left_out_text(counts)}{signature.long()}", err=True)
    elif format == "json":
        report = as_dict(counts, parameters) | {"signature": signature.as_dict()}
        typer.echo(json.dumps(report, indent=2))
    else:
        typer.echo(f"{as_text(counts, parameters)}\n{signature.long()}")


def _check_official(official: bool, published: bool, cross_check: bool, allowed: bool) -> None:
    """Refuse options that mean nothing together."""
    if official and not published:
        raise SpmrlError(
            "--missing-parse count and --punctuation by-gold are for our own scorer; the official"
            " programs cannot do that (EVALB_SPMRL -X counts brackets that no tree has)"
        )
    for option, given in (("--cross-check", cross_check), ("--allow-skipped", allowed)):
        if given and not official:
            raise SpmrlError(f"{option} is about an official program; name one: --official PATH")
