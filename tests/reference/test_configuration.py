"""The reference of settings is complete, and states what the program does."""

from __future__ import annotations

import re

import pytest
from pydantic import BaseModel

from spmrl_bench.errors import RecipeError
from spmrl_bench.experiments.model_settings import all_parts
from spmrl_bench.experiments.recipe import (
    BaseRecipe,
    LanguageRecipe,
    RunConfig,
    Variant,
    load_recipe,
)
from spmrl_bench.parsers.legacy import leaves
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
    *(kind.parser_class.Config for kind in trained_kinds().values()),
    *all_parts().values(),
    *(TrainConfig, RunConfig, BaseRecipe, LanguageRecipe, Variant, Manifest, Splits, Split),
    *(SplitTable, DependencyLayer, Attachment, Fetch),
)
PAGE = configuration_page()


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.__name__)
def test_every_key_has_a_meaning_and_is_on_the_page(model: type[BaseModel]) -> None:
    found = entries(model)
    keys = [field.alias or name for name, field in model.model_fields.items()]
    assert [entry.name for entry in found] == keys
    for entry in found:
        assert re.fullmatch(r"[A-Z`].*\.", entry.meaning), f"{model.__name__}.{entry.name}"
        # The variant decides the inputs; parts and splits have tables of their own.
        if entry.name not in ("inputs", *all_parts()) and model is not Splits:
            assert f"| `{entry.name}` |" in PAGE, entry.name


def test_tables_are_whole() -> None:
    for table in re.findall(r"(?:^\|.*\n)+", PAGE, re.MULTILINE):
        columns = {len(re.split(r"(?<!\\)\|", line)) for line in table.splitlines()}
        assert len(columns) == 1, table


def test_values_are_those_of_runs() -> None:
    """Without a variant's own settings, what the reference states is what a run gets."""
    stated = {setting.key: setting.values for setting in run_settings()}
    of_run = {"treebank": "any", "track": "spmrl", "fingerprints": {"constituents": ""}}
    for size in ("published", "small"):
        # Inputs, not a variant with settings of its own.
        config = load_recipe("english").resolve(**of_run, variant="charlstm-tag", size=size)
        model = leaves(config.model.model_dump())
        resolved = {f"model.{key}": value for key, value in model.items() if key != "inputs"}
        resolved |= {f"train.{key}": value for key, value in config.train}
        assert {key: stated[key][size] for key in resolved} == resolved


def test_kinds_of_a_setting() -> None:
    kinds = {setting.key: setting.kinds for setting in run_settings()}
    assert kinds["model.scorer.d_hidden"] == ("chart", "joint")
    assert kinds["model.span_weight"] == ("joint",)
    assert kinds["model.beam"] == ("transition",)
    assert kinds["train.batch_size"] == kinds["model.d_model"]
    assert len(kinds["model.d_model"]) == len(trained_kinds())


def test_variants_of_the_base_are_listed() -> None:
    for name in load_recipe("english").base.variants:
        assert re.search(rf"^\| `{name}`[ ,]", PAGE, re.MULTILINE), name
    (row,) = re.findall(r"^\| `bilstm` .*", PAGE, re.MULTILINE)
    for text in ('`model.encoder = "lstm"`', "track mini: `train.max_epochs = 16`"):
        assert text in row


def test_settings_are_found_by_key_name_and_beginning() -> None:
    def keys(*names: str) -> list[str]:
        return [setting.key for setting in settings_named(names)]

    assert keys("train.averaging", "heads") == ["train.averaging", "model.attention.heads"]
    assert keys("model.d_ff") == ["model.attention.d_ff", "model.label_attention.d_ff"]
    assert keys("model.scorer") == ["model.scorer.d_hidden", "model.scorer.layer_norm"]
    with pytest.raises(RecipeError, match=r"unknown setting 'model.head_s'. Did you mean model.he"):
        keys("model.head_s")
    with pytest.raises(RecipeError, match="'spmrl-bench recipes show' lists all"):
        keys("zzz")


def test_the_command_tells_values_and_meaning() -> None:
    assert (
        cli("recipes", "show", "d_label_hidden").stdout
        == """\
model.scorer.d_hidden
    short: model.d_label_hidden
    allowed: whole number, at least 1
    published: 250; small: 128
    kinds of parsers: chart, joint
    Width of the hidden layer.
"""
    )
    listed = cli("recipes", "show").stdout.splitlines()
    assert len(listed) == len(run_settings()) + 2
    assert any(re.match(r"model\.attention\.heads +8 +4 +chart, ", line) for line in listed)
    refused = cli("recipes", "show", "trian")
    assert (refused.exit_code, refused.stdout) == (1, "")
