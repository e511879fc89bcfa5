"""Layers as tests want them, small, without dropout, by the settings that differ from that; and
sentences as a parser hands them to its lexical inputs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from spmrl_bench.nn.encoders import ENCODERS
from spmrl_bench.nn.encoders.label_attention import LabelAttention
from spmrl_bench.nn.encoders.recurrent import RecurrentEncoder
from spmrl_bench.nn.encoders.self_attention import AttentionEncoder, EncoderLayer, SelfAttention
from spmrl_bench.nn.inputs import Boundary, Codes, LexicalInput, Tokens
from spmrl_bench.nn.scorers.span_scores import SpanScorer
from spmrl_bench.nn.settings import Precision
from tests.nn.plain import layout_of

RATES = dict.fromkeys(("attention_dropout", "residual_dropout", "relu_dropout"), 0.0)


def attention_config(**choices: Any) -> AttentionEncoder.Config:
    sizes = {"layers": 2, "heads": 3, "d_kv": 4, "d_ff": 10, "max_positions": 20}
    return AttentionEncoder.Config(**{**sizes, **RATES, **choices})


def self_attention(d_model: int = 12, **choices: Any) -> SelfAttention:
    return SelfAttention(attention_config(**choices), d_model)


def encoder_layer(d_model: int = 12, **choices: Any) -> EncoderLayer:
    return EncoderLayer(attention_config(**choices), d_model)


def attention_encoder(
    d_model: int = 12, precision: Precision = "float32", **choices: Any
) -> AttentionEncoder:
    config = attention_config(**choices)
    d_content = AttentionEncoder.d_content(config, d_model)
    return AttentionEncoder(config, d_model, d_content, precision)


def recurrent_encoder(
    name: str,
    d_model: int = 6,
    layers: int = 1,
    *,
    d_content: int | None = None,
    precision: Precision = "float32",
    **choices: Any,
) -> RecurrentEncoder:
    kind = ENCODERS.get(name)
    assert issubclass(kind, RecurrentEncoder)
    config = kind.Config(**{"layers": layers, "dropout": 0, **choices})
    return kind(config, d_model, d_content or d_model, precision)


def label_attention(
    d_model: int = 8, labels: int = 5, inherited: Any = "factored", **choices: Any
) -> LabelAttention:
    """``inherited`` are the matrices of the encoder below."""
    sizes = {"d_kv": 4, "d_proj": 6, "d_ff": 10}
    config = LabelAttention.Config(**{**sizes, **RATES, **choices})
    return LabelAttention(config, d_model, labels, inherited)


def span_scorer(d_model: int, d_hidden: int, labels: int, **choices: Any) -> SpanScorer:
    return SpanScorer(SpanScorer.Config(d_hidden=d_hidden, **choices), d_model, labels)


def batch(module: LexicalInput, sentences: Sequence[Sequence[str]]) -> tuple[Tokens, Codes]:
    """Tokens and codes of sentences, START and STOP added."""
    tokens = [token for words in sentences for token in (Boundary.START, *words, Boundary.STOP)]
    lengths = [len(words) + 2 for words in sentences]
    forms: list[str | Boundary] = list(dict.fromkeys(tokens))
    found = [np.asarray(module.codes(form)) for form in forms]
    values = np.zeros((len(forms), max(map(len, found))), dtype=np.int64)
    for row, codes in zip(values, found, strict=True):
        row[: len(codes)] = codes
    rows = torch.tensor([forms.index(token) for token in tokens])
    of_forms = torch.tensor([len(codes) for codes in found])
    unused = torch.zeros(len(tokens), dtype=torch.int64)
    return (
        Tokens(layout_of(lengths), unused, unused, rows),
        Codes(torch.from_numpy(values), of_forms, rows),
    )


def apply(module: LexicalInput, sentences: Sequence[Sequence[str]]) -> Tensor:
    """``[tokens, width]`` of sentences, START and STOP among the tokens."""
    found: Tensor = module(*batch(module, sentences))
    return found
