"""Commands about scores of files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from spmrl_bench.cli.app import app
from spmrl_bench.errors import SpmrlError

if TYPE_CHECKING:
    from spmrl_bench.scoring.breakdown import Part
    from spmrl_bench.scoring.counts import BracketCounts


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
    by: Annotated[
        Literal["length", "label", "span"] | None,
        typer.Option(
            help="Break the score down: by sentence `length`, `label`, or length of the `span`; "
            "also says what it is without labels."
        ),
    ] = None,
    intervals: Annotated[
        bool,
        typer.Option(
            "--intervals", help="Add 95 % confidence intervals (bootstrap over sentences)."
        ),
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

        spmrl-bench score gold.mrg parses.mrg --by label --intervals

        spmrl-bench score gold.mrg parses.mrg --official ./evalb_spmrl --cross-check
    """
    import json

    from spmrl_bench.scoring import (
        PUBLISHED,
        MissingParse,
        Policy,
        Punctuation,
        load_prm,
        score_files,
    )
    from spmrl_bench.scoring.bracket_metric import BRACKETS, BracketRules
    from spmrl_bench.scoring.breakdown import break_down, tabulate_brackets
    from spmrl_bench.scoring.evalb_format import as_evalb, needs_trees
    from spmrl_bench.scoring.files import read_sides
    from spmrl_bench.scoring.official import check_agreement, score_with_program
    from spmrl_bench.scoring.report import as_dict, as_text, left_out_text, require_all
    from spmrl_bench.scoring.signature import sign

    parameters = load_prm(prm, program)
    policy = Policy(MissingParse(missing_parse), Punctuation(punctuation))
    _check_official(official is not None, policy == PUBLISHED, cross_check, allow_skipped)
    if by is not None and official is not None:
        raise SpmrlError("--by is for our own scorer; leave out --official")
    if format == "evalb" and (by is not None or intervals):
        raise SpmrlError("--by and --intervals are for the formats table and json")
    if official is None:
        counts, scorer = score_files(gold, test, parameters, policy, encoding=encoding), "own"
    else:
        by_program = score_with_program(
            official, gold, test, parameters, allow_skipped=allow_skipped, encoding=encoding
        )
        if cross_check:
            check_agreement(by_program, score_files(gold, test, parameters, encoding=encoding))
            typer.echo(
                f"{by_program.scorer} and our own scorer agree in every count of"
                f" {len(by_program.counts)} sentences",
                err=True,
            )
        counts, scorer = by_program.counts, by_program.scorer
    if strict:
        require_all(counts)
    rules = BracketRules(parameters, policy)
    signature = sign(BRACKETS, counts, rules, scorer=scorer)
    if format == "evalb":
        needed = needs_trees(counts, parameters)
        trees = read_sides(gold, test, encoding=encoding) if needed else ([], [])
        typer.echo(as_evalb(*trees, counts, parameters, policy), nl=False)
        typer.echo(f"{left_out_text(counts)}{signature.long()}", err=True)
        return
    details: dict[str, object] = {}
    lines = ""
    if intervals:
        details["intervals"], text = _intervals(counts)
        lines += text
    if by is not None:
        trees = read_sides(gold, test, encoding=encoding)
        table = tabulate_brackets(*trees, parameters, policy)
        details[f"by_{by}"], text = _parts(by, break_down(by, counts, table))
        lines += text
    if format == "json":
        report = as_dict(counts, parameters) | details | {"signature": signature.as_dict()}
        typer.echo(json.dumps(report, indent=2))
    else:
        typer.echo(f"{as_text(counts, parameters)}\n{lines}{signature.long()}")


def _intervals(counts: BracketCounts) -> tuple[dict[str, object], str]:
    """Confidence intervals for JSON, and as lines."""
    from spmrl_bench.scoring.bracket_metric import BRACKETS
    from spmrl_bench.scoring.significance import LEVEL, confidence_intervals

    ratios = [ratio for ratio in BRACKETS.ratios(counts) if ratio.value is not None]
    bounds = confidence_intervals(ratios) if ratios else []
    found = dict(zip((ratio.name for ratio in ratios), bounds, strict=True))
    shown = ", ".join(f"{name} {one.low:.2f} to {one.high:.2f}" for name, one in found.items())
    return (
        {name: [one.low, one.high] for name, one in found.items()},
        f"{LEVEL:g} % confidence intervals: {shown or 'n/a'}\n\n",
    )


def _parts(kind: str, parts: Sequence[Part]) -> tuple[list[dict[str, object]], str]:
    """The parts of a score for JSON, and as a table."""
    from tabulate import tabulate

    rows = [(part.name, *part.figures().values()) for part in parts]
    headings = (kind, *parts[0].figures())
    text = tabulate(rows, headers=headings, tablefmt="simple", floatfmt=".2f", missingval="n/a")
    return [{"name": part.name, **part.figures()} for part in parts], f"{text}\n\n"


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
