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
    from spmrl_bench.analysis.heads import Example, Measure
    from spmrl_bench.parsing.streams import Form

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
    number: Annotated[
        int | None,
        typer.Option(min=1, help="Trace this sentence of the split, the first of which is 1."),
    ] = None,
    sentence: Annotated[
        str | None,
        typer.Option(help="Trace this sentence: its words, separated by white space."),
    ] = None,
    tags: Annotated[
        str | None, typer.Option(help="Tags of the words, for a parser that reads them.")
    ] = None,
    gold: Annotated[
        str | None,
        typer.Option(help="Its gold tree in brackets, whose words do where no sentence is given."),
    ] = None,
    errors: Annotated[
        bool, typer.Option("--errors", help="Trace only spans whose label differs from gold.")
    ] = False,
    form: Annotated[
        str, typer.Option("--input", help="What a FILE holds: `tokens`, `brackets` or `conllu`.")
    ] = "tokens",
    measure: Annotated[
        str,
        typer.Option(
            help="What a contribution is: `norm`, the head's share of the span vector; `released`, "
            "as in the public code of Mrini et al.; `lead`, the head's part of the lead of the "
            "label over the runner-up."
        ),
    ] = "norm",
    category: Annotated[
        list[str] | None,
        typer.Option(
            help="Only this label, such as `NP` or the unary chain `S+VP`: bars in place of the "
            "heat map. May be repeated."
        ),
    ] = None,
    top: Annotated[int, typer.Option(min=1, help="Heads in each row, or of each span.")] = 4,
    output: Annotated[
        Path | None,
        typer.Option(
            help="File of a figure (.png, .svg or .pdf), or of all numbers, a row for each "
            "category and head (.csv)."
        ),
    ] = None,
    device: Device = "auto",
) -> None:
    """Show which heads of label attention are behind which labels.

    Over many sentences it prints for each predicted label the heads with the highest mean
    contribution, those that contribute the most to the most spans, and how often these are behind
    the gold spans that were missed (Mrini et al. 2020, sections 4.5 and 4.6). A figure shows all
    heads by all frequent labels, or of some labels the contribution of each head.

    One sentence is traced: for each span the predicted label, its score and its lead over the gold
    label or the runner-up, the heads that bring the most into it, their share of the span vector,
    their part of the lead, and the tokens that they look at.

    Examples:

        spmrl-bench model heads --model runs/NAME --treebank german-mini --output heads.png

        spmrl-bench model heads --model runs/NAME --treebank german-mini --category NP
        --measure lead --output bars.svg

        spmrl-bench model heads --model runs/NAME --sentence "The cat sat ."

        spmrl-bench model heads --model runs/NAME --treebank german-mini --number 17 --errors
    """
    if number is not None or sentence is not None or gold is not None:
        for name, value in (("a FILE", files), ("--category", category), ("--output", output)):
            if value:
                raise SpmrlError(f"{name}: for many sentences, but one sentence is to be traced")
        if treebank is not None:
            for name, value in (("sentence", sentence), ("gold", gold), ("tags", tags)):
                if value is not None:
                    raise SpmrlError(f"--treebank and --{name}: give one of the two")
            example = _numbered(treebank, split, number)
        else:
            for name, what in (("split", split), ("number", number)):
                if what is not None:
                    raise SpmrlError(f"--{name} {what}: of which treebank? Name it with --treebank")
            example = _example(sentence, tags, gold)
        _trace(model, example, errors, top, device)
        return
    if tags is not None or errors:
        raise SpmrlError("--tags and --errors are for one sentence: --sentence, --gold or --number")
    from spmrl_bench.analysis.drawing import check_format, load_matplotlib, write_file
    from spmrl_bench.analysis.heads import HEADINGS, MEASURES, head_contributions, table_rows
    from spmrl_bench.analysis.heads_figure import draw_categories, draw_heads
    from spmrl_bench.nn.device import prepare_process
    from spmrl_bench.parsing.models import load_parser
    from spmrl_bench.parsing.streams import FORMS

    check_choice("measure", measure, MEASURES)
    check_choice("input", form, FORMS)
    drawn = output is not None and output.suffix.lower() != ".csv"
    if drawn:
        check_format(cast("Path", output))
        load_matplotlib()
    examples = _examples(files or [], treebank, split, cast("Form", form))
    prepare_process(device)
    parser = load_parser(model, device)
    found = head_contributions(parser, examples, cast("Measure", measure))
    chosen = list(dict.fromkeys(category or []))
    rows = table_rows(found, chosen, top=top)
    figure = None
    if drawn:  # what cannot be drawn is said before anything is printed
        draw = draw_categories(found, chosen, model=str(model)) if chosen else None
        figure = draw or draw_heads(found, model=str(model))
    print_rows(HEADINGS, rows)
    if output is None:
        return
    if figure is not None:
        figure.save(output)
    else:
        write_file(output, found.frame().to_csv(index=False, lineterminator="\n").encode())
    typer.echo(f"spmrl-bench: {output} written", err=True)


