"""Attention weights: they are what the parser's layers use, in every encoder."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from spmrl_bench.analysis.attention_maps import PARTS, attention_maps, limited, parts_of
from spmrl_bench.errors import SentenceTooLongError, SpmrlError, TreeError
from spmrl_bench.nn.encoder import Encoder, SelfAttention
from spmrl_bench.nn.limits import Limit
from spmrl_bench.parsers.chart_parser import ChartParser
from spmrl_bench.parsers.right_branching import RightBranching
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
    with watched(made) as seen:
        maps = attention_maps(made, WORDS)
    assert maps.shape == (2, 2, TOKENS, TOKENS)
    assert len(seen) == 2
    for weights, (module, rows, given) in zip(maps, seen, strict=True):
        values = module.project.to_heads(rows, 3 * module.heads)[:, 2 * module.heads :]
        context = torch.einsum("hij,jhd->ihd", weights, values)
        torch.testing.assert_close(module.output.from_heads(context), given, atol=1e-5, rtol=1e-4)
    # The test would tell nothing if all weights were alike.
    assert maps.std() > 0.02


@pytest.mark.parametrize("name", ENCODERS)
def test_rows_sum_to_one_in_every_part(name: str) -> None:
    made = parser(**ENCODERS[name])
    for part in parts_of(made):
        sums = attention_maps(made, WORDS, part=part).sum(-1)
        torch.testing.assert_close(sums, torch.ones_like(sums))


@pytest.mark.parametrize("name", ["factored", "scaled", "window"])
def test_the_parts_multiply_to_the_whole(name: str) -> None:
    """The softmax of a sum is the product of the softmaxes, normalised."""
    made = parser(**ENCODERS[name])
    content, position, combined = (attention_maps(made, WORDS, part=part) for part in PARTS)
    product = content * position
    torch.testing.assert_close(product / product.sum(-1, keepdim=True), combined)
    assert not torch.allclose(content, position, atol=0.02)


def test_limits_of_a_trained_parser_are_seen() -> None:
    made = parser()
    assert isinstance(made.encoder, Encoder)
    made.encoder.limit({0: Limit(content=False), 1: Limit(window=0)})
    combined = attention_maps(made, WORDS)
    position = attention_maps(made, WORDS, part="position")
    torch.testing.assert_close(combined[0], position[0])
    torch.testing.assert_close(combined[1], torch.eye(TOKENS).expand(2, -1, -1))


def test_a_parser_is_limited_for_a_while_only() -> None:
    made, near = parser(attention_window=3), Limit(window=0)
    assert isinstance(made.encoder, Encoder)
    trained = made.encoder.limits
    with contextlib.suppress(KeyboardInterrupt), limited(made, {1: near}):
        assert made.encoder.limits == (Limit(), near)
        raise KeyboardInterrupt
    assert made.encoder.limits == trained == (Limit(window=3),) * 2


def test_a_parser_without_attention_can_only_be_left_as_it_is() -> None:
    other = tiny(encoder="lstm")
    with limited(other, {}):
        assert len(list(other.parse([WORDS]))) == 1
    with pytest.raises(SpmrlError, match="no attention"):
        limited(other, {0: Limit(window=0)}).__enter__()


def test_position_only_attention_does_not_see_the_words() -> None:
    made = parser(**ENCODERS["position-only"])
    torch.testing.assert_close(
        attention_maps(made, WORDS), attention_maps(made, list(reversed(WORDS)))
    )
    plain = parser(**ENCODERS["unfactored"])
    other = attention_maps(plain, list(reversed(WORDS)))
    assert not torch.allclose(attention_maps(plain, WORDS), other, atol=1e-3)


def test_looking_changes_nothing() -> None:
    made = parser()
    before = list(made.parse([WORDS]))
    attention_maps(made, WORDS)
    assert isinstance(made.encoder, Encoder)
    assert made.encoder.fused
    assert not any(module._forward_pre_hooks for module in made.modules())
    assert list(made.parse([WORDS])) == before


def test_tags_are_read_where_the_parser_reads_them() -> None:
    made = parser(lexical=("word", "tag"))
    tags = ["D", "N", "V", "D", "A", "N", "P"]
    some = attention_maps(made, WORDS, tags)
    assert not torch.allclose(some, attention_maps(made, WORDS, ["N"] * 7), atol=1e-3)
    with pytest.raises(TreeError, match="reads tags, but none are given"):
        attention_maps(made, WORDS)
    with pytest.raises(TreeError):
        attention_maps(made, WORDS, ["N"])


def test_an_encoder_without_layers_has_no_maps() -> None:
    assert attention_maps(parser(layers=0), WORDS).shape == (0, 0, TOKENS, TOKENS)


def test_what_has_no_attention_to_show_is_refused() -> None:
    with pytest.raises(SpmrlError, match=r"no attention .*: its encoder is a RecurrentEncoder"):
        attention_maps(tiny(encoder="lstm"), WORDS)
    with pytest.raises(SpmrlError, match=r"no attention .*: it has no encoder"):
        attention_maps(RightBranching({"S": 1}), WORDS)
    with pytest.raises(SpmrlError, match="attention to the content alone can be told apart only"):
        attention_maps(parser(matrices="full"), WORDS, part="content")
    with pytest.raises(SpmrlError, match="a sentence without words has no attention"):
        attention_maps(parser(), [])
    with pytest.raises(SentenceTooLongError):
        attention_maps(parser(), ["dog"] * 19)
