"""Every setting of the encoder and of label attention reaches it; parsers with it learn."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from spmrl_bench.errors import RecipeError
from spmrl_bench.nn.encoders.label_attention import LabelAttention, LabelHeads, SplitLinear
from spmrl_bench.nn.encoders.self_attention import AttentionMask
from spmrl_bench.nn.layers import FactoredLinear, FullLinear
from spmrl_bench.parsers.chart import ChartParser
from spmrl_bench.readers.brackets import parse_brackets
from tests.builders import config, tiny
from tests.nn.plain import layout_of
from tests.parsers.examples import SIDE_BY_SIDE, check_learnt_and_loaded

ADDED = {"position": "added", "matrices": "full"}
ON: dict[str, Any] = {"label_attention": True, "label_d_kv": 8, "label_d_proj": 6}
CHOICES: list[dict[str, Any]] = [
    {},
    {"encoder": "lstm"},
    {"encoder": "gru"},
    {"encoder": "lstm", **SIDE_BY_SIDE},
    {"encoder": "gru", "recurrent_dropout": "token", **SIDE_BY_SIDE},
    {"matrices": "full"},
    {"position": "added"},
    ADDED,
    {"position_table": "sinusoidal"},
    {**ADDED, "position_only_layers": (0,)},
    {**ADDED, "position_only_layers": (0, 1)},
    {"attention_scale": "d_model"},
    {"layer_norm": "released"},
    {"input_norm": False},
    {"attention_window": 2},
    {"attention_window": 2, "relaxed_window": True},
    {"layers": 1},
    {"heads": 4},
    {"d_kv": 4},
    {"d_ff": 16},
]
LABELLED: list[dict[str, Any]] = [
    ON,
    {**ON, "label_queries": "matrices", "label_residual_dropout": 0.2},
    {**ON, "label_outputs": "projected"},
    {**ON, "label_feed_forward": "none", "precision": "bf16"},
    {**ON, "label_feed_forward": "released", "layer_norm": "released"},
    {**ON, "matrices": "full", "position": "added"},
    {**ON, "encoder": "lstm", "predict_tags": True},
]
#: Of two labels: A over B, and C.
FEW = [parse_brackets("(A (B (C (t x)) (C (t y))))")]


def encoded(**choices: Any) -> Tensor:
    """One sentence, through an encoder whose weights depend on the settings by their shape only."""
    module = tiny(**choices).encoder
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.copy_(0.3 * torch.randn(parameter.shape, generator=generator))
    content = torch.randn(9, config(**choices).d_content, generator=generator)
    result: Tensor = module.eval()(content, layout_of([9]))
    return result.detach()


def test_every_choice_makes_another_encoder() -> None:
    found = [encoded(**choices) for choices in CHOICES]
    for k, (choices, rows) in enumerate(zip(CHOICES, found, strict=True)):
        assert rows.shape == (9, 32), choices
        for other, others in zip(found[:k], CHOICES[:k], strict=True):
            assert (rows - other).abs().max() > 1e-3, (choices, others)


@pytest.mark.parametrize("choices", [*CHOICES, *LABELLED], ids=str)
def test_a_parser_with_it_learns_and_is_loaded_again(
    choices: dict[str, Any], tmp_path: Path
) -> None:
    check_learnt_and_loaded(tiny(**choices), tmp_path)


def test_settings_reach_the_encoder() -> None:
    rates = {"attention_dropout": 0.1, "residual_dropout": 0.2, "relu_dropout": 0.3}
    module = tiny(**rates, attention_window=4, relaxed_window=True, layers=2).encoder
    assert module.masks == (AttentionMask(window=4, relaxed=True),) * 2
    for layer in module.layers:
        assert layer.attention.dropout == 0.1
        assert layer.residual_dropout.p == 0.2
        assert layer.relu_dropout.p == 0.3
    for name, cell in (("lstm", torch.nn.LSTM), ("gru", torch.nn.GRU)):
        for masks in ("sentence", "token"):
            given = {"recurrent_dropout": masks, "residual_dropout": 0.4, "layers": 3}
            recurrent = tiny(encoder=name, **given).encoder
            assert [type(layer) for layer in recurrent.layers] == [cell] * 3
            assert (recurrent.masks, recurrent.dropout.p) == (masks, 0.4)


def layer_of(parser: ChartParser) -> LabelAttention:
    layer = parser.encoder.label_attention
    assert layer is not None
    return layer


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


def test_settings_reach_label_attention() -> None:
    rates = {"label_residual": 0.1, "attention": 0.2, "residual": 0.3, "relu": 0.4}
    rates = {f"{name}_dropout": rate for name, rate in rates.items()}
    sizes = {"label_heads": 9, "label_d_kv": 10, "label_d_proj": 4, "d_ff": 14}
    module = layer_of(tiny(label_attention=True, **sizes, **rates))
    assert isinstance(module.heads, LabelHeads)
    assert (module.heads.heads, module.heads.d_kv, module.heads.dropout) == (9, 10, 0.2)
    assert isinstance(module.heads.key, FactoredLinear)
    assert module.d_block == 4
    assert module.output_dropout.p == 0.1
    assert module.feed_forward.residual_dropout.p == 0.3
    assert module.feed_forward.relu_dropout.p == 0.4
    assert isinstance(module.feed_forward.expand, FullLinear)
    assert module.feed_forward.expand.out_features == 14
    released = layer_of(tiny(**ON, label_feed_forward="released"))
    assert isinstance(released.feed_forward.expand, SplitLinear)
    assert released.feed_forward.expand.widths == (6 * released.heads.heads - 16, 16)
    for choices in ({"matrices": "full"}, {"label_matrices": "full"}, {"encoder": "lstm"}):
        assert isinstance(layer_of(tiny(**ON, **choices)).output, FullLinear)
    assert isinstance(layer_of(tiny(**ON, position="added")).output, FactoredLinear)


def test_there_is_a_head_for_each_label_unless_a_number_is_given() -> None:
    parser = tiny(**ON)
    assert layer_of(parser).heads.heads == len(parser.vocabulary.labels) - 1 > 5
    assert layer_of(tiny(**ON, label_heads=3)).heads.heads == 3
    assert layer_of(tiny("chart", FEW, **ON)).heads.heads == 2
    assert config(**ON).label_attention.heads is None


def test_settings_that_contradict_each_other() -> None:
    """When settings are read, or once labels are counted."""
    released = {**ON, "label_feed_forward": "released"}
    for changes, words in (
        ({**released, "label_heads": 2}, "last 16 features .* 2 heads .* have 12"),
        ({**ON, "label_d_kv": 7}, "label_attention.d_kv"),
        ({**ON, "label_d_proj": 5}, "label_attention.d_proj"),
        ({**ON, "label_heads": 0}, "label_attention.heads"),
    ):
        with pytest.raises(ValueError, match=words):
            config(**changes)
    with pytest.raises(RecipeError, match=r"2 heads with d_proj = 6 have 12.*more heads"):
        tiny("chart", FEW, **released)
    assert tiny("chart", FEW, **released, label_heads=4).encoder.d_out == 24


def test_it_costs_more() -> None:
    few, many = (config(**ON, label_heads=heads).cost() for heads in (4, 40))
    assert config().cost() < few < many
    assert config(**ON).cost() > few