def _trace(model: Path, example: Example, errors: bool, top: int, device: str) -> None:
    from spmrl_bench.analysis.heads import trace, trace_text
    from spmrl_bench.nn.device import prepare_process
    from spmrl_bench.parsing.models import load_parser

    if errors and example.gold is None:
        raise SpmrlError("--errors: what is wrong is known only with --gold or --treebank")
    prepare_process(device)
    found = trace(load_parser(model, device), example)
    typer.echo(trace_text(*found, errors=errors, top=top), nl=False)


def _examples(
    files: list[str], treebank: str | None, split: str | None, form: Form
) -> Iterator[Example]:
    """The sentences of files or of a treebank; what is missing is found at once."""
    from spmrl_bench.analysis.heads import Example
    from spmrl_bench.parsing.streams import check_readable, read_input

    if treebank is None and not files:
        raise SpmrlError("name a treebank (--treebank german-mini) or files of sentences")
    if treebank is None:
        if split is not None:
            raise SpmrlError(f"--split {split}: splits are those of a treebank; name --treebank")
        check_readable(files)
        given = read_input(files, form, sys.stdin.buffer)
        return (Example(each.words, each.tags) for each in given)
    if files:
        raise SpmrlError(f"--treebank {treebank} and the file {files[0]}: give one of the two")
    if form != "tokens":
        raise SpmrlError(f"--input {form}: that is of files, and --treebank {treebank} has none")
    return iter(_of_treebank(treebank, split))


def _of_treebank(treebank: str, split: str | None) -> list[Example]:
    """The sentences of a split, with their trees."""
    from spmrl_bench.analysis.heads import Example
    from spmrl_bench.treebanks.treebank import open_treebank

    examples = open_treebank(treebank).examples(split or "dev", ["constituents"])
    return [Example(each.words, each.tags, each.tree) for each in examples]


def _numbered(treebank: str, split: str | None, number: int | None) -> Example:
    assert number is not None
    sentences = _of_treebank(treebank, split)
    if number > len(sentences):
        raise SpmrlError(f"--number {number}: the split has {len(sentences):,} sentences")
    return sentences[number - 1]


def _example(sentence: str | None, tags: str | None, gold: str | None) -> Example:
    """The sentence of options, whose tree has no brackets without a label."""
    from spmrl_bench.analysis.heads import Example
    from spmrl_bench.readers.brackets import read_brackets
    from spmrl_bench.trees.tree import Tree

    own = None if tags is None else tags.split()
    if gold is None:
        if sentence is None:
            raise SpmrlError("give a --sentence, a --gold tree, or a --treebank and a --number")
        return Example(sentence.split(), own)
    trees = list(read_brackets(gold, path="--gold"))
    if len(trees) != 1:
        raise SpmrlError(f"--gold: found {len(trees)} trees, expected one in brackets")
    labelled = [row for row in trees[0].constituents() if row[2]]
    tree = Tree.build(trees[0].words, trees[0].tags, labelled)
    if sentence is not None and tuple(sentence.split()) != tree.words:
        raise SpmrlError("--gold: its words are not those of --sentence")
    return Example(tree.words, own or tree.tags, tree)
