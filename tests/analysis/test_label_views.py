"""What the heads of a parser with label attention see and say."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from spmrl_bench.analysis.label_views import label_layer_of, label_view
from spmrl_bench.errors import SentenceTooLongError, SpmrlError
from spmrl_bench.nn.span_scorer import fenceposts
from spmrl_bench.parsers.chart_parser import ChartParser
from spmrl_bench.parsers.right_branching import RightBranching
from tests.builders import tiny
from tests.nn.plain import randomise

WORDS = ["the", "cat", "sees", "a", "big", "dog", "."]
TOKENS = len(WORDS) + 2
ON: dict[str, Any] = {
    "label_attention": True, "label_heads": 5, "label_d_kv": 8, "label_d_proj": 4,
    "label_feed_forward": "none",
}  # fmt: skip


def parser(**choices: Any) -> ChartParser:
    made = tiny(**{**ON, **choices})
    # Larger weights than a new parser's, so that its attention is far from uniform.
    randomise(made.encoder, seed=5)
    heads = label_layer_of(made).heads
    with torch.no_grad():
        for weight in heads.parameters():
            weight.mul_(20)
    return made.eval()


@pytest.mark.parametrize("precision", ["float32", "bf16"])
def test_contributions_are_of_the_vectors_that_the_parser_scores(precision: str) -> None:
    made = parser(precision=precision)
    found: list[torch.Tensor] = []
    made.encoder.register_forward_hook(lambda _, __, rows: found.append(rows))
    view = label_view(made, WORDS)
    (tokens,) = found
    posts = fenceposts(tokens, torch.arange(TOKENS - 1), made.encoder.d_block)
    for start, end in ((0, 1), (2, 6), (0, 7)):
        halves = (posts[end] - posts[start]).view(2, 5, 2)
        expected = torch.cat((halves[0], halves[1]), dim=1)
        torch.testing.assert_close(view.of_span(start, end), expected, atol=1e-5, rtol=0)
    assert view.weights.shape == (5, TOKENS)
    torch.testing.assert_close(view.weights.sum(1), torch.ones(5))
    assert view.weights.std() > 0.02


def test_it_is_seen_after_an_lstm_too_and_with_query_matrices() -> None:
    assert label_view(parser(encoder="lstm"), WORDS).weights.shape == (5, TOKENS)
    view = label_view(parser(label_queries="matrices"), WORDS)
    assert view.weights.shape == (5, TOKENS, TOKENS)


def test_looking_changes_nothing() -> None:
    made = parser(attention_dropout=0.5, label_residual_dropout=0.5).train()
    expected = list(made.parse([WORDS]))
    first = label_view(made, WORDS)
    assert torch.equal(first.weights, label_view(made, WORDS).weights)
    assert made.training
    assert list(made.parse([WORDS])) == expected


def test_what_cannot_be_shown() -> None:
    for without in (tiny(), RightBranching({"S": 1})):
        with pytest.raises(SpmrlError, match=r"no label attention .* model\.label_attention=true"):
            label_view(without, WORDS)
    with pytest.raises(SpmrlError, match="without words"):
        label_view(parser(), [])
    with pytest.raises(SentenceTooLongError):
        label_view(parser(max_positions=5), WORDS)
