"""Leads of labels over others, shared out among the heads of label attention."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from spmrl_bench.chart.arrays import cell_index
from spmrl_bench.nn.scorers.span_scores import fenceposts
from spmrl_bench.parsers.chart import ChartParser
from spmrl_bench.parsers.views import HeadOutputs, Leads, lead_parts, runner_up, scored_label
from spmrl_bench.trees.head_driven import SUB_HEAD, TO_HEAD
from tests.analysis.test_heads import HEADS, label_layer_of, random_parser, seen_in
from tests.nn.plain import layer_norm

WORDS = ["the", "cat", "sees", "a", "big", "dog", "."]
SPANS = [(0, 7), (2, 6), (0, 1), (3, 6)]
LABELS, OTHERS = [1, 2, 0, 3], [2, 0, 1, 1]
FORMS: list[dict[str, Any]] = [
    {},
    {"label_feed_forward": "usual"},
    {"label_feed_forward": "usual", "layer_norm": "released"},
    {"encoder": "lstm", "label_feed_forward": "usual"},
    {"label_queries": "matrices"},
]


def scores_of_parser(parser: ChartParser) -> Tensor:
    """What the parser itself scores the spans with, ``[spans, labels - 1]``."""
    (encoded,) = parser.encoded([WORDS])
    n = len(WORDS)
    found = torch.cat([block.clone() for block in parser.scorer.label_scores(encoded)])
    return found[[cell_index(start, end, n) for start, end in SPANS]]


def outputs(parser: ChartParser) -> HeadOutputs:
    return seen_in(parser, WORDS).heads


def scores_of(heads: HeadOutputs) -> Tensor:
    with torch.no_grad():
        return heads.label_scores(torch.from_numpy(heads.features)[None], SPANS)[0]


def given(heads: HeadOutputs) -> Leads:
    return Leads(SPANS, LABELS, OTHERS, scores_of(heads))


@pytest.mark.parametrize("form", FORMS)
def test_scores_from_what_heads_give_are_those_of_the_parser(form: dict[str, Any]) -> None:
    made = random_parser(**form)
    found = scores_of(outputs(made))
    assert torch.equal(found[:, 0], torch.zeros(len(SPANS)))
    torch.testing.assert_close(found[:, 1:], scores_of_parser(made), atol=1e-4, rtol=1e-4)


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
        lead = scores[k, LABELS[k]] - scores[k, OTHERS[k]]
        whole, constant, alone = (
            _held_lead(made, features, chosen, span, LABELS[k], OTHERS[k])
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
    other: int,
) -> Any:
    """The lead from some heads, or (None) from each alone, with all else as it is for all heads."""
    if heads is None:
        return np.array(
            [_held_lead(parser, features, [h], span, label, other)[0] for h in range(HEADS)]
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
    return np.array([float(scores[label] - scores[other])])


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


def test_the_runner_up_is_the_best_other_label_that_may_be_there() -> None:
    labels = random_parser().vocabulary.labels
    scores = torch.full((len(labels),), -1.0)
    scores[0] = 0.0
    s, np_, vp = (labels.index((name,)) for name in ("S", "NP", "VP"))
    scores[[s, np_, vp]] = torch.tensor([-0.5, 3.0, 2.0])
    assert runner_up(labels, np_, (1, 3), 7, scores) == vp
    assert runner_up(labels, vp, (1, 3), 7, scores) == np_
    scores[vp] = -2.0
    assert runner_up(labels, np_, (1, 3), 7, scores) == 0
    assert runner_up(labels, np_, (0, 7), 7, scores) == s  # a sentence has a label
    assert runner_up(labels, 0, (1, 3), 7, scores) == np_
    assert scored_label(labels, ("VP",), scores) == vp
    assert scored_label(labels, ("UNHEARD",), scores) is None
    assert scored_label(labels, (), scores) == 0


def test_labels_of_division_spans_have_two_forms() -> None:
    labels = ((), ("NP",), (TO_HEAD, "NP"), (TO_HEAD,), ("VP",), (SUB_HEAD,), (TO_HEAD, SUB_HEAD))
    scores = torch.tensor([0.0, 2.0, 3.0, 2.5, 1.0, 0.9, 2.8])
    assert scored_label(labels, ("NP",), scores) == 2
    assert scored_label(labels, (), scores) == 3
    assert runner_up(labels, 2, (1, 3), 7, scores) == 6  # not the other form
    assert runner_up(labels, 2, (1, 2), 7, scores) == 3  # a word is no sub-head
    assert runner_up(labels, 2, (0, 7), 7, scores) == 4  # nor is a sentence, which has a label
    assert runner_up(labels, 3, (1, 2), 7, scores) == 2
