"""Attention weights: they are what the parser's layers use, in every encoder."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from spmrl_bench.errors import SentenceTooLongError, TreeError, UnsupportedError
from spmrl_bench.nn.encoders import PARTS
from spmrl_bench.nn.encoders.self_attention import AttentionMask, SelfAttention
from spmrl_bench.parsers.base import Parser
from spmrl_bench.parsers.baselines import RightBranching
from spmrl_bench.parsers.chart import ChartParser
from spmrl_bench.parsers.ensemble import Ensemble
from tests.builders import tiny
from tests.nn.plain import randomise

WORDS = ["the", "cat", "sees", "a", "big", "dog", "."]
TOKENS = len(WORDS) + 2
ENCODERS: dict[str, dict[str, Any]] = {
    "factored": {},
    "unfactored": {"position": "added", "matrices": "full"},
    "concatenated": {"matrices": "full"},
    "sparse": {"position": "added"},
    "position-only": {"position": "added", "matrices": "full", "position_only_layers": (0, 1)},
    "scaled": {"attention_scale": "d_model", "layer_norm": "released", "input_norm": False},
    "window": {"attention_window": 2},
    "relaxed": {"attention_window": 1, "relaxed_window": True},
}


def attention_maps(
    parser: Parser, words: list[str], tags: Any = None, part: Any = "combined"
) -> Tensor:
    return torch.from_numpy(parser.attention(words, tags, part).weights)


def parser(**choices: Any) -> ChartParser:
    made = tiny(**choices)
    # Larger weights than a new parser's, so that its attention is far from uniform.
    randomise(made.encoder, seed=5)
    return made.eval()


@contextlib.contextmanager
def watched(found: ChartParser) -> Iterator[list[tuple[SelfAttention, Tensor, Tensor]]]:
    """Each attention with the rows that it read and what it gave."""
    seen: list[tuple[SelfAttention, Tensor, Tensor]] = []

    def note(module: nn.Module, given: Any, result: Tensor) -> None:
        assert isinstance(module, SelfAttention)
        seen.append((module, given[0], result))

    modules = [module for module in found.modules() if isinstance(module, SelfAttention)]
    handles = [module.register_forward_hook(note) for module in modules]
    yield seen
    for handle in handles:
        handle.remove()


@pytest.mark.parametrize("name", ENCODERS)
def test_weights_times_values_are_what_the_attention_gives(name: str) -> None:
    made = parser(**ENCODERS[name])
    before = list(made.parse([WORDS]))
    with watched(made) as seen:
        maps = attention_maps(made, WORDS)
    assert maps.shape == (2, 2, TOKENS, TOKENS)
    for weights, (module, rows, given) in zip(maps, seen[-2:], strict=True):
        values = module.project.to_heads(rows, 3 * module.heads)[:, 2 * module.heads :]
        context = torch.einsum("hij,jhd->ihd", weights, values)
        torch.testing.assert_close(module.output.from_heads(context), given, atol=1e-5, rtol=1e-4)
    # The test would tell nothing if all weights were alike.
    assert maps.std() > 0.02
    for part in made.attention(WORDS).parts:
        sums = attention_maps(made, WORDS, part=part).sum(-1)
        torch.testing.assert_close(sums, torch.ones_like(sums))
    # Looking changes nothing.
    assert not any(module._forward_pre_hooks for module in made.modules())
    assert list(made.parse([WORDS])) == before


@pytest.mark.parametrize("name", ["factored", "scaled", "window"])
def test_the_parts_multiply_to_the_whole(name: str) -> None:
    """The softmax of a sum is the product of the softmaxes, normalised."""
    made = parser(**ENCODERS[name])
    content, position, combined = (attention_maps(made, WORDS, part=part) for part in PARTS)
    product = content * position
    torch.testing.assert_close(product / product.sum(-1, keepdim=True), combined)
    assert not torch.allclose(content, position, atol=0.02)


def test_masks_of_a_trained_parser_are_seen() -> None:
    made = parser()
    with made.limited({0: AttentionMask(content=False), 1: AttentionMask(window=0)}):
        combined = attention_maps(made, WORDS)
        position = attention_maps(made, WORDS, part="position")
    torch.testing.assert_close(combined[0], position[0])
    torch.testing.assert_close(combined[1], torch.eye(TOKENS).expand(2, -1, -1))


def test_a_parser_without_attention_can_only_be_left_as_it_is() -> None:
    for other in (tiny(encoder="lstm"), tiny("right-branching")):
        with other.limited({}):
            assert len(list(other.parse([WORDS]))) == 1
        with pytest.raises(UnsupportedError):
            other.limited({0: AttentionMask(window=0)}).__enter__()


def test_what_has_no_attention_to_show_is_refused() -> None:
    made = parser()
    refused: list[tuple[Any, str]] = [
        (tiny(encoder="lstm"), "no attention .* class LSTMEncoder"),
        (RightBranching({"S": 1}), "kind right-branching has no attention: .* chart or biaffine"),
        (Ensemble([made, made]), "an ensemble of 2 parsers has no .attention. of its own"),
    ]
    for other, words in refused:
        with pytest.raises(UnsupportedError, match=words):
            other.attention(WORDS)
    with pytest.raises(UnsupportedError, match="content and to position can be told apart only"):
        attention_maps(parser(matrices="full"), WORDS, part="content")
    with pytest.raises(TreeError, match="a sentence without words has no attention"):
        attention_maps(made, [])
    with pytest.raises(SentenceTooLongError):
        attention_maps(made, ["dog"] * 19)
