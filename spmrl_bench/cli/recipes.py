"""Commands that show what can be trained, and what can be set."""

from __future__ import annotations

import shutil
import textwrap
from typing import TYPE_CHECKING, Annotated

import typer

from spmrl_bench.cli.app import recipes
from spmrl_bench.cli.options import print_rows, raise_all
from spmrl_bench.errors import SpmrlError

if TYPE_CHECKING:
    from spmrl_bench.reference.settings import Setting


@recipes.command("list")
def listing() -> None:
    """List the languages that can be trained, with their treebanks.

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
    """List the settings of a run, or explain those that are named.

    Recipes give them in their sections 'model' and 'train', the command line with --set KEY=VALUE.
    A variant or a language may have other values than its size.

    Examples:

        spmrl-bench recipes show

        spmrl-bench recipes show train.averaging model.d_ff model.label
    """
    from spmrl_bench.reference.settings import run_settings, settings_named

    if keys:
        typer.echo("\n\n".join(map(_told, settings_named(keys))))
        return
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


def _values(setting: Setting) -> dict[str, str]:
    from spmrl_bench.reference.fields import plain, value_text

    return {size: plain(value_text(value)) for size, value in setting.values.items()}
