"""Biaffine scores of arcs and relations, against the formulas of the paper arc by arc."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import numpy as np
import pytest
import torch
from torch import Tensor

from spmrl_bench.chart import decode_dependencies
from spmrl_bench.nn import biaffine, kernels
from spmrl_bench.nn.biaffine import (
    BiaffineScorer,
    arc_loss,
    legal_relations,
    packed_arcs,
    relation_loss,
)
from tests.nn import plain_biaffine
from tests.nn.plain import layout_of, randomise

WIDTH, RELATIONS = 6, 5
LENGTHS = [5, 3, 8, 4, 3]  # tokens: sentences of 3, 1, 6, 2 and 1 words
WORDS = [length - 2 for length in LENGTHS]
GOVERNORS = [2, 0, 2, 0, 5, 1, 2, 3, 0, 5, 2, 0, 0]
RELATION = [0, 3, 1, 4, 2, 0, 0, 1, 3, 2, 1, 4, 3]
LEGAL = torch.tensor([[True, True, True, False, False], [False, False, True, True, True]])
LAYOUT = layout_of(LENGTHS)


def scorer_of(legal: Tensor | None = LEGAL, dropout: float = 0.0) -> BiaffineScorer:
    module = BiaffineScorer(WIDTH, 4, 3, RELATIONS, dropout=dropout, legal=legal).double()
    randomise(module, seed=4)
    return module


@pytest.fixture
def scorer() -> BiaffineScorer:
    return scorer_of()


@pytest.fixture
def tokens() -> Tensor:
    generator = torch.Generator().manual_seed(5)
    return torch.randn(sum(LENGTHS), WIDTH, generator=generator, dtype=torch.float64)


def all_scores(module: BiaffineScorer, tokens: Tensor) -> tuple[Tensor, Tensor]:
    projected = module.project(tokens, LAYOUT)
    governors = torch.tensor(GOVERNORS)
    return (
        module.arc_scores(projected, LAYOUT),
        module.relation_scores(projected, LAYOUT, governors),
    )


def test_the_formulas_are_those_of_the_paper() -> None:
    """By hand, with vectors that are the coordinates of the tokens themselves."""
    module = BiaffineScorer(2, 2, 2, 2, dropout=0.0).double()
    with torch.no_grad():
        module.hidden.weight.copy_(torch.eye(2, dtype=torch.float64).repeat(4, 1))
        # Linear layers keep their matrices transposed.
        module.arc.weight.copy_(torch.tensor([[1.0, 2], [3, 4]]).t())
        module.arc.bias.copy_(torch.tensor([10.0, 20]))
        bilinear = torch.tensor([[[0.0, 0], [0, 0]], [[1, 2], [3, 4]]])
        module.relation.weight.copy_(bilinear.transpose(1, 2).flatten(0, 1))
        of_governor = torch.tensor([[10.0, 20], [0, 0]])
        module.relation.bias.copy_(of_governor.flatten())
        module.relation_dependent.weight.copy_(torch.tensor([[100.0, 200], [0, 0]]))
        module.relation_dependent.bias.copy_(torch.tensor([1000.0, 0.5]))
    start, word, stop = [3.0, 1.0], [1.0, -10.0], [7.0, 7.0]
    layout = layout_of([3])
    projected = module.project(torch.tensor([start, word, stop]).double(), layout)
    # The word's vector is [1, -1], by the slope of 0.1; U maps it to [1 - 3, 2 - 4].
    root = -2 * 3 - 2 * 1 + 10 * 3 + 20 * 1
    itself = -2 * 1 - 2 * -1 + 10 * 1 + 20 * -1
    found = module.arc_scores(projected, layout)
    torch.testing.assert_close(found, torch.tensor([[root, itself]]).double())
    linear = 100 * 1 + 200 * -1 + 10 * 3 + 20 * 1 + 1000
    found = module.relation_scores(projected, layout, torch.tensor([0]))
    expected = torch.tensor([[linear, -2 * 3 - 2 * 1 + 0.5]]).double()
    torch.testing.assert_close(found, expected)


def test_arc_scores_are_those_of_each_arc(scorer: BiaffineScorer, tokens: Tensor) -> None:
    found = all_scores(scorer, tokens)[0]
    assert found.shape == (sum(WORDS), max(WORDS) + 1)
    for row, (begin, word, n) in zip(found, plain_biaffine.words(LENGTHS), strict=True):
        expected = [
            plain_biaffine.arc_score(scorer, tokens[begin + word], tokens[begin + g])
            for g in range(n + 1)
        ]
        torch.testing.assert_close(row[: n + 1], torch.stack(expected), atol=1e-12, rtol=0)
        assert (row[n + 1 :] == -torch.inf).all()


def test_relation_scores_are_those_of_each_relation(tokens: Tensor) -> None:
    scorer = scorer_of(legal=None)
    found = all_scores(scorer, tokens)[1]
    arcs = zip(plain_biaffine.words(LENGTHS), GOVERNORS, strict=True)
    for row, ((begin, word, _), governor) in zip(found, arcs, strict=True):
        pair = tokens[begin + word], tokens[begin + governor]
        expected = [plain_biaffine.relation_score(scorer, *pair, r) for r in range(RELATIONS)]
        torch.testing.assert_close(row, torch.stack(expected), atol=1e-12, rtol=0)


def test_losses_and_gradients_are_those_of_the_formulas(
    scorer: BiaffineScorer, tokens: Tensor
) -> None:
    tokens.requires_grad_()
    found = [
        arc_loss(all_scores(scorer, tokens)[0], torch.tensor(GOVERNORS)),
        relation_loss(all_scores(scorer, tokens)[1], torch.tensor(RELATION)),
    ]
    expected = [
        plain_biaffine.arc_losses(scorer, tokens, LENGTHS, GOVERNORS),
        plain_biaffine.relation_losses(scorer, tokens, LENGTHS, GOVERNORS, RELATION),
    ]
    weights = [tokens, *scorer.parameters()]
    stops = np.cumsum(LENGTHS) - 1
    for own, plain in zip(found, expected, strict=True):
        torch.testing.assert_close(own, plain, atol=1e-11, rtol=0)
        gradients = [
            torch.autograd.grad(loss, weights, allow_unused=True, materialize_grads=True)
            for loss in (own, plain)
        ]
        # The root is a governor, of START, while STOP has nothing to do with it.
        assert gradients[0][0][stops[:-1] + 1].all()
        assert not gradients[0][0][stops].any()
        for of_own, of_plain in zip(*gradients, strict=True):
            torch.testing.assert_close(of_own, of_plain, atol=1e-11, rtol=0)


def test_scores_of_a_sentence_do_not_depend_on_the_others(
    scorer: BiaffineScorer, tokens: Tensor
) -> None:
    for dtype, tolerance in ((torch.float64, 1e-13), (torch.float32, 1e-5)):
        module, rows = scorer.to(dtype), tokens.to(dtype)
        arcs, relations = all_scores(module, rows)
        ends, firsts = np.cumsum(LENGTHS), np.cumsum([0, *WORDS])
        for length, end, (low, high) in zip(LENGTHS, ends, pairwise(firsts), strict=True):
            alone = layout_of([length])
            projected = module.project(rows[end - length : end], alone)
            found = module.arc_scores(projected, alone)
            torch.testing.assert_close(found, arcs[low:high, : length - 1], atol=tolerance, rtol=0)
            governors = torch.tensor(GOVERNORS[low:high])
            found = module.relation_scores(projected, alone, governors)
            torch.testing.assert_close(found, relations[low:high], atol=tolerance, rtol=0)


def test_neither_blocks_nor_rounded_rows_show(
    scorer: BiaffineScorer, tokens: Tensor, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = all_scores(scorer, tokens)
    monkeypatch.setattr(biaffine, "BLOCK", 4)
    monkeypatch.setattr(kernels, "rounds_rows", lambda dtype: True)
    for found, expected in zip(all_scores(scorer, tokens), whole, strict=True):
        torch.testing.assert_close(found, expected, atol=1e-13, rtol=0)


def test_autocast_changes_nothing(scorer: BiaffineScorer, tokens: Tensor) -> None:
    scorer.float()
    rows = tokens.float()

    def losses(rows: Tensor) -> list[Tensor]:
        arcs, relations = all_scores(scorer, rows)
        assert arcs.dtype == relations.dtype == torch.float32
        return [
            arcs,
            relations,
            arc_loss(arcs, torch.tensor(GOVERNORS)),
            relation_loss(relations, torch.tensor(RELATION)),
        ]

    expected = losses(rows)
    with torch.autocast("cpu", torch.bfloat16):
        found = losses(rows)
        from_bf16 = losses(rows.bfloat16())
    for own, plain in zip(found, expected, strict=True):
        assert torch.equal(own, plain)
    for own, plain in zip(from_bf16, losses(rows.bfloat16().float()), strict=True):
        assert torch.equal(own, plain)


def test_huge_scores_give_finite_losses_and_gradients(
    scorer: BiaffineScorer, tokens: Tensor
) -> None:
    scorer.float()
    rows = (1000 * tokens.float()).requires_grad_()
    arcs, relations = all_scores(scorer, rows)
    loss = arc_loss(arcs, torch.tensor(GOVERNORS)) + relation_loss(
        relations, torch.tensor(RELATION)
    )
    assert loss > 1e5
    for gradient in torch.autograd.grad(loss, [rows, *scorer.parameters()]):
        assert gradient.isfinite().all()


def test_at_first_everything_is_equally_likely() -> None:
    module = BiaffineScorer(WIDTH, 4, 3, RELATIONS, dropout=0.0, legal=LEGAL)
    arcs, relations = all_scores(module, torch.randn(sum(LENGTHS), WIDTH))
    expected = sum(n * np.log(n + 1) for n in WORDS)
    assert arc_loss(arcs, torch.tensor(GOVERNORS)).item() == pytest.approx(expected, rel=1e-6)
    expected = len(RELATION) * np.log(3)  # three are legal, wherever the arc comes from
    assert relation_loss(relations, torch.tensor(RELATION)).item() == pytest.approx(expected)


# Which relations are legal ----------------------------------------------------------------


def test_the_root_has_relations_of_its_own(scorer: BiaffineScorer, tokens: Tensor) -> None:
    found = all_scores(scorer, tokens)[1]
    free = all_scores(scorer_of(legal=None), tokens)[1]
    for row, unbound, governor in zip(found, free, GOVERNORS, strict=True):
        legal = LEGAL[1 if governor == 0 else 0]
        assert (row[~legal] == -torch.inf).all()
        assert torch.equal(row[legal], unbound[legal])


def test_relations_seen_are_legal() -> None:
    legal = legal_relations(np.array([0, 2, 1, 0]), np.array([3, 0, 1, 1]), 5)
    assert legal.tolist() == [[True, True, False, False, False], [False, True, False, True, False]]


def test_where_nothing_was_seen_everything_is_legal() -> None:
    legal = legal_relations(np.array([0, 0]), np.array([1, 1]), 3)
    assert legal.tolist() == [[True, True, True], [False, True, False]]


def test_legal_relations_are_saved_with_the_weights(scorer: BiaffineScorer) -> None:
    other = BiaffineScorer(WIDTH, 4, 3, RELATIONS, dropout=0.0)
    other.load_state_dict(scorer.state_dict())
    assert torch.equal(other.legal, LEGAL)


@pytest.mark.parametrize(
    "legal", [LEGAL[0], LEGAL[:, :4], LEGAL & torch.tensor([[True], [False]])], ids=str
)
def test_masks_that_do_not_fit_are_refused(legal: Tensor) -> None:
    with pytest.raises(ValueError, match=r"it must be \[2, 5\] and allow at least one in each"):
        BiaffineScorer(WIDTH, 4, 3, RELATIONS, dropout=0.0, legal=legal)


# Dropout ----------------------------------------------------------------------------------


def test_dropout_is_shared_by_the_tokens_of_a_sentence() -> None:
    module = BiaffineScorer(WIDTH, 40, 30, RELATIONS, dropout=0.4).double()
    rows = torch.randn(sum(LENGTHS), WIDTH, dtype=torch.float64)
    dropped = module.project(rows, LAYOUT)
    kept = module.eval().project(rows, LAYOUT)
    for own, plain in zip(dropped, kept, strict=True):
        factors = (own / plain).split(LENGTHS)
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
        row[: n + 1].tolist()
        for row, (_, _, n) in zip(arcs, plain_biaffine.words(LENGTHS), strict=True)
    ]
    assert packed.tolist() == [score for row in expected for score in row]
    decoded = decode_dependencies(packed.astype(np.float32), WORDS, projective=False)
    assert decoded.offsets.tolist() == [0, *np.cumsum(WORDS).tolist()]


# What does not fit ------------------------------------------------------------------------


def changed(values: list[int], k: int, value: int) -> Tensor:
    return torch.tensor([*values[:k], value, *values[k + 1 :]])


@pytest.mark.parametrize("governor", [-1, 4, 100])
def test_governors_beyond_the_sentence_are_refused(
    scorer: BiaffineScorer, tokens: Tensor, governor: int
) -> None:
    wrong = changed(GOVERNORS, 2, governor)
    arcs = all_scores(scorer, tokens)[0]
    projected = scorer.project(tokens, LAYOUT)
    refused: list[Callable[[], Tensor]] = [
        lambda: arc_loss(arcs, wrong),
        lambda: scorer.relation_scores(projected, LAYOUT, wrong),
    ]
    for action in refused:
        with pytest.raises(ValueError, match=f"word 2 .*: governor {governor} is not in the sent"):
            action()


def test_one_governor_for_each_word(scorer: BiaffineScorer, tokens: Tensor) -> None:
    with pytest.raises(ValueError, match="12 governors for 13 words"):
        scorer.relation_scores(scorer.project(tokens, LAYOUT), LAYOUT, torch.tensor(GOVERNORS[1:]))


@pytest.mark.parametrize("relation", [-1, 3, 5])
def test_relations_that_cannot_be_learnt_are_refused(
    scorer: BiaffineScorer, tokens: Tensor, relation: int
) -> None:
    scores = all_scores(scorer, tokens)[1]
    with pytest.raises(ValueError, match=f"word 2 .*: relation {relation} is not legal for its"):
        relation_loss(scores, changed(RELATION, 2, relation))
