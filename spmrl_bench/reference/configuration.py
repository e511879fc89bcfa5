"""The page on all that can be configured, in Markdown: runs, recipes and manifests of treebanks.

Nothing of it is written by hand but the sentences that say what a table is of.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import starmap
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
`spmrl-bench recipes show` prints the settings of a run on the terminal.
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


_KEYS = "key | allowed | default | what it does"


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
            _section("A language", LanguageRecipe),
            _section("What all languages share", BaseRecipe),
            _VARIANTS,
            _keys(Variant),
            "The variants of `recipes/base.toml`:\n",
            _variants(),
            _MANIFESTS,
            _keys(Manifest, without=SourceFormat),
            _section("A split of a treebank: `[splits.NAME]`", Split),
            f"There is one table for each of {_coded(Splits.model_fields)}.\n",
            _section("The rows of a table: `[splits.NAME.rows]`", SplitTable),
            _section("A second layer: `[dependencies]`", DependencyLayer, without=SourceFormat),
            "It has `format` and its options too ([below](#formats-and-their-options)).\n",
            _section("Rules of attachment scores: `[attachment]`", Attachment),
            _section("Downloads: `[[fetch]]`", Fetch),
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
                keys = _coded(each.entry.name for each in own if each.kinds == names)
                yield f"Of the kinds {' and '.join(f'`{kind}`' for kind in names)}: {keys}.\n"
        yield _table(
            f"key | short | allowed | {' | '.join(get_args(Size))} | what it does",
            (
                (
                    f"`{each.entry.name}`",
                    _coded(each.short),
                    each.entry.allowed,
                    *map(value_text, each.values.values()),
                    each.entry.meaning,
                )
                for each in own
            ),
        )


def _section(title: str, model: type[BaseModel], without: type[BaseModel] | None = None) -> str:
    return f"### {title}\n\n{summary(model)}\n\n{_keys(model, without)}"


def _keys(model: type[BaseModel], without: type[BaseModel] | None = None) -> str:
    """A table of the keys of a model, or of those that another model does not have too."""
    other = without.model_fields if without else {}
    return _table(
        _KEYS,
        (
            (f"`{entry.name}`", entry.allowed, value_text(entry.default), entry.meaning)
            for entry in entries(model)
            if entry.name not in other
        ),
    )


def _variants() -> str:
    def settings(layer: SettingsLayer, before: str = "") -> str:
        return before + "<br>".join(
            f"`{key} = {value_text(value).strip('`')}`" for key, value in changed_by(layer).items()
        )

    def row(name: str, variant: Variant) -> Iterator[str]:
        yield f"`{name}`" + (f", like `{variant.like}`" if variant.like else "")
        yield f"`{variant.kind}`"
        yield _coded(variant.inputs) or f"those of `{variant.like}`"
        yield "when named" if variant.optional else "always"
        texts = [settings(variant)]
        texts += [settings(layer, f"{size}: ") for size, layer in variant.size.items()]
        texts += [settings(layer, f"track {track}: ") for track, layer in variant.track.items()]
        yield "<br>".join(filter(None, texts))

    return _table(
        "variant | kind | inputs | trained | settings of its own",
        (row(name, variant) for name, variant in base_recipe().variants.items()),
    )


def _formats() -> str:
    def option(name: str, default: Any) -> str:
        shown = value_text(REQUIRED if default is ... else None if default == "" else default)
        return f"`{name}`" + ("" if shown == "not set" else f" ({shown})")

    return _table(
        "`format` | what it is | gives | options, and their defaults",
        (
            (
                f"`{one.name}`",
                one.title,
                one.yields,
                ", ".join(starmap(option, one.options.items())),
            )
            for one in map(FORMATS.get, FORMATS.names())
        ),
    )


def _coded(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def _table(header: str, rows: Iterable[Iterable[str]]) -> str:
    # A bar ends a cell, also in code.
    lines = [" | ".join(cell.replace("|", r"\|") for cell in row) for row in rows]
    rule = " | ".join("---" for _ in header.split(" | "))
    return "".join(f"| {line} |\n" for line in (header, rule, *lines))
