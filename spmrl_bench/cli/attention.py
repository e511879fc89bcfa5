"""The command that shows what a parser looks at."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from spmrl_bench.cli.app import model as group
from spmrl_bench.cli.options import Device, Model, check_choice
from spmrl_bench.errors import SpmrlError

if TYPE_CHECKING:
    from spmrl_bench.analysis.drawing import Sheet
    from spmrl_bench.nn.encoders import Part
    from spmrl_bench.parsers.base import Parser


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
    of: Annotated[
        str | None,
        typer.Option(
            help="Whose attention: of the `encoder`, or of a transition parser's decoder before "
            "each of its `actions`. Default: `actions` where the parser writes actions, else "
            "`encoder`.",
            show_default=False,
        ),
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
    part: Annotated[
        str | None,
        typer.Option(
            help="Only the encoder's weights of the `content`, of the `position`, or `combined` "
            "ones, which the parser uses. Default: all that the parser has."
        ),
    ] = None,
    device: Device = "auto",
) -> None:
    """Draw the attention weights of a trained parser for one sentence.

    Of an encoder, one small picture for each layer and head shows how much each token takes of each
    other one; START and STOP wrap the sentence. A parser whose encoder keeps content and position
    apart also shows what each head would look at by the content or the position alone.

    Of a transition parser, one picture for each layer of attention has a row for each action of
    the parse that it finds. It shows how much the layer takes of each word before the action,
    which words are on the stack at that moment, wait or have been removed, and the arc that the
    action makes.

    Examples:

        spmrl-bench attention --model runs/NAME --sentence "The cat sat ." --output map.png

        spmrl-bench attention --model runs/NAME --sentence "The cat sat ." --layer 3 --head 2
        --output map.svg
    """
    from spmrl_bench.analysis.drawing import check_format, load_matplotlib
    from spmrl_bench.nn.device import prepare_process
    from spmrl_bench.nn.encoders import PARTS
    from spmrl_bench.parsers.base import Parser
    from spmrl_bench.parsing.models import load_parser

    if of is not None:
        check_choice("of", of, ("encoder", "actions"))
    if part is not None:
        check_choice("part", part, PARTS)
    check_format(output)
    load_matplotlib()
    words, given = sentence.split(), None if tags is None else tags.split()
    prepare_process(device)
    parser = load_parser(model, device)
    if of == "actions" or (of is None and type(parser).derivation is not Parser.derivation):
        for name, value in (("head", head), ("part", part)):
            if value:
                shown = value if isinstance(value, str) else value[0]
                raise SpmrlError(
                    f"--{name} {shown}: the attention before actions has layers, but no {name}s. "
                    f"Leave --{name} out, or ask for the attention of the encoder (--of encoder)"
                )
        sheet = _of_actions(parser, words, given, layer, str(model))
    else:
        parts = None if part is None else (cast("Part", part),)
        sheet = _of_encoder(parser, words, given, layer, head, parts, str(model))
    sheet.save(output)
    typer.echo(f"spmrl-bench: {output} written", err=True)


def _of_actions(
    parser: Parser,
    words: list[str],
    tags: list[str] | None,
    layer: list[int] | None,
    model: str,
) -> Sheet:
    """The attention before each action of a transition parser."""
    from spmrl_bench.analysis.action_picture import draw_actions

    found = parser.derivation(words, tags)
    return draw_actions(found, layers=_chosen("layer", layer, found.weights.shape[1]), model=model)


def _of_encoder(
    parser: Parser,
    words: list[str],
    tags: list[str] | None,
    layer: list[int] | None,
    head: list[int] | None,
    parts: tuple[Part, ...] | None,
    model: str,
) -> Sheet:
    """The attention of the heads of an encoder."""
    from spmrl_bench.analysis.attention_picture import draw_attention

    parts = parts or parser.attention(words, tags).parts
    maps = {part: parser.attention(words, tags, part).weights for part in parts}
    count, width = next(iter(maps.values())).shape[:2]
    layers, heads = _chosen("layer", layer, count), _chosen("head", head, width)
    return draw_attention(maps, words, layers=layers, heads=heads, model=model)


def _chosen(what: str, numbers: list[int] | None, count: int) -> list[int]:
    """The layers or heads to show."""
    if count == 0:
        raise SpmrlError(f"the parser has no {what}s")
    for number in numbers or []:
        if number >= count:
            raise SpmrlError(f"--{what} {number}: the parser's {what}s are 0 to {count - 1}")
    return sorted(set(numbers)) if numbers else list(range(count))
