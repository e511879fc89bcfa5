"""The command that says what can be set, to what, and what it does."""

from __future__ import annotations

import shutil
import textwrap
from typing import TYPE_CHECKING, Annotated

import typer

from spmrl_bench.cli.app import app
from spmrl_bench.cli.options import print_rows

if TYPE_CHECKING:
    from spmrl_bench.experiments.recipe import Size
    from spmrl_bench.reference.settings import Setting


@app.command()
def settings(
    keys: Annotated[
        list[str] | None,
        typer.Argument(metavar="[KEY]...", help="A setting, or how the keys of several begin."),
    ] = None,
    markdown: Annotated[
        bool,
        typer.Option(
            "--markdown",
            help="Print the whole reference of recipes, runs and treebank manifests as Markdown.",
        ),
    ] = False,
) -> None:
    """List the settings of a run with their values at both sizes; say what those named do.

    Recipes give them in their sections `model` and `train`, the command line with
    `--set KEY=VALUE`. A variant or a language may have other values than its size.

    Examples:

        spmrl-bench settings

        spmrl-bench settings train.averaging model.d_ff model.label
    """
    from spmrl_bench.reference.configuration import configuration_page
    from spmrl_bench.reference.settings import run_settings, settings_named

    if markdown:
        typer.echo(configuration_page(), nl=False)
    elif keys:
        typer.echo("\n\n".join(map(_told, settings_named(keys))))
    else:
        found = run_settings()
        print_rows(
            ("setting", *found[0].values, "kinds of parsers"),
            ((one.key, *_values(one).values(), ", ".join(one.kinds)) for one in found),
        )


def _told(setting: Setting) -> str:
    """Key, values and meaning, for a terminal."""
    from spmrl_bench.reference.fields import plain

    lines = [
        f"allowed: {plain(setting.entry.allowed)}",
        "; ".join(f"{size}: {value}" for size, value in _values(setting).items()),
        f"kinds of parsers: {', '.join(setting.kinds)}",
        plain(setting.entry.meaning),
    ]
    if setting.short:
        lines.insert(0, f"short: {', '.join(setting.short)}")
    width = shutil.get_terminal_size().columns - 4
    told = "\n".join(textwrap.fill(line, width) for line in lines)
    return f"{setting.key}\n{textwrap.indent(told, '    ')}"


def _values(setting: Setting) -> dict[Size, str]:
    from spmrl_bench.reference.fields import plain, value_text

    return {size: plain(value_text(value)) for size, value in setting.values.items()}
