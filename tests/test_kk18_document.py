"""The values that the page on Kitaev & Klein 2018 states are those of the program."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from spmrl_bench.experiments.recipe import load_recipe
from spmrl_bench.experiments.run_config import RunConfig
from spmrl_bench.parsers.config import ChartParserConfig
from spmrl_bench.training.config import TrainConfig

ROOT = Path(__file__).resolve().parents[1]
PAGE = (ROOT / "docs" / "kk18.md").read_text(encoding="utf-8")
BASE = tomllib.loads((ROOT / "recipes" / "base.toml").read_text(encoding="utf-8"))
SECTIONS: dict[str, type[BaseModel]] = {"model": ChartParserConfig, "train": TrainConfig}
SETTING = re.compile(r"`(model|train)\.([a-z_]+)( = [^`]+)?`")


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
        treebank="any",
        track="spmrl",
        fingerprints={"constituents": ""},
        variant="charlstm",
        size="published",
    )


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
        if name in SECTIONS[section].model_fields  # what other kinds add is not of this paper
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
