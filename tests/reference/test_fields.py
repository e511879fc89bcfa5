"""The keys of a model as people are told them: bounds, defaults, and the strings below them."""

from __future__ import annotations

from typing import Annotated, Any, Generic, Literal, TypeVar

import pytest
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

from spmrl_bench.reference.fields import (
    REQUIRED,
    allowed,
    entries,
    markdown,
    plain,
    summary,
    value_text,
)

T = TypeVar("T")


class Inner(BaseModel):
    """A table."""

    model_config = ConfigDict(extra="forbid")

    names: list[str] = []
    """Some names."""


class Outer(Inner):
    """One with all kinds of keys, see :class:`~somewhere.Inner`."""

    size: Annotated[int, Field(ge=2, le=8, multiple_of=2)]
    """How large it is,
    in ``words``."""
    rate: Annotated[float, Field(gt=0, lt=1)] | None = None
    kind: Literal["one", "two"] = "one"
    """Which it is; :mod:`spmrl_bench.nn` knows."""
    inner: Inner = Field(default_factory=Inner)
    """A table of its own."""
    names: list[str] = ["a"]


class Both(BaseModel, Generic[T]):
    """Of any type."""

    first: T
    """The first."""


class Numbers(Both[int]):
    """Of numbers."""


def test_entries_say_all_of_a_key() -> None:
    found = {entry.name: entry for entry in entries(Outer)}
    assert list(found) == ["names", "size", "rate", "kind", "inner"]
    assert found["size"].allowed == "whole number, at least 2, at most 8, a multiple of 2"
    assert found["size"].default is REQUIRED
    assert found["size"].meaning == "How large it is, in `words`."
    assert (found["rate"].meaning, found["rate"].default) == ("", None)
    assert found["kind"].meaning == "Which it is; `spmrl_bench.nn` knows."
    assert found["inner"].default == Inner()
    # What a class narrows keeps its description.
    assert (found["names"].meaning, found["names"].owner) == ("Some names.", Outer)
    assert found["names"].default == ["a"]


def test_keys_of_generic_models_have_their_descriptions() -> None:
    (entry,) = entries(Numbers)
    assert (entry.meaning, entry.allowed) == ("The first.", "whole number")


@pytest.mark.parametrize(
    ("annotation", "expected"),
    [
        (bool, "`true`, `false`"),
        (str, "text"),
        (Annotated[float, Field(gt=0, lt=1)] | None, "number, above 0, below 1"),
        (Literal["a", 2], '`"a"`, `2`'),
        (list[str], "list: text"),
        (tuple[int, ...], "list: whole number"),
        (tuple[int, str], "list of 2: whole number; text"),
        (dict[str, int], "table of whole number"),
        (dict[str, Inner], "table"),
        (list[str] | str, "list: text, or text"),
        (Inner, "table"),
        (Any, "table"),
    ],
)
def test_what_is_allowed_in_words(annotation: Any, expected: str) -> None:
    schema = TypeAdapter(annotation).json_schema()
    assert allowed(schema, schema.get("$defs", {})) == expected


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (REQUIRED, "required"),
        (None, "not set"),
        ((), "not set"),
        (False, "`false`"),
        (0, "`0`"),
        (1e-9, "`1e-9`"),
        ("sum", '`"sum"`'),
        ((0.9, 0.98), "`[0.9, 0.98]`"),
        ({"a": "ä"}, '`{ a = "ä" }`'),
        (Inner(), "not set"),
    ],
)
def test_values_are_written_as_in_toml(value: object, expected: str) -> None:
    assert value_text(value) == expected


def test_marks_of_docstrings() -> None:
    assert markdown("``a`` and :class:`~b.C`, :func:`d.e`") == "`a` and `C`, `d.e`"
    assert summary(Outer) == "One with all kinds of keys, see `Inner`."
    assert plain("`a`, b") == "a, b"
