"""Settings of a parser, put together from layers: a recipe's and those of the command line.

A layer has a table for each part that a parser may have; the variant chooses among them. Under its
short name a setting concerns all parts that read it (:mod:`spmrl_bench.parsers.legacy`).
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping, Sequence
from functools import cache, reduce
from typing import Any

from pydantic import BaseModel, ValidationError

from spmrl_bench.errors import RecipeError
from spmrl_bench.nn.settings import Settings
from spmrl_bench.parsers.base import ParserConfig
from spmrl_bench.parsers.config import defaults_of, parts
from spmrl_bench.parsers.legacy import FLAT, OPTIONAL, dotted, in_tables, leaves, places_of
from spmrl_bench.parsers.registry import trained_kinds
from spmrl_bench.storage.toml import (
    describe_mistake,
    moved,
    optional_fields,
    parsed_toml,
    strict_model,
)


@cache
def all_parts() -> dict[str, type[Settings]]:
    """The settings of all parts that parsers may have, by the name of their table."""
    kinds = trained_kinds().values()
    return {name: part for kind in kinds for name, part in parts(kind.parser_class.Config).items()}


@cache
def model_layer() -> type[BaseModel]:
    """The model of a layer's settings of a parser, of whatever kind.

    Of a key that several kinds have, the check is that of the first; a run's own model checks the
    value again.
    """
    fields: dict[str, Any] = {}
    for kind in trained_kinds().values():
        fields = optional_fields(kind.parser_class.Config) | fields
    for name, part in all_parts().items():
        use = {"use": (bool | None, None)} if name in OPTIONAL else {}
        table = strict_model(f"Some{part.__name__}", optional_fields(part) | use)
        fields[name] = (table | None, None)
    del fields["inputs"]
    model: type[BaseModel] = strict_model("ModelLayer", fields | {"encoder": (str | None, None)})
    return model


def check_model(values: Mapping[str, Any]) -> None:
    """Check settings of a parser, in tables or under short names; a ValidationError names those
    that are wrong as they were typed."""
    model, tables = model_layer(), all_parts()
    try:
        model.model_validate(in_tables(values, tables))
    except ValidationError as error:
        typed = {
            place: key
            for key, value in values.items()
            if not isinstance(value, Mapping)
            for place in places_of(key, tables)
        }
        wrong = {_place(mistake["loc"]) for mistake in error.errors()}
        # What one part refuses may be right for another, which the parser may have.
        if all(
            place in typed and not wrong.issuperset(places_of(typed[place], tables))
            for place in wrong
        ):
            return

        def as_typed(at: tuple[Any, ...]) -> tuple[Any, ...]:
            return (typed[_place(at)], *at[2:]) if _place(at) in typed else at

        raise moved(error, model, as_typed, FLAT.keys() - {"lexical"}) from None


def _place(location: tuple[Any, ...]) -> str:
    return ".".join(map(str, location[:2]))


def read_overrides(
    settings: Mapping[str, str],
) -> tuple[list[dict[str, Any]], dict[str, Any], list[str]]:
    """Layers of a parser and settings of its training as the command line gives them, and mistakes
    of the parser's, a line each; those of training are found later."""
    model: list[dict[str, Any]] = []
    train: dict[str, Any] = {}
    mistakes: list[str] = []
    # Short names come before tables, which win.
    for key, text in sorted(settings.items(), key=lambda pair: (pair[0].count("."), pair)):
        section, _, name = key.partition(".")
        if section not in ("model", "train") or not name:
            raise RecipeError(f"setting '{key}': expected model.KEY=VALUE or train.KEY=VALUE")
        if key in ("model.lexical", "model.inputs"):
            raise RecipeError(f"setting '{key}': the variant decides it; choose a --variant")
        try:
            value = parsed_toml(f"value = {text}", finite=False)["value"]
        except tomllib.TOMLDecodeError:
            value = text
        except ValueError as error:
            raise RecipeError(f"setting '{text[:40]}': {error}") from None
        if section == "train":
            train[name] = value
            continue
        for table in reversed(name.split(".")):
            value = {table: value}
        try:
            check_model(value)
        except ValidationError as error:
            told = (describe_mistake(BaseModel, mistake) for mistake in error.errors())
            mistakes += [f"model.{mistake}" for mistake in told]
        else:
            model.append(value)
    return model, train, mistakes


def _merged(settings: Mapping[str, Any], layer: Mapping[str, Any]) -> dict[str, Any]:
    """Settings with those of a layer over them, table by table."""
    found = dict(settings)
    for key, value in layer.items():
        below = found.get(key)
        if isinstance(value, Mapping) and isinstance(below, Mapping):
            value = _merged(below, value)
        found[key] = value
    return found


def merge_model(
    config: type[ParserConfig],
    inputs: Sequence[str],
    shared: Iterable[Mapping[str, Any]],
    own: Iterable[Mapping[str, Any]],
    command_line: Iterable[Mapping[str, Any]],
) -> tuple[dict[str, Any], dict[str, Any], set[str]]:
    """Merge layers of settings of a parser, the later ones winning: those shared by all variants,
    which may hold settings of other kinds, those of the variant, and those of the command line.

    Returns:
        The settings of the recipe, those with the command line, and the dotted keys that this
        gives; settings of parts that the parser may not have are among them.
    """
    tables = parts(config)
    known = config.model_fields.keys() | tables
    layers = [
        {key: value for key, value in in_tables(layer, tables).items() if key in known}
        for layer in shared
    ]
    layers += [in_tables(layer, tables) for layer in own]
    layers.append({"inputs": inputs} if "inputs" in config.model_fields else {})
    given = [in_tables(layer, tables) for layer in command_line]
    recipe: dict[str, Any] = reduce(_merged, layers, {})
    return recipe, reduce(_merged, given, recipe), {key for layer in given for key in dotted(layer)}


def model_overrides(
    config: ParserConfig, recipe: Mapping[str, Any], merged: Mapping[str, Any], given: set[str]
) -> dict[str, Any]:
    """What the command line changed of the recipe, by dotted key, as JSON has it.

    Keys are short where that says the same; under its short name a setting is there even if no part
    of the parser reads it.
    """
    defaults = {**defaults_of(type(config)), "encoder": "attention"}
    for name, part in parts(type(config)).items():
        defaults[name] = {**defaults_of(part), **({"use": False} if name in OPTIONAL else {})}
    of_parser = leaves(config.model_dump(mode="json"))
    before, now = dotted(_merged(defaults, recipe)), dotted(_merged(defaults, merged)) | of_parser
    changed = {key for key in given if now.get(key) != before.get(key)}
    found: dict[str, Any] = {}
    for short, places in FLAT.items():
        there = [key for key in places if key in of_parser]
        there = there or [key for key in places if key in now]
        values = [now.get(key) for key in there]
        if not changed.isdisjoint(there) and all(value == values[0] for value in values):
            changed -= {*there}
            found[short] = values[0]
    return found | {key: now[key] for key in changed & of_parser.keys()}
