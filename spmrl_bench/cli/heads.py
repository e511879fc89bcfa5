"""The commands that ask which heads of label attention are behind the labels."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from spmrl_bench.cli.app import model as group
from spmrl_bench.cli.options import Device, Model, check_choice, print_rows
from spmrl_bench.errors import SpmrlError

if TYPE_CHECKING:
    from spmrl_bench.analysis.head_contributions import Measure
    from spmrl_bench.analysis.head_scores import Span
    from spmrl_bench.analysis.head_trace import Rank
    from spmrl_bench.analysis.observed import Asked
    from spmrl_bench.parsing.streams import Form
    from spmrl_bench.trees.tree import Tree

TreebankName = Annotated[
    str | None, typer.Option(help="Treebank that has the sentences and their gold trees.")
]
Split = Annotated[
    str | None, typer.Option(help="`train`, `dev` or `test` of the treebank. Default: `dev`.")
]


@group.command()
def heads(
    model: Model,
    files: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[FILE]...",
            help="Sentences to parse, in place of a treebank's; `-` is standard input.",
            show_default=False,
        ),
    ] = None,
    treebank: TreebankName = None,
    split: Split = None,
    form: Annotated[
        str, typer.Option("--input", help="What a FILE holds: `tokens`, `brackets` or `conllu`.")
    ] = "tokens",
    measure: Annotated[
        str,
        typer.Option(
            help="What a contribution is: `norm`, the head's share of the span vector; `released`, "
            "as in the public code of Mrini et al.; `lead`, the head's part of the lead of the "
            "label over the runner-up; `without`, what the lead loses without the head (slow)."
        ),
    ] = "norm",
    category: Annotated[
        list[str] | None,
        typer.Option(
            help="Only this label, such as `NP` or the unary chain `S+VP`: bars in place of the "
            "heat map. May be repeated."
        ),
    ] = None,
    top: Annotated[int, typer.Option(min=1, help="Heads in each row of the table.")] = 4,
    output: Annotated[
        Path | None, typer.Option(help="File of a figure; .png, .svg or .pdf by its ending.")
    ] = None,
    csv: Annotated[
        Path | None, typer.Option(help="File of all numbers, a row for each category and head.")
    ] = None,
    device: Device = "auto",
) -> None:
    """Say which heads of label attention contribute to the spans of which label.

    Parses sentences with a parser that has label attention, and prints for each predicted label
    the heads with the highest mean contribution, those that contribute the most to the most
    spans, and how often these are behind the gold spans that were missed (Mrini et al. 2020,
    sections 4.5 and 4.6). A figure shows all heads by all frequent labels, or of some labels the
    contribution of each head.

    Examples:

        spmrl-bench heads --model runs/NAME --treebank german-mini --output heads.png

        spmrl-bench heads --model runs/NAME --treebank german-mini --category NP --category VP
        --measure lead --output bars.svg

        spmrl-bench heads --model runs/NAME sentences.txt --csv heads.csv
    """
    from spmrl_bench.analysis.drawing import check_format, load_matplotlib, write_file
    from spmrl_bench.analysis.head_contributions import MEASURES, head_contributions
    from spmrl_bench.analysis.head_picture import draw_categories, draw_heads
    from spmrl_bench.analysis.head_table import HEADINGS, table_rows
    from spmrl_bench.nn.device import prepare_process
    from spmrl_bench.parsing.models import load_parser
    from spmrl_bench.parsing.streams import FORMS

    check_choice("measure", measure, MEASURES)
    check_choice("input", form, FORMS)
    if output is not None:
        check_format(output)
        load_matplotlib()
    sentences = _sentences(files or [], treebank, split, cast("Form", form))
    prepare_process(device)
    parser = load_parser(model, device)
    found = head_contributions(parser, sentences, measure=cast("Measure", measure))
    chosen = list(dict.fromkeys(category or []))
    rows = table_rows(found, chosen, top=top)
    # What cannot be drawn is said before anything is written.
    sheet = None
    if output is not None:
        draw = draw_categories(found, chosen, model=str(model)) if chosen else None
        sheet = draw or draw_heads(found, model=str(model))
    print_rows(HEADINGS, rows)
    if csv is not None:
        write_file(csv, found.frame().to_csv(index=False, lineterminator="\n").encode())
        typer.echo(f"spmrl-bench: {csv} written", err=True)
    if sheet is not None and output is not None:
        sheet.save(output)
        typer.echo(f"spmrl-bench: {output} written", err=True)


@group.command()
def trace(
    model: Model,
    sentence: Annotated[
        str | None, typer.Option(help="The words of one sentence, separated by white space.")
    ] = None,
    tags: Annotated[
        str | None,
        typer.Option(help="Tags of the words, likewise, for a parser that reads them."),
    ] = None,
    gold: Annotated[
        str | None,
        typer.Option(help="The right tree in brackets; its words do where no sentence is given."),
    ] = None,
    treebank: TreebankName = None,
    split: Split = None,
    number: Annotated[
        int | None,
        typer.Option(
            min=1, help="Which sentence of the treebank's split, the first of which is 1."
        ),
    ] = None,
    span: Annotated[
        list[str] | None,
        typer.Option(
            metavar="START:END",
            help="Only this span, by its fenceposts: 0:1 is the first word. May be repeated. "
            "Default: all constituents.",
        ),
    ] = None,
    errors: Annotated[
        bool, typer.Option("--errors", help="Only spans whose label differs from gold.")
    ] = False,
    top: Annotated[int, typer.Option(min=1, help="Heads of each span.")] = 5,
    by: Annotated[
        str,
        typer.Option(
            help="What heads are ranked by: `lead`, their parts of the lead of the label over its "
            "rival; `without`, what the lead loses without them; `norm`, their share of the span "
            "vector."
        ),
    ] = "lead",
    output: Annotated[
        Path | None, typer.Option(help="File of a figure; .png, .svg or .pdf by its ending.")
    ] = None,
    device: Device = "auto",
) -> None:
    """Trace labels of one sentence back to heads of label attention, and to what these looked at.

    For each span it prints the label that a parser predicts, its score and its lead over its rival
    (the gold label where that is another one, else the runner-up), and the heads behind it: their
    share in the span vector, their part of the lead, how much of the lead is gone without them,
    and the tokens that they look at the most.

    Examples:

        spmrl-bench trace --model runs/NAME --sentence "The cat sat ." --span 0:2

        spmrl-bench trace --model runs/NAME --gold "(S (NP (DT The) (NN cat)) (VP (VBD sat)))"

        spmrl-bench trace --model runs/NAME --treebank german-mini --number 17 --errors
        --output trace.png
    """
    from spmrl_bench.analysis.drawing import check_format, load_matplotlib
    from spmrl_bench.analysis.head_trace import RANKS, trace_text
    from spmrl_bench.analysis.head_trace import trace as traced
    from spmrl_bench.analysis.trace_picture import draw_trace
    from spmrl_bench.nn.device import prepare_process
    from spmrl_bench.parsing.models import load_parser

    check_choice("by", by, RANKS)
    if output is not None:
        check_format(output)
        load_matplotlib()
    spans = [_span(text) for text in span] if span else None
    words, own_tags, tree = _asked(sentence, tags, gold, treebank, split, number)
    if errors and tree is None:
        raise SpmrlError("--errors: what is wrong is known only with --gold or --treebank")
    prepare_process(device)
    found = traced(load_parser(model, device), words, own_tags, gold=tree, spans=spans)
    if errors:
        found = found.errors()
    rank = cast("Rank", by)
    sheet = None
    if output is not None and found.spans:
        sheet = draw_trace(found, model=str(model), top=top, by=rank)
    typer.echo(trace_text(found, top=top, by=rank), nl=False)
    if sheet is not None and output is not None:
        sheet.save(output)
        typer.echo(f"spmrl-bench: {output} written", err=True)
    elif output is not None:
        typer.echo(f"spmrl-bench: no span to draw, {output} not written", err=True)


def _sentences(
    files: list[str], treebank: str | None, split: str | None, form: Form
) -> Iterator[Asked]:
    """The sentences of files or of a treebank; what is missing is found at once."""
    from spmrl_bench.parsing.streams import check_readable, read_input

    if treebank is None and not files:
        raise SpmrlError("name a treebank (--treebank german-mini) or files of sentences")
    if treebank is None:
        if split is not None:
            raise SpmrlError(f"--split {split}: splits are those of a treebank; name --treebank")
        check_readable(files)
        given = read_input(files, form, sys.stdin.buffer)
        from spmrl_bench.analysis.observed import Asked

        return (Asked(each.words, each.tags) for each in given)
    if files:
        raise SpmrlError(f"--treebank {treebank} and the file {files[0]}: give one of the two")
    return iter(_of_treebank(treebank, split))


def _of_treebank(treebank: str, split: str | None) -> list[Asked]:
    """The sentences of a split, with their trees."""
    from spmrl_bench.analysis.observed import Asked
    from spmrl_bench.treebanks.treebank import open_treebank

    examples = open_treebank(treebank).examples(split or "dev", ["constituents"])
    return [Asked(each.words, each.tags, each.tree) for each in examples]


def _asked(
    sentence: str | None,
    tags: str | None,
    gold: str | None,
    treebank: str | None,
    split: str | None,
    number: int | None,
) -> Asked:
    """The sentence to trace, from where it was given."""
    from spmrl_bench.analysis.observed import Asked

    own_tags = None if tags is None else tags.split()
    if treebank is not None:
        for name, value in (("sentence", sentence), ("gold", gold), ("tags", tags)):
            if value is not None:
                raise SpmrlError(f"--treebank and --{name}: give one of the two")
        if number is None:
            raise SpmrlError(f"--treebank {treebank}: say which sentence, such as --number 17")
        sentences = _of_treebank(treebank, split)
        if number > len(sentences):
            raise SpmrlError(f"--number {number}: the split has {len(sentences):,} sentences")
        return sentences[number - 1]
    for name, what in (("split", split), ("number", number)):
        if what is not None:
            raise SpmrlError(f"--{name} {what}: of which treebank? Name it with --treebank")
    tree = None if gold is None else _tree(gold)
    if sentence is not None:
        return Asked(sentence.split(), own_tags or (tree.tags if tree else None), tree)
    if tree is None:
        raise SpmrlError("give a --sentence, a --gold tree, or a --treebank and a --number")
    return Asked(tree.words, own_tags or tree.tags, tree)


def _tree(text: str) -> Tree:
    """The one tree of an option, without brackets that have no label."""
    from spmrl_bench.readers.brackets import read_brackets
    from spmrl_bench.trees.tree import Tree

    trees = list(read_brackets(text, path="--gold"))
    if len(trees) != 1:
        raise SpmrlError(f"--gold: found {len(trees)} trees, expected one in brackets")
    labelled = [row for row in trees[0].constituents() if row[2]]
    return Tree.build(trees[0].words, trees[0].tags, labelled)


def _span(text: str) -> Span:
    """Fenceposts from ``2:5``."""
    start, colon, end = text.partition(":")
    if not (colon and start.isdecimal() and end.isdecimal()):
        raise SpmrlError(f"--span {text}: expected START:END, such as 2:5 for the words 3 to 5")
    return int(start), int(end)
