"""The command that looks for errors in the annotation of a treebank."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from spmrl_bench.cli.app import treebanks as group
from spmrl_bench.cli.options import Device, check_choice
from spmrl_bench.errors import SpmrlError

if TYPE_CHECKING:
    from spmrl_bench.analysis.suspect_lists import Item
    from spmrl_bench.analysis.variation import Annotation, Context
    from spmrl_bench.treebanks.treebank import Treebank

_OF = ("constituents", "dependencies", "tags")


@group.command()
def suspects(
    treebank: Annotated[str, typer.Argument(metavar="NAME", help="A treebank.")],
    model: Annotated[
        Path | None,
        typer.Option(
            metavar="RUN",
            help="A run folder of `train`. Without it the treebank is compared with itself.",
            show_default=False,
        ),
    ] = None,
    split: Annotated[
        str | None,
        typer.Option(
            help="`train`, `dev`, or `test` if you want to look into it. Default: `dev` with a "
            "model, else `train`.",
            show_default=False,
        ),
    ] = None,
    of: Annotated[
        str | None,
        typer.Option(
            help="Only `constituents`, `dependencies` or `tags`. Default: all that the model "
            "finds; without one the first layer of the treebank.",
            show_default=False,
        ),
    ] = None,
    context: Annotated[
        str,
        typer.Option(
            help="Without a model: what has to be the same, the `words`, of those around only the "
            "`tags`, or everywhere `only-tags`."
        ),
    ] = "words",
    worst: Annotated[int, typer.Option(min=1, help="Sentences that are listed.")] = 50,
    output: Annotated[
        Path | None,
        typer.Option(
            help="File to write instead: .txt is the list, .html a page, .csv a table.",
            show_default=False,
        ),
    ] = None,
    device: Device = "auto",
) -> None:
    """List the sentences whose annotation is most likely wrong, by a parser or by the treebank.

    With a model: each constituent, or each head and relation, on which gold and parser differ has a
    margin, what the parser would give up to decide as gold does. The largest margin of a sentence
    counts, less the more else differs. A parser has learnt the errors that it was trained on.

    Without: words that are annotated otherwise than the same words elsewhere are ambiguous or
    wrong; the more words around them are the same, and the fewer places are annotated as this
    one, the likelier it is wrong here (Dickinson & Meurers 2003; Boyd, Dickinson & Meurers 2008
    for dependencies). In a small treebank few words occur twice in the same context: try
    --context tags.

    Examples:

        spmrl-bench treebanks suspects english-wsj-sample --worst 20

        spmrl-bench treebanks suspects french-sequoia --context tags --output list.html

        spmrl-bench treebanks suspects german-mini --model runs/german-mini/small-charlstm-seed1
    """
    from spmrl_bench.analysis.drawing import write_file
    from spmrl_bench.analysis.suspect_lists import SuspectList, check_ending
    from spmrl_bench.analysis.variation import CONTEXTS
    from spmrl_bench.treebanks.treebank import open_treebank

    check_choice("context", context, CONTEXTS)
    if of is not None:
        check_choice("of", of, _OF)
    if output is not None:
        check_ending(output)
    bank = open_treebank(treebank)
    split = split or ("dev" if model else "train")
    if split != "test":
        bank = bank.without_test()
    if model is None:
        title, note, found = _by_variation(bank, split, of, cast("Context", context))
    else:
        title, note, found = _by_parser(bank, split, of, model, device)
    listed = SuspectList(title, note, bank.name, split, bank.places(split), found[:worst])
    if output is None:
        typer.echo(listed.text(), nl=False)
        return
    write_file(output, check_ending(output)(listed).encode())
    for line in (title, *note, f"spmrl-bench: {output} written, {len(listed.items):,} sentences"):
        typer.echo(line, err=True)


def _by_parser(
    bank: Treebank, split: str, of: str | None, run: Path, device: str
) -> tuple[str, list[str], list[Item]]:
    from spmrl_bench.analysis.suspect_lists import disagreement_item
    from spmrl_bench.analysis.suspects import disagreements
    from spmrl_bench.experiments.evaluation import check_lengths
    from spmrl_bench.nn.device import prepare_process
    from spmrl_bench.parsers.registry import kind_named
    from spmrl_bench.parsing.models import load_parser

    if not run.is_dir():
        raise SpmrlError(
            f"{run}: no such run folder. 'spmrl-bench train' makes one, runs/TREEBANK/NAME"
        )
    prepare_process(device)
    parser = load_parser(run, device)
    layers = kind_named(parser.kind).layers
    if of is not None and of not in layers:
        raise SpmrlError(f"--of {of}: the parser finds {' and '.join(layers)} only")
    examples = bank.examples(split, layers)
    check_lengths(parser, bank, split, examples)
    found = disagreements(parser, examples, of)
    if split == "train":
        typer.echo("spmrl-bench: a parser has learnt the errors that it was trained on", err=True)
    notes = [
        f"Parser: {run}. It differs from gold on {len(found):,} of {len(examples):,} sentences.",
        "A margin is what the parser would give up to decide as gold does: a difference of "
        "scores for constituents, the logarithm of odds for words.",
    ]
    title = f"Where {bank.name}, {split}, and a parser disagree"
    return title, notes, [disagreement_item(one) for one in found]


def _by_variation(
    bank: Treebank, split: str, of: str | None, context: Context
) -> tuple[str, list[str], list[Item]]:
    from spmrl_bench.analysis.suspect_lists import variation_item
    from spmrl_bench.analysis.variation import variation

    annotation = cast("Annotation", of or bank.layers[0])
    if annotation == "tags" and context == "only-tags":
        raise SpmrlError("--of tags --context only-tags: equal tags are equal; compare words")
    if annotation not in ("tags", *bank.layers):
        raise SpmrlError(f"--of {of}: the treebank has {' and '.join(bank.layers)} only")
    sentences = bank.examples(
        split, [layer for layer in bank.layers if layer == annotation] or bank.layers[:1]
    )
    found = variation(sentences, annotation, context)
    note = (
        f"{sum(map(len, found)):,} places in {len(found):,} of {len(sentences):,} sentences are "
        "annotated otherwise than the same words or tags elsewhere."
    )
    words = [each.words for each in sentences]
    title = f"Variation in the {annotation} of {bank.name}, {split}"
    return title, [note], [variation_item(own, words) for own in found]
