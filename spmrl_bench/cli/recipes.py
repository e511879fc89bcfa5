"""Commands that show what can be trained, and what can be set."""

from __future__ import annotations

import shutil
from functools import partial

from typer import Argument

from spmrl_bench.cli.app import recipes
from spmrl_bench.cli.options import loaded_all, print_rows, raise_all
from spmrl_bench.process.console import echo


@recipes.command("list")
def listing() -> None:
    """List the languages that can be trained, with their treebanks.

    Example:
        spmrl-bench recipes list
    """
    from spmrl_bench.experiments.recipe import list_recipes, load_recipe
    from spmrl_bench.treebanks.catalogue import treebank_statuses

    statuses, broken = treebank_statuses()
    present = {status.manifest.name for status in statuses if status.present}
    recipes, wrong = loaded_all(partial(load_recipe, light=True), list_recipes())
    rows = []
    for name, recipe in recipes.items():
        banks = recipe.language.treebanks
        used = next((bank for bank in banks if bank in present), "none is present")
        rows.append((name, used, ", ".join(banks), ", ".join(recipe.variants)))
    print_rows(("language", "uses", "treebanks by preference", "variants"), rows)
    raise_all([*broken, *wrong])


@recipes.command()
def show(
    keys: list[str] | None = Argument(
        None, metavar="[KEY]...", help="A setting, or how the keys of several begin."
    ),
) -> None:
    """List the settings of a run, or explain those that are named.

    Recipes give them in their sections 'model' and 'train', the command line with --set KEY=VALUE.
    A variant or a language may have other values than its size.

    Example:
        spmrl-bench recipes show train.averaging model.d_ff model.label
    """
    from spmrl_bench.experiments import reference

    if keys:
        width, found = shutil.get_terminal_size().columns, reference.settings_named(keys)
        echo("\n\n".join(reference.setting_text(one, width) for one in found))
        return
    found = reference.run_settings()
    rows = []
    for one in found:
        values = (reference.value_text(each).replace("`", "") for each in one.values.values())
        rows.append((one.key, *values, ", ".join(one.kinds)))
    print_rows(("setting", *found[0].values, "kinds of parsers"), rows)
