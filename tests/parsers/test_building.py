"""Every setting of the encoder reaches it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from spmrl_bench.nn.encoders.attention import AttentionMask
from tests.builders import config, tiny
from tests.nn.plain import layout_of
from tests.parsers.examples import SIDE_BY_SIDE, check_learnt_and_loaded

ADDED = {"position": "added", "matrices": "full"}
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


@pytest.mark.parametrize("choices", CHOICES, ids=str)
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
