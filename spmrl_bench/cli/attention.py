"""The command that shows what a parser's heads look at."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from spmrl_bench.cli.app import app
from spmrl_bench.cli.options import Device, Model, check_choice
from spmrl_bench.errors import SpmrlError


@app.command()
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
        typer.Option(min=0, help="Only this head, the first of which is 0; may be repeated."),
    ] = None,
    part: Annotated[
        str | None,
        typer.Option(
            help="Only the weights of the `content`, of the `position`, or `combined` ones, which "
            "the parser uses. Default: all that the parser has."
        ),
    ] = None,
    device: Device = "auto",
) -> None:
    """Draw the attention weights of a trained parser for one sentence.

    One small picture for each layer and head shows how much each token takes of each other one;
    START and STOP wrap the sentence. A parser whose encoder keeps content and position apart
    also shows what each head would look at by the content or the position alone.

    Examples:

        spmrl-bench attention --model runs/NAME --sentence "The cat sat ." --output map.png

        spmrl-bench attention --model runs/NAME --sentence "The cat sat ." --layer 3 --head 2
        --output map.svg
    """
    from spmrl_bench.analysis.attention_maps import PARTS, attention_maps, parts_of
    from spmrl_bench.analysis.attention_picture import draw_attention
    from spmrl_bench.analysis.drawing import check_format, load_matplotlib
    from spmrl_bench.parsers.registry import load_parser

    if part is not None:
        check_choice("part", part, PARTS)
    check_format(output)
    load_matplotlib()
    words, given = sentence.split(), None if tags is None else tags.split()
    parser = load_parser(model, device)
    parts = parts_of(parser) if part is None else (part,)
    maps = {
        one: attention_maps(parser, words, given, part=one).numpy()  # type: ignore[arg-type]
        for one in parts
    }
    count, width = maps[parts[0]].shape[:2]
    layers, heads = _chosen("layer", layer, count), _chosen("head", head, width)
    sheet = draw_attention(maps, words, layers=layers, heads=heads, model=str(model))  # type: ignore[arg-type]
    sheet.save(output)
    typer.echo(f"spmrl-bench: {output} written", err=True)


def _chosen(what: str, numbers: list[int] | None, count: int) -> list[int]:
    """The layers or heads to show."""
    if count == 0:
        raise SpmrlError(f"the parser has no {what}s")
    for number in numbers or []:
        if number >= count:
            raise SpmrlError(f"--{what} {number}: the parser's {what}s are 0 to {count - 1}")
    return sorted(set(numbers)) if numbers else list(range(count))
