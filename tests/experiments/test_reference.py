"""The reference of settings is complete, and states what the program does."""

from __future__ import annotations

import re
from typing import Annotated

import pytest
from pydantic import BaseModel, Field
from pydantic_core import PydanticUndefined

from spmrl_bench.errors import RecipeError
from spmrl_bench.experiments.recipe import load_recipe
from spmrl_bench.experiments.reference import entries, run_settings, settings_named
from spmrl_bench.parsers.kinds import trained_kinds
from spmrl_bench.parsers.legacy import leaves
from tests.builders import cli


class Inner(BaseModel):
    names: list[str] = []
    """Some names."""


class Outer(Inner):
    size: Annotated[int, Field(ge=2, le=8, multiple_of=2)]
    """How large it is,
    in ``words`` of :class:`~somewhere.Inner`."""
    rate: float | None = None
    names: list[str] = ["a"]


def test_entries_say_all_of_a_key() -> None:
    assert entries(Outer) == [
        ("names", "list: text", ["a"], "Some names."),  # it is narrowed, and keeps what it says
        (
            *("size", "whole number, at least 2, at most 8, a multiple of 2", PydanticUndefined),
            "How large it is, in `words` of `Inner`.",
        ),
        ("rate", "number", None, ""),
    ]


def test_values_are_those_of_runs() -> None:
    """Without a variant's own settings, what the reference states is what a run gets."""
    settings = {setting.key: setting for setting in run_settings()}
    of_run = {"treebank": "any", "track": "spmrl", "fingerprints": {"constituents": ""}}
    for size in ("published", "small"):
        # Inputs, not a variant with settings of its own.
        config = load_recipe("english").resolve(**of_run, variant="charlstm-tag", size=size)
        model = leaves(config.model.model_dump())
        resolved = {f"model.{key}": value for key, value in model.items() if key != "inputs"}
        resolved |= {f"train.{key}": value for key, value in config.train}
        assert {key: settings[key].values[size] for key in resolved} == resolved
    assert settings["model.scorer.d_hidden"].kinds == ("chart", "joint")
    assert settings["train.batch_size"].kinds == settings["model.d_model"].kinds
    assert settings["model.d_model"].kinds == tuple(trained_kinds())


def test_settings_are_found_by_key_name_and_beginning() -> None:
    def keys(*names: str) -> list[str]:
        return [setting.key for setting in settings_named(names)]

    assert keys("train.averaging", "heads") == ["train.averaging", "model.attention.heads"]
    assert keys("model.d_ff") == ["model.attention.d_ff", "model.label_attention.d_ff"]
    assert keys("model.scorer") == ["model.scorer.d_hidden", "model.scorer.layer_norm"]
    with pytest.raises(RecipeError, match=r"unknown setting 'model.head_s'. Did you mean model.he"):
        keys("model.head_s")


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
    refused = cli("recipes", "show", "zzz")
    assert (refused.exit_code, refused.stdout) == (1, "")
