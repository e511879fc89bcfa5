"""Every mistake that can be made in a TOML file, found by walking through its schema.

A schema is a pydantic model; a document is what it accepts, as TOML would be read. Each field
gives the mistakes of four kinds: left out, of another type, out of its range, misspelt. Nothing is
listed by hand, so a new field is tried as soon as it is there.
"""

from __future__ import annotations

import copy
import itertools
import types
import typing
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import date
from typing import Annotated, Any, Literal

import annotated_types
from pydantic import AfterValidator, BaseModel, TypeAdapter, ValidationError
from pydantic.fields import FieldInfo

Path = tuple[str | int, ...]
_ODD = (date(1979, 5, 27), {"no": {"such": 1}}, [[[1]]], "no such thing", -7, 0.5, True, "", [], {})


@dataclass(frozen=True)
class Mistake:
    """A document with one mistake."""

    kind: Literal["missing", "wrong type", "out of range", "misspelt"]
    key: str  # as messages write it
    document: Mapping[str, Any]


def fields_of(model: type[BaseModel], at: Path = ()) -> Iterator[tuple[Path, FieldInfo]]:
    """All fields of a model and of the models in it, by the path of one place where each can be."""
    for name, field in model.model_fields.items():
        yield (*at, name), field
        for inner, place in _models_in(field.annotation, (*at, name)):
            yield from fields_of(inner, place)


def mistakes(
    model: type[BaseModel], document: Mapping[str, Any], *, few: bool = False
) -> Iterator[Mistake]:
    """Every mistake of the four kinds in each field that the document has or could have.

    ``few``: of each field only one place, one value of a wrong type and one out of its range.
    """
    seen: set[str] = set()
    for path, field in fields_of(model):
        if few and (what := repr((path[-1], field))) in seen:
            continue
        elif few:
            seen.add(what)
        key = ".".join(map(str, path))
        whole = with_tables(document, path)
        if whole is None:
            continue  # the document has a value in the way, which another field is tried with
        *above, name = path
        if field.is_required() and name in _at(whole, above):
            shorter = copy.deepcopy(whole)
            del _at(shorter, above)[name]
            yield Mistake("missing", key, shorter)
        wrong = list(_wrong_values(field))
        for kind, value in dict(wrong).items() if few else wrong:
            yield Mistake(kind, key, _with(whole, path, value))
        misspelt = f"{name}x"
        yield Mistake(
            "misspelt", ".".join(map(str, (*above, misspelt))), _with(whole, (*above, misspelt), 1)
        )


def with_tables(document: Mapping[str, Any], path: Path) -> dict[str, Any] | None:
    """The document with empty tables where a path needs some; None if a value is in the way."""
    whole = copy.deepcopy(dict(document))
    inner: Any = whole
    for part, following in itertools.pairwise(path):
        if isinstance(part, int):
            if not isinstance(inner, list) or len(inner) <= part:
                return None
            inner = inner[part]
        elif not isinstance(inner, dict):
            return None
        elif isinstance(following, int):
            inner = inner.get(part)
        else:
            inner = inner.setdefault(part, {})
    return whole if isinstance(inner, dict) else None


def _at(document: Any, path: typing.Sequence[str | int]) -> Any:
    for part in path:
        document = document[part]
    return document


def _with(document: Mapping[str, Any], path: Path, value: object) -> dict[str, Any]:
    changed = copy.deepcopy(dict(document))
    _at(changed, path[:-1])[path[-1]] = value
    return changed


def _models_in(annotation: Any, at: Path) -> Iterator[tuple[type[BaseModel], Path]]:
    """The models inside an annotation, with the place of one of each."""
    if _is_model(annotation):
        yield annotation, at
        return
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is Annotated:
        yield from _models_in(arguments[0], at)
    elif origin in (typing.Union, types.UnionType):
        for argument in arguments:
            yield from _models_in(argument, at)
    elif origin is dict:
        keys = [key for key in _parts(arguments[0]) if typing.get_origin(key) is Literal]
        names = typing.get_args(keys[0]) if keys else ("own",)
        yield from _models_in(arguments[1], (*at, names[-1]))
    elif origin in (list, tuple):
        yield from _models_in(arguments[0], (*at, 0))


def _is_model(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, BaseModel)


def _parts(annotation: Any) -> list[Any]:
    """The type of an annotation, and that of what it may be instead."""
    origin = typing.get_origin(annotation)
    if origin is Annotated:
        return _parts(typing.get_args(annotation)[0])
    if origin in (typing.Union, types.UnionType):
        return [part for one in typing.get_args(annotation) for part in _parts(one)]
    return [annotation]


def _wrong_values(field: FieldInfo) -> Iterator[tuple[Any, object]]:
    """What a field does not take, and why."""
    full = Annotated[field.annotation, *field.metadata] if field.metadata else field.annotation
    takes: TypeAdapter[Any] = TypeAdapter(full)
    kinds = {typing.get_origin(part) or part for part in _parts(field.annotation)}
    tables = any(kind in (dict, Mapping) or _is_model(kind) for kind in kinds)
    pair = any(
        typing.get_origin(part) is tuple and ... not in typing.get_args(part)
        for part in _parts(field.annotation)
    )
    for value in _ODD:
        if tables and isinstance(value, dict):
            continue  # of the right type; what is in it is tried by itself
        if pair and isinstance(value, list):
            continue  # two mistakes: the items, and how many they are
        if not _accepted(takes, value):
            yield "wrong type", value
    for value in _beyond(full):
        if not _accepted(takes, value):
            yield "out of range", value


def _accepted(takes: TypeAdapter[Any], value: object) -> bool:
    try:
        takes.validate_python(value, strict=None)
    except ValidationError:
        return False
    return True


def _beyond(annotation: Any) -> Iterator[object]:
    """Values of the right type, right outside of what an annotation allows."""
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is Annotated:
        yield from _beyond(arguments[0])
        for check in arguments[1:]:
            yield from _outside(check)
    elif origin in (typing.Union, types.UnionType):
        for argument in arguments:
            yield from _beyond(argument)
    elif origin is Literal:
        yield "nope"
    elif origin in (list, tuple):
        item: TypeAdapter[Any] = TypeAdapter(arguments[0])
        right = [value for value in (0.5, 1, "a") if _accepted(item, value)][:1]
        more = 0 if origin is list or ... in arguments else len(arguments) - 1
        yield from ([value, *right * more] for value in _beyond(arguments[0]))


def _outside(check: Any) -> Iterator[object]:
    if isinstance(check, annotated_types.Ge):
        yield check.ge - 1
    elif isinstance(check, annotated_types.Gt):
        yield check.gt
    elif isinstance(check, annotated_types.Le):
        yield check.le + 1
    elif isinstance(check, annotated_types.Lt):
        yield check.lt
    elif isinstance(check, annotated_types.MultipleOf):
        yield check.multiple_of + 1
    elif isinstance(check, AfterValidator):
        yield "../no such"
    elif isinstance(check, FieldInfo):
        for one in check.metadata:
            yield from _outside(one)
