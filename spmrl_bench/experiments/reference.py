"""What can be set: the values that are allowed, those of both sizes, and what each setting does.

The class that checks a key says all of it: its annotation what is allowed, its default what holds
without it, the string below it what it does. No other list of settings can say something else.
"""

from __future__ import annotations

import ast
import inspect
import re
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from difflib import get_close_matches
from itertools import pairwise
from typing import Any, NamedTuple, get_args

from pydantic import BaseModel
from pydantic_core import PydanticUndefined

from spmrl_bench.errors import RecipeError
from spmrl_bench.experiments.model_settings import all_parts
from spmrl_bench.experiments.recipe import SettingsLayer, Size, load_recipe
from spmrl_bench.parsers.base import ParserConfig
from spmrl_bench.parsers.config import ENCODERS, parts
from spmrl_bench.parsers.kinds import trained_kinds
from spmrl_bench.parsers.legacy import FLAT, OPTIONAL, dotted, in_tables
from spmrl_bench.storage.toml import toml_value
from spmrl_bench.training.schedule import TrainConfig

_BOUNDS = {
    "minimum": "at least {}",
    "exclusiveMinimum": "above {}",
    "maximum": "at most {}",
    "exclusiveMaximum": "below {}",
    "multipleOf": "a multiple of {}",
}


class Entry(NamedTuple):
    """One key of a model; texts are Markdown."""

    name: str
    allowed: str
    default: Any  # PydanticUndefined if there is none
    meaning: str


class Setting(NamedTuple):
    """One setting of a run."""

    key: str  # model.NAME, model.TABLE.NAME or train.NAME
    entry: Entry
    kinds: tuple[str, ...]  # of parsers that have it
    values: Mapping[Size, Any]  # before a variant or a language changes anything

    @property
    def short(self) -> list[str]:
        """Short names that set it too, perhaps with settings of other parts."""
        place = self.key.removeprefix("model.")
        return [f"model.{name}" for name, places in FLAT.items() if place in places]


def entries(model: type[BaseModel]) -> list[Entry]:
    """The keys of a model in the order of its fields, inherited ones first."""
    schema = model.model_json_schema()
    meanings: dict[str, str] = {}
    for owner in reversed(model.__mro__[: model.__mro__.index(BaseModel)]):
        # A class that only narrows an inherited key leaves its description alone.
        meanings |= _strings_below(owner)
    return [
        Entry(
            field.alias or name,
            allowed(schema["properties"].get(field.alias or name, {}), schema.get("$defs", {})),
            field.get_default(call_default_factory=True, validated_data={}),
            meanings.get(name, ""),
        )
        for name, field in model.model_fields.items()
    ]


def _strings_below(model: type[BaseModel]) -> dict[str, str]:
    """The string below each key that a class declares; they are no part of it at run time."""
    try:
        (definition,) = ast.parse(textwrap.dedent(inspect.getsource(model))).body
    except OSError:  # made by a function, not by source
        return {}
    pairs: Iterator[Any] = pairwise(vars(definition)["body"])
    return {
        key.target.id: markdown(" ".join(below.value.value.split()))
        for key, below in pairs
        if (type(key), type(below)) == (ast.AnnAssign, ast.Expr)
    }


def markdown(text: str) -> str:
    """A docstring with its roles and double backquotes as code of Markdown."""
    text = re.sub(r":\w+:`~[\w.]*?(\w+)`", r"`\1`", text)
    return re.sub(r":\w+:`([\w.]+)`", r"`\1`", text).replace("``", "`")


def value_text(value: Any) -> str:
    """A value as TOML writes it, in Markdown; ``not set`` for none at all."""
    if value is PydanticUndefined:
        return "required"
    if value is None or value in ((), [], {}) or isinstance(value, BaseModel):
        return "not set"
    return f"`{toml_value(value)}`"


