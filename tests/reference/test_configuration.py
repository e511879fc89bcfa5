"""The reference of settings is complete, and states what the program does."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from spmrl_bench.errors import RecipeError
from spmrl_bench.experiments.recipe import load_recipe
from spmrl_bench.experiments.recipe_layers import BaseRecipe, LanguageRecipe, ModelLayer, Variant
from spmrl_bench.experiments.run_config import RunConfig
from spmrl_bench.parsers.registry import trained_kinds
from spmrl_bench.reference.configuration import configuration_page
from spmrl_bench.reference.fields import entries
from spmrl_bench.reference.settings import run_settings, settings_named
from spmrl_bench.training.config import TrainConfig
from spmrl_bench.treebanks.manifest import (
    Attachment,
    DependencyLayer,
    Fetch,
    Manifest,
    Split,
    Splits,
    SplitTable,
)
from tests.builders import cli

MODELS: tuple[type[BaseModel], ...] = (
    *(kind.config_class for kind in trained_kinds()),
    TrainConfig,
    RunConfig,
    BaseRecipe,
    LanguageRecipe,
    Variant,
    Manifest,
    Splits,
    Split,
    SplitTable,
    DependencyLayer,
    Attachment,
    Fetch,
)
PAGE = configuration_page()


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.__name__)
def test_every_key_has_a_meaning(model: type[BaseModel]) -> None:
    found = entries(model)
    assert [entry.name for entry in found] == list(model.model_fields)
    for entry in found:
        assert re.fullmatch(r"[A-Z`].*\.", entry.meaning), f"{model.__name__}.{entry.name}"


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.__name__)
def test_every_key_is_on_the_page(model: type[BaseModel]) -> None:
    for name in model.model_fields:
        # The variant decides the inputs, and the splits are tables of their own.
        if name != "lexical" and model is not Splits:
            assert f"| `{name}` |" in PAGE, name


def test_tables_are_whole() -> None:
    for table in re.findall(r"(?:^\|.*\n)+", PAGE, re.MULTILINE):
        columns = {len(re.split(r"(?<!\\)\|", line)) for line in table.splitlines()}
        assert len(columns) == 1, table


def test_values_are_those_of_runs() -> None:
    """Without a variant's own settings, what the reference states is what a run gets."""
    stated = {setting.key: setting for setting in run_settings()}
    assert {key.partition(".")[2] for key in stated if key.startswith("model.")} == set(
        ModelLayer.model_fields
    )
    for size in ("published", "small"):
        config = load_recipe("english").resolve(
            treebank="any",
            track="spmrl",
            fingerprints={"constituents": ""},
            variant="charlstm-tag",  # inputs, not a variant with settings of its own
            size=size,
        )
        resolved: dict[str, Any] = {
            "model": config.model.model_dump(),
            "train": {name: getattr(config.train, name) for name in TrainConfig.model_fields},
        }
        for section, values in resolved.items():
            for name, value in values.items():
                if name != "lexical":
                    assert stated[f"{section}.{name}"].values[size] == value, (size, name)


def test_kinds_of_a_setting() -> None:
    kinds = {setting.key: setting.kinds for setting in run_settings()}
    assert kinds["model.d_label_hidden"] == ("chart", "joint")
    assert kinds["model.span_weight"] == ("joint",)
    assert kinds["model.beam"] == ("transition",)
    assert kinds["train.batch_size"] == kinds["model.d_model"]
    assert len(kinds["model.d_model"]) == len(trained_kinds())


def test_variants_of_the_base_are_listed() -> None:
    root = Path(__file__).resolve().parents[2]
    base = tomllib.loads((root / "recipes" / "base.toml").read_text(encoding="utf-8"))
    for name in base["variants"]:
        assert re.search(rf"^\| `{name}`[ ,]", PAGE, re.MULTILINE), name
    (row,) = re.findall(r"^\| `bilstm` .*", PAGE, re.MULTILINE)
    for text in ('`model.encoder = "lstm"`', "track mini: `train.max_epochs = 16`"):
        assert text in row


def test_settings_are_found_by_key_name_and_beginning() -> None:
    def keys(*names: str) -> list[str]:
        return [setting.key for setting in settings_named(names)]

    assert keys("train.averaging", "heads") == ["train.averaging", "model.heads"]
    assert keys("model.label_d") == ["model.label_d_kv", "model.label_d_proj"]
    assert len(keys("model")) == len(ModelLayer.model_fields)
    with pytest.raises(RecipeError, match=r"unknown setting 'model.head_s'. Did you mean model.he"):
        keys("model.head_s")
    with pytest.raises(RecipeError, match="'spmrl-bench settings' lists all"):
        keys("zzz")


def test_the_command_tells_values_and_meaning() -> None:
    result = cli("settings", "d_label_hidden")
    assert result.stdout == (
        "model.d_label_hidden\n"
        "    allowed: whole number, at least 1\n"
        "    published: 250; small: 128\n"
        "    kinds of parsers: chart, joint\n"
        "    Hidden width of the span scorer.\n"
    )
    listed = cli("settings").stdout.splitlines()
    assert len(listed) == len(run_settings()) + 2
    assert any(re.match(r"model\.heads +8 +4 +chart, ", line) for line in listed)
    assert cli("settings", "--markdown").stdout == PAGE
    refused = cli("settings", "trian")
    assert (refused.exit_code, refused.stdout) == (1, "")
