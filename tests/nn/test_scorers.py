"""Scores of spans against one evaluation per span, of arcs and relations arc by arc."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from spmrl_bench.chart.dependency_trees import decode_dependencies
from spmrl_bench.nn import kernels
from spmrl_bench.nn.scorers import pair_scores, span_scores
from spmrl_bench.nn.scorers.pair_scores import BiaffineScorer, choice_loss, packed_arcs
from spmrl_bench.nn.scorers.span_scores import SpanScorer, fenceposts
from tests.nn import plain
from tests.nn.built import span_scorer
from tests.nn.plain import all_scores, layout_of, random_rows, randomise

LABELS = 7
SPANS = [(i, j) for i in range(6) for j in range(i + 1, 7)]


@pytest.fixture
def of_spans() -> SpanScorer:
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
    of_spans: SpanScorer, posts: Tensor, rounded: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = all_scores(of_spans, of_spans.project(posts), START, END)
    monkeypatch.setattr(kernels, "rounds_rows", lambda dtype: rounded)
    projected = of_spans.project(posts)
    assert len(projected) == len(posts)
    for block in (1, 4, len(SPANS) - 1, len(SPANS), len(SPANS) + 1):
        monkeypatch.setattr(span_scores, "BLOCK", block)
        found = all_scores(of_spans, projected, START, END)
        torch.testing.assert_close(found, whole, atol=1e-13, rtol=0)


def test_chosen_scores_and_their_gradients_are_those_of_the_whole_table(
    of_spans: SpanScorer, posts: Tensor
) -> None:
    labels = 1 + torch.arange(len(SPANS)) % (LABELS - 1)
    factors = torch.randn(len(SPANS), dtype=torch.float64)
    posts.requires_grad_()

    def chosen() -> Tensor:
        return of_spans.chosen_scores(of_spans.project(posts), START, END, labels)

    def dense() -> Tensor:
        hidden = of_spans.norm(of_spans.first(posts[END] - posts[START])).relu()
        table = of_spans.second(hidden)
        return table[torch.arange(len(SPANS)), labels - 1]

    def outcome(scores: Tensor) -> tuple[Tensor, ...]:
        weights = [posts, *of_spans.parameters()]
        return scores, *torch.autograd.grad((scores * factors).sum(), weights)

    for found, expected in zip(outcome(chosen()), outcome(dense()), strict=True):
        assert expected.any()
        torch.testing.assert_close(found, expected, atol=1e-11, rtol=0)


WIDTH, RELATIONS = 6, 5
LENGTHS = [5, 3, 8, 4, 3]  # tokens: sentences of 3, 1, 6, 2 and 1 words
WORDS = [length - 2 for length in LENGTHS]
HEADS = [2, 0, 2, 0, 5, 1, 2, 3, 0, 5, 2, 0, 0]
RELATION = [0, 3, 1, 4, 2, 0, 0, 1, 3, 2, 1, 4, 3]
LEGAL = torch.tensor([[True, True, True, False, False], [False, False, True, True, True]])
ALL = torch.ones_like(LEGAL)
LAYOUT = layout_of(LENGTHS)
TOKENS = random_rows(LENGTHS, WIDTH, seed=5)


def fresh(legal: Tensor = LEGAL, d_arc: int = 4, d_relation: int = 3, **rate: float) -> Any:
    settings = SimpleNamespace(d_arc=d_arc, d_relation=d_relation, **{"dropout": 0.0, **rate})
    return BiaffineScorer(settings, WIDTH, legal)


def scorer_of(legal: Tensor = LEGAL) -> BiaffineScorer:
    module: BiaffineScorer = fresh(legal).double()
    randomise(module, seed=4)
    return module


def both_scores(module: BiaffineScorer, tokens: Tensor = TOKENS) -> tuple[Tensor, Tensor]:
    projected = module.project(tokens, LAYOUT)
    heads = torch.tensor(HEADS)
    arcs = module.arc_scores(projected, LAYOUT)
    return arcs, module.relation_scores(projected, LAYOUT, heads)


def test_losses_and_gradients_are_those_of_the_formulas() -> None:
    scorer, tokens = scorer_of(), TOKENS.clone().requires_grad_()
    scores = both_scores(scorer, tokens)
    found = map(choice_loss, scores, map(torch.tensor, (HEADS, RELATION)))
    expected = plain.biaffine_losses(scorer, tokens, LENGTHS, HEADS, RELATION)
    weights = [tokens, *scorer.parameters()]
    stops = np.cumsum(LENGTHS) - 1
    for own, by_hand in zip(found, expected, strict=True):
        torch.testing.assert_close(own, by_hand, atol=1e-11, rtol=0)
        gradients = [
            torch.autograd.grad(
                loss, weights, allow_unused=True, materialize_grads=True, retain_graph=True
            )
            for loss in (own, by_hand)
        ]
        # The root is a head, of START, while STOP has nothing to do with it.
        assert gradients[0][0][stops[:-1] + 1].all()
        assert not gradients[0][0][stops].any()
        for of_own, of_plain in zip(*gradients, strict=True):
            torch.testing.assert_close(of_own, of_plain, atol=1e-11, rtol=0)


def test_neither_blocks_nor_rounded_rows_show_of_arcs(monkeypatch: pytest.MonkeyPatch) -> None:
    scorer = scorer_of()
    whole = both_scores(scorer)
    monkeypatch.setattr(pair_scores, "BLOCK", 4)
    monkeypatch.setattr(kernels, "rounds_rows", lambda dtype: True)
    for found, expected in zip(both_scores(scorer), whole, strict=True):
        torch.testing.assert_close(found, expected, atol=1e-13, rtol=0)


def test_at_first_everything_is_equally_likely() -> None:
    module = fresh()
    arcs, relations = both_scores(module, torch.randn(sum(LENGTHS), WIDTH))
    expected = sum(n * np.log(n + 1) for n in WORDS)
    assert choice_loss(arcs, torch.tensor(HEADS)).item() == pytest.approx(expected, rel=1e-6)
    expected = len(RELATION) * np.log(3)  # three are legal, wherever the arc comes from
    assert choice_loss(relations, torch.tensor(RELATION)).item() == pytest.approx(expected)


def test_legal_relations_are_saved_with_the_weights() -> None:
    scorer = scorer_of()
    other = scorer_of(legal=ALL)
    other.load_state_dict(scorer.state_dict())
    assert torch.equal(other.legal, LEGAL)


def test_dropout_is_shared_by_the_tokens_of_a_sentence() -> None:
    module = fresh(ALL, 40, 30, dropout=0.4).double()
    rows = torch.randn(sum(LENGTHS), WIDTH, dtype=torch.float64)
    dropped = module.project(rows, LAYOUT)
    kept = module.eval().project(rows, LAYOUT)
    for own, whole in zip(dropped, kept, strict=True):
        factors = (own / whole).split(LENGTHS)
        masks = []
        for sentence in factors:
            torch.testing.assert_close(sentence, sentence[:1].expand_as(sentence))
            assert set(sentence[0].round(decimals=6).tolist()) == {0.0, 1.666667}
            masks.append(sentence[0])
        assert not torch.equal(masks[0] != 0, masks[1] != 0)


def test_packed_arcs_are_what_the_decoder_takes() -> None:
    scorer = scorer_of()
    arcs = both_scores(scorer)[0]
    packed = packed_arcs(arcs, LAYOUT).detach().numpy()
    expected = [
        row[: n + 1].tolist() for row, (_, _, n) in zip(arcs, plain.words_of(LENGTHS), strict=True)
    ]
    assert packed.tolist() == [score for row in expected for score in row]
    assert len(decode_dependencies(packed, WORDS, projective=False)) == sum(WORDS)
