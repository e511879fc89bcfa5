"""Parsers with label attention whose heads do what a test says."""

from __future__ import annotations

from collections.abc import Sequence
from types import MethodType
from typing import Any

import torch
from torch import Tensor

from spmrl_bench.analysis.heads import Example, SpansByHead, spans_by_head
from spmrl_bench.nn.encoders.label_attention import LabelAttention
from spmrl_bench.nn.ragged import Ragged
from spmrl_bench.parsers.chart import ChartParser
from tests.builders import tiny
from tests.nn.plain import randomise

HEADS, D_PROJ = 5, 4
ON: dict[str, Any] = {
    "label_attention": True, "label_heads": HEADS, "label_d_kv": 8, "label_d_proj": D_PROJ,
    "label_feed_forward": "none",
}  # fmt: skip


def label_layer_of(parser: ChartParser) -> LabelAttention:
    layer = parser.encoder.label_attention
    assert isinstance(layer, LabelAttention)
    return layer


def seen_in(parser: ChartParser, words: Sequence[str]) -> SpansByHead:
    """What the parser finds in one sentence and its heads give."""
    (seen,) = spans_by_head(parser, [Example(words)])
    return seen


def random_parser(**choices: Any) -> ChartParser:
    """With large random weights, so that its heads differ."""
    made = tiny(**{**ON, **choices})
    randomise(label_layer_of(made), seed=5)
    randomise(made.scorer, seed=6)
    with torch.no_grad():
        made.scorer.second.bias.sub_(1)  # some cells are empty
    return made.eval()


def with_gains(parser: ChartParser, gains: Sequence[float]) -> ChartParser:
    """The parser with the features of each head times a number."""
    layer = label_layer_of(parser)
    original = layer.features

    def scaled(_: Any, rows: Tensor, layout: Ragged) -> Tensor:
        return original(rows, layout) * torch.tensor(gains)[:, None]

    layer.features = MethodType(scaled, layer)
    return parser


def two_headed_parser(np_head: int, vp_head: int) -> ChartParser:
    """One whose score of NP comes from one head alone, that of VP from another; no other label.

    The hidden units come in pairs of opposite sign, so that their mean is zero and the layer norm
    only divides; the sum of the ReLUs of a pair is the size of what it reads.
    """
    made = random_parser()
    scorer, labels = made.scorer, made.vocabulary.labels
    hidden = scorer.first.out_features
    generator = torch.Generator().manual_seed(3)
    with torch.no_grad():
        read = torch.zeros(hidden // 2, 2, HEADS, D_PROJ // 2)
        for units, head in ((slice(0, 4), np_head), (slice(4, 8), vp_head)):
            read[units, :, head] = torch.randn(4, 2, D_PROJ // 2, generator=generator)
        scorer.first.weight.copy_(torch.cat((read, -read)).flatten(1))
        scorer.first.bias.zero_()
        scorer.norm.weight.fill_(1)
        scorer.norm.bias.zero_()
        scorer.second.weight.zero_()
        scorer.second.bias.fill_(-50)
        for label, units in ((("NP",), range(4)), (("VP",), range(4, 8))):
            row = labels.index(label) - 1
            scorer.second.bias[row] = -3
            for unit in units:
                scorer.second.weight[row, [unit, unit + hidden // 2]] = 1
    return made
