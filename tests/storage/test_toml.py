"""Mistakes in TOML files: all of them at once, each with its key and what is allowed."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel, ConfigDict, Field, field_validator

from spmrl_bench.errors import RecipeError
from spmrl_bench.storage.toml import parsed_toml, read_toml, toml_text, validated


class Closed(BaseModel):
    model_config = ConfigDict(extra="forbid")


class Inner(Closed):
    width: Annotated[int, Field(ge=1)] = 1
    depth: int = 1


class Outer(Closed):
    name: str
    kind: Literal["red", "green"] = "red"
    inner: Inner = Inner()
    perhaps: Inner | None = None
    table: dict[str, Inner] = {}
    several: list[Inner] = []

    @field_validator("name")
    @classmethod
    def _name_is_short(cls, name: str) -> str:
        if len(name) > 3:
            raise ValueError("Too long a name")
        return name


_NEAR = "unknown key. Did you mean width? Known: depth, width"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            'kind = "blue"\nnmae = "a"\n[inner]\nwidth = 0\ndepth = "deep"\n',
            [
                "name: missing",
                "kind: input should be 'red' or 'green'; found 'blue'",
                "inner.width: input should be greater than or equal to 1; found 0",
                "inner.depth: input should be a valid integer, unable to parse string as an "
                "integer; found 'deep'",
                "nmae: unknown key. Did you mean name? Known: inner, kind, name, perhaps, several, "
                "table",
            ],
        ),
        ('name = "a"\n[inner]\nwidht = 1', [f"inner.widht: {_NEAR}"]),
        ('name = "a"\n[perhaps]\nwidht = 1', [f"perhaps.widht: {_NEAR}"]),
        ('name = "a"\n[table.t]\nwidht = 1', [f"table.t.widht: {_NEAR}"]),
        ('name = "a"\n[[several]]\n[[several]]\nwidht = 1', [f"several.1.widht: {_NEAR}"]),
        ('name = "a"\ninner.zzz = 1', ["inner.zzz: unknown key. Known: depth, width"]),
        ('name = "abcd"', ["name: too long a name; found 'abcd'"]),
        (
            'inner = 3\nname = "a"',
            ["inner: input should be a valid dictionary or instance of Inner; found 3"],
        ),
    ],
)
def test_all_mistakes_are_reported_at_once(text: str, expected: list[str], tmp_path: Path) -> None:
    path = tmp_path / "x.toml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(RecipeError) as caught:
        validated(Outer, read_toml(path, RecipeError), path, RecipeError)
    assert str(caught.value).splitlines() == [f"{path}: {line}" for line in expected]
    path.write_text('name = "a"\n[table.t]\nwidth = 4\n', encoding="utf-8")
    value = validated(Outer, read_toml(path, RecipeError), path, RecipeError)
    assert value == Outer(name="a", table={"t": Inner(width=4)})


@pytest.mark.parametrize(
    "content",
    [
        {"a": 1, "b": [0.5, 1e-05], "t": {"x y": 'ä\x7f"\\\n', "u": {"v": {}}, "w": [{"k": 1}]}},
        {"t": {"u": {"v": True}}, "files": [f"folder/{n:04}.mrg" for n in range(30)]},
        {},
    ],
)
def test_what_is_written_is_read_again(content: dict[str, Any]) -> None:
    assert parsed_toml(toml_text(content)) == content
