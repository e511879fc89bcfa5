"""The command that says what can be set, to what, and what it does."""

from __future__ import annotations

import shutil
from typing import Annotated

import typer

from spmrl_bench.cli.app import app
from spmrl_bench.cli.options import print_rows


@app.command()
def settings(
    keys: Annotated[
        list[str] | None,
        typer.Argument(metavar="[KEY]...", help="A setting, or how the keys of several begin."),
    ] = None,
) -> None:
    """List the settings of a run with their values at both sizes; say what those named do.

    Recipes give them in their sections `model` and `train`, the command line with
    `--set KEY=VALUE`. A variant or a language may have other values than its size.

    Examples:

        spmrl-bench settings

        spmrl-bench settings train.averaging model.d_ff model.label
    """
    from spmrl_bench.experiments.reference import (
        run_settings,
        setting_text,
        settings_named,
        value_text,
    )

    if keys:
        width = shutil.get_terminal_size().columns
        typer.echo("\n\n".join(setting_text(one, width) for one in settings_named(keys)))
        return
    found = run_settings()
    rows = [
        (
            one.key,
            *(value_text(value).replace("`", "") for value in one.values.values()),
            ", ".join(one.kinds),
        )
        for one in found
    ]
    print_rows(("setting", *found[0].values, "kinds of parsers"), rows)
