"""Commands that show what can be trained, and what can be set."""

from __future__ import annotations

import shutil
from typing import Annotated

import typer

from spmrl_bench.cli.app import recipes
from spmrl_bench.cli.options import print_rows, raise_all
from spmrl_bench.errors import SpmrlError


@recipes.command("list")
def listing() -> None:
    """List the languages that can be trained, with their treebanks in order of preference.

    Example:

        spmrl-bench recipes list
    """
    from spmrl_bench.experiments.recipe import list_recipes, load_recipe
    from spmrl_bench.treebanks.catalogue import treebank_statuses

    statuses, broken = treebank_statuses()
    wrong: list[SpmrlError] = [*broken]
    present = {status.manifest.name for status in statuses if status.present}
    rows = []
    for name in list_recipes():
        try:
            recipe = load_recipe(name, light=True)
        except SpmrlError as error:
            wrong.append(error)
            continue
        banks = recipe.language.treebanks
        used = next((bank for bank in banks if bank in present), "none is present")
        rows.append((name, used, ", ".join(banks), ", ".join(recipe.variants)))
    print_rows(("language", "uses", "treebanks by preference", "variants"), rows)
    raise_all(wrong)


@recipes.command()
def show(
    keys: Annotated[
        list[str] | None,
        typer.Argument(metavar="[KEY]...", help="A setting, or how the keys of several begin."),
    ] = None,
) -> None:
    """List the settings of a run with their values at both sizes; say what those named do.

    Recipes give them in their sections 'model' and 'train', the command line with --set KEY=VALUE.
    A variant or a language may have other values than its size.

    Examples:

        spmrl-bench recipes show

        spmrl-bench recipes show train.averaging model.d_ff model.label
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
