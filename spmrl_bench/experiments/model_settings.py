"""Settings of a run, put together from the layers of its recipe and from the command line.

A layer has a table for each part that a parser may have; the variant chooses among them. Under its
short name a setting concerns all parts that read it (:mod:`spmrl_bench.parsers.legacy`).
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from functools import cache, reduce
from typing import TYPE_CHECKING, Any, NamedTuple

from pydantic import BaseModel, ValidationError

from spmrl_bench.errors import RecipeError
from spmrl_bench.nn.settings import Settings
from spmrl_bench.parsers.base import ParserConfig
from spmrl_bench.parsers.config import defaults_of, parts
from spmrl_bench.parsers.kinds import trained_kinds
from spmrl_bench.parsers.legacy import FLAT, OPTIONAL, chosen, dotted, in_tables, leaves, places_of
from spmrl_bench.storage import toml
from spmrl_bench.training.schedule import TrainConfig

if TYPE_CHECKING:
    from spmrl_bench.experiments.recipe import RunConfig, SettingsLayer


@cache
def all_parts() -> dict[str, type[Settings]]:
    """The settings of all parts that parsers may have, by the name of their table."""
    kinds = trained_kinds().values()
    return {name: part for kind in kinds for name, part in parts(kind.parser_class.Config).items()}


@cache
def _model_layer() -> type[BaseModel]:
    """The model of a layer's settings of a parser, of whatever kind. Of a key of several kinds, the
    check is that of the first; a run's own model checks the value again."""
    fields: dict[str, Any] = {}
    for kind in trained_kinds().values():
        fields = toml.optional_fields(kind.parser_class.Config) | fields
    for name, part in all_parts().items():
        use = {"use": (bool | None, None)} if name in OPTIONAL else {}
        table = toml.strict_model(f"Some{part.__name__}", toml.optional_fields(part) | use)
        fields[name] = (table | None, None)
    del fields["inputs"]
    return toml.strict_model("ModelLayer", fields | {"encoder": (str | None, None)})


def check_model(values: Mapping[str, Any]) -> None:
    """Check settings of a parser, also under short names; a ValidationError has keys as typed."""
    model, tables = _model_layer(), all_parts()
    try:
        model.model_validate(in_tables(values, tables))
    except ValidationError as error:
        typed = {
            place: key
            for key, value in values.items()
            if not isinstance(value, Mapping)
            for place in places_of(key, tables)
        }
        wrong = {".".join(map(str, mistake["loc"][:2])) for mistake in error.errors()}
        # What one part refuses may be right for another, which the parser may have.
        if all(
            place in typed and not wrong.issuperset(places_of(typed[place], tables))
            for place in wrong
        ):
            return

        def as_typed(at: tuple[Any, ...]) -> tuple[Any, ...]:
            place = ".".join(map(str, at[:2]))
            return (typed[place], *at[2:]) if place in typed else at

        raise toml.moved(error, model, as_typed, FLAT.keys() - {"lexical"}) from None


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
            value = toml.parsed_toml(f"value = {text}", finite=False)["value"]
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
            model.append(value)
        except ValidationError as error:
            told = (toml.describe_mistake(BaseModel, mistake) for mistake in error.errors())
            mistakes += [f"model.{mistake}" for mistake in told]
    return model, train, mistakes


class MergedSettings(NamedTuple):
    """Settings by section, those of the parser in tables: in the recipe (``before``) and with those
    over them that the command line has ``given``, and mistakes of these."""

    before: dict[str, dict[str, Any]]
    now: dict[str, dict[str, Any]]
    given: dict[str, set[str]]
    mistakes: list[str]

    @property
    def sections(self) -> dict[str, dict[str, Any]]:
        """As a run has them: of the parser, those of the parts that it has."""
        model = self.now["model"]
        return {**self.now, "model": chosen(model) if "inputs" in model else model}

    def overrides(self, run: RunConfig) -> dict[str, Any]:
        """What the command line changed of the recipe, by dotted key, sorted, as JSON has it; keys
        are short where that says the same, even if no part of the parser reads the setting."""
        config = type(run.model)
        defaults = {**defaults_of(config), "encoder": "attention"}
        for name, part in parts(config).items():
            defaults[name] = {**defaults_of(part), **({"use": False} if name in OPTIONAL else {})}
        of_parser = leaves(run.model.model_dump(mode="json"))
        before = dotted(toml.merged(defaults, self.before["model"]))
        now = dotted(toml.merged(defaults, self.now["model"])) | of_parser
        changed = {key for key in self.given["model"] if now.get(key) != before.get(key)}
        found: dict[str, Any] = {}
        for short, places in FLAT.items():
            there = [key for key in places if key in of_parser]
            there = there or [key for key in places if key in now]
            values = [now.get(key) for key in there]
            if not changed.isdisjoint(there) and all(value == values[0] for value in values):
                changed -= {*there}
                found[f"model.{short}"] = values[0]
        found |= {f"model.{key}": now[key] for key in changed & of_parser.keys()}
        train = run.train.model_dump(mode="json")  # without what does not change the weights
        for key in self.given["train"] & train.keys():
            if train[key] != self.before["train"].get(key):
                found[f"train.{key}"] = train[key]
        return dict(sorted(found.items()))


def merge_settings(
    config: type[ParserConfig],
    inputs: Sequence[str],
    shared: Sequence[SettingsLayer | None],
    own: Sequence[SettingsLayer | None],
    command_line: Mapping[str, str],
) -> MergedSettings:
    """Merge layers of settings, the later ones winning: those shared by all variants, which may
    hold settings of parsers of other kinds, those of the variant, and those of the command line."""
    tables = parts(config)
    known = config.model_fields.keys() | tables
    before: dict[str, Any] = {}
    train = {**defaults_of(TrainConfig)}
    for number, layer in enumerate([*shared, *own]):
        if layer is not None:
            found = in_tables(layer.model, tables)
            if number < len(shared):
                found = {key: value for key, value in found.items() if key in known}
            before = toml.merged(before, found)
            train |= layer.train.model_dump(mode="json", exclude_unset=True)
    if "inputs" in config.model_fields:
        before["inputs"] = inputs
    layers, given_train, mistakes = read_overrides(command_line)
    given = [in_tables(layer, tables) for layer in layers]
    return MergedSettings(
        {"model": before, "train": train},
        {"model": reduce(toml.merged, given, before), "train": train | given_train},
        {"model": {key for layer in given for key in dotted(layer)}, "train": {*given_train}},
        mistakes,
    )
