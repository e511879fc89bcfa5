"""The page on the stack-attention parser states what the program does."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any, get_args

from spmrl_bench.experiments.recipe import load_recipe
from spmrl_bench.parsers.config import TransitionParserConfig
from spmrl_bench.transitions import SYSTEMS

PAGE = (Path(__file__).resolve().parents[1] / "docs" / "stack-attention.md").read_text("utf-8")


def resolved(size: str) -> Any:
    return load_recipe("english").resolve(
        treebank="any",
        track="open",
        fingerprints={"dependencies": ""},
        variant="stack-attention",
        size=size,
    )


def test_settings_have_the_defaults_that_are_stated() -> None:
    found = re.findall(r"`model\.(\w+) = ([^`]+)`", PAGE)
    assert {name for name, _ in found} == {"system", "nonprojective", "attention_layers", "beam"}
    for name, value in found:
        expected = tomllib.loads(f"value = {value}")["value"]
        assert TransitionParserConfig.model_fields[name].default == expected


def test_every_setting_of_its_own_is_named() -> None:
    for name in TransitionParserConfig.__annotations__:
        assert f"`model.{name}" in PAGE, name
    systems = get_args(TransitionParserConfig.model_fields["system"].annotation)
    assert tuple(systems) == tuple(SYSTEMS)
    assert all(name in PAGE for name in systems)


def test_sizes_are_those_that_are_stated() -> None:
    rows = re.findall(r"^\| `model\.(\w+)` \| ([\d.]+) \| ([\d.]+) \|$", PAGE, re.MULTILINE)
    assert len(rows) == 5
    for size, column in (("published", 1), ("small", 2)):
        model = resolved(size).model
        for row in rows:
            assert getattr(model, row[0]) == float(row[column]), (size, row[0])
        assert model.encoder == "gru"