def allowed(schema: Mapping[str, Any], definitions: Mapping[str, Any]) -> str:
    """What a JSON schema allows, in words; it may refer to ``definitions`` (``$defs``)."""
    if "anyOf" in schema:
        options = [one for one in schema["anyOf"] if one.get("type") != "null"]
        return ", or ".join(allowed(one, definitions) for one in options)
    match schema:
        case {"$ref": place}:
            return allowed(definitions[place.rpartition("/")[2]], definitions)
        case {"enum": values}:
            return ", ".join(f"`{toml_value(value)}`" for value in values)
        case {"const": value}:
            return f"`{toml_value(value)}`"
        case {"type": "boolean"}:
            return "`true`, `false`"
        case {"type": "string"}:
            return "text"
        case {"type": "integer" | "number" as kind}:
            bounds = [text.format(schema[key]) for key, text in _BOUNDS.items() if key in schema]
            return ", ".join(["whole number" if kind == "integer" else "number", *bounds])
        case {"type": "array", "prefixItems": items}:
            return f"list of {len(items)}: {'; '.join(allowed(one, definitions) for one in items)}"
        case {"type": "array"}:
            return f"list: {allowed(schema.get('items', {}), definitions)}"
        case {"type": "object", "additionalProperties": {} as values}:
            inner = allowed(values, definitions)
            return inner if inner == "table" else f"table of {inner}"
    return "table"


def run_settings() -> list[Setting]:
    """Every setting of the kinds that can be trained: of the model by part, then of training."""
    found: dict[str, tuple[Entry, list[str]]] = {}
    kinds = trained_kinds()
    for name, kind in kinds.items():
        for key, entry in _of_model(kind.parser_class.Config):
            found.setdefault(f"model.{key}", (entry, []))[1].append(name)
    found |= {f"train.{one.name}": (one, [*kinds]) for one in entries(TrainConfig)}
    base = load_recipe("english").base
    given = {size: changed_by(base.size[size]) for size in get_args(Size)}
    settings = [
        Setting(
            key,
            entry,
            tuple(names),
            {size: values.get(key, entry.default) for size, values in given.items()},
        )
        for key, (entry, names) in found.items()
    ]
    return sorted(settings, key=lambda one: (one.key.startswith("train."), one.key.count(".") > 1))


def _of_model(config: type[ParserConfig]) -> Iterator[tuple[str, Entry]]:
    """The settings that a recipe can give; the inputs are the variant's affair."""
    tables = parts(config)
    for entry in entries(config):
        if entry.name == "encoder":
            names = ", ".join(f"`{name}`" for name in ENCODERS.names())
            yield entry.name, entry._replace(allowed=names, default="attention")
        elif entry.name not in (*tables, "inputs"):
            yield entry.name, entry
    for table, part in tables.items():
        yield from ((f"{table}.{entry.name}", entry) for entry in entries(part))
        if table in OPTIONAL:
            use = Entry("use", "`true`, `false`", False, "Whether the parser has one.")
            yield f"{table}.use", use


def settings_named(names: Sequence[str]) -> list[Setting]:
    """The settings with these keys (``train.averaging``, ``averaging``) or short names (``d_ff``),
    or whose keys begin so (``train``, ``model.label``); a RecipeError where there are none."""
    known = run_settings()
    chosen: dict[str, Setting] = {}
    for name in names:
        called = {name, f"model.{name}", f"train.{name}"}
        found = [one for one in known if not called.isdisjoint((one.key, *one.short))]
        found = found or [one for one in known if one.key.startswith(name)]
        if not found:
            every = {key: None for one in known for key in (one.key, *one.short)}
            near = get_close_matches(name, every, cutoff=0.7)
            hint = f" Did you mean {' or '.join(near)}?" if near else ""
            raise RecipeError(
                f"unknown setting '{name}'.{hint} 'spmrl-bench recipes show' lists all"
            )
        chosen |= {one.key: one for one in found}
    return list(chosen.values())


def setting_text(setting: Setting, width: int) -> str:
    """Key, values and meaning, for a terminal."""
    lines = [
        *([f"short: {', '.join(setting.short)}"] if setting.short else []),
        f"allowed: {setting.entry.allowed}",
        "; ".join(f"{size}: {value_text(value)}" for size, value in setting.values.items()),
        f"kinds of parsers: {', '.join(setting.kinds)}",
        setting.entry.meaning,
    ]
    told = "\n".join(textwrap.fill(line.replace("`", ""), width - 4) for line in lines)
    return f"{setting.key}\n{textwrap.indent(told, '    ')}"


def changed_by(layer: SettingsLayer) -> dict[str, Any]:
    """What a layer of a recipe sets, by key."""
    model = dotted(in_tables(layer.model, all_parts()))
    return dotted({"model": model, "train": layer.train.model_dump(exclude_unset=True)})
