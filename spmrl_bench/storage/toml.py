"""TOML files: read into a validated model with all mistakes at once, and written.

A mistake names the file, the key as it was typed, what was found and is allowed, and near matches.
"""

from __future__ import annotations

import difflib
import json
import math
import re
import reprlib
import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, TypeVar, get_args

from pydantic import BaseModel, ConfigDict, ValidationError, create_model
from pydantic_core import PydanticCustomError

from spmrl_bench.errors import SpmrlError
from spmrl_bench.storage.files import read_bounded

Model = TypeVar("Model", bound=BaseModel)

#: Bytes that a recipe or a manifest may have, and tables and arrays inside each other.
MAX_BYTES, DEPTH = 4 << 20, 100

#: The type of a mistake that names something of an installed package, or of none.
UNKNOWN = "unknown_part"

# Characters of a line that a list of values may fill before it gets a line for each.
_LINE = 90

_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")
_KEY = r"(?:[\w-]+|\"[^\"\n]*\"|'[^'\n]*')"
_LONG_KEY = re.compile(rf"(?<![\w-])(?:{_KEY}[ \t]*\.[ \t]*){{{DEPTH}}}", re.ASCII)


def read_toml(path: Path, error: type[SpmrlError]) -> dict[str, Any]:
    """The content of a TOML file; a syntax error or unreadable file raises ``error``."""
    data = read_bounded(path, error, MAX_BYTES)
    try:
        return parsed_toml(data.decode())
    except ValueError as problem:
        raise error(f"{path}: not valid TOML: {problem}") from None


def parsed_toml(text: str, *, finite: bool = True) -> dict[str, Any]:
    """The content of a text in TOML; numbers need not be ``finite`` where that is checked later. A
    ValueError says that it is none, or has numbers that are not finite, whole ones of more than 64
    bits, or tables and arrays too deep inside each other."""
    if _LONG_KEY.search(text):  # for which the parser takes the cube of its length
        raise ValueError(f"a key of more than {DEPTH} parts")
    too_deep = f"arrays or tables more than {DEPTH} deep inside each other"
    try:
        content = tomllib.loads(text)
    except RecursionError:
        raise ValueError(too_deep) from None
    level: list[Any] = [content]
    for _ in range(DEPTH + 1):
        inside: list[Any] = []
        for value in level:
            if isinstance(value, dict | list):
                inside += value.values() if isinstance(value, dict) else value
            elif isinstance(value, int) and abs(value) >= 2**63:
                raise ValueError(f"a whole number beyond {2**63 - 1}")
            elif finite and isinstance(value, float) and not math.isfinite(value):
                raise ValueError(f"the number {value}, which is not finite")
        level = inside
    if level:
        raise ValueError(too_deep)
    return content


def merged(content: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """The content with keys replaced; tables merge key by key, and ``false`` leaves one out."""
    result = dict(content)
    for key, value in changes.items():
        old = result.get(key)
        if isinstance(old, Mapping) and value is False:
            del result[key]
        elif isinstance(old, Mapping) and isinstance(value, Mapping):
            result[key] = merged(old, value)
        else:
            result[key] = value
    return result


def toml_text(content: Mapping[str, Any]) -> str:
    """A document: plain keys first, then a table for each mapping, as people write manifests."""
    return "\n".join(_table_lines(content, "")).lstrip("\n") + "\n"


def _table_lines(content: Mapping[str, Any], prefix: str) -> list[str]:
    tables = {key: value for key, value in content.items() if isinstance(value, Mapping)}
    plain = {key: value for key, value in content.items() if key not in tables}
    lines = ["", f"[{prefix[:-1]}]"] if prefix and (plain or not tables) else []
    for key, value in plain.items():
        line = f"{_key(key)} = {toml_value(value)}"
        if isinstance(value, list | tuple) and len(line) > _LINE:
            items = "".join(f"    {toml_value(item)},\n" for item in value)
            line = f"{_key(key)} = [\n{items}]"
        lines.append(line)
    for key, value in tables.items():
        lines += _table_lines(value, f"{prefix}{_key(key)}.")
    return lines


def toml_value(value: Any) -> str:
    """One value in one line; mappings as inline tables."""
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(toml_value, value))}]"
    if isinstance(value, Mapping):
        pairs = [f"{_key(key)} = {toml_value(item)}" for key, item in value.items()]
        return f"{{ {', '.join(pairs)} }}" if pairs else "{}"
    text = json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    return text.replace("e-0", "e-") if isinstance(value, float) else text


