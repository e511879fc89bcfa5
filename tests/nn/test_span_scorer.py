"""Fenceposts and span scores, against one evaluation per span."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import Tensor

from spmrl_bench.nn import kernels, span_scorer
from spmrl_bench.nn.span_scorer import SpanScorer, fenceposts
from tests.nn import plain
from tests.nn.plain import all_scores, array, randomise

LABELS = 7
SPANS = [(i, j) for i in range(6) for j in range(i + 1, 7)]


@pytest.fixture
def scorer() -> SpanScorer:
    module = SpanScorer(d_model=8, d_hidden=5, labels=LABELS).double()
    randomise(module, seed=4)
    return module


@pytest.fixture
def posts() -> Tensor:
    return torch.randn(7, 8, generator=torch.Generator().manual_seed(5), dtype=torch.float64)


START = torch.tensor([i for i, _ in SPANS])
END = torch.tensor([j for _, j in SPANS])


def test_fenceposts_join_even_coordinates_left_and_odd_ones_right() -> None:
    lengths = [4, 3, 6]
    encoded = torch.randn(sum(lengths), 8, dtype=torch.float64)
    left = torch.tensor([0, 1, 2, 4, 5, 7, 8, 9, 10, 11])  # every token but the STOPs
    np.testing.assert_array_equal(
        array(fenceposts(encoded, left)), plain.fenceposts(array(encoded), lengths)
    )


def test_fenceposts_by_hand() -> None:
    start, word, stop = [0, 1, 2, 3], [10, 11, 12, 13], [20, 21, 22, 23]
    found = fenceposts(torch.tensor([start, word, stop]), torch.tensor([0, 1]))
    assert found.tolist() == [[0, 2, 11, 13], [10, 12, 21, 23]]


def test_all_scores_are_the_network_of_each_span(scorer: SpanScorer, posts: Tensor) -> None:
    found = all_scores(scorer, scorer.project(posts), START, END)
    assert found.shape == (len(SPANS), LABELS - 1)  # the empty label has no score
    for row, (i, j) in zip(array(found), SPANS, strict=True):
        expected = plain.span_scores(scorer, array(posts[i]), array(posts[j]))
        np.testing.assert_allclose(row, expected, atol=1e-12)


@pytest.mark.parametrize("block", [1, 4, len(SPANS) - 1, len(SPANS), len(SPANS) + 1])
def test_blocks_do_not_show(
    scorer: SpanScorer, posts: Tensor, block: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    projected = scorer.project(posts)
    whole = all_scores(scorer, projected, START, END)
    monkeypatch.setattr(span_scorer, "BLOCK", block)
    found = all_scores(scorer, projected, START, END)
    torch.testing.assert_close(found, whole, atol=1e-13, rtol=0)


@pytest.mark.parametrize("rounded", [False, True])
def test_scores_of_the_kernel_are_those_of_torch(
    scorer: SpanScorer, posts: Tensor, rounded: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With as many rows as there are spans, and rounded up as where oneDNN multiplies."""
    expected = all_scores(scorer, scorer.project(posts), START, END)
    monkeypatch.setattr(kernels, "rounds_rows", lambda dtype: rounded)
    scorer.float()
    projected = scorer.project(posts.float())
    assert len(projected) == len(posts)
    found = all_scores(scorer, projected, START, END)
    torch.testing.assert_close(found.double(), expected, atol=2e-5, rtol=0)


def test_chosen_scores_are_entries_of_all_scores(scorer: SpanScorer, posts: Tensor) -> None:
    projected = scorer.project(posts)
    table = all_scores(scorer, projected, START, END)
    for label in range(1, LABELS):
        labels = torch.full((len(SPANS),), label)
        found = scorer.chosen_scores(projected, START, END, labels)
        torch.testing.assert_close(found, table[:, label - 1], atol=1e-12, rtol=0)


def test_gradients_of_chosen_scores_are_those_of_the_whole_table(
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

    def gradients(scores: Callable[[], Tensor]) -> tuple[Tensor, ...]:
        return torch.autograd.grad((scores() * factors).sum(), [posts, *scorer.parameters()])

    for found, expected in zip(gradients(chosen), gradients(dense), strict=True):
        assert expected.any()
        torch.testing.assert_close(found, expected, atol=1e-11, rtol=0)


def test_the_released_norm_stands_in_the_span_scorer_too() -> None:
    module = SpanScorer(8, 5, LABELS, "released").double()
    plain.randomise(module, seed=6)
    posts = torch.randn(6, 8, generator=torch.Generator().manual_seed(7), dtype=torch.float64)
    start, end = torch.tensor([0, 1, 0, 3]), torch.tensor([1, 4, 5, 4])
    expected = [
        plain.span_scores(module, plain.array(posts[i]), plain.array(posts[j]))
        for i, j in zip(start.tolist(), end.tolist(), strict=True)
    ]
    for rows, tolerance in ((posts, 1e-12), (posts.float(), 1e-4)):
        scorer = module.to(rows.dtype)  # the kernels would compute the usual norm
        found = plain.all_scores(scorer, scorer.project(rows), start, end)
        np.testing.assert_allclose(plain.array(found), expected, atol=tolerance)
