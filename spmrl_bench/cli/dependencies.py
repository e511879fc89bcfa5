"""Commands about dependency trees."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from spmrl_bench.cli.app import app


@app.command("score-dependencies")
def score_dependencies(
    gold: Annotated[Path, typer.Argument(help="Gold trees, CoNLL-U or CoNLL-X.")],
    test: Annotated[Path, typer.Argument(help="Parses of the same sentences, likewise.")],
    punctuation: Annotated[
        str,
        typer.Option(
            help="`none`: score every word. `ptb-ctb`: also without the words whose gold tag is "
            "one of . , : \\`\\` '' PU. `unicode`: also without the words made of Unicode "
            "punctuation only."
        ),
    ] = "none",
    tags: Annotated[
        Literal["xpos", "upos"],
        typer.Option(
            help="Column of the gold tags that `ptb-ctb` looks at: `xpos` is column 5 (XPOS, "
            "POSTAG), `upos` column 4 (UPOS, CPOSTAG)."
        ),
    ] = "xpos",
    relations: Annotated[
        Literal["whole", "universal", "none"],
        typer.Option(
            help="`universal` cuts subtypes off (nsubj:pass is nsubj); `none` scores heads alone."
        ),
    ] = "whole",
    roots: Annotated[
        Literal["one", "several"],
        typer.Option(help="Whether sentences with several roots, as in some CoNLL-X, are allowed."),
    ] = "one",
    encoding: Annotated[str, typer.Option(help="Encoding of both files.")] = "utf-8",
    format: Annotated[
        Literal["table", "json"], typer.Option(help="How to print the scores.")
    ] = "table",
) -> None:
    """Score a file of dependency parses against gold trees: UAS, LAS and complete match.

    Both files hold the same words in the same order. Every sentence must be a tree; the first
    that is not is reported with its line, and there is no score.

    Examples:

        spmrl-bench score-dependencies gold.conllu parses.conllu

        spmrl-bench score-dependencies gold.conllx parses.conllx --punctuation ptb-ctb
    """
    import json

    from spmrl_bench.scoring.attachment import (
        ATTACHMENT,
        AttachmentRules,
        score_dependency_files,
    )
    from spmrl_bench.scoring.signature import sign

    rules = AttachmentRules(punctuation, tags, relations, roots)
    counts = score_dependency_files(gold, test, rules, encoding=encoding)
    signature = sign(ATTACHMENT, counts, rules)
    if format == "json":
        report = ATTACHMENT.report_dict(counts, rules) | {"signature": signature.as_dict()}
        typer.echo(json.dumps(report, indent=2))
    else:
        typer.echo(f"{ATTACHMENT.report(counts, rules)}\n{signature.long()}")
