"""The page on the stack-attention parser states what the program does."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

from spmrl_bench.experiments.recipe import load_recipe
from spmrl_bench.experiments.reference import settings_named
from spmrl_bench.parsers.legacy import FLAT
from tests.builders import flat

PAGE = (Path(__file__).resolve().parents[1] / "docs" / "stack-attention.md").read_text("utf-8")


def resolved(size: str, variant: str = "stack-attention") -> Any:
    return load_recipe("english").resolve(
        treebank="any",
        track="open",
        fingerprints={"dependencies": ""},
        variant=variant,
        size=size,
    )


def test_settings_have_the_defaults_that_are_stated() -> None:
    found = re.findall(r"`model\.(\w+) = ([^`]+)`", PAGE)
    assert {name for name, _ in found} == {"system", "nonprojective", "attention_layers", "beam"}
    for name, value in found:
        expected = tomllib.loads(f"value = {value}")["value"]
        assert settings_named([f"model.{name}"])[0].entry.default == expected


def test_every_setting_of_its_own_is_named() -> None:
    decoder = [key for key, (place, *_) in FLAT.items() if place.startswith("decoder.")]
    for name in (*decoder, "system", "beam", "nonprojective"):
        assert f"`model.{name}" in PAGE, name
    assert "arc-standard" in PAGE


def test_sizes_are_those_that_are_stated() -> None:
    rows = re.findall(r"^\| `model\.(\w+)` \| ([\d.]+) \| ([\d.]+) \|$", PAGE, re.MULTILINE)
    assert len(rows) == 5
    for size, column in (("published", 1), ("small", 2)):
        model = flat(resolved(size).model)
        for row in rows:
            assert model[row[0]] == float(row[column]), (size, row[0])
        assert model["encoder"] == "gru"


def test_the_published_settings_are_those_that_are_stated() -> None:
    config = resolved("published", "stack-attention-published")
    settings = {**flat(config.model), **config.train.model_dump()}
    section = PAGE[PAGE.index("## Published settings") : PAGE.index("## Sizes")]
    stated = dict(re.findall(r"`(\w+) = ([^`]+)`", section))
    assert len(stated) == 7
    for name, value in stated.items():
        assert settings[name] == tomllib.loads(f"value = {value}")["value"], name
    assert settings["lexical"] == ["word", "tag"]
    assert (settings["d_word"], settings["d_tag"], settings["layers"]) == (300, 32, 3)
    train = config.train
    assert (train.optimiser, train.learning_rate, train.gradient_norm) == ("sgd", 2.0, 1.0)
    assert (train.decay_batches, train.decay_factor) == (900, 0.5)
