"""Scores without a head, and scores shared out among heads."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from spmrl_bench.analysis.head_scores import (
    label_scores,
    lead_parts,
    lead_without_each,
    scores_without_each,
)
from spmrl_bench.analysis.label_views import label_layer_of, label_view
from spmrl_bench.analysis.rivals import rival_of, scored_label
from spmrl_bench.chart.packing import cell_index
from spmrl_bench.nn.span_scorer import fenceposts
from spmrl_bench.parsers.chart_parser import ChartParser
from spmrl_bench.trees.head_driven import SUB_HEAD, TO_HEAD
from tests.analysis.constructed import HEADS, random_parser, with_gains
from tests.nn.plain import all_scores, layer_norm

WORDS = ["the", "cat", "sees", "a", "big", "dog", "."]
SPANS = [(0, 7), (2, 6), (0, 1), (3, 6)]
FORMS: list[dict[str, Any]] = [
    {},
    {"label_feed_forward": "usual"},
    {"label_feed_forward": "usual", "layer_norm": "released"},
    {"encoder": "lstm", "label_feed_forward": "usual"},
    {"label_queries": "matrices"},
]


def scores_of_parser(parser: ChartParser) -> Tensor:
    """What the parser itself scores the spans with, ``[spans, labels - 1]``."""
    (encoded,) = parser.encoded([WORDS], None, 2000, None)
    n = len(WORDS)
    found = torch.cat([block.clone() for block in parser.label_scores(encoded)])
    return found[[cell_index(start, end, n) for start, end in SPANS]]


@pytest.mark.parametrize("form", FORMS)
def test_scores_from_what_heads_give_are_those_of_the_parser(form: dict[str, Any]) -> None:
    made = random_parser(**form)
    view = label_view(made, WORDS)
    found = label_scores(made, view.blocks[None], SPANS)[0]
    assert torch.equal(found[:, 0], torch.zeros(len(SPANS)))
    torch.testing.assert_close(found[:, 1:], scores_of_parser(made), atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("form", FORMS)
def test_without_a_head_they_are_those_of_a_parser_that_lacks_it(form: dict[str, Any]) -> None:
    blocks = label_view(random_parser(**form), WORDS).blocks
    found = torch.cat(list(scores_without_each(random_parser(**form), blocks, SPANS)))
    whole = label_scores(random_parser(**form), blocks[None], SPANS)[0]
    assert len(found) == HEADS
    for head in range(HEADS):
        gains = [float(other != head) for other in range(HEADS)]
        expected = scores_of_parser(with_gains(random_parser(**form), gains))
        torch.testing.assert_close(found[head, :, 1:], expected, atol=1e-4, rtol=1e-4)
        assert (found[head] - whole).abs().max() > 0.01


def test_few_heads_at_a_time_give_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    made = random_parser(label_feed_forward="usual")
    blocks = label_view(made, WORDS).blocks
    labels, rivals = [1, 2, 0, 3], [2, 0, 1, 1]
    expected = [of(made, blocks, SPANS, labels, rivals) for of in (lead_without_each, lead_parts)]
    monkeypatch.setattr("spmrl_bench.analysis.head_scores._FEATURES", 2 * blocks.numel())
    assert [len(part) for part in scores_without_each(made, blocks, SPANS)] == [2, 2, 1]
    found = [of(made, blocks, SPANS, labels, rivals) for of in (lead_without_each, lead_parts)]
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one, other, atol=1e-5, rtol=1e-5)
    assert lead_parts(made, blocks, [], [], []).shape == (0, HEADS)


@pytest.mark.parametrize("form", FORMS[:4])
def test_parts_of_heads_and_a_constant_are_the_lead(form: dict[str, Any]) -> None:
    """The same network in plain float64, with ReLUs and deviations as they are for all heads.

    It is linear then: what it gives for one head alone, less what it gives for none, is the part.
    """
    made = random_parser(**form)
    blocks = label_view(made, WORDS).blocks
    labels, rivals = [1, 2, 0, 3], [2, 0, 1, 1]
    parts = lead_parts(made, blocks, SPANS, labels, rivals).numpy()
    scores = label_scores(made, blocks[None], SPANS)[0].numpy()
    for k, span in enumerate(SPANS):
        lead = scores[k, labels[k]] - scores[k, rivals[k]]
        whole, constant, alone = (
            _held_lead(made, blocks, chosen, span, labels[k], rivals[k])
            for chosen in ([*range(HEADS)], [], None)
        )
        assert whole[0] == pytest.approx(lead, abs=1e-3)
        np.testing.assert_allclose(parts[k], alone - constant, atol=1e-3)
        assert parts[k].sum() + constant[0] == pytest.approx(lead, abs=1e-3)
        assert np.abs(parts[k]).max() > 0.02


def _held_lead(
    parser: ChartParser,
    blocks: Tensor,
    heads: list[int] | None,
    span: tuple[int, int],
    label: int,
    rival: int,
) -> Any:
    """The lead from some heads, or (None) from each alone, with all else as it is for all heads."""
    if heads is None:
        return np.array(
            [_held_lead(parser, blocks, [h], span, label, rival)[0] for h in range(HEADS)]
        )
    double = {k: v.detach().double() for k, v in parser.scorer.state_dict().items()}
    chosen = torch.zeros(HEADS, 1, dtype=torch.float64)
    chosen[heads] = 1
    full, some = blocks.double().flatten(1), (blocks.double() * chosen).flatten(1)
    feed = label_layer_of(parser).feed_forward
    if feed is not None:
        w = {k: v.detach().double() for k, v in feed.state_dict().items()}
        hidden = full @ w["expand.weight"].T + w["expand.bias"]
        gate = hidden > 0
        own = some @ w["expand.weight"].T + w["expand.bias"]
        full = full + (hidden * gate) @ w["contract.weight"].T + w["contract.bias"]
        some = some + (own * gate) @ w["contract.weight"].T + w["contract.bias"]
        full, some = _held(full, some, feed.norm)
    left = torch.arange(len(WORDS) + 1)
    vectors = []
    for rows in (full, some):
        posts = fenceposts(rows, left, parser.encoder.d_block)
        vectors.append((posts[span[1]] - posts[span[0]]) @ double["first.weight"].T)
    full, some = (vector + double["first.bias"] for vector in vectors)
    full, some = _held(full[None], some[None], parser.scorer.norm)
    gate = full > 0
    scores = (some * gate) @ double["second.weight"].T + double["second.bias"]
    scores = torch.cat((torch.zeros(1), scores[0]))
    return np.array([float(scores[label] - scores[rival])])


def _held(full: Tensor, some: Tensor, norm: Any) -> tuple[Tensor, Tensor]:
    """Both rows normalised with the deviations of the first."""
    width = full.shape[1]
    weight, bias = norm.weight.detach().double(), norm.bias.detach().double()
    results = []
    for rows in (full, some):
        out = []
        for row, other in zip(full, rows, strict=True):
            normal = torch.from_numpy(layer_norm(row.numpy(), norm))
            # What the norm divides by, from one of its features.
            k = int((row - row.mean()).abs().argmax())
            scale = (normal[k] - bias[k]) / (row[k] - row.sum() / width)
            out.append((other - other.mean()) * scale / weight[k] * weight + bias)
        results.append(torch.stack(out))
    return results[0], results[1]


def test_the_training_mode_stays_and_nothing_is_dropped() -> None:
    made = random_parser(label_feed_forward="usual", relu_dropout=0.5, residual_dropout=0.5)
    blocks = label_view(made, WORDS).blocks
    expected = label_scores(made, blocks[None], SPANS)
    parts = lead_parts(made, blocks, SPANS, [1] * 4, [0] * 4)
    made.train()
    assert torch.equal(label_scores(made, blocks[None], SPANS), expected)
    assert torch.equal(lead_parts(made, blocks, SPANS, [1] * 4, [0] * 4), parts)
    assert made.training
    assert all(weight.grad is None for weight in made.parameters())


def test_a_rival_is_the_best_other_label_that_may_be_there() -> None:
    made = random_parser()
    labels = made.vocabulary.labels
    scores = torch.full((len(labels),), -1.0)
    scores[0] = 0.0
    s, np_, vp = (labels.index((name,)) for name in ("S", "NP", "VP"))
    scores[[s, np_, vp]] = torch.tensor([-0.5, 3.0, 2.0])
    assert rival_of(made, np_, (1, 3), 7, scores) == vp
    assert rival_of(made, vp, (1, 3), 7, scores) == np_
    scores[vp] = -2.0
    assert rival_of(made, np_, (1, 3), 7, scores) == 0
    assert rival_of(made, np_, (0, 7), 7, scores) == s  # a sentence has a label
    assert rival_of(made, 0, (1, 3), 7, scores) == np_
    assert scored_label(made, ("VP",), scores) == vp
    assert scored_label(made, ("UNHEARD",), scores) is None
    assert scored_label(made, (), scores) == 0


def test_labels_of_division_spans_have_two_forms() -> None:
    labels = ((), ("NP",), (TO_HEAD, "NP"), (TO_HEAD,), ("VP",), (SUB_HEAD,), (TO_HEAD, SUB_HEAD))
    ids = {label: k for k, label in enumerate(labels)}
    made: Any = SimpleNamespace(vocabulary=SimpleNamespace(labels=labels, label_ids=ids))
    scores = torch.tensor([0.0, 2.0, 3.0, 2.5, 1.0, 0.9, 2.8])
    assert scored_label(made, ("NP",), scores) == 2
    assert scored_label(made, (), scores) == 3
    assert rival_of(made, 2, (1, 3), 7, scores) == 6  # not the other form
    assert rival_of(made, 2, (1, 2), 7, scores) == 3  # a word is no sub-head
    assert rival_of(made, 2, (0, 7), 7, scores) == 4  # nor is a sentence, which has a label
    assert rival_of(made, 3, (1, 2), 7, scores) == 2


def test_all_scores_of_plain_helper_agree() -> None:
    """The helper of other tests scores the spans alike, so that the tests above do not lean on
    one way only."""
    made = random_parser()
    view = label_view(made, WORDS)
    posts = fenceposts(view.blocks.flatten(1), torch.arange(len(WORDS) + 1), made.encoder.d_block)
    start, end = (torch.tensor(side) for side in zip(*SPANS, strict=True))
    with torch.no_grad():
        expected = all_scores(made.scorer, made.scorer.project(posts), start, end)
    found = label_scores(made, view.blocks[None], SPANS)[0, :, 1:]
    torch.testing.assert_close(found, expected, atol=1e-5, rtol=1e-5)
