"""Parsers with label attention: settings, training, files, ensembles, arithmetic."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from spmrl_bench.errors import RecipeError
from spmrl_bench.nn.encoders.label_attention import LabelAttention, LabelHeads, SplitLinear
from spmrl_bench.nn.layers import FactoredLinear, FullLinear
from spmrl_bench.nn.vocabulary import Vocabulary
from spmrl_bench.parsers.chart import ChartParser
from spmrl_bench.readers.brackets import parse_brackets
from spmrl_bench.trees.parse import Parse
from tests.builders import TREES, config, flat, tiny
from tests.parsers.examples import check_learnt_and_loaded

ON: dict[str, Any] = {"label_attention": True, "label_d_kv": 8, "label_d_proj": 6}
LABELS = len(Vocabulary.of(map(Parse.of, TREES)).labels) - 1
LEARNT: list[dict[str, Any]] = [
    {},
    {"label_queries": "matrices", "label_residual_dropout": 0.2},
    {"label_outputs": "projected"},
    {"label_feed_forward": "none", "precision": "bf16"},
    {"label_feed_forward": "released", "layer_norm": "released"},
    {"matrices": "full", "position": "added"},
    {"encoder": "lstm", "predict_tags": True},
]


def labelled(**choices: Any) -> ChartParser:
    return tiny(**{**ON, **choices})


def layer_of(parser: ChartParser) -> LabelAttention:
    layer = parser.encoder.label_attention
    assert layer is not None
    return layer


# ---- a parser --------------------------------------------------------------------------


@pytest.mark.parametrize("choices", LEARNT, ids=str)
def test_a_parser_with_it_learns_and_is_loaded_again(
    choices: dict[str, Any], tmp_path: Path
) -> None:
    check_learnt_and_loaded(labelled(**choices), tmp_path)


def test_the_layers_below_start_as_without_it() -> None:
    plain, other = tiny(seed=4), tiny(seed=4, **ON)
    shared = [
        (name, weight)
        for name, weight in plain.state_dict().items()
        if not name.startswith(("scorer.", "encoder.layers")) or "norm" in name
    ]
    assert len(shared) > 10
    for name, weight in shared:
        assert torch.equal(weight, other.state_dict()[name]), name
    assert not [name for name in plain.state_dict() if "label" in name]
    assert plain.encoder.d_out == plain.config.d_model


# ---- settings --------------------------------------------------------------------------


def test_settings_reach_the_layer() -> None:
    module = layer_of(
        tiny(
            label_attention=True,
            label_heads=9,
            label_d_kv=10,
            label_d_proj=4,
            label_residual_dropout=0.1,
            attention_dropout=0.2,
            residual_dropout=0.3,
            relu_dropout=0.4,
            d_ff=14,
        )
    )
    assert isinstance(module.heads, LabelHeads)
    assert (module.heads.heads, module.heads.d_kv, module.heads.dropout) == (9, 10, 0.2)
    assert isinstance(module.heads.key, FactoredLinear)
    assert module.d_block == 4
    assert module.output_dropout.p == 0.1
    assert module.feed_forward.residual_dropout.p == 0.3
    assert module.feed_forward.relu_dropout.p == 0.4
    assert isinstance(module.feed_forward.expand, FullLinear)
    assert module.feed_forward.expand.out_features == 14
    released = layer_of(labelled(label_feed_forward="released")).feed_forward
    assert isinstance(released.expand, SplitLinear)
    assert released.expand.widths == (6 * LABELS - 16, 16)
    for choices in ({"matrices": "full"}, {"label_matrices": "full"}, {"encoder": "lstm"}):
        assert isinstance(layer_of(labelled(**choices)).output, FullLinear)
    assert isinstance(layer_of(labelled(position="added")).output, FactoredLinear)


def test_there_is_a_head_for_each_label_unless_a_number_is_given() -> None:
    assert layer_of(labelled()).heads.heads == LABELS > 5
    assert layer_of(labelled(label_heads=3)).heads.heads == 3
    few = [parse_brackets("(A (B (C (t x)) (C (t y))))")]  # A+B and C
    assert layer_of(tiny("chart", few, **ON)).heads.heads == 2
    assert config(**ON).label_attention.heads is None


def test_the_defaults_are_those_of_the_paper() -> None:
    settings = flat(config(label_attention=True))
    found = {name: value for name, value in settings.items() if name.startswith("label_")}
    assert found == {
        "label_attention": True,
        "label_heads": None,
        "label_d_kv": 128,
        "label_d_proj": 128,
        "label_queries": "vectors",
        "label_outputs": "concatenated",
        "label_matrices": None,
        "label_feed_forward": "usual",
        "label_residual_dropout": 0.0,
    }
    assert config().label_attention is None


def test_settings_that_contradict_each_other() -> None:
    released = {"label_feed_forward": "released"}
    refused: list[tuple[dict[str, Any], str]] = [
        ({"label_matrices": "factored", "encoder": "gru"}, "which the encoder has mixed; only"),
        ({**released, "encoder": "lstm"}, "matrices are full"),
        ({**released, "label_heads": 2}, "last 16 features .* 2 heads .* have 12"),
        ({"label_d_kv": 7}, "label_attention.d_kv"),
        ({"label_d_proj": 5}, "label_attention.d_proj"),
        ({"label_heads": 0}, "label_attention.heads"),
    ]
    for changes, words in refused:
        with pytest.raises(ValueError, match=words):
            config(**{**ON, **changes})


def test_too_few_labels_for_what_is_asked() -> None:
    few = [parse_brackets("(A (B (C (t x)) (C (t y))))")]
    released = {**ON, "label_feed_forward": "released"}
    with pytest.raises(RecipeError, match=r"2 heads with d_proj = 6 have 12.*more heads"):
        tiny("chart", few, **released)
    assert tiny("chart", few, **released, label_heads=4).encoder.d_out == 24


def test_it_costs_more() -> None:
    few, many = (config(**ON, label_heads=heads).cost() for heads in (4, 40))
    assert config().cost() < few < many
    assert config(**ON).cost() > few
