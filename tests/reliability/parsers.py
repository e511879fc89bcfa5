"""A small parser of each kind over sentences of a mini treebank, with scores that differ."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from spmrl_bench.parsers.chart_parser import ChartParser
from spmrl_bench.parsers.dependency_parser import DependencyParser
from spmrl_bench.parsers.joint_parser import JointParser
from spmrl_bench.parsers.kind_configs import (
    ChartParserConfig,
    DependencyParserConfig,
    JointParserConfig,
    TransitionParserConfig,
)
from spmrl_bench.parsers.transition_parser import TransitionParser
from spmrl_bench.treebanks.treebank import open_treebank
from spmrl_bench.trees.parse import Parse
from tests.parsers.examples import config

SMALL: dict[str, Any] = config(
    layers=1, d_model=16, d_kv=4, d_ff=12, d_label_hidden=8, d_char=4, max_positions=60
).model_dump()
DEPENDENCIES = {"d_arc": 6, "d_relation": 5, "biaffine_dropout": 0.0}
DECODER = {
    "d_decoder": 6,
    "decoder_layers": 2,
    "d_action": 4,
    "d_attention": 5,
    "decoder_dropout": 0.0,
    "attention_layers": 2,
    "beam": 2,
}


def examples(count: int, longest: int = 13) -> list[Parse]:
    """The first sentences of the German mini treebank that are not longer, in both layers."""
    bank = open_treebank("german-mini")
    every = bank.examples("train", ["constituents", "dependencies"])
    return [each for each in every[:400] if len(each) <= longest][:count]


def _config(kind: type[Any], **changes: Any) -> Any:
    settings = {**SMALL, **DEPENDENCIES, **DECODER, **changes}
    known = {key: value for key, value in settings.items() if key in kind.model_fields}
    return kind.model_validate(known)


def _chart(given: Sequence[Parse]) -> Any:
    return ChartParser.build(_config(ChartParserConfig), given)


def _lstm(given: Sequence[Parse]) -> Any:
    return ChartParser.build(_config(ChartParserConfig, encoder="lstm"), given)


def _label_attention(given: Sequence[Parse]) -> Any:
    changes = {"label_attention": True, "label_heads": 3, "label_d_kv": 4, "label_d_proj": 4}
    return ChartParser.build(_config(ChartParserConfig, **changes), given)


def _biaffine(given: Sequence[Parse]) -> Any:
    return DependencyParser.build(_config(DependencyParserConfig, encoder="lstm"), given)


def _joint(given: Sequence[Parse]) -> Any:
    return JointParser.build(_config(JointParserConfig), given)


def _transition(given: Sequence[Parse]) -> Any:
    return TransitionParser.build(_config(TransitionParserConfig, encoder="gru"), given)


KINDS: dict[str, Callable[[Sequence[Parse]], Any]] = {
    "chart": _chart,
    "chart over an LSTM": _lstm,
    "chart over label attention": _label_attention,
    "biaffine": _biaffine,
    "joint": _joint,
    "transition": _transition,
}


def parser_of(kind: str, given: Sequence[Parse]) -> Any:
    """An untrained parser whose weights are large enough for every input to matter."""
    torch.manual_seed(1)
    parser = KINDS[kind](given)
    with torch.no_grad():
        for name, weight in parser.named_parameters():
            if weight.dim() > 1:
                weight.normal_(std=0.5)
            elif not name.endswith("norm.weight"):
                weight.normal_(std=0.2)
    return parser.eval()
