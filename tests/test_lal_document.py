"""The page on head-driven structures and label attention states what the program does."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

from spmrl_bench.experiments.recipe import load_recipe
from spmrl_bench.parsers.kind_configs import JointParserConfig
from spmrl_bench.parsers.registry import kind_named
from spmrl_bench.scoring.metric import SelectionMetric

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
        assert value_of(row["default"]) == JointParserConfig.model_fields[name].default, name
        stated.add(name)
    of_labels = {name for name in JointParserConfig.model_fields if name.startswith("label_")}
    assert of_labels - {"label_matrices"} <= stated


def test_variants_are_of_the_kinds_and_selected_by_the_figures_that_are_stated() -> None:
    for row in rows_with("variant", "kind", "selected by"):
        name = row["variant"].strip("`")
        config = resolved(name, "small")
        assert config.kind == row["kind"].strip("`")
        assert SelectionMetric.parse(config.select).title == row["selected by"]
        assert config.model.encoder == "lstm"
        learnt = {"constituents": "chart joint", "dependencies": "biaffine joint"}
        for layer, kinds in learnt.items():
            assert (layer in kind_named(config.kind).layers) == (config.kind in kinds.split())


def test_the_published_size_is_that_of_the_papers() -> None:
    joint, labels = (resolved(name, "published").model for name in ("joint", "label-attention"))
    assert (joint.layers, joint.label_attention) == (12, False)
    assert (labels.layers, labels.label_attention) == (3, True)
    assert (labels.label_d_kv, labels.label_d_proj, labels.label_heads) == (128, 128, None)
    assert (labels.d_arc, labels.d_relation, labels.biaffine_dropout) == (1024, 250, 0.33)
    assert resolved("label-attention", "small").model.label_d_proj == 32


def test_the_published_settings_are_those_that_are_stated() -> None:
    names = {"words": "word", "tags": "tag", "CharLSTM": "charlstm"}
    for row in rows_with("published size", "lambda"):
        files = {"transformer": "somewhere"} if "transformer" in row["inputs"] else {}
        config = resolved(row["published size"].strip("`"), "published", **files)
        model, train = config.model, config.train
        assert list(model.lexical) == [names.get(k, k) for k in row["inputs"].split(", ")]
        assert [model.layers, model.span_weight] == [int(row["layers"]), float(row["lambda"])]
        found = (train.learning_rate, train.batch_size, train.max_epochs)
        assert found == (float(row["rate"]), int(row["batch"]), int(row["epochs at most"]))
        assert model.encoder == "attention"
