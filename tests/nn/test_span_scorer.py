"""Fenceposts and span scores, against one evaluation per span."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from spmrl_bench.nn import kernels
from spmrl_bench.nn.scorers import spans
from spmrl_bench.nn.scorers.spans import SpanScorer, fenceposts
from tests.nn import plain
from tests.nn.built import span_scorer
from tests.nn.plain import all_scores, randomise

LABELS = 7
SPANS = [(i, j) for i in range(6) for j in range(i + 1, 7)]


@pytest.fixture
def scorer() -> SpanScorer:
    module = span_scorer(8, 5, LABELS).double()
    randomise(module, seed=4)
    return module


@pytest.fixture
def posts() -> Tensor:
    return torch.randn(7, 8, generator=torch.Generator().manual_seed(5), dtype=torch.float64)


START = torch.tensor([i for i, _ in SPANS])
END = torch.tensor([j for _, j in SPANS])


def test_fenceposts_join_first_halves_of_blocks_left_and_second_ones_right() -> None:
    lengths = [4, 3, 6]
    encoded = torch.randn(sum(lengths), 24, dtype=torch.float64)
    left = torch.tensor([0, 1, 2, 4, 5, 7, 8, 9, 10, 11])  # every token but the STOPs
    for block in (2, 6, 24):
        assert torch.equal(
            fenceposts(encoded, left, block), plain.fenceposts(encoded, lengths, block)
        )


@pytest.mark.parametrize("norm", ["usual", "released"])
def test_all_scores_are_the_network_of_each_span(norm: str, posts: Tensor) -> None:
    module = span_scorer(8, 5, LABELS, layer_norm=norm).double()
    randomise(module, seed=4)
    found = all_scores(module, module.project(posts), START, END)
    assert found.shape == (len(SPANS), LABELS - 1)  # the empty label has no score
    for row, (i, j) in zip(found, SPANS, strict=True):
        expected = plain.span_scores(module, posts[i], posts[j])
        torch.testing.assert_close(row, expected, atol=1e-12, rtol=0)


@pytest.mark.parametrize("rounded", [False, True])
def test_neither_blocks_nor_rounded_rows_show(
    scorer: SpanScorer, posts: Tensor, rounded: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = all_scores(scorer, scorer.project(posts), START, END)
    monkeypatch.setattr(kernels, "rounds_rows", lambda dtype: rounded)
    projected = scorer.project(posts)
    assert len(projected) == len(posts)
    for block in (1, 4, len(SPANS) - 1, len(SPANS), len(SPANS) + 1):
        monkeypatch.setattr(spans, "BLOCK", block)
        found = all_scores(scorer, projected, START, END)
        torch.testing.assert_close(found, whole, atol=1e-13, rtol=0)


def test_chosen_scores_and_their_gradients_are_those_of_the_whole_table(
    scorer: SpanScorer, posts: Tensor
) -> None:
    labels = 1 + torch.arange(len(SPANS)) % (LABELS - 1)
    factors = torch.randn(len(SPANS), dtype=torch.float64)
    posts.requires_grad_()

    def chosen() -> Tensor:
        return scorer.chosen_scores(scorer.project(posts), START, END, labels)

    def dense() -> Tensor:
        hidden = scorer.norm(scorer.first(posts[END] - posts[START])).relu()
        table = scorer.second(hidden)
        return table[torch.arange(len(SPANS)), labels - 1]

    def outcome(scores: Tensor) -> tuple[Tensor, ...]:
        weights = [posts, *scorer.parameters()]
        return scores, *torch.autograd.grad((scores * factors).sum(), weights)

    for found, expected in zip(outcome(chosen()), outcome(dense()), strict=True):
        assert expected.any()
        torch.testing.assert_close(found, expected, atol=1e-11, rtol=0)
