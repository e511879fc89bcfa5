"""Settings of a run from several layers: those of files, of variants, of the command line.

A layer has a table for each part that a parser may have; the variant chooses among them. Under its
short name a setting concerns all parts that read it (:mod:`spmrl_bench.parsers.legacy`). The order
of the layers is the recipe's.
"""

from __future__ import annotations

import math
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from functools import cache, reduce
from typing import Any

from pydantic import BaseModel, ValidationError

from spmrl_bench.errors import RecipeError
from spmrl_bench.experiments.recipe import RunConfig, SettingsLayer, TrainLayer, optional, some
from spmrl_bench.nn.settings import Settings
from spmrl_bench.parsers.base import ParserConfig
from spmrl_bench.parsers.config import defaults_of, parts
from spmrl_bench.parsers.legacy import FLAT, OPTIONAL, chosen, dotted, in_tables, leaves, places_of
from spmrl_bench.parsers.registry import trained_kinds
from spmrl_bench.storage.toml import describe_mistake, moved, parsed_toml
from spmrl_bench.training.config import TrainConfig


@cache
def all_parts() -> dict[str, type[Settings]]:
    """Return the settings of all parts that parsers may have, by the name of their table."""
    kinds = trained_kinds().values()
    return {name: part for kind in kinds for name, part in parts(kind.parser_class.Config).items()}


@cache
def model_layer() -> type[BaseModel]:
    """Return the model of a layer's settings of a parser, of whatever kind.

    Of a key that several kinds have, the check is that of the first; a run's own model checks the
    value again.
    """
    fields: dict[str, Any] = {}
    for kind in trained_kinds().values():
        fields = optional(kind.parser_class.Config) | fields
    for name, part in all_parts().items():
        use = {"use": (bool | None, None)} if name in OPTIONAL else {}
        fields[name] = (some(f"Some{part.__name__}", optional(part) | use) | None, None)
    del fields["inputs"]
    model: type[BaseModel] = some("ModelLayer", fields | {"encoder": (str | None, None)})
    return model


def check_model(values: Mapping[str, Any]) -> None:
    """Check settings of a parser, in tables or under old names.

    Raises:
        ValidationError: some are wrong; they are named as they were typed.
    """
    model, tables = model_layer(), all_parts()
    try:
        model.model_validate(in_tables(values, tables))
    except ValidationError as error:
        typed = {
            place: key
            for key, value in values.items()
            for place in ([] if isinstance(value, Mapping) else places_of(key, tables))
        }
        wrong = {".".join(map(str, mistake["loc"][:2])) for mistake in error.errors()}
        # What one part refuses may be right for another, which the parser may have.
        if all(
            place in typed and not wrong.issuperset(places_of(typed[place], tables))
            for place in wrong
        ):
            return

        def as_typed(at: tuple[Any, ...]) -> tuple[Any, ...]:
            key = typed.get(".".join(map(str, at[:2])))
            return at if key is None else (key, *at[2:])

        raise moved(error, model, as_typed, FLAT.keys() - {"lexical"}) from None


def merged(settings: Mapping[str, Any], layer: Mapping[str, Any]) -> dict[str, Any]:
    """Return settings with those of a layer over them, table by table."""
    found = dict(settings)
    for key, value in layer.items():
        below = found.get(key)
        if isinstance(value, Mapping) and isinstance(below, Mapping):
            value = merged(below, value)
        found[key] = value
    return found


