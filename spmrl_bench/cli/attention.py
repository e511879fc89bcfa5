"""The command that shows what a parser looks at."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from spmrl_bench.cli.app import model as group
from spmrl_bench.cli.options import Device, Model
from spmrl_bench.errors import SpmrlError


@group.command()
def attention(
    model: Model,
    sentence: Annotated[
        str, typer.Option(help="The words of one sentence, separated by white space.")
    ],
    output: Annotated[
        Path, typer.Option(help="File of the figure; its ending says which: .png, .svg or .pdf.")
    ],
    tags: Annotated[
        str | None,
        typer.Option(help="Tags of the words, likewise, for a parser that reads them."),
    ] = None,
    layer: Annotated[
        list[int] | None,
        typer.Option(min=0, help="Only this layer, the first of which is 0; may be repeated."),
    ] = None,
    head: Annotated[
        list[int] | None,
        typer.Option(
            min=0,
            help="Only this head of the encoder, the first of which is 0; may be repeated.",
        ),
    ] = None,
    device: Device = "auto",
) -> None:
    """Draw the attention weights of a trained parser for one sentence.

    For a self-attentive encoder: one panel for each layer and head; rows are queries, columns are
    keys. A parser whose encoder keeps content and position apart also shows what each head would
    look at by the content or the position alone.

    For a transition parser: one picture for each layer of attention, with a row for each action of
    the parse that it finds. It shows how much the layer takes of each word before the action,
    which words are on the stack at that moment, wait or have been removed, and the arc that the
    action makes.

    Examples:

        spmrl-bench attention --model runs/NAME --sentence "The cat sat ." --output map.png

        spmrl-bench attention --model runs/NAME --sentence "The cat sat ." --layer 3 --head 2
        --output map.svg
    """
    from spmrl_bench.analysis.attention import draw_actions, draw_heads_of
    from spmrl_bench.analysis.drawing import check_format, load_matplotlib
    from spmrl_bench.nn.device import prepare_process
    from spmrl_bench.parsers.base import Parser
    from spmrl_bench.parsing.models import load_parser

    check_format(output)
    load_matplotlib()
    words, given = sentence.split(), None if tags is None else tags.split()
    prepare_process(device)
    parser = load_parser(model, device)
    if type(parser).derivation is not Parser.derivation:
        if head:
            raise SpmrlError(
                f"--head {head[0]}: the attention before actions has layers, but no heads"
            )
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
    typer.echo(f"spmrl-bench: {output} written", err=True)


def _chosen(what: str, numbers: list[int] | None, count: int) -> list[int]:
    """The layers or heads to show."""
    if count == 0:
        raise SpmrlError(f"the parser has no {what}s")
    for number in numbers or []:
        if number >= count:
            raise SpmrlError(f"--{what} {number}: the parser's {what}s are 0 to {count - 1}")
    return sorted(set(numbers)) if numbers else list(range(count))
