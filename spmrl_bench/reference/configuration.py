"""The page on all that can be configured, in Markdown: runs, recipes and manifests of treebanks.

Nothing of it is written by hand but the sentences that say what a table is of.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, get_args

from pydantic import BaseModel

from spmrl_bench.experiments.recipe import (
    BaseRecipe,
    LanguageRecipe,
    RunConfig,
    SettingsLayer,
    Size,
    Variant,
)
from spmrl_bench.readers.formats import FORMATS
from spmrl_bench.reference.fields import REQUIRED, entries, summary, value_text
from spmrl_bench.reference.settings import Setting, base_recipe, changed_by, run_settings
from spmrl_bench.treebanks.manifest import (
    Attachment,
    DependencyLayer,
    Fetch,
    Manifest,
    SourceFormat,
    Split,
    Splits,
    SplitTable,
)

_INTRODUCTION = """\
# Configuration

Every key that a recipe, a run or the manifest of a treebank can have. The tables are made from the
classes that check the files, so they say what this version of the program allows. The command
`spmrl-bench settings` prints the settings of a run on the terminal.
"""

_RUNS = """\
## Settings of a run

A recipe gives them in these sections, the command line with `--set KEY=VALUE`, where the key begins
with the name of the section: `model.attention.heads`. The short key does as well: it sets all parts
that read the setting. Those of parts that a parser does not have change nothing. The values are
those of the sizes `published` and `small` before a [variant](#variants) or a language changes
anything. *Not set* means that the key is absent.
"""

_RECIPES = """\
## Recipes

`recipes/LANGUAGE.toml` says which treebanks a language has, and what differs from
`recipes/base.toml`, which all languages share. Of a setting that several layers give, the last one
holds: the size, the track, the language, the language's size, the variant, the variant's size and
track, the command line.
"""

_VARIANTS = """\
### Variants

A variant is written as the list of its lexical inputs, `charlstm = ["charlstm"]`, or as a table of
these keys:
"""

_MANIFESTS = """\
## Manifests of treebanks

`treebanks/NAME.toml` says where the sentences of a treebank lie and how they are read. A table
`[editions.EDITION]` in it has keys that replace these in the treebank `NAME-EDITION`.
"""


def configuration_page() -> str:
    """The page in Markdown."""
    return "\n".join(
        [
            _INTRODUCTION,
            _RUNS,
            *_run_tables(),
            "### What is stored with a run\n",
            "`run.json` in the folder of a run has them resolved, with these keys:\n",
            _keys(RunConfig),
            _RECIPES,
            *_sections({"A language": LanguageRecipe, "What all languages share": BaseRecipe}),
            _VARIANTS,
            _keys(Variant),
            "The variants of `recipes/base.toml`:\n",
            _variants(base_recipe()),
            _MANIFESTS,
            _keys(Manifest, without=SourceFormat),
            *_sections({"A split of a treebank: `[splits.NAME]`": Split}),
            "There is one table for each of " + _names(Splits) + ".\n",
            *_sections(
                {
                    "The rows of a table: `[splits.NAME.rows]`": SplitTable,
                    "A second layer: `[dependencies]`": DependencyLayer,
                    "Rules of attachment scores: `[attachment]`": Attachment,
                    "Downloads: `[[fetch]]`": Fetch,
                }
            ),
            "### Formats and their options\n",
            _formats(),
            "What the options mean; one that is not set has the default of the format:\n",
            _keys(SourceFormat),
        ]
    )


def _run_tables() -> Iterator[str]:
    """The settings of a parser, those of each of its parts, and those of training."""
    settings = run_settings()
    kinds = {kind for setting in settings for kind in setting.kinds}
    tables: dict[str, list[Setting]] = {}
    for setting in settings:
        tables.setdefault(setting.key.rpartition(".")[0], []).append(setting)
    for table, own in tables.items():
        yield f"### `[{table}]`\n"
        if table.count("."):
            yield f"{summary(own[-1].entry.owner)}\n"
        for names in dict.fromkeys(setting.kinds for setting in own):
            if {*names} != kinds:
                keys = ", ".join(f"`{each.entry.name}`" for each in own if each.kinds == names)
                yield f"Of the kinds {' and '.join(f'`{kind}`' for kind in names)}: {keys}.\n"
        yield _table(
            ("key", "short", "allowed", *get_args(Size), "what it does"), map(_setting_row, own)
        )


def _setting_row(setting: Setting) -> tuple[str, ...]:
    entry, values = setting.entry, (value_text(setting.values[size]) for size in get_args(Size))
    short = ", ".join(f"`{key}`" for key in setting.short)
    return (f"`{entry.name}`", short, entry.allowed, *values, entry.meaning)


def _sections(models: dict[str, type[BaseModel]]) -> Iterator[str]:
    for title, model in models.items():
        yield f"### {title}\n\n{summary(model)}\n"
        yield _keys(model, without=SourceFormat if model is DependencyLayer else None)
        if model is DependencyLayer:
            yield "It has `format` and its options too ([below](#formats-and-their-options)).\n"


def _keys(model: type[BaseModel], without: type[BaseModel] | None = None) -> str:
    """A table of the keys of a model, or of those that another model does not have too."""
    other = without.model_fields if without else {}
    return _table(
        ("key", "allowed", "default", "what it does"),
        (
            (f"`{entry.name}`", entry.allowed, value_text(entry.default), entry.meaning)
            for entry in entries(model)
            if entry.name not in other
        ),
    )


def _variants(base: BaseRecipe) -> str:
    def settings(layer: SettingsLayer) -> str:
        return "<br>".join(
            f"`{key} = {value_text(value).strip('`')}`" for key, value in changed_by(layer).items()
        )

    def row(name: str, variant: Variant) -> Iterator[str]:
        inputs = ", ".join(f"`{one}`" for one in variant.inputs)
        yield f"`{name}`" + (f", like `{variant.like}`" if variant.like else "")
        yield f"`{variant.kind}`"
        yield inputs or f"those of `{variant.like}`"
        yield "when named" if variant.optional else "always"
        texts = [settings(variant)]
        texts += [f"{size}: {settings(layer)}" for size, layer in variant.size.items()]
        texts += [f"track {track}: {settings(layer)}" for track, layer in variant.track.items()]
        yield "<br>".join(filter(None, texts))

    return _table(
        ("variant", "kind", "inputs", "trained", "settings of its own"),
        (tuple(row(name, variant)) for name, variant in base.variants.items()),
    )


def _formats() -> str:
    def options(values: dict[str, Any]) -> str:
        def text(name: str, default: Any) -> str:
            if default is ...:
                return f"`{name}` ({value_text(REQUIRED)})"
            shown = value_text(None if default == "" else default)
            return f"`{name}`" + ("" if shown == "not set" else f" ({shown})")

        return ", ".join(text(name, default) for name, default in values.items())

    return _table(
        ("`format`", "what it is", "gives", "options, and their defaults"),
        (
            (f"`{form.name}`", form.title, form.yields, options(dict(form.options)))
            for form in map(FORMATS.get, FORMATS.names())
        ),
    )


def _names(model: type[BaseModel]) -> str:
    return ", ".join(f"`{name}`" for name in model.model_fields)


def _table(header: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    names = list(header)
    lines = [names, ["---"] * len(names), *rows]
    # A bar ends a cell, also in code.
    escaped = ([cell.replace("|", r"\|") for cell in line] for line in lines)
    return "".join(f"| {' | '.join(line)} |\n" for line in escaped)
