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


def mistakes(text: str, tmp_path: Path) -> list[str]:
    path = tmp_path / "x.toml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(RecipeError) as caught:
        validated(Outer, read_toml(path, RecipeError), path, RecipeError)
    lines = str(caught.value).splitlines()
    assert all(line.startswith(f"{path}: ") for line in lines)
    return [line.removeprefix(f"{path}: ") for line in lines]


def test_a_file_without_mistakes(tmp_path: Path) -> None:
    path = tmp_path / "x.toml"
    path.write_text('name = "a"\n[table.t]\nwidth = 4\n', encoding="utf-8")
    value = validated(Outer, read_toml(path, RecipeError), path, RecipeError)
    assert value == Outer(name="a", table={"t": Inner(width=4)})


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
    ],
)
def test_all_mistakes_are_reported_at_once(text: str, expected: list[str], tmp_path: Path) -> None:
    assert mistakes(text, tmp_path) == expected


def test_a_table_where_a_value_belongs(tmp_path: Path) -> None:
    (line,) = mistakes('inner = 3\nname = "a"', tmp_path)
    assert line.startswith("inner: ")
    assert line.endswith("found 3")


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"name = \n", "not valid TOML: Invalid value (at line 1, column 8)"),
        (b"name = 'a'\nname = 'b'\n", "not valid TOML: Cannot overwrite a value (at line 2"),
        (b"name = '\xff'\n", "not valid TOML: 'utf-8' codec can't decode"),
        (None, "cannot be read: No such file or directory"),
    ],
)
def test_unreadable_files(tmp_path: Path, content: bytes | None, problem: str) -> None:
    path = tmp_path / "x.toml"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(RecipeError) as caught:
        read_toml(path, RecipeError)
    assert str(caught.value).startswith(f"{path}: {problem}")


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
