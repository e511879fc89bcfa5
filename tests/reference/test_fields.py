"""The keys of a model as people are told them: bounds, defaults, and the strings below them."""

from __future__ import annotations

from typing import Annotated, Any, Generic, Literal, TypeVar

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
    (generic,) = entries(Numbers)
    assert (generic.meaning, generic.allowed) == ("The first.", "whole number")


def test_what_is_allowed_in_words() -> None:
    annotations: dict[str, list[Any]] = {
        "`true`, `false`": [bool],
        "text": [str],
        "number, above 0, below 1": [Annotated[float, Field(gt=0, lt=1)] | None],
        '`"a"`, `2`': [Literal["a", 2]],
        '`"a"`': [Literal["a"]],
        "list: text": [list[str]],
        "list: whole number": [tuple[int, ...]],
        "list of 2: whole number; text": [tuple[int, str]],
        "table of whole number": [dict[str, int]],
        "table": [dict[str, Inner], Inner, Any],
        "list: text, or text": [list[str] | str],
    }
    for expected, own in annotations.items():
        for annotation in own:
            schema = TypeAdapter(annotation).json_schema()
            assert allowed(schema, schema.get("$defs", {})) == expected


def test_values_are_written_as_in_toml() -> None:
    for value in (None, (), Inner()):
        assert value_text(value) == "not set"
    assert value_text(REQUIRED) == "required"
    written = [value_text(value) for value in (False, 0, 1e-9, "sum", (0.9, 0.98), {"a": "ä"})]
    assert written == ["`false`", "`0`", "`1e-9`", '`"sum"`', "`[0.9, 0.98]`", '`{ a = "ä" }`']


def test_marks_of_docstrings() -> None:
    assert markdown("``a`` and :class:`~b.C`, :func:`d.e`") == "`a` and `C`, `d.e`"
    assert summary(Outer) == "One with all kinds of keys, see `Inner`."
    assert plain("`a`, b") == "a, b"
