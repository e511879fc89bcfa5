"""The page on head-driven structures and label attention states what the program does."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

from spmrl_bench.experiments.recipe import load_recipe
from spmrl_bench.experiments.reference import run_settings
from spmrl_bench.parsers.kinds import kind_named
from spmrl_bench.parsers.legacy import FLAT
from spmrl_bench.scoring.metric import SelectionMetric
from tests.builders import flat

PAGE = (Path(__file__).resolve().parents[1] / "docs" / "lal.md").read_text(encoding="utf-8")
BOTH = {"constituents": "", "dependencies": ""}


def rows_with(*columns: str) -> list[dict[str, str]]:
    """Rows of the tables that have these columns."""
    found = []
    for block in re.findall(r"(?:^\|.*\n)+", PAGE, re.MULTILINE):
        header, _, *lines = (
            [cell.strip() for cell in line.strip("|").split("|")]
            for line in block.strip().splitlines()
        )
        if set(columns) <= set(header):
            found += [dict(zip(header, line, strict=True)) for line in lines]
    assert found, columns
    return found


SETTINGS = {setting.key: setting for setting in run_settings()}


def value_of(text: str) -> Any:
    return None if text == "none" else tomllib.loads(f"value = {text}")["value"]


def resolved(variant: str, size: str, **settings: str) -> Any:
    return load_recipe("english").resolve(
        treebank="any",
        track="open",
        fingerprints=BOTH,
        variant=variant,
        size=size,
        settings={f"model.{key}": value for key, value in settings.items()},
    )


def test_settings_have_the_defaults_that_are_stated() -> None:
    stated = set()
    for row in rows_with("setting", "default"):
        name = row["setting"].strip("`").removeprefix("model.")
        places = [key for key, one in SETTINGS.items() if f"model.{name}" in (key, *one.short)]
        assert value_of(row["default"]) == SETTINGS[places[0]].entry.default, name
        stated.add(name)
    of_labels = {key for key in FLAT if key.startswith("label_")}
    assert of_labels - {"label_matrices"} <= stated


def test_variants_are_of_the_kinds_and_selected_by_the_figures_that_are_stated() -> None:
    for row in rows_with("variant", "kind", "selected by"):
        name = row["variant"].strip("`")
        config = resolved(name, "small")
        assert config.kind == row["kind"].strip("`")
        assert SelectionMetric.parse(config.select).title == row["selected by"]
        assert [*config.model.encoder] == ["lstm"]
        learnt = {"constituents": "chart joint", "dependencies": "biaffine joint"}
        for layer, kinds in learnt.items():
            assert (layer in kind_named(config.kind).layers) == (config.kind in kinds.split())


def test_the_published_size_is_that_of_the_papers() -> None:
    joint, labels = (
        flat(resolved(name, "published").model) for name in ("joint", "label-attention")
    )
    assert joint.items() >= {"layers": 12, "label_attention": False}.items()
    stated = {"layers": 3, "label_attention": True, "label_d_kv": 128, "label_d_proj": 128}
    stated |= {"label_heads": None, "d_arc": 1024, "d_relation": 250, "biaffine_dropout": 0.33}
    assert labels.items() >= stated.items()
    assert resolved("label-attention", "small").model.label_attention.d_proj == 32


def test_the_published_settings_are_those_that_are_stated() -> None:
    names = {"words": "word", "tags": "tag", "CharLSTM": "charlstm"}
    for row in rows_with("published size", "lambda"):
        files = {"transformer": "somewhere"} if "transformer" in row["inputs"] else {}
        config = resolved(row["published size"].strip("`"), "published", **files)
        model, train = flat(config.model), config.train
        assert {*model["lexical"]} == {names.get(k, k) for k in row["inputs"].split(", ")}
        assert [model["layers"], model["span_weight"]] == [int(row["layers"]), float(row["lambda"])]
        found = (train.learning_rate, train.batch_size, train.max_epochs)
        assert found == (float(row["rate"]), int(row["batch"]), int(row["epochs at most"]))
        assert model["encoder"] == "attention"