def _key(name: str) -> str:
    return name if _BARE_KEY.fullmatch(name) else toml_value(name)


def optional_fields(model: type[BaseModel]) -> dict[str, Any]:
    """The fields of a model with their checks, none required, for :func:`strict_model`."""
    fields = {}
    for name, field in model.model_fields.items():
        checked: Any = field.annotation
        for check in field.metadata:
            checked = Annotated[checked, check]
        fields[name] = (checked | None, None)
    return fields


def strict_model(name: str, fields: Mapping[str, Any]) -> Any:
    """A model with these fields and no others."""
    return create_model(name, __config__=ConfigDict(extra="forbid"), **fields)


def validated(
    model: type[Model],
    value: Mapping[str, Any],
    place: str | Path,
    error: type[SpmrlError],
    *,
    also: Sequence[str] = (),
    context: Mapping[str, object] | None = None,
) -> Model:
    """``value`` as a ``model``; an ``error`` has a line for each mistake, and each of ``also``."""
    mistakes = list(also)
    try:
        result = model.model_validate(value, context=context)
    except ValidationError as problem:
        mistakes += [describe_mistake(model, item) for item in problem.errors()]
    if mistakes:
        raise error("\n".join(f"{place}: {mistake}" for mistake in mistakes))
    return result


def describe_mistake(model: type[BaseModel], mistake: Mapping[str, Any]) -> str:
    """One mistake of a validation in words: key, what is wrong, what was found."""
    location = mistake["loc"]
    key = ".".join(str(part) for part in location) or "(the whole file)"
    if mistake["type"] == "extra_forbidden":
        known = mistake.get("ctx", {}).get("known") or _keys_at(model, location[:-1])
        near = difflib.get_close_matches(str(location[-1]), known, n=2)
        hint = f" Did you mean {' or '.join(near)}?" if near else ""
        return f"{key}: unknown key.{hint} Known: {', '.join(known)}"
    if mistake["type"] == "missing":
        return f"{key}: missing"
    message = mistake["msg"].removeprefix("Value error, ")
    message = message[:1].lower() + message[1:]
    if mistake["type"] in ("value_error", UNKNOWN) and isinstance(mistake["input"], Mapping):
        return f"{key}: {message}"  # of several keys, which it names
    return f"{key}: {message}; found {_shown(mistake['input'])}"


def moved(
    mistakes: ValidationError,
    model: type[BaseModel],
    place: Callable[[tuple[Any, ...]], tuple[Any, ...]],
    also: Iterable[str] = (),
) -> ValidationError:
    """The mistakes of a validation by ``model`` at other places, of which each counts once. An
    unknown key comes with the keys that are known beside it, at the top ``also`` those."""
    found: dict[Any, Any] = {}
    for item in mistakes.errors():
        context = dict(item.get("ctx", {}))
        if item["type"] == "extra_forbidden" and "known" not in context:
            above = item["loc"][:-1]
            context["known"] = sorted({*_keys_at(model, above), *(() if above else also)})
        told = PydanticCustomError(item["type"], item["msg"], context)
        where = place(item["loc"])
        found[where, item["type"]] = {"type": told, "loc": where, "input": item["input"]}
    return ValidationError.from_exception_data(mistakes.title, [*found.values()])


def _shown(value: Any) -> str:
    short = reprlib.Repr()
    short.maxstring = short.maxother = short.maxlong = 200
    short.maxlist = short.maxtuple = short.maxdict = 20
    return short.repr(value)


def _keys_at(model: type[BaseModel], location: tuple[Any, ...]) -> list[str]:
    current: Any = model
    for part in location:
        if isinstance(current, type) and issubclass(current, BaseModel):
            field = current.model_fields.get(str(part))
            current = field.annotation if field else None
        else:  # a key or an index of a container
            current = _inner_model(current)
    inner = _inner_model(current)
    return sorted(inner.model_fields) if inner else []


def _inner_model(annotation: Any) -> type[BaseModel] | None:
    """The model inside an annotation such as ``dict[str, M]`` or ``M | None``."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next(filter(None, map(_inner_model, get_args(annotation))), None)
