"""Commands about scores of files."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from spmrl_bench.cli.app import app
from spmrl_bench.errors import SpmrlError

if TYPE_CHECKING:
    from spmrl_bench.scoring import BracketCounts
    from spmrl_bench.scoring.bracket_metric import BracketRules
    from spmrl_bench.scoring.signature import Signature
    from spmrl_bench.trees import Tree

#: What a report says on top: its key and value in JSON, and its lines for people.
Addition = tuple[str, object, str]

Gold = Annotated[Path, typer.Argument(help="Bracketed gold trees.")]
Test = Annotated[Path, typer.Argument(help="Bracketed parses of the same sentences.")]
Prm = Annotated[
    str,
    typer.Option(
        help="Parameter set (`COLLINS`, `new`, `nk`, `spmrl`, `spmrl_hebrew`), or an evalb "
        "parameter file."
    ),
]
ProgramName = Annotated[
    str | None,
    typer.Option(
        help="`EVALB` or `EVALB_SPMRL`: whose conventions a parameter file follows that "
        "does not say so itself. Default: EVALB's."
    ),
]
Missing = Annotated[
    Literal["skip", "count"],
    typer.Option(
        help="A sentence without a parse: `skip` leaves it out, `count` counts all its gold "
        "brackets as missed (the option -X of EVALB_SPMRL)."
    ),
]
Removed = Annotated[
    Literal["by-tag", "by-gold"] | None,
    typer.Option(
        help="Where the parameter set removes punctuation: `by-tag` on each side by its own "
        "tags, as EVALB does; `by-gold` at the positions of gold's, so that a mistagged full "
        "stop loses no sentence. Default: `by-tag`, or `by-gold` if one file has no tags (`XX`).",
        show_default=False,
    ),
]
Strict = Annotated[bool, typer.Option("--strict", help="Fail if any sentence cannot be scored.")]
By = Annotated[
    Literal["length", "label", "span"] | None,
    typer.Option(
        help="Break the score down: by sentence `length`, `label`, or length of the `span`; "
        "also says what it is without labels."
    ),
]
Intervals = Annotated[
    bool,
    typer.Option("--intervals", help="Add 95 % confidence intervals (bootstrap over sentences)."),
]
Encoding = Annotated[str, typer.Option(help="Encoding of both files.")]
Format = Annotated[
    Literal["table", "json", "evalb"],
    typer.Option(
        help="How to print the scores; `evalb` is what EVALB or EVALB_SPMRL prints, byte for byte."
    ),
]
Official = Annotated[
    Path | None,
    typer.Option(
        metavar="PATH",
        help="Let this EVALB or EVALB_SPMRL binary score the files too. Nothing is printed unless "
        "its output is, byte for byte, that of our own counts.",
    ),
]
AllowSkipped = Annotated[
    bool,
    typer.Option(
        "--allow-skipped",
        help="Accept a score that leaves out more than a twentieth of the sentences; with "
        "--official one that leaves out any.",
    ),
]


@app.command()
def score(
    gold: Gold,
    test: Test,
    prm: Prm = "spmrl",
    program: ProgramName = None,
    missing_parse: Missing = "skip",
    punctuation: Removed = None,
    strict: Strict = False,
    by: By = None,
    intervals: Intervals = False,
    encoding: Encoding = "utf-8",
    format: Format = "table",
    official: Official = None,
    allow_skipped: AllowSkipped = False,
) -> None:
    """Score a file of parses against gold trees, with the conventions of EVALB.

    Both files hold the same sentences in the same order. A sentence whose words differ is
    left out of every figure, and the report says so (in the format `evalb`, on standard error);
    where more than a twentieth of them are, the status is 1 unless you say `--allow-skipped`.

    Examples:

        spmrl-bench score gold.mrg parses.mrg

        spmrl-bench score gold.mrg parses.mrg --prm COLLINS --strict --format json

        spmrl-bench score gold.mrg parses.mrg --by label --intervals

        spmrl-bench score gold.mrg parses.mrg --official ./evalb_spmrl
    """
    from spmrl_bench.scoring import (
        PUBLISHED,
        MissingParse,
        Policy,
        Punctuation,
        load_prm,
        score_files,
        score_trees,
    )
    from spmrl_bench.scoring.bracket_metric import (
        BRACKETS,
        BracketRules,
        left_out_text,
        require_all,
        require_most,
    )
    from spmrl_bench.scoring.evalb_format import as_evalb
    from spmrl_bench.scoring.official import check_against_program
    from spmrl_bench.scoring.signature import sign
    from spmrl_bench.scoring.texts import read_sides
    from spmrl_bench.trees.tree import NO_TAG

    parameters = load_prm(prm, program)
    for note in parameters.notes:
        typer.echo(note, err=True)
    policy = Policy(MissingParse(missing_parse), Punctuation(punctuation or "by-tag"))
    if official is not None and policy != PUBLISHED:
        raise SpmrlError(
            "--missing-parse count and --punctuation by-gold are for our own scorer; the official"
            " programs cannot do that (EVALB_SPMRL -X counts brackets that no tree has)"
        )
    if format == "evalb" and (by is not None or intervals):
        raise SpmrlError("--by and --intervals are for the formats table and json")
    counts = score_files(gold, test, parameters, policy, encoding=encoding)
    sides = cache(partial(read_sides, gold, test, encoding=encoding))
    ours = official is None and format != "evalb"  # the C programs know tags only
    if counts.skipped and punctuation is None and ours and (side := _untagged(sides())):
        typer.echo(
            f"{side} has no tags ({NO_TAG}): punctuation is removed where gold has it "
            "(--punctuation by-gold)",
            err=True,
        )
        policy = Policy(MissingParse(missing_parse), Punctuation.BY_GOLD)
        counts = score_trees(*sides(), parameters, policy)
    rules = BracketRules(parameters, policy)
    if strict:
        require_all(counts)
    also = {}
    if official is not None:
        also["scorer"] = scorer = check_against_program(
            official,
            gold,
            test,
            counts,
            parameters,
            allow_skipped=allow_skipped,
            encoding=encoding,
        )
        agreed = f"{scorer} and our own scorer agree in every count of {len(counts)} sentences"
        typer.echo(agreed, err=True)
    signature = sign(BRACKETS, counts, rules, **also)
    for sentence, difference in _differences(counts, rules, sides):
        typer.echo(f"sentence {sentence}: {difference}", err=True)
    if format == "evalb":
        typer.echo(as_evalb(sides, counts, parameters, policy), nl=False)
        typer.echo(f"{left_out_text(counts)}{signature.long()}", err=True)
        if not allow_skipped:
            require_most(counts)
        return
    additions = [_intervals(counts)] if intervals else []
    if by is not None:
        additions.append(_parts(by, sides(), counts, rules))
    _print(counts, rules, additions, signature, as_json=format == "json")
    if not allow_skipped:
        require_most(counts)


def _untagged(sides: tuple[list[Tree], list[Tree]]) -> str:
    """The side of a corpus whose words have no tags, for people; empty if both have."""
    from spmrl_bench.trees.tree import NO_TAG

    for name, trees in zip(("gold", "the file of parses"), sides, strict=True):
        tags = {tag for tree in trees for tag in tree.tags}
        if tags == {NO_TAG}:
            return name
    return ""


def _differences(
    counts: BracketCounts, rules: BracketRules, sides: Callable[[], tuple[list[Tree], list[Tree]]]
) -> Iterator[tuple[int, str]]:
    """The first sentence left out because of its words, and because of their number: which word."""
    from spmrl_bench.scoring.counts import Status
    from spmrl_bench.scoring.evalb import first_difference

    for status in (Status.WORDS_UNMATCH, Status.LENGTH_UNMATCH):
        for k in counts.sentences_with(status)[:1].tolist():
            gold, test = sides()
            yield k + 1, first_difference(gold[k], test[k], rules.prm, rules.policy)


def _print(
    counts: BracketCounts,
    rules: BracketRules,
    additions: Sequence[Addition],
    signature: Signature,
    *,
    as_json: bool,
) -> None:
    import json

    from spmrl_bench.scoring.bracket_metric import BRACKETS

    if as_json:
        added = {name: value for name, value, _ in additions}
        report = BRACKETS.report_dict(counts, rules) | added | {"signature": signature.as_dict()}
        typer.echo(json.dumps(report, indent=2))
    else:
        added_text = "".join(text for *_, text in additions)
        typer.echo(f"{BRACKETS.report(counts, rules)}\n{added_text}{signature.long()}")


def _intervals(counts: BracketCounts) -> Addition:
    from spmrl_bench.scoring.bracket_metric import BRACKETS
    from spmrl_bench.scoring.significance import LEVEL, confidence_intervals

    ratios = [ratio for ratio in BRACKETS.ratios(counts) if ratio.value is not None]
    bounds = confidence_intervals(ratios) if ratios else []
    found = dict(zip((ratio.name for ratio in ratios), bounds, strict=True))
    shown = ", ".join(f"{name} {one.low:.2f} to {one.high:.2f}" for name, one in found.items())
    return (
        "intervals",
        {name: [one.low, one.high] for name, one in found.items()},
        f"{LEVEL:g} % confidence intervals: {shown or 'n/a'}\n\n",
    )


def _parts(
    kind: Literal["length", "label", "span"],
    sides: tuple[list[Tree], list[Tree]],
    counts: BracketCounts,
    rules: BracketRules,
) -> Addition:
    from tabulate import tabulate

    from spmrl_bench.scoring.bracket_metric import BRACKETS
    from spmrl_bench.trees.parse import Parse

    gold, test = ([Parse.of(tree) for tree in side] for side in sides)
    parts = BRACKETS.break_down(kind, counts, gold, test, rules)
    rows = [(part.name, *part.figures().values()) for part in parts]
    headings = (kind, *parts[0].figures())
    text = tabulate(rows, headers=headings, tablefmt="simple", floatfmt=".2f", missingval="n/a")
    values = [{"name": part.name, **part.figures()} for part in parts]
    return f"by_{kind}", values, f"{text}\n\n"
