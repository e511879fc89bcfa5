"""Parts of the attention that are taken away, as in tables 1 to 3 of Kitaev & Klein 2018."""

from __future__ import annotations

import contextlib
import itertools
from typing import Any

import pytest
import torch
from torch import Tensor

from spmrl_bench.errors import UnsupportedError
from spmrl_bench.nn.encoders.attention import AttentionEncoder, AttentionMask, SelfAttention
from tests.nn import plain
from tests.nn.built import attention_encoder, recurrent_encoder, self_attention
from tests.nn.plain import layout_of, randomise

LENGTHS = [3, 12, 1, 7, 5]
D_MODEL, HEADS, D_KV = 12, 2, 4


def attention() -> SelfAttention:
    module = self_attention(D_MODEL, heads=HEADS).double()
    randomise(module, seed=1)
    return module


def encoder(**choices: Any) -> AttentionEncoder:
    module = attention_encoder(D_MODEL, layers=3, heads=HEADS, **choices).double()
    randomise(module, seed=2)
    return module


def rows_of(width: int) -> Tensor:
    generator = torch.Generator().manual_seed(3)
    return torch.randn(sum(LENGTHS), width, generator=generator, dtype=torch.float64)


def test_limits_by_hand() -> None:
    """Of both products, of either and of none, with windows up to the whole sentence."""
    module, rows = attention(), rows_of(D_MODEL)
    counting = itertools.product([True, False], repeat=2)
    windows = [(None, False), (0, False), (2, False), (3, True), (11, True), (12, False)]
    for counts, window in itertools.product(counting, windows):
        limit = AttentionMask(*counts, *window)
        found = module(rows, layout_of(LENGTHS), limit)
        expected = plain.attention(module, rows, LENGTHS, limit=limit)
        torch.testing.assert_close(found, expected, atol=1e-12, rtol=0, msg=str(limit))


@pytest.mark.parametrize("window", [0, 1, 3])
def test_a_relaxed_window_by_its_definition(window: int) -> None:
    """For every length: START, the first word, the last word and STOP, as they overlap or not."""
    lengths = list(range(1, 13))
    layout = layout_of(lengths)
    limit = AttentionMask(window=window, relaxed=True)
    for n, found in zip(lengths, limit.pairs(layout)[:, 0], strict=True):
        assert torch.equal(found[:n, :n], plain.seen(limit, n))
        assert not found[:, n:].any()  # what lies beyond a sentence is seen by nobody


def test_gradients_of_limited_attention_are_finite() -> None:
    module, rows = encoder(), rows_of(D_MODEL // 2).requires_grad_()
    with module.limited(dict.fromkeys(range(3), AttentionMask(window=0))):
        module(rows, layout_of(LENGTHS)).square().sum().backward()
        assert rows.grad.isfinite().all()
        # With a window of 0 a token sees itself alone.
        (only,) = torch.autograd.grad(module(rows, layout_of(LENGTHS))[4].sum(), rows)
    assert only.abs().sum(dim=1).nonzero().flatten().tolist() == [4]


def test_layers_are_limited_one_by_one_and_for_a_while() -> None:
    module, rows, layout = encoder(window=4), rows_of(D_MODEL // 2), layout_of(LENGTHS)
    found = [module(rows, layout)]
    for masks in ({1: AttentionMask(window=4, position=False)}, {2: AttentionMask(window=4)}):
        with contextlib.suppress(KeyboardInterrupt), module.limited(masks):
            found.append(module(rows, layout))
            raise KeyboardInterrupt
    for one, other in itertools.combinations(found, 2):
        assert (one - other).abs().max() > 1e-4
    with module.limited({}):
        assert torch.equal(module(rows, layout), found[0])
    assert torch.equal(module(rows, layout), found[0])


def test_mistakes_are_refused() -> None:
    with pytest.raises(ValueError, match="window is -1; it must be 0 or more"):
        AttentionMask(window=-1)
    refused = [
        (encoder(), {3: AttentionMask(window=1)}, "layer 3: the encoder's layers are 0 to 2"),
        (encoder(matrices="full"), {0: AttentionMask(content=False)}, "layer 0: .* told apart"),
        (encoder(position="added"), {0: AttentionMask(content=False)}, "layer 0: .* told apart"),
        (recurrent_encoder("lstm"), {0: AttentionMask()}, "no attention .* LSTMEncoder"),
    ]
    for module, masks, words in refused:
        with pytest.raises(UnsupportedError, match=words):
            module.limited(masks).__enter__()