class PutTogether:
    """The settings of a run, of the recipe's layers and of the command line.

    Attributes:
        touched: dotted keys of the parser's settings that the command line gives.
        mistakes: of the command line, a line each.
    """

    def __init__(
        self,
        config: type[ParserConfig],
        shared: Iterable[SettingsLayer],
        variants: Iterable[SettingsLayer],
        inputs: Sequence[str],
        settings: Mapping[str, str],
    ) -> None:
        """Put settings together, the later ones winning.

        Args:
            config: the class of the settings of the variant's kind of parser.
            shared: layers of all variants, which may hold settings of other kinds.
            variants: layers of the variant, which has these lexical ``inputs``.
            inputs: as of the variant.
            settings: as of :meth:`Recipe.resolve`, with its errors.
        """
        self._config, self._tables = config, parts(config)
        known = config.model_fields.keys() | self._tables
        before: dict[str, Any] = {}
        self._train: dict[str, Any] = {}
        for layer in shared:
            model = in_tables(layer.model, self._tables)
            before = merged(before, {key: model[key] for key in model.keys() & known})
            self._train |= layer.train.model_dump(exclude_unset=True)
        for layer in variants:
            before = merged(before, in_tables(layer.model, self._tables))
            self._train |= layer.train.model_dump(exclude_unset=True)
        if "inputs" in config.model_fields:
            before["inputs"] = inputs
        typed, self._given, self.mistakes = _read(settings)
        given = [in_tables(one, self._tables) for one in typed]
        self.touched = {key for one in given for key in dotted(one)}
        self._before, self._after = before, reduce(merged, given, before)

    @property
    def sections(self) -> dict[str, Any]:
        """The settings of the parser, of the parts that it has, and of its training."""
        model = chosen(self._after) if "inputs" in self._after else self._after
        return {"model": model, "train": self._train | self._given}

    def changed(self, config: RunConfig) -> dict[str, Any]:
        """Return what the command line changed of the recipe, ``section.key`` and value of JSON.

        Raises:
            RecipeError: a value is infinite, which JSON cannot keep.
        """
        model, train = self._of_model(config.model), self._of_training(config.train)
        found = dotted({"model": model, "train": train})
        for key, value in found.items():
            if isinstance(value, float) and not math.isfinite(value):
                raise RecipeError(
                    f"setting '{key}': {value} is no finite number; leave it out instead"
                )
        return dict(sorted(found.items()))

    def _of_model(self, config: ParserConfig) -> dict[str, Any]:
        """Settings have their old names where these say the same. Under its old name a setting
        stands there even if no part of the parser reads it."""
        then, now = self._values(self._before), self._values(self._after)
        there = leaves(config.model_dump(mode="json")).keys()
        changed = {key for key in self.touched if now.get(key) != then.get(key)}
        found = {key: now[key] for key in changed & there}
        for key, places in FLAT.items():
            own = [place for place in places if place in there]
            known = own or [place for place in places if place in now]
            values = [now.get(place) for place in known]
            if not changed.isdisjoint(known) and all(value == values[0] for value in values):
                changed -= {*known}
                found = {place: value for place, value in found.items() if place not in known}
                found[key] = values[0]
        return found

    def _values(self, model: Mapping[str, Any]) -> dict[str, Any]:
        """All settings of the parser by dotted key, as JSON has them, with their defaults."""
        usual = {**defaults_of(self._config), "encoder": "attention"}
        for name, part in self._tables.items():
            own = {"use": False} if name in OPTIONAL else {}
            usual |= {f"{name}.{key}": each for key, each in {**defaults_of(part), **own}.items()}
        given = dict(model)
        for key, value in model.items():
            try:
                checked = model_layer().model_validate({key: value})
            except ValidationError:
                continue  # of a part that the parser does not have
            given |= checked.model_dump(mode="json", exclude_unset=True)
        return usual | dotted(given)

    def _of_training(self, config: TrainConfig) -> dict[str, Any]:
        then = TrainLayer(**{**defaults_of(TrainConfig), **self._train}).model_dump(mode="json")
        now = config.model_dump(mode="json")  # without what does not change the weights
        given = self._given.keys() & now.keys()
        return {name: now[name] for name in given if now[name] != then[name]}


def _read(
    settings: Mapping[str, str],
) -> tuple[list[dict[str, Any]], dict[str, Any], list[str]]:
    """Layers of the parser and settings of training on the command line, and their mistakes."""
    model: list[dict[str, Any]] = []
    train: dict[str, Any] = {}
    mistakes: list[str] = []
    # Old names come before tables, which win.
    for key, text in sorted(settings.items(), key=lambda pair: (pair[0].count("."), pair)):
        section, _, name = key.partition(".")
        if section not in ("model", "train") or not name:
            raise RecipeError(f"setting '{key}': expected model.KEY=VALUE or train.KEY=VALUE")
        if key in ("model.lexical", "model.inputs"):
            raise RecipeError(f"setting '{key}': the variant decides it; choose a --variant")
        value = _toml_value(text)
        if section == "train":
            train[name] = value
            continue
        for table in reversed(name.split(".")):
            value = {table: value}
        try:
            check_model(value)
        except ValidationError as error:
            told = (describe_mistake(model_layer(), item) for item in error.errors())
            mistakes += [f"model.{mistake}" for mistake in told]
        else:
            model.append(value)
    return model, train, mistakes


def _toml_value(text: str) -> Any:
    """A command-line value as TOML reads it, else the text itself."""
    try:
        return parsed_toml(f"value = {text}", finite=False)["value"]
    except tomllib.TOMLDecodeError:
        return text
    except ValueError as error:
        raise RecipeError(f"setting '{text[:40]}': {error}") from None
