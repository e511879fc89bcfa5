"""Scores without a head, and scores shared out among heads."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from spmrl_bench.analysis.head_scores import Choices, choices, lead_parts, lead_without_each
from spmrl_bench.analysis.rivals import rival_of, scored_label
from spmrl_bench.chart.arrays import cell_index
from spmrl_bench.nn.scorers.spans import fenceposts
from spmrl_bench.parsers.chart import ChartParser
from spmrl_bench.parsers.views import HeadOutputs
from spmrl_bench.trees.head_driven import SUB_HEAD, TO_HEAD
from tests.analysis.constructed import HEADS, label_layer_of, random_parser, seen_in, with_gains
from tests.nn.plain import layer_norm

WORDS = ["the", "cat", "sees", "a", "big", "dog", "."]
SPANS = [(0, 7), (2, 6), (0, 1), (3, 6)]
LABELS, RIVALS = [1, 2, 0, 3], [2, 0, 1, 1]
FORMS: list[dict[str, Any]] = [
    {},
    {"label_feed_forward": "usual"},
    {"label_feed_forward": "usual", "layer_norm": "released"},
    {"encoder": "lstm", "label_feed_forward": "usual"},
    {"label_queries": "matrices"},
]


def scores_of_parser(parser: ChartParser) -> Tensor:
    """What the parser itself scores the spans with, ``[spans, labels - 1]``."""
    (encoded,) = parser.encoded([WORDS], None, 2000)
    n = len(WORDS)
    found = torch.cat([block.clone() for block in parser.scorer.label_scores(encoded)])
    return found[[cell_index(start, end, n) for start, end in SPANS]]


def outputs(parser: ChartParser) -> HeadOutputs:
    return seen_in(parser, WORDS).heads


def scores_of(heads: HeadOutputs) -> Tensor:
    with torch.no_grad():
        return heads.label_scores(torch.from_numpy(heads.features)[None], SPANS)[0]


def given(heads: HeadOutputs) -> Choices:
    return Choices(SPANS, LABELS, RIVALS, scores_of(heads))


@pytest.mark.parametrize("form", FORMS)
def test_scores_from_what_heads_give_are_those_of_the_parser(form: dict[str, Any]) -> None:
    made = random_parser(**form)
    found = scores_of(outputs(made))
    assert torch.equal(found[:, 0], torch.zeros(len(SPANS)))
    torch.testing.assert_close(found[:, 1:], scores_of_parser(made), atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("form", FORMS)
def test_without_a_head_they_are_those_of_a_parser_that_lacks_it(form: dict[str, Any]) -> None:
    heads = outputs(random_parser(**form))
    whole, found = scores_of(heads), lead_without_each(heads, given(heads))
    assert found.shape == (len(SPANS), HEADS)
    row = torch.arange(len(SPANS))
    for head in range(HEADS):
        gains = [float(other != head) for other in range(HEADS)]
        scores = scores_of_parser(with_gains(random_parser(**form), gains))
        lost = whole - torch.nn.functional.pad(scores, (1, 0))
        expected = lost[row, LABELS] - lost[row, RIVALS]
        np.testing.assert_allclose(found[:, head], expected, atol=1e-3)
    assert np.abs(found).max(axis=0).min() > 0.01


def test_few_heads_at_a_time_give_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    heads = outputs(random_parser(label_feed_forward="usual"))
    expected = [of(heads, given(heads)) for of in (lead_without_each, lead_parts)]
    monkeypatch.setattr("spmrl_bench.analysis.head_scores._FEATURES", 2 * heads.features.size)
    found = [of(heads, given(heads)) for of in (lead_without_each, lead_parts)]
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-5)
    nothing = Choices([], [], [], torch.zeros(0, len(heads.labels)))
    assert lead_parts(heads, nothing).shape == (0, HEADS)


@pytest.mark.parametrize("form", FORMS[:4])
def test_parts_of_heads_and_a_constant_are_the_lead(form: dict[str, Any]) -> None:
    """The same network in plain float64, with ReLUs and deviations as they are for all heads.

    It is linear then: what it gives for one head alone, less what it gives for none, is the part.
    """
    made = random_parser(**form)
    heads = outputs(made)
    parts, scores = lead_parts(heads, given(heads)), scores_of(heads).numpy()
    features = torch.from_numpy(heads.features)
    for k, span in enumerate(SPANS):
        lead = scores[k, LABELS[k]] - scores[k, RIVALS[k]]
        whole, constant, alone = (
            _held_lead(made, features, chosen, span, LABELS[k], RIVALS[k])
            for chosen in ([*range(HEADS)], [], None)
        )
        assert whole[0] == pytest.approx(lead, abs=1e-3)
        np.testing.assert_allclose(parts[k], alone - constant, atol=1e-3)
        assert parts[k].sum() + constant[0] == pytest.approx(lead, abs=1e-3)
        assert np.abs(parts[k]).max() > 0.02


def _held_lead(
    parser: ChartParser,
    features: Tensor,
    heads: list[int] | None,
    span: tuple[int, int],
    label: int,
    rival: int,
) -> Any:
    """The lead from some heads, or (None) from each alone, with all else as it is for all heads."""
    if heads is None:
        return np.array(
            [_held_lead(parser, features, [h], span, label, rival)[0] for h in range(HEADS)]
        )
    double = {k: v.detach().double() for k, v in parser.scorer.state_dict().items()}
    chosen = torch.zeros(HEADS, 1, dtype=torch.float64)
    chosen[heads] = 1
    full, some = features.double().flatten(1), (features.double() * chosen).flatten(1)
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
            normal = layer_norm(row, norm).detach()
            # What the norm divides by, from one of its features.
            k = int((row - row.mean()).abs().argmax())
            scale = (normal[k] - bias[k]) / (row[k] - row.sum() / width)
            out.append((other - other.mean()) * scale / weight[k] * weight + bias)
        results.append(torch.stack(out))
    return results[0], results[1]


def test_the_training_mode_stays_and_nothing_is_dropped() -> None:
    rates = {"relu_dropout": 0.5, "residual_dropout": 0.5, "attention_dropout": 0.5}
    made = random_parser(label_feed_forward="usual", label_residual_dropout=0.5, **rates)
    heads = outputs(made)
    parts = lead_parts(heads, given(heads))
    again = outputs(made.train())
    assert made.training
    np.testing.assert_array_equal(again.features, heads.features)
    np.testing.assert_array_equal(lead_parts(again, given(again)), parts)
    assert all(weight.grad is None for weight in made.parameters())


def test_a_rival_is_the_best_other_label_that_may_be_there() -> None:
    labels = random_parser().vocabulary.labels
    scores = torch.full((len(labels),), -1.0)
    scores[0] = 0.0
    s, np_, vp = (labels.index((name,)) for name in ("S", "NP", "VP"))
    scores[[s, np_, vp]] = torch.tensor([-0.5, 3.0, 2.0])
    assert rival_of(labels, np_, (1, 3), 7, scores) == vp
    assert rival_of(labels, vp, (1, 3), 7, scores) == np_
    scores[vp] = -2.0
    assert rival_of(labels, np_, (1, 3), 7, scores) == 0
    assert rival_of(labels, np_, (0, 7), 7, scores) == s  # a sentence has a label
    assert rival_of(labels, 0, (1, 3), 7, scores) == np_
    assert scored_label(labels, ("VP",), scores) == vp
    assert scored_label(labels, ("UNHEARD",), scores) is None
    assert scored_label(labels, (), scores) == 0


def test_labels_of_division_spans_have_two_forms() -> None:
    labels = ((), ("NP",), (TO_HEAD, "NP"), (TO_HEAD,), ("VP",), (SUB_HEAD,), (TO_HEAD, SUB_HEAD))
    scores = torch.tensor([0.0, 2.0, 3.0, 2.5, 1.0, 0.9, 2.8])
    assert scored_label(labels, ("NP",), scores) == 2
    assert scored_label(labels, (), scores) == 3
    assert rival_of(labels, 2, (1, 3), 7, scores) == 6  # not the other form
    assert rival_of(labels, 2, (1, 2), 7, scores) == 3  # a word is no sub-head
    assert rival_of(labels, 2, (0, 7), 7, scores) == 4  # nor is a sentence, which has a label
    assert rival_of(labels, 3, (1, 2), 7, scores) == 2


def test_without_a_known_rival_it_is_the_runner_up() -> None:
    heads = outputs(random_parser())
    label = heads.labels[1]
    found = choices(heads, SPANS[:3], [label] * 3, [heads.labels[2], None, ("UNHEARD",)])
    assert (found.labels, found.rivals[0]) == ([1] * 3, 2)
    for k in (1, 2):
        scores = scores_of(heads)[k]
        assert found.rivals[k] == rival_of(heads.labels, 1, SPANS[k], len(WORDS), scores)
