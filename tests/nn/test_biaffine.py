"""Biaffine scores of arcs and relations, against the formulas of the paper arc by arc."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from spmrl_bench.chart.dependencies import decode_dependencies
from spmrl_bench.nn import kernels
from spmrl_bench.nn.scorers import biaffine
from spmrl_bench.nn.scorers.biaffine import BiaffineScorer, choice_loss, packed_arcs
from tests.nn import plain
from tests.nn.plain import layout_of, random_rows, randomise

WIDTH, RELATIONS = 6, 5
LENGTHS = [5, 3, 8, 4, 3]  # tokens: sentences of 3, 1, 6, 2 and 1 words
WORDS = [length - 2 for length in LENGTHS]
HEADS = [2, 0, 2, 0, 5, 1, 2, 3, 0, 5, 2, 0, 0]
RELATION = [0, 3, 1, 4, 2, 0, 0, 1, 3, 2, 1, 4, 3]
LEGAL = torch.tensor([[True, True, True, False, False], [False, False, True, True, True]])
ALL = torch.ones_like(LEGAL)
LAYOUT = layout_of(LENGTHS)


def fresh(legal: Tensor = LEGAL, d_arc: int = 4, d_relation: int = 3, **rate: float) -> Any:
    settings = SimpleNamespace(d_arc=d_arc, d_relation=d_relation, **{"dropout": 0.0, **rate})
    return BiaffineScorer(settings, WIDTH, legal)


def scorer_of(legal: Tensor = LEGAL) -> BiaffineScorer:
    module: BiaffineScorer = fresh(legal).double()
    randomise(module, seed=4)
    return module


@pytest.fixture
def scorer() -> BiaffineScorer:
    return scorer_of()


@pytest.fixture
def tokens() -> Tensor:
    return random_rows(LENGTHS, WIDTH, seed=5)


def all_scores(module: BiaffineScorer, tokens: Tensor) -> tuple[Tensor, Tensor]:
    projected = module.project(tokens, LAYOUT)
    heads = torch.tensor(HEADS)
    arcs = module.arc_scores(projected, LAYOUT)
    return arcs, module.relation_scores(projected, LAYOUT, heads)


def test_arc_scores_are_those_of_each_arc(scorer: BiaffineScorer, tokens: Tensor) -> None:
    found = all_scores(scorer, tokens)[0]
    assert found.shape == (sum(WORDS), max(WORDS) + 1)
    for row, (begin, word, n) in zip(found, plain.words_of(LENGTHS), strict=True):
        heads = tokens[begin : begin + n + 1]
        expected = plain.arc_scores(scorer, tokens[begin + word], heads)
        torch.testing.assert_close(row[: n + 1], expected, atol=1e-12, rtol=0)
        assert (row[n + 1 :] == -torch.inf).all()


def test_losses_and_gradients_are_those_of_the_formulas(
    scorer: BiaffineScorer, tokens: Tensor
) -> None:
    tokens.requires_grad_()
    found = [
        choice_loss(all_scores(scorer, tokens)[0], torch.tensor(HEADS)),
        choice_loss(all_scores(scorer, tokens)[1], torch.tensor(RELATION)),
    ]
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


def test_neither_blocks_nor_rounded_rows_show(
    scorer: BiaffineScorer, tokens: Tensor, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = all_scores(scorer, tokens)
    monkeypatch.setattr(biaffine, "BLOCK", 4)
    monkeypatch.setattr(kernels, "rounds_rows", lambda dtype: True)
    for found, expected in zip(all_scores(scorer, tokens), whole, strict=True):
        torch.testing.assert_close(found, expected, atol=1e-13, rtol=0)


def test_at_first_everything_is_equally_likely() -> None:
    module = fresh()
    arcs, relations = all_scores(module, torch.randn(sum(LENGTHS), WIDTH))
    expected = sum(n * np.log(n + 1) for n in WORDS)
    assert choice_loss(arcs, torch.tensor(HEADS)).item() == pytest.approx(expected, rel=1e-6)
    expected = len(RELATION) * np.log(3)  # three are legal, wherever the arc comes from
    assert choice_loss(relations, torch.tensor(RELATION)).item() == pytest.approx(expected)


# Which relations are legal ----------------------------------------------------------------


def test_the_root_has_relations_of_its_own(scorer: BiaffineScorer, tokens: Tensor) -> None:
    found = all_scores(scorer, tokens)[1]
    free = all_scores(scorer_of(legal=ALL), tokens)[1]
    for row, unbound, head in zip(found, free, HEADS, strict=True):
        legal = LEGAL[1 if head == 0 else 0]
        assert (row[~legal] == -torch.inf).all()
        assert torch.equal(row[legal], unbound[legal])


def test_legal_relations_are_saved_with_the_weights(scorer: BiaffineScorer) -> None:
    other = scorer_of(legal=ALL)
    other.load_state_dict(scorer.state_dict())
    assert torch.equal(other.legal, LEGAL)


# Dropout ----------------------------------------------------------------------------------


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


# With the decoder -------------------------------------------------------------------------


def test_packed_arcs_are_what_the_decoder_takes(scorer: BiaffineScorer, tokens: Tensor) -> None:
    arcs = all_scores(scorer, tokens)[0]
    packed = packed_arcs(arcs, LAYOUT).detach().numpy()
    expected = [
        row[: n + 1].tolist() for row, (_, _, n) in zip(arcs, plain.words_of(LENGTHS), strict=True)
    ]
    assert packed.tolist() == [score for row in expected for score in row]
    assert len(decode_dependencies(packed, WORDS, projective=False)) == sum(WORDS)
