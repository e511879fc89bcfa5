"""The page on Kitaev & Klein 2018 says what the program does, and leaves no setting out."""

from __future__ import annotations

import ast
import functools
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from spmrl_bench.experiments.recipe import RunConfig, load_recipe
from spmrl_bench.parsers.config import ChartParserConfig
from spmrl_bench.training.config import TrainConfig

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "spmrl_bench"
PAGE = (ROOT / "docs" / "kk18.md").read_text(encoding="utf-8")
BASE = tomllib.loads((ROOT / "recipes" / "base.toml").read_text(encoding="utf-8"))
SECTIONS: dict[str, type[BaseModel]] = {"model": ChartParserConfig, "train": TrainConfig}
SETTING = re.compile(r"`(model|train)\.([a-z_]+)( = [^`]+)?`")
PLACE = re.compile(r"`([\w/]+\.py)(?:: ([\w.]+))?`")
FILE = re.compile(r"`((?:recipes|treebanks|evalb|published|tests|docs)/[\w./-]+)`")


def cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip().strip("|").split("|")]


def tables() -> list[list[dict[str, str]]]:
    """Each table of the page as rows by column."""
    found = []
    for block in re.findall(r"(?:^\|.*\n)+", PAGE, re.MULTILINE):
        header, rule, *lines = block.strip().splitlines()
        assert set(rule) <= set("|-"), rule
        rows = [cells(line) for line in lines]
        assert all(len(row) == len(cells(header)) for row in rows), header
        found.append([dict(zip(cells(header), row, strict=True)) for row in rows])
    return found


def rows_with(*columns: str) -> list[dict[str, str]]:
    """Rows of the tables that have these columns."""
    found = [row for table in tables() for row in table if set(columns) <= set(row)]
    assert found, columns
    return found


def key_of(row: dict[str, str]) -> tuple[str, str]:
    match = SETTING.fullmatch(row["setting"])
    assert match, row
    return match[1], match[2]


def value_of(text: str) -> Any:
    """A value of a cell, in TOML except for what TOML lacks."""
    special: dict[str, Any] = {"none": None, "()": ()}
    return special[text] if text in special else tomllib.loads(f"value = {text}")["value"]


def resolved(language: str) -> RunConfig:
    """The settings of a run of the published size."""
    return load_recipe(language).resolve(
        treebank="any", track="spmrl", fingerprint="", variant="charlstm", size="published"
    )


@functools.cache
def names_in(path: Path) -> set[str]:
    """Functions, classes, methods and constants that a module defines."""
    found = set()
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            found.add(node.name)
        if isinstance(node, ast.ClassDef):
            found |= {f"{node.name}.{f.name}" for f in node.body if isinstance(f, ast.FunctionDef)}
        if isinstance(node, (ast.Assign, ast.AnnAssign)):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            found |= {target.id for target in targets if isinstance(target, ast.Name)}
    return found


def test_settings_exist() -> None:
    named = SETTING.findall(PAGE)
    assert len(named) > 40
    for section, name, _ in named:
        assert name in SECTIONS[section].model_fields, f"{section}.{name}"


@pytest.mark.parametrize("section", SECTIONS)
def test_no_setting_is_left_out(section: str) -> None:
    named = {name for part, name, _ in SETTING.findall(PAGE) if part == section}
    assert not set(SECTIONS[section].model_fields) - named


def test_values_of_both_sizes_are_those_of_the_recipe() -> None:
    stated = {}
    for row in rows_with("setting", "published", "small"):
        section, name = key_of(row)
        for size in ("published", "small"):
            assert value_of(row[size]) == BASE["size"][size][section][name], (size, section, name)
            stated[size, section, name] = row[size]
    expected = {
        (size, section, name)
        for size in ("published", "small")
        for section in SECTIONS
        for name in BASE["size"][size][section]
    }
    assert stated.keys() == expected


def test_other_settings_have_the_defaults_that_are_stated() -> None:
    for row in rows_with("setting", "default"):
        section, name = key_of(row)
        field = SECTIONS[section].model_fields[name]
        assert not field.is_required(), name
        assert value_of(row["default"]) == field.default, name


def test_values_that_are_recommended_are_allowed() -> None:
    """Such as `model.matrices = "full"`, somewhere in the text."""
    given = resolved("english")
    allowed = {"model": given.model.model_dump(), "train": given.train.model_dump()}
    found = [match for match in SETTING.findall(PAGE) if match[2]]
    assert len(found) >= 5
    for section, name, value in found:
        changed = {**allowed[section], name: value_of(value.removeprefix(" = "))}
        SECTIONS[section].model_validate(changed)


def test_rates_and_positions_of_the_languages() -> None:
    rows = rows_with("language")
    spmrl = {path.stem.removesuffix("-spmrl") for path in (ROOT / "treebanks").glob("*-spmrl.toml")}
    assert {row["language"] for row in rows} == spmrl | {"english"}
    for row in rows:
        config = resolved(row["language"])
        assert value_of(row["`train.learning_rate`"]) == config.train.learning_rate
        assert value_of(row["`model.max_positions`"]) == config.model.max_positions


def test_places_exist() -> None:
    found = PLACE.findall(PAGE)
    assert len(found) > 50
    for module, name in found:
        path = ROOT / module if module.startswith("tests/") else PACKAGE / module
        assert path.is_file(), module
        assert not name or name in names_in(path), f"{module}: {name}"


def test_files_exist() -> None:
    for name in FILE.findall(PAGE):
        assert (ROOT / name).is_file(), name


def test_every_study_is_in_the_page() -> None:
    for path in (ROOT / "recipes" / "studies").glob("*.toml"):
        assert f"`recipes/studies/{path.name}`" in PAGE
