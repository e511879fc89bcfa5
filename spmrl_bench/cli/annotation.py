"""The commands that look for errors in the annotation of a treebank."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from spmrl_bench.cli.app import treebanks as group
from spmrl_bench.cli.options import Device, check_choice
from spmrl_bench.errors import SpmrlError

if TYPE_CHECKING:
    from spmrl_bench.annotation.differences import Disagreement, Order
    from spmrl_bench.annotation.listing import Heading
    from spmrl_bench.annotation.treebank_variation import Annotation, Units
    from spmrl_bench.treebanks.reading import SentencePlace
    from spmrl_bench.treebanks.treebank import Treebank
    from spmrl_bench.trees.parse import Layer

Worst = Annotated[int, typer.Option(min=1, help="Sentences that are listed.")]
Output = Annotated[
    Path | None,
    typer.Option(
        help="File to write instead: .txt is the list, .html a page, .csv a table.",
        show_default=False,
    ),
]
Split = Annotated[
    str | None,
    typer.Option(help="`train`, `dev`, or `test` if you want to look into it.", show_default=False),
]


@group.command()
def disagreements(
    what: Annotated[
        str,
        typer.Argument(
            metavar="RUN",
            help="A run folder of `train`.",
        ),
    ],
    treebank: Annotated[
        str | None,
        typer.Option(help="Treebank whose sentences are looked at. Default: that of the run."),
    ] = None,
    split: Split = None,
    worst: Worst = 50,
    by: Annotated[
        str,
        typer.Option(
            help="What comes first: `margin`, the decision against gold of which the parser is "
            "surest; `suspicion`, the same, but less the more else differs; `mean`, `total`, the "
            "mean or the sum of the margins of a sentence; `differences`, `share`, the number of "
            "decisions that differ, or their share."
        ),
    ] = "suspicion",
    layer: Annotated[
        str | None,
        typer.Option(help="Only `constituents` or `dependencies`, of a parser that finds both."),
    ] = None,
    output: Output = None,
    device: Device = "auto",
) -> None:
    """List the sentences where a trained parser is surest that the annotation is wrong.

    Each constituent, or each head and relation, on which gold and parser differ has a margin: what
    the parser would give up to decide as gold does. The default order looks at the largest margin
    of a sentence; it finds errors far better than the number of differences, most of which are
    the parser's own. A parser has learnt the errors that it was trained on; look at others.

    Examples:

        spmrl-bench disagreements runs/german-mini/small-charlstm-seed1 --worst 20

        spmrl-bench disagreements runs/NAME --output errors.html
    """
    from spmrl_bench.annotation.differences import ORDERS, ranked
    from spmrl_bench.annotation.disagreement_list import as_page, as_table, as_text
    from spmrl_bench.annotation.listing import check_ending
    from spmrl_bench.trees.parse import LAYERS

    check_choice("by", by, ORDERS)
    if layer is not None:
        check_choice("layer", layer, LAYERS)
    if output is not None:
        check_ending(output)
    heading, found = _of_run(Path(what), treebank, split or "dev", device)
    kept = ranked(found, cast("Order", by), cast("Layer | None", layer))
    if layer is not None and found and not kept:
        raise SpmrlError(f"--layer {layer}: the parser finds none, or they do not differ")
    width = shutil.get_terminal_size((100, 24)).columns
    _give(
        heading,
        kept[:worst],
        output,
        {
            "text": lambda: as_text(heading, kept[:worst], width if output is None else 120),
            "page": lambda: as_page(heading, kept[:worst]),
            "table": lambda: as_table(heading, kept[:worst]),
        },
    )


def _of_run(
    run: Path, treebank: str | None, split: str, device: str
) -> tuple[Heading, list[Disagreement]]:
    """The sentences of a split on which the best parser of a run and gold differ."""
    from spmrl_bench.annotation.differences import disagreements as compared
    from spmrl_bench.experiments.evaluation import check_lengths
    from spmrl_bench.experiments.run_folder import read_config
    from spmrl_bench.nn.device import prepare_process
    from spmrl_bench.parsers.registry import kind_named
    from spmrl_bench.parsing.models import load_parser

    if not run.is_dir():
        raise SpmrlError(
            f"{run}: no such run folder. 'spmrl-bench train' makes one, runs/TREEBANK/NAME"
        )
    name = treebank or read_config(run / "run.json").treebank
    bank = _open(name, split)
    prepare_process(device)
    parser = load_parser(run, device)
    examples = bank.examples(split, kind_named(parser.kind).layers)
    check_lengths(parser, bank, split, examples)
    found = list(compared(parser, examples))
    heading = _heading(bank, split, str(run), len(found), bank.places(split))
    if split == "train":
        typer.echo(
            "spmrl-bench: a parser has learnt the errors in its own training sentences",
            err=True,
        )
    return heading, found


def _open(name: str, split: str) -> Treebank:
    """The treebank; its test split is closed unless it was asked for by its name."""
    from spmrl_bench.treebanks.treebank import open_treebank

    bank = open_treebank(name)
    return bank if split == "test" else bank.without_test()


def _heading(
    bank: Treebank, split: str, parser: str, differing: int, origins: Sequence[SentencePlace]
) -> Heading:
    from spmrl_bench.annotation.listing import Heading

    sentences = len(bank.data(split).sentences)
    return Heading(
        f"Where {bank.name}, {split}, and a parser disagree",
        (
            f"Parser: {parser}. It differs from gold on {differing:,} of {sentences:,} sentences.",
            "A margin is what the parser would give up to decide as gold does: a difference of "
            "scores for constituents, the logarithm of odds for words.",
        ),
        bank.name,
        split,
        origins,
    )


@group.command()
def variation(
    treebank: Annotated[str, typer.Argument(metavar="TREEBANK", help="Name of a treebank.")],
    split: Split = None,
    of: Annotated[
        str | None,
        typer.Option(
            help="What is compared: `constituents`, `dependencies` or `tags`. Default: the first "
            "layer of the treebank.",
            show_default=False,
        ),
    ] = None,
    nucleus: Annotated[
        str,
        typer.Option(help="Whether the same `words` are looked for, or the same `tags`."),
    ] = "words",
    context: Annotated[
        str,
        typer.Option(help="Whether what stands around them is the same by `words` or by `tags`."),
    ] = "words",
    min_length: Annotated[
        int,
        typer.Option(min=1, help="Words of a stretch, those around it that are the same included."),
    ] = 3,
    fringe: Annotated[
        bool,
        typer.Option(
            "--fringe",
            help="Also where no word is the same on one side: many more, few of them wrong.",
        ),
    ] = False,
    worst: Worst = 50,
    output: Output = None,
) -> None:
    """List places that are annotated otherwise than the same words elsewhere.

    Needs no parser. A stretch of words that is a constituent here and none, or another one, there
    is ambiguous or wrong somewhere; the more words around it are the same, and the fewer places
    are annotated as this one, the likelier it is wrong here (Dickinson & Meurers 2003; Boyd,
    Dickinson & Meurers 2008 for dependencies). In a small treebank few words occur twice in the
    same context: try --context tags, then --nucleus tags as well.

    Examples:

        spmrl-bench variation english-wsj-sample --worst 20

        spmrl-bench variation french-sequoia --of dependencies --context tags --output list.html
    """
    from spmrl_bench.annotation.listing import Heading, check_ending
    from spmrl_bench.annotation.treebank_variation import ANNOTATIONS, UNITS, layer_of, suspects
    from spmrl_bench.annotation.variation_list import as_page, as_table, as_text

    for option, value in (("nucleus", nucleus), ("context", context)):
        check_choice(option, value, UNITS)
    if of is not None:
        check_choice("of", of, ANNOTATIONS)
    if output is not None:
        check_ending(output)
    split = split or "train"
    bank = _open(treebank, split)
    annotation = cast("Annotation", of or bank.layers[0])
    if annotation == "tags" and nucleus == "tags":
        raise SpmrlError("--of tags --nucleus tags: equal tags are equal; look for equal words")
    sentences = bank.examples(split, [layer_of(annotation, bank.layers)])
    found = suspects(
        sentences,
        annotation,
        nucleus=cast("Units", nucleus),
        context=cast("Units", context),
        min_length=min_length,
        fringe=fringe,
    )
    places = sum(len(each.suspicions) for each in found)
    heading = Heading(
        f"Variation in the {annotation} of {bank.name}, {split}",
        (
            f"{places:,} places in {len(found):,} of {len(sentences):,} sentences are annotated "
            f"otherwise than the same {nucleus} elsewhere, with the same {context} around them.",
        ),
        bank.name,
        split,
        bank.places(split),
    )
    words, kept = [each.words for each in sentences], found[:worst]
    _give(
        heading,
        kept,
        output,
        {
            "text": lambda: as_text(heading, kept, words),
            "page": lambda: as_page(heading, kept, words),
            "table": lambda: as_table(heading, kept, words),
        },
    )


def _give(heading: Heading, listed: list, output: Path | None, forms: dict) -> None:
    """Print the list, or write it into a file and say so."""
    from spmrl_bench.annotation.listing import write_list

    if output is None:
        typer.echo(forms["text"](), nl=False)
        return
    write_list(output, forms)
    for line in (heading.title, *heading.notes):
        typer.echo(line, err=True)
    number = f"{len(listed):,} sentence{'s' * (len(listed) != 1)}"
    typer.echo(f"spmrl-bench: {output} written, {number}", err=True)
