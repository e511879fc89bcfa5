"""Parts of the attention that are taken away, as in tables 1 to 3 of Kitaev & Klein 2018."""

from __future__ import annotations

import contextlib
import itertools
import math
from typing import Any

import pytest
import torch
from torch import Tensor

from spmrl_bench.errors import UnsupportedError
from spmrl_bench.nn.encoders.attention import AttentionEncoder, AttentionMask, SelfAttention
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


def weights_by_hand(module: SelfAttention, rows: Tensor, limit: AttentionMask) -> Tensor:
    """Attention of one sentence in plain loops, ``[n, d_model]``."""
    n = len(rows)
    heads = module.project.to_heads(rows, 3 * HEADS).view(n, 3, HEADS, D_KV)
    half = D_KV // 2
    results = torch.zeros(n, HEADS, D_KV, dtype=torch.float64)
    ends = {0, 1, n - 2, n - 1}
    for h in range(HEADS):
        for i in range(n):
            logits = {}
            for j in range(n):
                near = limit.window is None or abs(i - j) <= limit.window
                if near or (limit.relaxed and (i in ends or j in ends)):
                    query, key = heads[i, 0, h], heads[j, 1, h]
                    total = torch.zeros((), dtype=torch.float64)
                    if limit.content:
                        total = total + query[:half] @ key[:half]
                    if limit.position:
                        total = total + query[half:] @ key[half:]
                    logits[j] = (total / math.sqrt(D_KV)).exp()
            for j, weight in logits.items():
                results[i, h] += weight / sum(logits.values()) * heads[j, 2, h]
    return module.output.from_heads(results)


def test_limits_by_hand() -> None:
    """Of both products, of either and of none, with windows up to the whole sentence."""
    module, rows = attention(), rows_of(D_MODEL)
    counting = itertools.product([True, False], repeat=2)
    windows = [(None, False), (0, False), (2, False), (3, True), (11, True), (12, False)]
    for counts, window in itertools.product(counting, windows):
        limit = AttentionMask(*counts, *window)
        found = module(rows, layout_of(LENGTHS), limit).split(LENGTHS)
        for given, result in zip(rows.split(LENGTHS), found, strict=True):
            expected = weights_by_hand(module, given, limit)
            torch.testing.assert_close(result, expected, atol=1e-12, rtol=0, msg=str(limit))


@pytest.mark.parametrize("window", [0, 1, 3])
def test_a_relaxed_window_by_its_definition(window: int) -> None:
    """For every length: START, the first word, the last word and STOP, as they overlap or not."""
    lengths = list(range(1, 13))
    layout = layout_of(lengths)
    seen = AttentionMask(window=window, relaxed=True).pairs(layout)[:, 0]
    for n, found in zip(lengths, seen, strict=True):
        ends = {0, 1, n - 2, n - 1}
        expected = [
            [abs(i - j) <= window or i in ends or j in ends for j in range(n)] for i in range(n)
        ]
        assert found[:n, :n].tolist() == expected
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
