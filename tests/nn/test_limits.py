"""Parts of the attention that are taken away, as in tables 1 to 3 of Kitaev & Klein 2018."""

from __future__ import annotations

import copy
import math
from typing import Any

import pytest
import torch
from torch import Tensor

from spmrl_bench.nn.encoder import Encoder, SelfAttention
from spmrl_bench.nn.limits import OPEN, Limit
from tests.nn.plain import layout_of, randomise

LENGTHS = [3, 12, 1, 7, 5]
D_MODEL, HEADS, D_KV = 12, 2, 4
NO_DROPOUT = dict.fromkeys(("attention_dropout", "residual_dropout", "relu_dropout"), 0.0)


def attention() -> SelfAttention:
    module = SelfAttention(D_MODEL, HEADS, D_KV, 0.0).double()
    randomise(module, seed=1)
    return module


def encoder(**choices: Any) -> Encoder:
    module = Encoder(D_MODEL, 3, HEADS, D_KV, 10, 20, **NO_DROPOUT, **choices).double()
    randomise(module, seed=2)
    return module


def rows_of(width: int) -> Tensor:
    generator = torch.Generator().manual_seed(3)
    return torch.randn(sum(LENGTHS), width, generator=generator, dtype=torch.float64)


def attend(module: SelfAttention, rows: Tensor, limit: Limit = OPEN) -> Tensor:
    layout = layout_of(LENGTHS)
    found: Tensor = module(rows, layout, limit)
    return found


def weights_by_hand(module: SelfAttention, rows: Tensor, limit: Limit) -> Tensor:
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


@pytest.mark.parametrize(
    "limit",
    [
        OPEN,
        Limit(content=False),
        Limit(position=False),
        Limit(content=False, position=False),
        Limit(window=0),
        Limit(window=2),
        Limit(window=2, relaxed=True),
        Limit(content=False, window=3, relaxed=True),
    ],
    ids=str,
)
def test_limits_by_hand(limit: Limit) -> None:
    module, rows = attention(), rows_of(D_MODEL)
    found = attend(module, rows, limit).split(LENGTHS)
    for given, result in zip(rows.split(LENGTHS), found, strict=True):
        expected = weights_by_hand(module, given, limit)
        torch.testing.assert_close(result, expected, atol=1e-12, rtol=0)


@pytest.mark.parametrize("side", ["content", "position"])
def test_leaving_a_term_out_equals_zero_queries(side: str) -> None:
    module, rows = attention(), rows_of(D_MODEL)
    found = attend(module, rows, Limit(**{side: False}))
    zeroed = copy.deepcopy(module)
    with torch.no_grad():
        getattr(zeroed.project, side).weight[: HEADS * D_KV // 2] = 0
    torch.testing.assert_close(found, attend(zeroed, rows), atol=1e-12, rtol=0)
    assert (found - attend(module, rows)).abs().max() > 1e-3


@pytest.mark.parametrize("relaxed", [False, True])
@pytest.mark.parametrize("window", [11, 12, 100])
def test_a_window_of_the_whole_sentence_changes_nothing(window: int, relaxed: bool) -> None:
    module, rows = attention(), rows_of(D_MODEL)
    found = attend(module, rows, Limit(window=window, relaxed=relaxed))
    torch.testing.assert_close(found, attend(module, rows), atol=1e-12, rtol=0)


@pytest.mark.parametrize("window", [0, 1, 3])
def test_a_relaxed_window_by_its_definition(window: int) -> None:
    """For every length: START, the first word, the last word and STOP, as they overlap or not."""
    lengths = list(range(1, 13))
    layout = layout_of(lengths)
    seen = Limit(window=window, relaxed=True).pairs(layout)[:, 0]
    for n, found in zip(lengths, seen, strict=True):
        ends = {0, 1, n - 2, n - 1}
        expected = [
            [abs(i - j) <= window or i in ends or j in ends for j in range(n)] for i in range(n)
        ]
        assert found[:n, :n].tolist() == expected
        assert not found[:, n:].any()  # what lies beyond a sentence is seen by nobody


def test_a_relaxed_window_lets_the_ends_see_all_and_be_seen_by_all() -> None:
    module, n = encoder(), 12
    module.limit({0: Limit(window=1, relaxed=True), 1: Limit(window=0), 2: Limit(window=0)})
    rows = rows_of(D_MODEL // 2)[:n].requires_grad_()
    found = module(rows, layout_of([n]))
    for token in range(n):
        (by_rows,) = torch.autograd.grad(found[token].square().sum(), rows, retain_graph=True)
        reached = by_rows.abs().sum(1).nonzero().flatten().tolist()
        ends = {0, 1, n - 2, n - 1}
        near = {token - 1, token, token + 1}
        assert reached == (list(range(n)) if token in ends else sorted(ends | near))


def test_gradients_of_limited_attention_are_finite() -> None:
    module, rows = encoder(), rows_of(D_MODEL // 2).requires_grad_()
    module.limit(dict.fromkeys(range(3), Limit(window=0)))
    module(rows, layout_of(LENGTHS)).square().sum().backward()
    assert rows.grad.isfinite().all()
    # With a window of 0 a token sees itself alone.
    (only,) = torch.autograd.grad(module(rows, layout_of(LENGTHS))[4].sum(), rows)
    assert only.abs().sum(dim=1).nonzero().flatten().tolist() == [4]


def test_layers_are_limited_one_by_one() -> None:
    module, rows, layout = encoder(), rows_of(D_MODEL // 2), layout_of(LENGTHS)
    whole = module(rows, layout)
    module.limit({1: Limit(position=False)})
    second = module(rows, layout)
    module.limit({2: Limit(position=False)})
    third = module(rows, layout)
    assert min((a - b).abs().max() for a, b in [(whole, second), (second, third)]) > 1e-4
    module.limit({})
    assert torch.equal(module(rows, layout), whole)


def test_the_kernels_are_not_asked_for_limited_attention() -> None:
    module, rows, layout = encoder().float(), rows_of(D_MODEL // 2).float(), layout_of(LENGTHS)
    limits = dict.fromkeys(range(3), Limit(window=1))
    module.limit(limits)
    found = module(rows, layout)
    module.double().limit(limits)
    torch.testing.assert_close(found.double(), module(rows.double(), layout), atol=1e-4, rtol=0)


def test_mistakes_are_refused() -> None:
    with pytest.raises(ValueError, match="layer 3: the encoder's layers are 0 to 2"):
        encoder().limit({3: Limit(window=1)})
    with pytest.raises(ValueError, match="window is -1; it must be 0 or more"):
        Limit(window=-1)
    choices: list[dict[str, Any]] = [{"matrices": "full"}, {"position": "added"}]
    for choice in choices:
        mixed = encoder(**choice)
        mixed.limit({0: Limit(window=1)})
        with pytest.raises(ValueError, match=r"layer 0: .* can be told apart only with"):
            mixed.limit({0: Limit(content=False)})
