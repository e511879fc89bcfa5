"""The keys of a pydantic model for people: what is allowed, the default, and what each does.

A setting is described in one place, the class that checks it: its annotation says what is
allowed, its default what holds without it, and the string below it what it does. Here all three
are read from there, so that no list of settings can say something else. The strings are no part
of a class at run time; they are taken from its source.
"""

from __future__ import annotations

import ast
import inspect
import re
import textwrap
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from typing import Any

from pydantic import BaseModel
from pydantic_core import PydanticUndefined

from spmrl_bench.storage.toml import toml_value

_ROLE = re.compile(r":\w+:`(~?)([\w.]+)`")

#: Words for the bounds of a JSON schema, in the order in which they are said.
_BOUNDS = {
    "minimum": "at least {}",
    "exclusiveMinimum": "above {}",
    "maximum": "at most {}",
    "exclusiveMaximum": "below {}",
    "multipleOf": "a multiple of {}",
}


@dataclass(frozen=True)
class Entry:
    """One key of a model.

    Attributes:
        name: the key.
        allowed: its values, in Markdown.
        default: the value without it; :data:`REQUIRED` if there is none.
        meaning: what it does, in Markdown on one line; empty if nobody wrote it down.
        owner: the class that declares it.
    """

    name: str
    allowed: str
    default: Any
    meaning: str
    owner: type[BaseModel]


#: The default of a key that has none.
REQUIRED = PydanticUndefined


def entries(model: type[BaseModel]) -> list[Entry]:
    """The keys of a model in the order of its fields, inherited ones first."""
    schema = model.model_json_schema()
    meanings: dict[str, tuple[str, type[BaseModel]]] = {}
    for owner in reversed(model.__mro__[: model.__mro__.index(BaseModel)]):
        for name, text in _docstrings(owner).items():
            # A class that only narrows an inherited key leaves its description alone.
            inherited = meanings.get(name, ("", owner))[0]
            meanings[name] = (text or inherited, owner)
    return [
        Entry(
            field.alias or name,
            allowed(schema["properties"].get(field.alias or name, {}), schema.get("$defs", {})),
            field.get_default(call_default_factory=True, validated_data={}),
            *meanings[name],
        )
        for name, field in model.model_fields.items()
    ]


def summary(model: type) -> str:
    """The docstring of a class, in Markdown."""
    return markdown(inspect.cleandoc(model.__doc__ or ""))


def value_text(value: Any) -> str:
    """A value as TOML writes it, in Markdown; ``not set`` for none at all."""
    if value is REQUIRED:
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


def markdown(text: str) -> str:
    """A docstring's inline marks as Markdown has them: roles and double backquotes become code."""

    def name(match: re.Match[str]) -> str:
        return f"`{match[2].rpartition('.')[2] if match[1] else match[2]}`"

    return _ROLE.sub(name, text).replace("``", "`")


def plain(text: str) -> str:
    """Markdown as a terminal shows it, without the marks of code."""
    return text.replace("`", "")


@cache
def _docstrings(model: type[BaseModel]) -> dict[str, str]:
    """The keys that a class itself declares, with the string below each, or an empty one."""
    try:
        (definition,) = ast.parse(textwrap.dedent(inspect.getsource(model))).body
    except OSError:  # made by a function, not by source
        return dict.fromkeys(model.__annotations__, "")
    found = {}
    for key, below in pairwise([*definition.body, None]):  # type: ignore[attr-defined]
        if isinstance(key, ast.AnnAssign) and isinstance(key.target, ast.Name):
            text = ""
            if isinstance(below, ast.Expr) and isinstance(below.value, ast.Constant):
                text = str(below.value.value)
            found[key.target.id] = markdown(" ".join(text.split()))
    return found
